// Waiting for a slot to come free, as CALL taskq.wait() does.
#pragma once

#include "slot_ops.hpp"
#include "wait.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct SlotWish {
  std::string_view name;
  std::string_view key;
  pg_uuid_t job;
  pg_uuid_t worker;
};

// Tries until it has a slot or the time is up; each try is a transaction of its own. Returns with interrupts held, so that
// a slot which is committed is not lost before the answer is made; end_of_wait() lets them in again.
// REQUIRES: SPI is connected, not atomic. Raises what take_slot raises, also if the reservation is dropped meanwhile.
SlotAnswer wait_for_slot(const SlotWish& wish, const Deadline& deadline);

// To be called last, with the answer made ready: whoever was told to stop meanwhile gives the slot back, and stops.
void end_of_wait(const SlotWish& wish, const SlotAnswer& answer);

}  // namespace taskq::pg
