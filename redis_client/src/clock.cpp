#include "taskq/clock.hpp"

#include <time.h>

#include <iterator>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace taskq {

namespace {

constexpr Micros kPerSecond = ratelimit::kMicrosPerSecond;

Micros micros_of(clockid_t id) noexcept {
  timespec t{};
  clock_gettime(id, &t);
  return t.tv_sec * kPerSecond + t.tv_nsec / 1000;
}

}  // namespace

bool Clock::sleep(Duration duration, std::stop_token stop) const {
  std::mutex mutex;
  std::condition_variable_any nobody;
  std::unique_lock lock(mutex);
  nobody.wait_for(lock, stop, duration, [] { return false; });
  return !stop.stop_requested();
}

Micros SystemClock::look() const noexcept { return micros_of(CLOCK_REALTIME); }

SteadyClock::SteadyClock() noexcept : epoch_(micros_of(CLOCK_REALTIME) - micros_of(CLOCK_MONOTONIC)) {}

Micros SteadyClock::look() const noexcept { return epoch_ + micros_of(CLOCK_MONOTONIC); }

#if defined(__x86_64__)

namespace {

// Counter and nanoseconds at the same instant, as nearly as a few tries can tell.
std::pair<std::uint64_t, std::int64_t> tsc_and_nanos() noexcept {
  std::pair<std::uint64_t, std::int64_t> best{};
  std::uint64_t shortest = ~std::uint64_t{0};
  for (int i = 0; i < 32; ++i) {
    const std::uint64_t before = __rdtsc();
    timespec t{};
    clock_gettime(CLOCK_MONOTONIC, &t);
    const std::uint64_t took = __rdtsc() - before;
    if (took >= shortest) continue;
    shortest = took;
    best = {before + took / 2, t.tv_sec * 1'000'000'000 + t.tv_nsec};
  }
  return best;
}

}  // namespace

Clock::Scale TscClock::measure() noexcept {
  const auto [first_ticks, first_nanos] = tsc_and_nanos();
  const timespec pause{.tv_sec = 0, .tv_nsec = 20'000'000};
  nanosleep(&pause, nullptr);
  const auto [ticks, nanos] = tsc_and_nanos();
  const auto nanos_gone = static_cast<std::uint64_t>(nanos - first_nanos);
  const auto scaled = (static_cast<ratelimit::UnsignedWide>(nanos_gone) << 64) / (ticks - first_ticks) / 1000;
  const Micros epoch = micros_of(CLOCK_REALTIME) - micros_of(CLOCK_MONOTONIC) + nanos / 1000;
  return {.base = ticks, .multiplier = static_cast<std::uint64_t>(scaled), .epoch = epoch};
}

// "Invariant TSC": one rate in all power states, and the same on all cores.
bool TscClock::usable() noexcept {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
}

TscClock::TscClock() noexcept
    : Clock([] {
        static const Scale measured = usable() ? measure() : Scale{};
        return measured;
      }()) {}

#else

bool TscClock::usable() noexcept { return false; }
TscClock::TscClock() noexcept = default;

#endif

Micros TscClock::look() const noexcept { return fallback_.now(); }

bool FakeClock::sleep(Duration duration, std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  const Micros until = ratelimit::saturating_add(now(), duration.count());
  if (moved_by_sleepers_) {
    if (stop.stop_requested()) return false;
    now_.store(until, std::memory_order_release);
    moved_.notify_all();
    return true;
  }
  const auto mine = wake_at_.insert(until);
  moved_.wait(lock, stop, [&] { return now() >= until; });
  wake_at_.erase(mine);
  return !stop.stop_requested();
}

void FakeClock::advance(Duration by) {
  const std::lock_guard lock(mutex_);
  now_.fetch_add(by.count(), std::memory_order_acq_rel);
  moved_.notify_all();
}

void FakeClock::set(TimePoint to) {
  const std::lock_guard lock(mutex_);
  now_.store(to.time_since_epoch().count(), std::memory_order_release);
  moved_.notify_all();
}

int FakeClock::sleepers() const {
  const std::lock_guard lock(mutex_);
  return static_cast<int>(std::distance(wake_at_.upper_bound(now()), wake_at_.end()));
}

std::shared_ptr<const Clock> default_clock() {
  static const auto clock = std::make_shared<const SteadyClock>();
  return clock;
}

}  // namespace taskq
