// From what a user writes to a Limit: the only place where definitions are checked.
//
// Every make_ function returns a Limit or the first rule that the definition breaks. Ranges:
//   capacity       > 0, at most 2^52 after scaling, rounded to the nearest unit; rate >= 0, 0 never refills
//   max_requests   1..2^52 (counter: so that max_requests * window in ticks <= 2^52)
//   window         1 us .. 2^52 us (142 years)
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "taskq_ratelimit/limit.hpp"
#include "taskq_ratelimit/micros.hpp"
#include "taskq_ratelimit/rational.hpp"
#include "taskq_ratelimit/scale.hpp"

namespace taskq::ratelimit {

enum class DefinitionError : std::uint8_t {
  none,
  capacity_not_positive,
  capacity_too_large,
  capacity_too_small,
  rate_negative,
  rate_too_large,
  rate_inexact,
  refill_too_slow,
  period_not_positive,
  period_too_long,
  requests_not_positive,
  requests_too_large,
  window_not_positive,
  window_too_long
};

struct Definition {
  DefinitionError error = DefinitionError::none;
  Limit limit;
};

namespace detail {

constexpr DefinitionError from_scale_error(ScaleError error) noexcept {
  switch (error) {
    case ScaleError::none: return DefinitionError::none;
    case ScaleError::capacity_out_of_range: return DefinitionError::capacity_too_large;
    case ScaleError::rate_out_of_range: return DefinitionError::rate_too_large;
    case ScaleError::rate_inexact: return DefinitionError::rate_inexact;
    case ScaleError::refill_too_slow: return DefinitionError::refill_too_slow;
  }
  return DefinitionError::rate_too_large;
}

constexpr Definition refused(DefinitionError error) noexcept { return {.error = error, .limit = {}}; }

constexpr Definition make_bucket(Kind kind, double capacity, Rational per_second) noexcept {
  if (!is_finite(capacity) || capacity <= 0) return refused(DefinitionError::capacity_not_positive);
  if (wide_units(capacity, kMaxScale) == 0) return refused(DefinitionError::capacity_too_small);
  const MeterScale s = choose_scale(capacity, per_second);
  if (s.error != ScaleError::none) return refused(from_scale_error(s.error));
  return {.limit = {.kind = kind, .scale = s.scale, .capacity = s.capacity, .n = s.n, .d = s.d}};
}

constexpr DefinitionError check_window(std::int64_t max_requests, Micros window) noexcept {
  if (max_requests < 1) return DefinitionError::requests_not_positive;
  if (max_requests > kMaxProduct) return DefinitionError::requests_too_large;
  if (window < 1) return DefinitionError::window_not_positive;
  if (window > kMaxProduct) return DefinitionError::window_too_long;
  return DefinitionError::none;
}

}  // namespace detail

// A bucket whose rate is a float: the simplest fraction that rounds to it. REQUIRES: kind is token_bucket or leaky_bucket.
constexpr Definition make_bucket(Kind kind, double capacity, double per_second) noexcept {
  if (!is_finite(per_second) || is_negative(per_second)) return detail::refused(DefinitionError::rate_negative);
  if (per_second > 0x1p62) return detail::refused(DefinitionError::rate_too_large);
  if (per_second > 0 && per_second < 0x1p-60) return detail::refused(DefinitionError::refill_too_slow);
  return detail::make_bucket(kind, capacity, simplest_rational(per_second));
}

// A bucket whose rate is given exactly: `amount` (as a fraction, see simplest_rational) every `period`. REQUIRES: kind is token_bucket or leaky_bucket.
constexpr Definition make_bucket(Kind kind, double capacity, double amount, Micros period) noexcept {
  if (!is_finite(amount) || is_negative(amount)) return detail::refused(DefinitionError::rate_negative);
  if (period < 1) return detail::refused(DefinitionError::period_not_positive);
  if (period > kMaxProduct) return detail::refused(DefinitionError::period_too_long);
  if (amount > 0x1p42) return detail::refused(DefinitionError::rate_too_large);
  if (amount > 0 && amount < 0x1p-50) return detail::refused(DefinitionError::refill_too_slow);
  const Rational a = simplest_rational(amount);  // both parts below 2^54, so that no product is too large
  return detail::make_bucket(kind, capacity, reduced(a.n * kMicrosPerSecond, a.d * period));
}

constexpr Definition make_fixed_window(std::int64_t max_requests, Micros window) noexcept {
  if (const auto e = detail::check_window(max_requests, window); e != DefinitionError::none) return detail::refused(e);
  return {.limit = {.kind = Kind::fixed_window, .capacity = max_requests, .window = window}};
}

// REQUIRES: kind is one of the three sliding windows.
constexpr Definition make_sliding_window(Kind kind, std::int64_t max_requests, Micros window) noexcept {
  if (const auto e = detail::check_window(max_requests, window); e != DefinitionError::none) return detail::refused(e);
  Limit limit{.kind = kind, .capacity = max_requests, .window = window};
  if (kind == Kind::sliding_window_counter) {
    limit.tick = choose_tick(max_requests, window);
    if (limit.tick == 0) return detail::refused(DefinitionError::requests_too_large);
  }
  if (kind == Kind::sliding_window_gcra) {
    // limit/window is exact where it fits; else the best fraction below it.
    const Rational exact = reduced(max_requests, window);
    const Rational rate = best_below(exact, kMaxProduct / max_requests);
    const bool coarse = rate.n == 0 || detail::relative_error(exact, rate) > 1e-5L;
    if (coarse) return detail::refused(DefinitionError::requests_too_large);
    limit.n = static_cast<std::int64_t>(rate.n);
    limit.d = static_cast<std::int64_t>(rate.d);
  }
  return {.limit = limit};
}

// The same limit with a window starting at `anchor`. REQUIRES: a fixed window or a sliding window of style counter.
constexpr Limit anchored_at(Limit limit, Micros anchor) noexcept {
  limit.anchor = anchor;
  limit.anchored = true;
  return limit;
}

static_assert(make_bucket(Kind::token_bucket, 0, 1.0).error == DefinitionError::capacity_not_positive);
static_assert(make_bucket(Kind::token_bucket, 10, 5.0, 60'000'000).limit.d == 12);
static_assert(make_sliding_window(Kind::sliding_window_gcra, 7, 60'000'000).limit.n == 7);

}  // namespace taskq::ratelimit
