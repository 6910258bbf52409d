// The state of one bucket: six integers, whatever the algorithm. Trivially copyable, no pointers, no padding.
//
//  field     meter               fixed_window        two_counter         log
//  at        newest time         newest time         newest time         newest time
//  start     time of last refund window start        window start        time of the oldest entry that counts
//  used      debt (grains)       count               count, this window  units ever admitted
//  previous  -                   -                   count, last window  units that have left the window
//  tail      last instant        -                   -                   units whose entries were deleted
//            promised
//  newest    when made fresh     when made fresh     when made fresh     time of the newest entry
#pragma once

#include <cstdint>
#include <type_traits>

#include "taskq_ratelimit/micros.hpp"

namespace taskq::ratelimit {

struct State {
  Micros at = 0;  // newest time this bucket has seen; never goes back, except when the clock was set back
  Micros start = 0;
  std::int64_t used = 0;
  std::int64_t previous = 0;
  std::int64_t tail = 0;
  Micros newest = 0;
  constexpr bool operator==(const State&) const noexcept = default;
};

static_assert(std::is_trivially_copyable_v<State> && sizeof(State) == 48);

// True if the clock was set back: then, and only then, a state is moved back to `now`.
constexpr bool clock_was_set_back(Micros at, Micros now) noexcept { return at > now && at - now > kClockStep; }

// The time a decision works with: the clock, or the newest time of the state where callers' clocks jitter.
constexpr Micros time_used(const State& state, Micros now) noexcept {
  return clock_was_set_back(state.at, now) ? now : larger(state.at, now);
}

}  // namespace taskq::ratelimit
