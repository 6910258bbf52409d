// Waiting for another transaction to end, for at most taskq_ratelimit.lock_timeout.
//
// Short waits are a few turns on the spot, then naps: the other side is nearly always a call that commits within microseconds, and
// neither costs anybody a visit to the lock manager. Longer waits go through the lock manager, so that deadlocks are found, pg_locks shows who waits
// for whom, and the caller's own lock_timeout, statement_timeout and cancel requests work as in any other statement.
#pragma once

#include "taskq_ratelimit/micros.hpp"
#include "tuple_version.hpp"

#include "pg.hpp"

namespace taskq::pg {

// Who waits for less never comes to the lock manager.
inline constexpr ratelimit::Micros naps_until = 20 * 1000;

// One per call: how long it has waited so far, over all its waits.
struct Patience {
  TimestampTz started = 0;  // 0: has not waited yet
  ratelimit::Micros limit = ratelimit::kNever;  // all its waits together, if taskq_ratelimit.lock_timeout is not shorter
  int turns = 0;
  long next_nap = 0;      // microseconds
};

// Waits until `version.other` has ended. False if the time is up. REQUIRES: version.kind is busy or arriving; no buffer is locked or pinned.
bool wait_for_other(Patience& patience, const Version& version, Relation table, ItemPointer row);

}  // namespace taskq::pg
