// Meter: token bucket, leaky bucket (as a meter) and GCRA in one piece of arithmetic.
//
//   debt' = max(0, debt - n * (now - at))
//   admit iff debt' + cost*d <= capacity*d;  next state (debt' + cost*d, now)
//   remaining = capacity*d - debt'     retry_after = ceil((debt' + cost*d - capacity*d) / n)     reset_after = ceil(debt' / n)
//
// Debt is in grains (1/d unit). Tokens are capacity - debt/d, a water level is debt/d, GCRA's theoretical arrival time
// is at + debt/n. Sources: ITU-T I.371 (GCRA and the continuous-state leaky bucket, which are proved equal there).
// Invariants: (1) 0 <= debt < 2^53; (2) time passing never raises debt, a denial never changes it;
// (3) waiting exactly retry_after gets in, one microsecond less does not; (4) n = 0: debt never falls.
#pragma once

#include "taskq_ratelimit/decision.hpp"
#include "taskq_ratelimit/limit.hpp"
#include "taskq_ratelimit/micros.hpp"
#include "taskq_ratelimit/state.hpp"

namespace taskq::ratelimit::meter {

constexpr std::int64_t full(const Limit& limit) noexcept { return limit.capacity * limit.d; }

constexpr State fresh(const Limit&, Micros now) noexcept { return {.at = now, .start = now - 1, .newest = now}; }

// What is left of `debt` after `elapsed`. The product is formed only where it is smaller than debt.
constexpr std::int64_t decayed(const Limit& limit, std::int64_t debt, Micros elapsed) noexcept {
  if (debt == 0 || limit.n == 0 || elapsed <= 0) return debt;
  return elapsed >= ceil_div(debt, limit.n) ? 0 : debt - limit.n * elapsed;
}

constexpr Micros time_to_pay(const Limit& limit, std::int64_t debt) noexcept {
  if (debt <= 0) return 0;
  return limit.n == 0 ? kNever : ceil_div(debt, limit.n);
}

// The state at `now`: same debt if the clock was set back, else decayed.
constexpr State advance(const Limit& limit, const State& state, Micros now) noexcept {
  const Micros t = time_used(state, now);
  State next = state;
  next.used = decayed(limit, state.used, t - state.at);
  next.at = t;
  return next;
}

constexpr std::int64_t remaining(const Limit& limit, const State& state) noexcept {
  const std::int64_t left = larger(0, full(limit) - state.used);
  return limit.kind == Kind::sliding_window_gcra ? left / limit.d * limit.d : left;
}

constexpr Decision describe(const Limit& limit, const State& state, bool allowed, Micros retry_after, Micros delay) noexcept {
  return {allowed, remaining(limit, state), retry_after, time_to_pay(limit, state.used), delay, state.at};
}

// Takes `cost` now, or as soon as it may be taken if that is within `max_wait`; a denial's retry_after is the wait after which
// the same call would be admitted. REQUIRES: 1 <= cost <= capacity, max_wait >= 0.
constexpr Outcome reserve(const Limit& limit, const State& state, Micros now, std::int64_t cost, Micros max_wait) noexcept {
  State next = advance(limit, state, now);
  const std::int64_t grains = cost * limit.d;
  const Micros wait = time_to_pay(limit, next.used - (full(limit) - grains));
  if (wait > max_wait || wait == kNever || next.used > kMaxSum - grains) return {describe(limit, next, false, larger(wait, 1), 0), next};
  next.used += grains;
  return {describe(limit, next, true, 0, wait), next};
}

constexpr Outcome decide(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  return reserve(limit, state, now, cost, 0);
}

// Debits without asking; the debt stops at 2^53 - 1 grains.
constexpr Outcome charge(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  const std::int64_t room = kMaxSum - next.used;
  next.used = cost > room / limit.d ? kMaxSum : next.used + cost * limit.d;
  return {describe(limit, next, true, 0, 0), next};
}

// Gives back `cost`, clamped at full.
constexpr State refund(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  State next = advance(limit, state, now);
  next.used = cost > next.used / limit.d ? 0 : next.used - cost * limit.d;
  next.start = next.at;
  return next;
}

// The debt right after a decision. A GCRA decision shows whole units only, so its reset time is used: rounded down, unless the
// refund comes within a microsecond.
constexpr std::int64_t debt_after(const Limit& limit, const Taken& taken, Micros elapsed) noexcept {
  if (limit.kind != Kind::sliding_window_gcra || limit.n == 0) return full(limit) - taken.remaining;
  if (taken.reset_after <= 0) return 0;
  return elapsed <= 1 ? limit.n * taken.reset_after : limit.n * (taken.reset_after - 1) + 1;
}

// Grains that are still owed for a decision at `state.at`. What refills pays the oldest spending first, so units that time has
// already given back are not given back twice. If something was refunded since, what lay under the decision may be gone: then
// time is taken to have paid the decision itself. A place in the queue of time that has not come yet is given back
// only as far as nobody stands behind it; else two callers would get one instant.
constexpr std::int64_t still_owed(const Limit& limit, const State& state, const Taken& taken) noexcept {
  const std::int64_t grains = taken.cost * limit.d;
  const Micros ready_at = taken.decided_at + taken.delay;
  if (taken.delay > 0 && ready_at > state.at) {
    const std::int64_t behind = state.used - full(limit) - limit.n * (ready_at - state.at);
    return behind <= 0 ? grains : larger(0, grains - behind - (limit.n - 1));
  }
  const Micros elapsed = larger(0, state.at - ready_at);
  const bool refunded_since = state.start >= taken.decided_at;
  const std::int64_t then = taken.delay > 0 ? full(limit) : debt_after(limit, taken, elapsed);
  return smaller(grains, decayed(limit, refunded_since ? smaller(then, grains) : then, elapsed));
}

// Gives back what one decision took, as far as it is still owed.
constexpr State give_back(const Limit& limit, const State& state, Micros now, const Taken& taken) noexcept {
  State next = advance(limit, state, now);
  const std::int64_t back = smaller(next.used, still_owed(limit, next, taken));
  next.used -= back;
  if (back > 0) next.start = next.at;
  return next;
}

namespace example {
inline constexpr Limit two_per_second{.kind = Kind::token_bucket, .scale = 6, .capacity = 2'000'000, .n = 1, .d = 2};
inline constexpr Outcome spent = decide(two_per_second, fresh(two_per_second, 0), 0, 2'000'000);
static_assert(spent.decision.allowed && spent.decision.remaining == 0);
// 0.7 s later 0.35 tokens are there, so a whole one is 1.3 s away.
static_assert(decide(two_per_second, spent.next, 700'000, 1'000'000).decision.retry_after == 1'300'000);
static_assert(decide(two_per_second, spent.next, 2'000'000, 1'000'000).decision.allowed);
}  // namespace example

}  // namespace taskq::ratelimit::meter
