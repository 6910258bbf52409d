// What can be done to one bucket. Each function runs the protocol of bucket_store.hpp once: find, read the clock, decide, replace.
//
// REQUIRES everywhere: `call` was resolved (call.hpp); the changing functions run in a transaction that may write. If the definition
// changes meanwhile, the call is resolved again. Those that answer no Decision raise 55P03 when they may wait no longer.
#pragma once

#include "call.hpp"
#include "taskq_ratelimit/decision.hpp"

#include "pg.hpp"

namespace taskq::pg {

enum class Reason : uint8 { ok, limited, paused, shadow, lock_timeout, too_many_keys };

struct Answer {
  ratelimit::Decision decision;
  Reason reason = Reason::ok;
  bool has_request_id = false;
  pg_uuid_t request_id{};
  TimestampTz paused_until = DT_NOBEGIN;
  TimestampTz used_at = DT_NOBEGIN;  // newest time of the stored state; -infinity if there is none
};

// A decision as its holder shows it again.
struct ShownDecision {
  double cost = 0;
  double remaining = 0;
  ratelimit::Micros decided_at = 0;
  ratelimit::Micros delay = 0;
  ratelimit::Micros reset_after = 0;
  pg_uuid_t request_id{};
};

// Takes the cost now, or (meters only) at a later instant at most `max_wait` away. At the cap on keys a new one takes the place of a
// full bucket, or is denied.
Answer acquire_bucket(Call& call, ratelimit::Micros max_wait = 0);

// What acquire_bucket(call) would answer.
Answer preview_bucket(Call& call);

// The state now; retry_after and allowed are those of a call of one user unit, or of all where the capacity is smaller.
Answer peek_bucket(Call& call);

Answer charge_bucket(Call& call);

// Gives the cost back, clamped at full; returns how much that was.
double refund_bucket(Call& call);

// Replaces the cost of one decision by call.amount (0: gives all of it back). Returns how much was given back; negative if more was
// debited. The decision's request_id names the entry of a log.
double settle_bucket(Call& call, const ShownDecision& shown);

// Makes everybody else who wants to change the bucket wait until the transaction ends, if there is one.
void hold_bucket(Call& call);

// Makes sure that the bucket exists, written under the present definition.
void create_if_missing(Call& call);

// Makes the bucket as good as new; false if there was none.
bool reset_bucket(Call& call);

// Denies everything on this bucket until then; -infinity ends a pause.
void pause_bucket(Call& call, TimestampTz until);

// Deletes the bucket if it is full, not paused and was not used since `before`; never waits.
bool evict_bucket(Call& call, TimestampTz before);

// What evict_bucket would answer.
bool is_idle_bucket(Call& call, TimestampTz before);

// Deletes window entries that have left, at most about `most`; never waits. Returns how many.
int64 trim_bucket(Call& call, int64 most);

}  // namespace taskq::pg
