// The bucket of one limit in memory, for any number of threads.
//
// Meters and fixed windows: acquire reads the hot pair, reads the clock, asks the core, and swaps the pair in. No lock, no allocation; a denial
// writes nothing. All else locks the pair (hot_pair.hpp) and works on the whole bucket. What a lock-free acquire does not write it
// need not: the time of the last promise is at least `at` anyway, and the rest changes only under the lock.
#pragma once

#include <cstdint>

#include "taskq/detail/bucket.hpp"
#include "taskq/detail/hot_pair.hpp"

namespace taskq::detail {

template <class Pair>
class BasicMemoryBucket {
 public:
  BasicMemoryBucket(const LimitDefinition& definition, const Clock& clock);
  BasicMemoryBucket(const BasicMemoryBucket&) = delete;
  BasicMemoryBucket& operator=(const BasicMemoryBucket&) = delete;

  // REQUIRES: 1 <= cost <= limit.most().
  Answer acquire(std::int64_t cost);

  Answer run(const Request& request);

 private:
  Answer acquire_meter(std::int64_t cost);
  Answer acquire_fixed(std::int64_t cost);

  // Read-only after construction, and away from the words that are written all the time.
  const LimitDefinition definition_;
  const Clock& clock_;
  alignas(64) Pair hot_;
  std::atomic<Micros> phase_;  // fixed windows: an instant at which one starts; changes under the lock
  Bucket rest_;
};

class MemoryBucket : public BasicMemoryBucket<BestPair> {
 public:
  using BasicMemoryBucket::BasicMemoryBucket;
};

}  // namespace taskq::detail
