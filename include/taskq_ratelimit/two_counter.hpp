// Sliding window, style counter: the last window fades out linearly while this one fills.
//
//   weight = previous * (W - elapsed)/W + current;  admit iff weight + cost <= capacity
//   remaining = capacity - ceil(weight)
//   retry_after: the earliest instant at which the call would pass if nobody else spends, one of three cases:
//     the last window fades far enough within this one; this window's end; this one fades far enough within the next.
//
// W and elapsed count ticks (see choose_tick), so that capacity * W <= 2^52. Elapsed is cut down to ticks, waits are
// rounded up to them: never early. An approximation: it may admit up to 2 * capacity - 1 in one window length.
// Invariants: (1) start <= at < start + W; (2) 0 <= previous, current <= capacity.
#pragma once

#include "taskq_ratelimit/decision.hpp"
#include "taskq_ratelimit/fixed_window.hpp"
#include "taskq_ratelimit/limit.hpp"
#include "taskq_ratelimit/micros.hpp"
#include "taskq_ratelimit/state.hpp"

namespace taskq::ratelimit::two_counter {

constexpr State fresh(const Limit& limit, Micros now) noexcept { return fixed_window::fresh(limit, now); }

constexpr std::int64_t window_ticks(const Limit& limit) noexcept { return ceil_div(limit.window, limit.tick); }

// The state at `now`. If the clock was set back both counts stay, in the window that holds `now`.
constexpr State advance(const Limit& limit, const State& state, Micros now) noexcept {
  const Micros t = time_used(state, now);
  State next = state;
  next.at = t;
  next.newest = smaller(next.newest, t);
  if (t >= state.start && t - state.start < limit.window) return next;
  next.start = window_holding(t, state.start, limit.window);
  if (t > state.start) {
    next.previous = next.start - state.start == limit.window ? state.used : 0;
    next.used = 0;
  }
  return next;
}

// What is left of `count` units after `ticks` of the window that follows them, times W.
constexpr std::int64_t faded(const Limit& limit, std::int64_t count, std::int64_t ticks) noexcept {
  return count * (window_ticks(limit) - ticks);
}

constexpr std::int64_t remaining(const Limit& limit, const State& state) noexcept {
  const std::int64_t ticks = (state.at - state.start) / limit.tick;
  const std::int64_t old = ceil_div(faded(limit, state.previous, ticks), window_ticks(limit));
  return larger(0, limit.capacity - state.used - old);
}

constexpr bool fits(const Limit& limit, const State& state, std::int64_t cost) noexcept {
  const std::int64_t room = limit.capacity - cost - state.used;
  const std::int64_t ticks = (state.at - state.start) / limit.tick;
  return room >= 0 && faded(limit, state.previous, ticks) <= room * window_ticks(limit);
}

// How far into the following window `count` units have faded to `room`. REQUIRES: 0 <= room < count.
constexpr Micros time_to_fade(const Limit& limit, std::int64_t count, std::int64_t room) noexcept {
  const std::int64_t ticks = window_ticks(limit) - room * window_ticks(limit) / count;
  return smaller(ticks * limit.tick, limit.window);
}

// REQUIRES: the call does not fit now.
constexpr Micros wait_for(const Limit& limit, const State& state, std::int64_t cost) noexcept {
  const std::int64_t need = limit.capacity - cost;
  const std::int64_t room = need - state.used;
  const Micros elapsed = state.at - state.start;
  if (room > 0) return time_to_fade(limit, state.previous, room) - elapsed;
  if (state.used <= need) return limit.window - elapsed;
  return limit.window + time_to_fade(limit, state.used, need) - elapsed;
}

constexpr Decision describe(const Limit& limit, const State& state, bool allowed, Micros retry_after) noexcept {
  const Micros to_end = state.start + limit.window - state.at;
  const Micros reset = state.used > 0 ? to_end + limit.window : state.previous > 0 ? to_end : 0;
  return {allowed, remaining(limit, state), retry_after, reset, 0, state.at};
}

// REQUIRES: 1 <= cost <= capacity.
constexpr Outcome decide(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  if (!fits(limit, next, cost)) return for_caller({describe(limit, next, false, wait_for(limit, next, cost)), next}, now);
  next.used += cost;
  return {describe(limit, next, true, 0), next};
}

// Debits without asking; the count stops at the capacity.
constexpr Outcome charge(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  next.used = cost > limit.capacity - next.used ? limit.capacity : next.used + cost;
  return {describe(limit, next, true, 0), next};
}

// Gives back from this window first, then from the last one.
constexpr State refund(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  const std::int64_t from_this = smaller(cost, next.used);
  next.used -= from_this;
  next.previous = larger(0, next.previous - (cost - from_this));
  return next;
}

// Gives back what one decision took, to the window it was taken from; nothing once both are over, or if the clock was set
// back since.
constexpr State give_back(const Limit& limit, const State& state, Micros now, const Taken& taken) noexcept {
  State next = advance(limit, state, now);
  if (taken.decided_at > next.at) return next;
  if (taken.decided_at >= next.start) {
    next.used = larger(0, next.used - taken.cost);
  } else if (next.start - taken.decided_at <= limit.window) {
    next.previous = larger(0, next.previous - taken.cost);
  }
  return next;
}

namespace example {
inline constexpr Limit hundred{.kind = Kind::sliding_window_counter, .capacity = 100, .window = 60'000'000};
// 80 in the last window, 5 in this one, 15 s into it: weight 65.
inline constexpr State busy{.at = 15'000'000, .start = 0, .used = 5, .previous = 80};
static_assert(remaining(hundred, busy) == 35);
static_assert(decide(hundred, decide(hundred, busy, 15'000'000, 35).next, 15'000'000, 1).decision.retry_after == 750'000);
}  // namespace example

}  // namespace taskq::ratelimit::two_counter
