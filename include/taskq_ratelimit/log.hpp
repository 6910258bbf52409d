// Sliding window, style log: exact. An entry counts while now - its time < W; at exactly W old it no longer does.
//
//   admit iff (units that count) + cost <= capacity
//   retry_after = time of the entry that must leave + W - now
//
// Units are numbered 1, 2, 3, ... in the order in which they were admitted; an entry is a run of units taken at one time and is
// known by the number of its last unit (`upto`). Entries lie in time order, so "which entry must leave" is a
// number, not a search: a call of cost c fits once unit (used + c - capacity) has left. Cost per call therefore does not
// grow with the limit: no probe while the oldest entry that counts is still the one noted in the state, a few
// probes (doubling, then halving) when entries have left since.
//
// `Entries` gives access to the entries of one bucket:
//   Entry reaching(int64 unit): the entry that holds the unit.  REQUIRES: tail < unit <= used. It has to be the one (an
//   engine that cannot find it makes one up of cost 1 and discards the answer): the search below ends because of that.
// Invariants: (1) tail <= previous <= used; (2) entries with upto <= previous have left; (3) times do not fall with upto.
#pragma once

#include <cstdint>

#include "taskq_ratelimit/decision.hpp"
#include "taskq_ratelimit/limit.hpp"
#include "taskq_ratelimit/micros.hpp"
#include "taskq_ratelimit/state.hpp"

namespace taskq::ratelimit::log {

struct Entry {
  std::int64_t upto = 0;  // number of its last unit
  std::int64_t cost = 0;  // units
  Micros at = 0;
};

constexpr State fresh(const Limit&, Micros now) noexcept { return {.at = now, .start = now, .newest = now}; }

constexpr std::int64_t live(const State& state) noexcept { return state.used - state.previous; }

constexpr bool has_left(const Limit& limit, Micros entry_at, Micros now) noexcept {
  return now > entry_at && now - entry_at >= limit.window;
}

// Moves `previous` and `start` past every entry that has left.
template <class Entries>
constexpr void skip_left(const Limit& limit, State& state, Entries& entries) noexcept {
  if (live(state) == 0 || !has_left(limit, state.start, state.at)) return;
  if (has_left(limit, state.newest, state.at)) {
    state.previous = state.used;
    return;
  }
  // All units up to `gone` have left; the one numbered `there` has not. First doubling steps, then halving.
  std::int64_t gone = state.previous, there = state.used, step = 1;
  Micros first_at = state.newest;
  while (there - gone > 1) {
    const std::int64_t half = (there - gone) / 2;
    const Entry e = entries.reaching(gone + smaller(step, half));
    if (has_left(limit, e.at, state.at)) {
      gone = e.upto;
      step *= 2;
    } else {
      there = e.upto - e.cost + 1;
      first_at = e.at;
      step = kMaxProduct;
    }
  }
  state.previous = gone;
  state.start = smaller(first_at, state.at);
}

// The state at `now`. If the clock was set back, entries of the future count as entries of `now` (the storage rewrites them).
template <class Entries>
constexpr State advance(const Limit& limit, const State& state, Micros now, Entries& entries) noexcept {
  State next = state;
  next.at = time_used(state, now);
  next.start = smaller(next.start, next.at);
  next.newest = smaller(next.newest, next.at);
  skip_left(limit, next, entries);
  return next;
}

constexpr Decision describe(const Limit& limit, const State& state, bool allowed, Micros retry_after) noexcept {
  const Micros reset = live(state) == 0 ? 0 : state.newest + limit.window - state.at;
  return {allowed, larger(0, limit.capacity - live(state)), retry_after, reset, 0, state.at};
}

// REQUIRES: the call does not fit now.
template <class Entries>
constexpr Micros wait_for(const Limit& limit, const State& state, std::int64_t cost, Entries& entries) noexcept {
  const std::int64_t must_leave = state.used + cost - limit.capacity;
  const bool oldest = must_leave == state.previous + 1;
  const Micros at = oldest ? state.start : smaller(entries.reaching(must_leave).at, state.at);
  return at + limit.window - state.at;
}

// Adds an entry. The storage stores it as {next.used, cost, next.at}.
constexpr State with_entry(const State& state, std::int64_t cost) noexcept {
  State next = state;
  if (live(next) == 0) next.start = next.at;
  next.newest = next.at;
  next.used += cost;
  return next;
}

// REQUIRES: 1 <= cost <= capacity.
template <class Entries>
constexpr Outcome decide(const Limit& limit, const State& state, Micros now, std::int64_t cost, Entries& entries) noexcept {
  State next = advance(limit, state, now, entries);
  if (live(next) > limit.capacity - cost) {
    return for_caller({describe(limit, next, false, wait_for(limit, next, cost, entries)), next}, now);
  }
  next = with_entry(next, cost);
  return {describe(limit, next, true, 0), next};
}

// Debits without asking; what counts stops at 2^52 units. The storage adds an entry for what `used` has grown by.
template <class Entries>
constexpr Outcome charge(const Limit& limit, const State& state, Micros now, std::int64_t cost, Entries& entries) noexcept {
  State next = advance(limit, state, now, entries);
  // Units are numbered in an int64: the numbers must not run out.
  const std::int64_t numbers_left = (std::int64_t{1} << 62) - next.used;
  const std::int64_t debited = smaller(cost, larger(0, smaller(kMaxProduct - live(next), numbers_left)));
  if (debited > 0) next = with_entry(next, debited);
  return {describe(limit, next, true, 0), next};
}

namespace example {
struct Two {
  Entry all[2]{{1, 1, 0}, {2, 1, 4'000'000}};
  constexpr Entry reaching(std::int64_t unit) const noexcept { return all[unit - 1]; }
};
inline constexpr Limit two_in_ten_seconds{.kind = Kind::sliding_window_log, .capacity = 2, .window = 10'000'000};
inline constexpr State two_taken{.at = 4'000'000, .start = 0, .used = 2, .newest = 4'000'000};
constexpr Decision ask(Micros now, std::int64_t cost) noexcept {
  Two entries;
  return decide(two_in_ten_seconds, two_taken, now, cost, entries).decision;
}
// A call of 1 waits for the older entry, a call of 2 for the newer; an entry exactly ten seconds old has left.
static_assert(ask(4'000'000, 1).retry_after == 6'000'000 && ask(4'000'000, 2).retry_after == 10'000'000);
static_assert(!ask(9'999'999, 1).allowed && ask(10'000'000, 1).allowed);
}  // namespace example

}  // namespace taskq::ratelimit::log
