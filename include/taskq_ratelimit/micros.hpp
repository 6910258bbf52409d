// Time and the few integer operations that every algorithm needs.
//
// Time is a count of microseconds (int64). The core never asks what the count starts from: Unix epoch, PostgreSQL
// epoch and "since boot" all work, as long as one bucket always sees the same one. Negative instants are fine.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <limits>

namespace taskq::ratelimit {

using Micros = std::int64_t;

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

// "Waiting can never help." Larger than any wait, so the longest of several waits is their maximum.
inline constexpr Micros kNever = std::numeric_limits<Micros>::max();

inline constexpr Micros kMicrosPerSecond = 1'000'000;

// What an algorithm multiplies or adds stays below 2^53, so that engines whose numbers are doubles (Lua) agree.
inline constexpr std::int64_t kMaxProduct = std::int64_t{1} << 52;
inline constexpr std::int64_t kMaxSum = (std::int64_t{1} << 53) - 1;

// A stored time further ahead of the clock than this means that the clock was set back.
inline constexpr Micros kClockStep = kMicrosPerSecond;

// REQUIRES: a >= 0, b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) noexcept { return a / b + (a % b != 0 ? 1 : 0); }

// Rounds towards minus infinity. REQUIRES: b > 0.
constexpr std::int64_t floor_div(std::int64_t a, std::int64_t b) noexcept { return a / b - (a % b < 0 ? 1 : 0); }

constexpr std::int64_t smaller(std::int64_t a, std::int64_t b) noexcept { return a < b ? a : b; }
constexpr std::int64_t larger(std::int64_t a, std::int64_t b) noexcept { return a < b ? b : a; }

// a + b, stopping at the ends of the type. kNever stays kNever.
constexpr Micros saturating_add(Micros a, Micros b) noexcept {
  Micros sum = 0;
  if (!__builtin_add_overflow(a, b, &sum)) return sum;
  return b > 0 ? kNever : std::numeric_limits<Micros>::min();
}

static_assert(ceil_div(7, 3) == 3 && ceil_div(6, 3) == 2 && ceil_div(0, 3) == 0);
static_assert(floor_div(-1, 60) == -1 && floor_div(-60, 60) == -1 && floor_div(59, 60) == 0);
static_assert(saturating_add(kNever, 1) == kNever);

}  // namespace taskq::ratelimit
