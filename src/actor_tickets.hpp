// Tickets: an instant of its own for each caller that is refused, instead of one hint for all, at which all come back and one gets in.
//
// Each resource that refuses (a limit or reservation, under its key) hands out instants one after the other: the first when it will have
// something to give, the next as much later as it takes to have as much again. What was handed out last stands in
// taskq.actor_tickets. A ticket takes nothing: who comes without one may be faster.
#pragma once

#include "group.hpp"

#include "pg.hpp"

namespace taskq::pg {

// For whom waiting would never help, as for the seed of this design: five seconds.
constexpr ratelimit::Micros default_backoff = 5'000'000;

// The wait of a request that is refused.
inline ratelimit::Micros wait_of(const GroupRequest& request) {
  return request.retry_after() == ratelimit::kNever ? default_backoff : request.retry_after();
}

// Draws a ticket from every resource that refuses; `at` is the latest of them and of the waits of what hands out none. False if no
// ticket could be had: what refuses hands out none, or others had them in hand for too long.
// Rows are written under a lock that lasts until the transaction ends, polled for and never queued for, so it is part of no deadlock.
bool draw_tickets(const GroupRequest* requests, int count, TimestampTz& at);

// Deletes rows that no next ticket depends on: at most `most`, and none while tickets are being drawn. Returns how many. REQUIRES: as owner.
int64 sweep_tickets(TimestampTz now, int64 most);

}  // namespace taskq::pg
