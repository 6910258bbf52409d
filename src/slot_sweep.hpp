// Deleting rows of slots that no decision needs: a slot without a row is free.
//
// While the deleting transaction is open, such a slot is free and yet not to be had. So whoever deletes holds a lock of its own
// until the transaction ends, and who would answer "full" because of such a row looks first whether that lock is held, see slot_take.cpp.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// Rows of keyed reservations under keys that were not used since `before`. Never waits; none while somebody else deletes. Returns
// how many. REQUIRES: as owner.
int64 evict_slots(TimestampTz before);

// Those, surplus rows whose leases have ended, and rows whose reservation is gone.
int64 sweep_slots(TimestampTz before);

// True if a transaction is open that has deleted rows so.
bool slots_are_being_deleted();

}  // namespace taskq::pg
