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

constexpr State fresh(const Limit&, Micros now) noexcept {
  return {.at = now, .start = now - 1, .tail = now, .newest = now};
}

// What is left of `debt` after `elapsed`. A wide product is cheaper than the division that would tell beforehand that it is too large.
constexpr std::int64_t decayed(const Limit& limit, std::int64_t debt, Micros elapsed) noexcept {
  if (debt == 0 || limit.n == 0 || elapsed <= 0) return debt;
  const Wide paid = Wide{limit.n} * elapsed;
  return paid >= debt ? 0 : debt - static_cast<std::int64_t>(paid);
}

constexpr Micros time_to_pay(const Limit& limit, std::int64_t debt) noexcept {
  if (debt <= 0) return 0;
  return limit.n == 0 ? kNever : ceil_div(debt, limit.n);
}

// The same state where the clock was set back to `now`: same debt, and no instant of it lies in the future but promised ones.
constexpr State set_back(State state, Micros now) noexcept {
  state.start = smaller(state.start, now);
  state.newest = smaller(state.newest, now);
  state.tail = now + larger(0, state.tail - state.at);
  state.at = now;
  return state;
}

// The state at `now`: same debt if the clock was set back, else decayed.
constexpr State advance(const Limit& limit, const State& state, Micros now) noexcept {
  if (clock_was_set_back(state.at, now)) return set_back(state, now);
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
  const Micros until_it_fits = time_to_pay(limit, next.used - (kMaxSum - grains));
  if (wait > max_wait || wait == kNever || until_it_fits > 0) {
    const Micros retry_after = wait == kNever ? kNever : larger(wait - max_wait, until_it_fits);
    return for_caller({describe(limit, next, false, retry_after, 0), next}, now);
  }
  next.used += grains;
  next.tail = larger(next.tail, next.at + wait);
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

// The debt right after a decision: at least `low`, at most `high`. Exact where the decision shows a rest; else (GCRA shows
// whole units, an overdraft shows 0) its time to full tells the debt to within n grains.
struct DebtAfter {
  Wide low;
  Wide high;
};

constexpr Wide least(Wide a, Wide b) noexcept { return a < b ? a : b; }

constexpr DebtAfter debt_after(const Limit& limit, const Taken& taken) noexcept {
  const std::int64_t shown = full(limit) - taken.remaining;
  const bool whole_units = limit.kind == Kind::sliding_window_gcra;
  if (taken.remaining > 0 && !whole_units) return {shown, shown};
  const Wide high = Wide{limit.n} * taken.reset_after;
  const Wide low = high - limit.n + 1;
  return {whole_units || low > shown ? low : shown, high};
}

// Grains that are still owed for a decision at `state.at`. What refills pays the oldest spending first, so units that time
// has already given back are not given back twice. If nobody has called since, all of it is undone. Else:
//   callers who were promised an instant (`tail` is the last of these) keep it, so what counts is what will be left then; and
//   a place whose instant has not come is given back only as far as nobody stands behind it;
//   something may have been refunded that lay under it: then time is taken to have paid the decision itself.
constexpr std::int64_t still_owed(const Limit& limit, const State& state, const Taken& taken) noexcept {
  if (taken.decided_at > state.at) return 0;  // the clock was set back since: what was paid meanwhile is not known
  const std::int64_t grains = taken.cost > kMaxSum / limit.d ? kMaxSum : taken.cost * limit.d;
  if (limit.n == 0) return grains;
  const Micros elapsed = state.at - taken.decided_at;
  if (elapsed >= taken.reset_after) return 0;
  const auto [low, high] = debt_after(limit, taken);
  const Wide undecayed = state.used + Wide{limit.n} * elapsed;
  const bool refunded_since = state.start >= taken.decided_at;
  // A later caller would have added d grains or more.
  const bool untouched = undecayed >= low && undecayed <= high && (low == high || limit.d >= limit.n);
  if (untouched && !refunded_since) return grains;
  const Micros last_goes = larger(state.at, state.tail) - taken.decided_at;
  Wide owed = (untouched ? undecayed : low) - Wide{limit.n} * last_goes;
  if (taken.delay > elapsed) owed = least(owed, grains - (undecayed - low));
  if (refunded_since) owed = least(owed, grains - Wide{limit.n} * larger(0, last_goes - taken.delay));
  return owed <= 0 ? 0 : static_cast<std::int64_t>(least(owed, grains));
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
