// The cap on the keys of a reservation (key_cap.hpp), where a slot's first row is about to be made.
#pragma once

#include "reservations.hpp"
#include "slot_store.hpp"

#include "pg.hpp"

namespace taskq::pg {

// True if the key has rows, or may have its first. At the cap the rows of a key are deleted for it under which no lease lives.
// REQUIRES: the lock of the reservation is held, so that its definition stays.
bool has_room_for_slot(OpenTable& slots, const Reservation& reservation, std::string_view key);

}  // namespace taskq::pg
