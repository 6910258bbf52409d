// What can be done with slots. Each function runs the protocol of slot_store.hpp.
#pragma once

#include "reservations.hpp"
#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

enum class SlotReason : uint8 { ok, full, timed_out, too_many_keys, no_reservation };

// What happens if there is no such reservation (any more): 42704, or nothing. Taking is then allowed, without a slot, with reason
// no_reservation; there is no lease to end or renew.
enum class Missing : uint8 { raises, allows };

struct SlotAnswer {
  bool allowed = false;
  SlotReason reason = SlotReason::full;
  int32 slot_index = 0;
  int64 fence = 0;
  TimestampTz lease_expires_at = 0;
  ratelimit::Micros retry_after = 0;
  int32 reservation_id = 0;  // of take_slot
  bool ahead = false;  // of a look: there are leases from before the clock was set back, which anchor_slots() would anchor
};

// Takes a free slot, if there is one. Raises 22023 for a key it does not take. All zeros for `job`
// and `worker` mean none. Waits for the lock of the reservation no longer than `patience`, if the setting allows as much.
SlotAnswer take_slot(std::string_view name, std::string_view key, const pg_uuid_t& job, const pg_uuid_t& worker,
                     ratelimit::Micros patience = ratelimit::kNever, Missing missing = Missing::raises);

const char* slot_reason_text(SlotReason reason);

// Whether `count` slots could be taken now; changes nothing, but may wait as take_slot does. `slot_index`, `fence` and `lease_expires_at` mean nothing.
SlotAnswer look_for_slots(std::string_view name, std::string_view key, int32 count, Missing missing = Missing::raises);

// The definition of `name`, copied. False if there is none and that is allowed; raises 42704 otherwise.
bool look_up_reservation(std::string_view name, Missing missing, Reservation& reservation);

// Lets the leases from before the clock was set back go on from the new time (slot_clock.hpp).
void anchor_slots(const Reservation& reservation, std::string_view key);

// Which lease is meant: that of this worker, or with this fence, or both.
struct Holder {
  const pg_uuid_t* worker = nullptr;
  bool has_fence = false;
  int64 fence = 0;
};

// Ends the lease of one slot. False, and nothing changed, if the holder does not hold it now. Raises 55P03 if another transaction
// has the slot in hand for too long: for taskq_ratelimit.lock_timeout, or `patience` if that is shorter.
bool free_slot(std::string_view name, std::string_view key, int32 index, const Holder& holder,
               ratelimit::Micros patience = ratelimit::kNever, Missing missing = Missing::raises);

// Renews the lease of one slot from now on; `end` is its new end. False as above.
bool extend_slot(std::string_view name, std::string_view key, int32 index, const Holder& holder, TimestampTz& end,
                 Missing missing = Missing::raises);

// Counts as committed now (or changed by this transaction).
struct SlotCounts {
  Reservation reservation;
  int32 held = 0;
  TimestampTz first_end = DT_NOEND;  // of the leases that live
};
SlotCounts count_slots(const Reservation& reservation, std::string_view key);

}  // namespace taskq::pg
