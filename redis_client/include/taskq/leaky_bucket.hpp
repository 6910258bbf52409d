// A token bucket seen from below: calls pour in, water leaks out at a steady rate, what would overflow is denied. Admits exactly what a
// TokenBucket of the same numbers admits. For evenly paced output use a capacity of 1, or wait(). Thread-safety: see limiter.hpp.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "taskq/limiter.hpp"

namespace taskq {

class LeakyBucket : public Limiter {
 public:
  // `refill_per_second` is the rate of the leak. Throws InvalidArgument unless capacity > 0 and the rate >= 0.
  LeakyBucket(std::string name, const BucketOptions& options, std::shared_ptr<Backend> backend = nullptr)
      : Limiter(define_bucket(std::move(name), Kind::leaky_bucket, options), std::move(backend)) {}

  double capacity() const noexcept { return definition().quota; }
  double leak_per_second() const noexcept { return definition().rate; }
  double water() const { return capacity() - remaining(); }
};

}  // namespace taskq
