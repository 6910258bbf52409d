// The two words of a bucket that every decision reads and writes: `at`, and `used` with two flags above its 53 bits. Both change together, in
// one compare-and-swap. Where the processor has none of that width, `used` itself is the lock, for as long as two stores take.
//
// A slow operation (refund, a place in the queue, reset, ...) sets the flag `locked` and keeps it while it works on the rest of the
// bucket: until then nobody else gets past. Thread-safety: all functions, any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

#include "taskq_ratelimit/micros.hpp"

namespace taskq::detail {

struct Words {
  std::int64_t at = 0;
  std::int64_t used = 0;
};

inline constexpr std::int64_t kLocked = std::int64_t{1} << 62;
inline constexpr std::int64_t kPaused = std::int64_t{1} << 61;
inline constexpr std::int64_t kFlags = kLocked | kPaused;

// A few turns on the spot, then others may run.
class Backoff {
 public:
  void pause() noexcept {
    if (++turns_ > 64) {
      std::this_thread::yield();
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

 private:
  int turns_ = 0;
};

// Wide: one 16-byte compare-and-swap. Else two words, the second one locked in between.
template <bool Wide>
class alignas(16) HotPair {
 public:
  HotPair(std::int64_t at, std::int64_t used) noexcept : at_(at), used_(used) {}

  // A pair that was there at one instant, whatever others do meanwhile: `at` never comes back while `used` is read.
  Words load() const noexcept {
    for (;;) {
      const std::int64_t at = at_.load(std::memory_order_acquire);
      const std::int64_t used = used_.load(std::memory_order_acquire);
      if (at_.load(std::memory_order_relaxed) == at) return {at, used};
    }
  }

  // True if the pair was `expected` and is `desired` now; else `expected` is what it is.
  bool exchange(Words& expected, Words desired) noexcept;

  // Waits until nobody holds the flag `locked`, sets it and returns the pair as it was without it.
  Words lock() noexcept {
    for (Backoff backoff;; backoff.pause()) {
      std::int64_t used = used_.load(std::memory_order_relaxed);
      if ((used & kLocked) != 0) continue;
      if (used_.compare_exchange_weak(used, used | kLocked, std::memory_order_acquire)) {
        return {at_.load(std::memory_order_relaxed), used};
      }
    }
  }

  // REQUIRES: this thread has locked it; `to` is not locked.
  void unlock(Words to) noexcept {
    at_.store(to.at, std::memory_order_release);
    used_.store(to.used, std::memory_order_release);
  }

 private:
  std::atomic<std::int64_t> at_;
  std::atomic<std::int64_t> used_;
};

#if defined(__x86_64__)
inline constexpr bool kHasWideExchange = true;

// The builtins of that width call a library unless a flag is given to whoever includes this; the instruction is on every x86-64
// but the very first ones.
template <>
inline bool HotPair<true>::exchange(Words& expected, Words desired) noexcept {
  static_assert(sizeof(HotPair) == 16);
  bool done;
  __asm__ __volatile__("lock cmpxchg16b %1"
                       : "=@ccz"(done), "+m"(*this), "+a"(expected.at), "+d"(expected.used)
                       : "b"(desired.at), "c"(desired.used)
                       : "memory");
  return done;
}
#else
inline constexpr bool kHasWideExchange = false;
#endif

template <>
inline bool HotPair<false>::exchange(Words& expected, Words desired) noexcept {
  std::int64_t used = expected.used;
  if (!used_.compare_exchange_strong(used, used | kLocked, std::memory_order_acquire)) {
    expected = load();
    return false;
  }
  const std::int64_t at = at_.load(std::memory_order_relaxed);
  const bool same = at == expected.at;
  unlock(same ? desired : Words{at, used});
  expected.at = at;
  return same;
}

// ThreadSanitizer does not see what assembly does.
#if defined(__SANITIZE_THREAD__) || defined(TASKQ_NARROW_EXCHANGE)
using BestPair = HotPair<false>;
#else
using BestPair = HotPair<kHasWideExchange>;
#endif

}  // namespace taskq::detail
