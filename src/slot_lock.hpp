// The lock of one reservation, see rule (6) in slot_store.hpp. Asked for again and again instead of queued for: so it never takes part
// in a deadlock that nobody would find, and nobody waits longer than taskq_ratelimit.lock_timeout (10 s where that is for ever).
#pragma once

#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

// False if the time is up, which is at most `patience`. Afterwards find_reservation() tells the definition in force. Held until the transaction ends, or unlocked.
bool lock_reservation(int32 reservation_id, LOCKMODE mode, ratelimit::Micros patience = ratelimit::kNever);

void unlock_reservation(int32 reservation_id, LOCKMODE mode);

// True if who has waited since `started` has waited long enough.
bool has_waited_enough(TimestampTz started, ratelimit::Micros patience = ratelimit::kNever);

}  // namespace taskq::pg
