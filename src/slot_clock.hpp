// Leases when the clock is set back. A lease that was written more than a second ahead of the clock means that it was
// (state.hpp): then it would hold its slot for the length of the step. So it goes on from the new time, for its own length.
#pragma once

#include "reservations.hpp"
#include "slot_store.hpp"
#include "taskq_ratelimit/state.hpp"

#include "pg.hpp"

namespace taskq::pg {

inline bool is_ahead(const SlotRow& row, TimestampTz now) {
  return row.lease_expires_at > now && ratelimit::clock_was_set_back(row.renewed_at, now);
}

// The lease as if it had been written at `now`, if it is ahead.
inline SlotRow anchored(SlotRow row, TimestampTz now) {
  if (!is_ahead(row, now)) return row;
  row.lease_expires_at = now + (row.lease_expires_at - row.renewed_at);
  row.renewed_at = now;
  row.acquired_at = ratelimit::smaller(row.acquired_at, now);
  return row;
}

// Writes them so, surplus slots as well, but for those in the hands of open transactions.
void anchor_leases(OpenTable& slots, const Reservation& reservation, std::string_view key);

}  // namespace taskq::pg
