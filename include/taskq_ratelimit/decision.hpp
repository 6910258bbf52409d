// What an algorithm answers.
#pragma once

#include <cstdint>
#include <type_traits>

#include "taskq_ratelimit/micros.hpp"
#include "taskq_ratelimit/state.hpp"

namespace taskq::ratelimit {

struct Decision {
  bool allowed = false;
  std::int64_t remaining = 0;  // grains left after the call, 0..capacity; to_amount() gives the user's number
  Micros retry_after = 0;      // 0 if allowed; else > 0, the shortest wait that gets in if nobody else calls; or kNever
  Micros reset_after = 0;      // time to full if nobody calls; 0 when full; or kNever
  Micros delay = 0;            // reserve: how long the caller has to wait before it may go
  Micros decided_at = 0;       // the time the decision worked with
  constexpr bool operator==(const Decision&) const noexcept = default;
};

// A decision and the state after it. REQUIRES of whoever stores it: write `next` only if `decision.allowed`, or if the clock was
// set back (state.hpp), so that time goes on from there.
struct Outcome {
  Decision decision;
  State next;
};

// A wait counts from the time that the decision worked with; a caller whose clock lags behind it has to wait for that, too.
constexpr Outcome for_caller(Outcome outcome, Micros now) noexcept {
  Decision& d = outcome.decision;
  if (!d.allowed && d.decided_at > now) d.retry_after = saturating_add(d.retry_after, d.decided_at - now);
  return outcome;
}

// What a refund or settlement needs to know of the decision it takes back.
struct Taken {
  std::int64_t cost = 0;       // units
  Micros decided_at = 0;       // from the decision
  Micros delay = 0;            // from the decision
  std::int64_t remaining = 0;  // grains, from the decision
  Micros reset_after = 0;      // from the decision
};

static_assert(std::is_trivially_copyable_v<Decision> && std::is_trivially_copyable_v<Outcome>);

}  // namespace taskq::ratelimit
