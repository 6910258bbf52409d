// Rows of free slots that an open transaction is deleting. Such a slot is free, and yet not to be had until that transaction ends. So whoever
// deletes holds a lock of its own until then, and who would answer "full" because of such a row looks first whether that lock is held.
#pragma once

#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

// Who deletes rows that no decision needs, one transaction at a time. False if there is another.
bool lock_sweeping();

// Who deletes rows to make room for others: any number of them, beside one that sweeps.
void lock_evicting();

// How long one call has waited for such transactions, over all its waits.
struct DeletionWait {
  TimestampTz since = 0;
  bool timed_out = false;
};

// True, after a nap, if `deleter` has been seen deleting a row that may be a free slot: look again. False if there was none, or it is changing
// a definition, which deletes rows of slots that there will be no more: those count as held.
bool waits_for_deletion(TransactionId deleter, ratelimit::Micros patience, DeletionWait& wait);

}  // namespace taskq::pg
