// One switch over the algorithm: what engines call for the limits whose whole state is a State (all but the log, whose
// entries need an engine of their own; see log.hpp for its functions of the same names).
// Thread-safety: pure functions. REQUIRES everywhere: limit.algorithm() != Algorithm::log.
#pragma once

#include "taskq_ratelimit/decision.hpp"
#include "taskq_ratelimit/fixed_window.hpp"
#include "taskq_ratelimit/limit.hpp"
#include "taskq_ratelimit/meter.hpp"
#include "taskq_ratelimit/state.hpp"
#include "taskq_ratelimit/two_counter.hpp"

namespace taskq::ratelimit {

// The state of a bucket that nobody has used yet.
constexpr State fresh(const Limit& limit, Micros now) noexcept {
  return limit.algorithm() == Algorithm::meter ? meter::fresh(limit, now) : fixed_window::fresh(limit, now);
}

// The same state at `now`.
constexpr State advance(const Limit& limit, const State& state, Micros now) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::meter: return meter::advance(limit, state, now);
    case Algorithm::fixed_window: return fixed_window::advance(limit, state, now);
    default: return two_counter::advance(limit, state, now);
  }
}

// Takes `cost` units if they are there. REQUIRES: 1 <= cost <= limit.most().
constexpr Outcome decide(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::meter: return meter::decide(limit, state, now, cost);
    case Algorithm::fixed_window: return fixed_window::decide(limit, state, now, cost);
    default: return two_counter::decide(limit, state, now, cost);
  }
}

// What is left now; `retry_after` is the wait for one more cost of `cost`, 0 if it would be admitted.
constexpr Decision peek(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  const Outcome hypothetical = decide(limit, state, now, cost);
  const State at_now = advance(limit, state, now);
  Decision d;
  switch (limit.algorithm()) {
    case Algorithm::meter: d = meter::describe(limit, at_now, true, 0, 0); break;
    case Algorithm::fixed_window: d = fixed_window::describe(limit, at_now, true); break;
    default: d = two_counter::describe(limit, at_now, true, 0); break;
  }
  d.allowed = hypothetical.decision.allowed;
  d.retry_after = hypothetical.decision.retry_after;
  return d;
}

// Debits without asking, bounded so that nothing overflows.
constexpr Outcome charge(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::meter: return meter::charge(limit, state, now, cost);
    case Algorithm::fixed_window: return fixed_window::charge(limit, state, now, cost);
    default: return two_counter::charge(limit, state, now, cost);
  }
}

// Gives back `cost` units, clamped at full.
constexpr State refund(const Limit& limit, const State& state, Micros now, std::int64_t cost) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::meter: return meter::refund(limit, state, now, cost);
    case Algorithm::fixed_window: return fixed_window::refund(limit, state, now, cost);
    default: return two_counter::refund(limit, state, now, cost);
  }
}

// Gives back what one decision took, as far as time or a reset has not given it back already.
constexpr State give_back(const Limit& limit, const State& state, Micros now, const Taken& taken) noexcept {
  if (taken.decided_at < state.newest) return advance(limit, state, now);
  switch (limit.algorithm()) {
    case Algorithm::meter: return meter::give_back(limit, state, now, taken);
    case Algorithm::fixed_window: return fixed_window::give_back(limit, state, now, taken);
    default: return two_counter::give_back(limit, state, now, taken);
  }
}

// Replaces the cost that a decision took by the true one: the difference is given back or charged.
constexpr State settle(const Limit& limit, const State& state, Micros now, Taken taken, std::int64_t actual) noexcept {
  if (actual >= taken.cost) {
    return actual == taken.cost ? advance(limit, state, now) : charge(limit, state, now, actual - taken.cost).next;
  }
  taken.cost -= actual;
  return give_back(limit, state, now, taken);
}

}  // namespace taskq::ratelimit
