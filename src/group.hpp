// Several rate limits and slots at once, all or nothing.
//
// Protocol
// (1) First all are looked at, without a lock: if one of them refuses, nothing is written.
// (2) Then all are taken in a subtransaction, slots before rate limits, each of these in one order for all sessions (by number and key).
//     Slots are never waited for, buckets are: so no two groups can wait for each other. Except that at the cap on the keys of a limit
//     a new key takes the place of an idle one (key_cap.hpp), out of that order: see (5).
// (3) Whoever is refused on the way, because others were faster, undoes the subtransaction, which also frees the rows, and starts over with (1).
// (4) Requests for the same bucket are one request for the sum; so are requests for slots of the same reservation and key.
// (5) Whoever has waited half a second for a bucket undoes the subtransaction and starts over a little later; three times, then it waits
//     on as everybody does.
#pragma once

#include "bucket_ops.hpp"
#include "call.hpp"
#include "resource.hpp"
#include "slot_ops.hpp"

#include "pg.hpp"

namespace taskq::pg {

constexpr int max_requests = 1000;

struct GroupRequest {
  // As given. For a slot the cost must be 1.
  ResourceKind kind = ResourceKind::rate_limit;
  std::string_view name;
  std::string_view key;
  double cost = 1;
  pg_uuid_t job{};     // all zeros: none
  pg_uuid_t worker{};
  Missing missing = Missing::raises;  // of a slot

  // The outcome, of a rate limit or of a slot. Each may be allowed while the group is not: then nothing was taken.
  Call call{};
  Answer answer{};
  Reservation reservation{};
  SlotAnswer slot{};
  bool has_lease = false;

  GroupRequest* first = nullptr;  // the first request for the same; only its answer counts until all have it
  int32 sharing = 1;              // there: how many requests are for the same

  bool allowed() const { return kind == ResourceKind::rate_limit ? answer.decision.allowed : slot.allowed; }
  ratelimit::Micros retry_after() const { return kind == ResourceKind::rate_limit ? answer.decision.retry_after : slot.retry_after; }
};

struct GroupAnswer {
  bool allowed = true;
  const GroupRequest* refused_by = nullptr;  // the first in the caller's order
  ratelimit::Micros retry_after = 0;         // the longest of all that refuse; kNever if one of them always will
};

// Takes all or nothing. Raises what acquire and acquire_slot would raise for a request, and 22023 for requests that could never succeed
// together. REQUIRES: at most max_requests; names and keys have been checked.
GroupAnswer acquire_group(GroupRequest* requests, int count);

// What acquire_group would answer; changes nothing.
GroupAnswer look_at_group(GroupRequest* requests, int count);

}  // namespace taskq::pg
