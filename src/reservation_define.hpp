// Writing definitions of reservations, and bringing their slots in line.
#pragma once

#include "reservations.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct WantedReservation {
  std::string_view name;
  int32 slots = 1;
  ratelimit::Micros lease = 0;
  bool keyed = false;
  bool replace = false;
  int32 max_keys = 0;  // 0: what the setting says
};

// Registers `wanted` and brings its slots in line. True if anything was written, false if the same definition was there already.
// Raises 42710 if another one is and `replace` is not set.
bool define_reservation(const WantedReservation& wanted);

struct SyncCounts {
  int64 inserted = 0;
  int64 deleted = 0;
  int64 skipped_held = 0;  // surplus slots whose leases live
};

// Brings the rows of slots in line with the definition: makes what is missing (not for keys), deletes what is too much, or marks it surplus
// while its lease lives. Raises 42704, and 55P03 if another transaction has one of these rows in hand for too long.
SyncCounts sync_reservation(std::string_view name);

// Forgets the reservation and all its slots, held or not.
void drop_reservation(std::string_view name);

}  // namespace taskq::pg
