// Taking all that an actor needs for one job: the slot of its queue's cap, its reservations, its rate limits.
#pragma once

#include "actors.hpp"
#include "group.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct ActorRequests {
  GroupRequest* list = nullptr;
  int count = 0;
};

// Its requests, in the order in which a refusal is told. Raises what payload_key raises, and 42704 for what was dropped meanwhile.
ActorRequests requests_of(const Actor& actor, const pg_uuid_t& job, const pg_uuid_t& worker, const Jsonb* payload);

struct ActorAnswer {
  GroupAnswer group;
  ratelimit::Micros retry_after = 0;  // the longest of all refusals; what has no wait of its own counts for five seconds
  bool has_ticket = false;
  TimestampTz ticket_at = 0;
};

// With `ticket`, a refusal comes with an instant of the caller's own (actor_tickets.hpp), if one could be had.
ActorAnswer acquire_for_actor(const ActorRequests& requests, bool ticket);

}  // namespace taskq::pg
