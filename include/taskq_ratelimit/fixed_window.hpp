// Fixed window: at most `capacity` units in each half-open window [start, start + W).
//
//   start = anchor + k*W, the window that holds now;  admit iff count + cost <= capacity
//   remaining = capacity - count     retry_after = reset_after = end of the window
//
// Up to 2 * capacity may pass around a boundary; that is the algorithm, not an error.
// Invariants: (1) start <= at < start + W; (2) count <= capacity unless charged; (3) the phase of the windows never moves.
#pragma once

#include "taskq_ratelimit/decision.hpp"
#include "taskq_ratelimit/limit.hpp"
#include "taskq_ratelimit/micros.hpp"
#include "taskq_ratelimit/state.hpp"

namespace taskq::ratelimit {

// The start of the window that holds `now` when one window starts at `phase`.
constexpr Micros window_holding(Micros now, Micros phase, Micros window) noexcept {
  return now - (now - phase - floor_div(now - phase, window) * window);
}

constexpr Micros first_window(const Limit& limit, Micros now) noexcept {
  return limit.anchored ? window_holding(now, limit.anchor, limit.window) : now;
}

static_assert(window_holding(61, 0, 60) == 60 && window_holding(-1, 0, 60) == -60 && window_holding(60, 0, 60) == 60);

namespace fixed_window {

constexpr State fresh(const Limit& limit, Micros now) noexcept {
  return {.at = now, .start = first_window(limit, now), .newest = now};
}

// The state at `now`. If the clock was set back the counts stay, in the window that holds `now`.
constexpr State advance(const Limit& limit, const State& state, Micros now) noexcept {
  const Micros t = time_used(state, now);
  State next = state;
  next.at = t;
  next.newest = smaller(next.newest, t);
  if (t < state.start || t - state.start >= limit.window) {
    next.start = window_holding(t, state.start, limit.window);
    if (t > state.start) next.used = 0;
  }
  return next;
}

constexpr Decision describe(const Limit& limit, const State& state, bool allowed) noexcept {
  const Micros to_end = state.start + limit.window - state.at;
  return {allowed, larger(0, limit.capacity - state.used), allowed ? 0 : to_end, state.used == 0 ? 0 : to_end, 0, state.at};
}

// REQUIRES: 1 <= cost <= capacity.
constexpr Outcome decide(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  const bool allowed = next.used <= limit.capacity - cost;
  if (allowed) next.used += cost;
  return for_caller({describe(limit, next, allowed), next}, now);
}

// Debits without asking; the count stops at 2^52.
constexpr Outcome charge(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  next.used = smaller(kMaxProduct, next.used + smaller(cost, kMaxProduct));
  return {describe(limit, next, true), next};
}

constexpr State refund(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  next.used = larger(0, next.used - cost);
  return next;
}

// Gives back what one decision took; nothing once its window is over, or if the clock was set back since.
constexpr State give_back(const Limit& limit, const State& state, Micros now, const Taken& taken) noexcept {
  const State next = advance(limit, state, now);
  const bool same_window = taken.decided_at >= next.start && taken.decided_at <= next.at;
  return same_window ? refund(limit, next, next.at, taken.cost) : next;
}

namespace example {
inline constexpr Limit five_a_minute{.kind = Kind::fixed_window, .capacity = 5, .window = 60'000'000};
inline constexpr Outcome spent = decide(five_a_minute, fresh(five_a_minute, 0), 0, 5);
static_assert(decide(five_a_minute, spent.next, 59'999'999, 1).decision.retry_after == 1);
static_assert(decide(five_a_minute, spent.next, 60'000'000, 1).decision.remaining == 4);
}  // namespace example

}  // namespace fixed_window
}  // namespace taskq::ratelimit
