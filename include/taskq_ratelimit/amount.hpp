// Amounts: what a user writes as a float becomes a whole number of units of 10^-scale, rounded to the nearest unit
// (ties away from zero). Exact: the double is taken apart into mantissa and exponent, nothing is multiplied in floating point.
// Thread-safety: pure functions.
#pragma once

#include <bit>
#include <cstdint>

#include "taskq_ratelimit/micros.hpp"

namespace taskq::ratelimit {

inline constexpr int kMaxScale = 6;

// 10^k. REQUIRES: 0 <= k <= 18.
constexpr std::int64_t power_of_ten(int k) noexcept {
  std::int64_t p = 1;
  for (; k > 0; --k) p *= 10;
  return p;
}

// A finite non-negative double is exactly mantissa * 2^exponent.
struct Binary {
  std::uint64_t mantissa;
  int exponent;
};

constexpr bool is_finite(double x) noexcept { return ((std::bit_cast<std::uint64_t>(x) >> 52) & 0x7ff) != 0x7ff; }

// Also true for -0.0: a rate that somebody computed and got the sign of wrong.
constexpr bool is_negative(double x) noexcept { return std::bit_cast<std::uint64_t>(x) >> 63 != 0; }

constexpr Binary take_apart(double x) noexcept {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const int exponent = static_cast<int>((bits >> 52) & 0x7ff);
  const std::uint64_t fraction = bits & ((std::uint64_t{1} << 52) - 1);
  return exponent == 0 ? Binary{fraction, -1074} : Binary{fraction | (std::uint64_t{1} << 52), exponent - 1075};
}

// x * 10^scale to the nearest whole number; -1 if x is not finite, negative, or the result reaches 2^100.
// REQUIRES: 0 <= scale <= kMaxScale.
constexpr Wide wide_units(double x, int scale) noexcept {
  if (!is_finite(x) || x < 0) return -1;
  const Binary b = take_apart(x);
  const Wide product = Wide{b.mantissa} * power_of_ten(scale);  // < 2^73
  if (b.exponent >= 0) return b.exponent > 27 ? -1 : product << b.exponent;
  if (b.exponent < -100) return 0;
  const int shift = -b.exponent;
  return (product + (Wide{1} << (shift - 1))) >> shift;
}

// x * 10^scale to the nearest whole number; -1 if x is not finite, negative, or the result is above kMaxProduct.
constexpr std::int64_t units(double x, int scale) noexcept {
  const Wide u = wide_units(x, scale);
  return u > kMaxProduct ? -1 : static_cast<std::int64_t>(u);
}

constexpr bool is_whole(double x) noexcept {
  return is_finite(x) && (x >= 0x1p52 || x <= -0x1p52 || static_cast<double>(static_cast<std::int64_t>(x)) == x);
}

static_assert(units(0.1, 6) == 100'000 && units(0.3, 6) == 300'000 && units(2.4, 6) == 2'400'000);
static_assert(units(1e-7, 6) == 0 && units(6e-7, 6) == 1 && units(-1.0, 0) == -1);
static_assert(wide_units(1e12, 6) == Wide{1'000'000'000'000'000'000});
static_assert(is_whole(3.0) && !is_whole(3.5) && is_whole(0x1p60));

}  // namespace taskq::ratelimit
