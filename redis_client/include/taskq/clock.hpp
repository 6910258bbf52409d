// Clocks. Every limiter on the memory backend works with one; the other backends use the clock of their server and need one only
// to sleep. Instants are microseconds since the Unix epoch.
//
//   SteadyClock   the default: never set back, counts from the system's time at the start of the program
//   SystemClock   the wall clock; a limiter sees it being set and follows the rules of the core for that
//   TscClock      the processor's time stamp counter, scaled: three times as fast to read; drifts by some millionths
//   FakeClock     stands still until a test moves it
// Thread-safety: all clocks may be used from any number of threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <stop_token>

#include "taskq_ratelimit/micros.hpp"

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace taskq {

using ratelimit::Micros;
using Duration = std::chrono::microseconds;
using TimePoint = std::chrono::sys_time<std::chrono::microseconds>;

class Clock {
 public:
  virtual ~Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;

  // Without a virtual call for the fastest clock.
  Micros now() const noexcept {
#if defined(__x86_64__)
    if (scale_.multiplier != 0) {
      const std::uint64_t ticks = __rdtsc() - scale_.base;
      return scale_.epoch + static_cast<Micros>((static_cast<ratelimit::UnsignedWide>(ticks) * scale_.multiplier) >> 64);
    }
#endif
    return look();
  }

  // Sleeps for that long by this clock. False if it was stopped before.
  virtual bool sleep(Duration duration, std::stop_token stop) const;

 protected:
  // Of a time stamp counter.
  struct Scale {
    std::uint64_t base = 0;        // counter at `epoch`
    std::uint64_t multiplier = 0;  // microseconds per tick, times 2^64; 0: there is none
    Micros epoch = 0;
  };

  Clock() noexcept : scale_{} {}
  explicit Clock(const Scale& scale) noexcept : scale_(scale) {}

 private:
  virtual Micros look() const noexcept = 0;

  Scale scale_;
};

class SystemClock final : public Clock {
 private:
  Micros look() const noexcept override;
};

class SteadyClock final : public Clock {
 public:
  SteadyClock() noexcept;

 private:
  Micros look() const noexcept override;

  Micros epoch_;
};

// Is a steady clock where the counter does not run at a constant rate. The first one made measures the rate, which takes 20 ms.
class TscClock final : public Clock {
 public:
  TscClock() noexcept;
  static bool usable() noexcept;

 private:
  static Scale measure() noexcept;
  Micros look() const noexcept override;

  SteadyClock fallback_;
};

// Stands still until it is moved; sleepers wake when it has been moved far enough.
class FakeClock final : public Clock {
 public:
  explicit FakeClock(TimePoint start = TimePoint{std::chrono::seconds{1'735'689'600}}) noexcept  // 2025-01-01
      : now_(start.time_since_epoch().count()) {}

  bool sleep(Duration duration, std::stop_token stop) const override;

  // Moves the clock; back, too.
  void advance(Duration by);
  void set(TimePoint to);

  // From now on whoever sleeps moves the clock, so that nothing ever waits. For tests with one thread.
  void move_when_slept_on(bool on) noexcept { moved_by_sleepers_ = on; }

  // How many threads sleep on this clock now and would go on sleeping.
  int sleepers() const;

 private:
  Micros look() const noexcept override { return now_.load(std::memory_order_acquire); }

  mutable std::atomic<Micros> now_;
  std::atomic<bool> moved_by_sleepers_ = false;
  mutable std::mutex mutex_;
  mutable std::condition_variable_any moved_;
  mutable std::multiset<Micros> wake_at_;
};

// The clock of limiters that were given none: one SteadyClock for the program.
std::shared_ptr<const Clock> default_clock();

}  // namespace taskq
