// The scale of a meter: which unit it counts in and how its rate is written, chosen once from the definition.
//
// A capacity C and a rate r become (scale k, capacity in units of 10^-k, rate n/d in units per microsecond) such that
//   (1) capacity * d <= 2^52, so that every value an algorithm forms fits in a double too;
//   (2) n/d <= r: a rounded rate never admits more than was asked for;
//   (3) k is the largest of 6..0 whose n/d is within 1e-12 of r, or else the k with the smallest error;
//   (4) that error is at most 1e-5 and a full refill takes at most 2^52 us (142 years), or the definition is refused.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "taskq_ratelimit/amount.hpp"
#include "taskq_ratelimit/micros.hpp"
#include "taskq_ratelimit/rational.hpp"

namespace taskq::ratelimit {

enum class ScaleError : std::uint8_t { none, capacity_out_of_range, rate_out_of_range, rate_inexact, refill_too_slow };

struct MeterScale {
  ScaleError error = ScaleError::none;
  int scale = 0;
  std::int64_t capacity = 0;  // units of 10^-scale
  std::int64_t n = 0;         // rate n/d, units per microsecond, lowest terms
  std::int64_t d = 1;
};

namespace detail {

// A rate per second of whole user units as units of 10^-k per microsecond.
constexpr Rational per_micro(Rational per_second, int k) noexcept {
  return reduced(per_second.n, per_second.d * power_of_ten(kMaxScale - k));
}

// (exact - low) / exact <= 10^-exponent, without forming large products. REQUIRES: low <= exact, exact > 0.
constexpr long double relative_error(Rational exact, Rational low) noexcept {
  const Wide gap = exact.n * low.d - low.n * exact.d;
  if (gap <= 0) return 0;
  return static_cast<long double>(gap) / (static_cast<long double>(exact.n) * static_cast<long double>(low.d));
}

}  // namespace detail

// REQUIRES: rate exists (see simplest_rational); it counts user units per second.
constexpr MeterScale choose_scale(double capacity, Rational rate) noexcept {
  MeterScale best;
  const Wide micro_units = wide_units(capacity, kMaxScale);
  if (micro_units <= 0) return {.error = ScaleError::capacity_out_of_range};
  if (!rate.exists() || rate.n < 0) return {.error = ScaleError::rate_out_of_range};
  bool found = false, too_fast = false;
  long double best_error = 1;
  for (int k = kMaxScale; k >= 0; --k) {
    const Wide grain = power_of_ten(kMaxScale - k);
    if (micro_units % grain != 0) break;
    const Wide capacity_units = micro_units / grain;
    if (capacity_units > kMaxProduct) continue;
    const Rational exact = detail::per_micro(rate, k);
    const Rational low = best_below(exact, kMaxProduct / capacity_units);
    too_fast = low.n > kMaxProduct;
    if (too_fast) continue;
    const long double error = rate.n == 0 ? 0 : detail::relative_error(exact, low);
    if (found && error >= best_error) continue;
    found = true;
    best_error = error;
    best = {ScaleError::none, k, static_cast<std::int64_t>(capacity_units), static_cast<std::int64_t>(low.n),
            static_cast<std::int64_t>(low.d)};
    if (error <= 1e-12L) break;
  }
  if (!found) return {.error = too_fast ? ScaleError::rate_out_of_range : ScaleError::capacity_out_of_range};
  const bool slow = rate.n > 0 && (best.n == 0 || Wide{best.capacity} * best.d > Wide{best.n} * kMaxProduct);
  if (slow) return {.error = ScaleError::refill_too_slow};
  if (best_error > 1e-5L) return {.error = ScaleError::rate_inexact};
  return best;
}

// The finest tick of 1, 10, 100, ... us with limit * (window in ticks) <= 2^52; 0 if there is none.
// REQUIRES: limit >= 1, window >= 1.
constexpr Micros choose_tick(std::int64_t limit, Micros window) noexcept {
  if (limit > kMaxProduct) return 0;
  for (Micros tick = 1; tick <= window; tick *= 10) {
    if (ceil_div(window, tick) <= kMaxProduct / limit) return tick;
    if (tick > kNever / 10) break;
  }
  return 0;
}

static_assert(choose_tick(10'000, 3'600'000'000) == 1);
static_assert(choose_tick(10'000, 30 * 86'400'000'000) == 10);
static_assert(choose_scale(100, simplest_rational(100 / 60.0)).n == 5);
static_assert(choose_scale(1e9, simplest_rational(0.0001)).error == ScaleError::refill_too_slow);

}  // namespace taskq::ratelimit
