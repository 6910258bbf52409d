// Throughput with tolerance for bursts: starts full, a call takes tokens, tokens come back continuously. A rate of 0 is a quota that never
// refills. Thread-safety: see limiter.hpp.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "taskq/limiter.hpp"

namespace taskq {

class TokenBucket : public Limiter {
 public:
  // Throws InvalidArgument unless capacity > 0 and the rate >= 0.
  TokenBucket(std::string name, const BucketOptions& options, std::shared_ptr<Backend> backend = nullptr)
      : Limiter(define_bucket(std::move(name), Kind::token_bucket, options), std::move(backend)) {}

  double capacity() const noexcept { return definition().quota; }
  double refill_per_second() const noexcept { return definition().rate; }
};

}  // namespace taskq
