// Deleting rows of slots that no decision needs: a slot without a row is free.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// Rows of keyed reservations under keys that were not used since `before`. Never waits; none while somebody else deletes. Returns
// how many. REQUIRES: as owner.
int64 evict_slots(TimestampTz before);

// Those, surplus rows whose leases have ended, and rows whose reservation is gone.
int64 sweep_slots(TimestampTz before);

}  // namespace taskq::pg
