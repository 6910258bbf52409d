// One look at all slots under a key.
#pragma once

#include "reservations.hpp"
#include "slot_store.hpp"

#include "pg.hpp"

namespace taskq::pg {

// What was seen of one slot. Of two looks at it: held all the time in between, if both saw the same fence, or the second saw a lease
// written by the transaction that the first saw taking it.
struct SeenSlot {
  bool held = false;                              // by a lease, or by a transaction that is about to take it
  int64 fence = 0;                                // of the lease; 0 while it is being taken
  TransactionId writer = InvalidTransactionId;    // of the version seen; while it is being taken: who takes it
};

struct Survey {
  int32 slots = 0;              // how many there are to hand out
  SeenSlot* seen = nullptr;     // of those
  int32 held = 0;               // leases that live, those of surplus slots as well
  int32 taking = 0;             // slots that open transactions have in hand without a lease that is committed
  TransactionId deleter = InvalidTransactionId;  // of those, one that is deleting a row instead
  int32 surplus = 0;            // surplus slots, held or not
  bool ahead = false;           // there are leases from before the clock was set back: they count as they will be anchored
  TimestampTz* ends = nullptr;  // of the leases that live, of which there are `held`
};

Survey survey_slots(OpenTable& slots, const Reservation& reservation, std::string_view key);
void free_survey(const Survey& survey);

// The instant from which at most `most` of the leases seen live. `if_none` when there are no more than that.
TimestampTz end_of_excess(const Survey& survey, int32 most, TimestampTz if_none);

// How many slots were held through the whole time between the two looks; 0 if their number has changed.
int32 held_between(const Survey& first, const Survey& second);

}  // namespace taskq::pg
