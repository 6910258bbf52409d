// Definitions of reservations, cached per backend by name, as those of limits are (definitions.hpp).
#pragma once

#include <string_view>

#include "definitions.hpp"
#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

constexpr int32 max_slots = 1'000'000;

struct Reservation {
  char name[max_name_bytes + 1];
  int32 reservation_id;
  int32 slots;
  ratelimit::Micros lease;
  bool keyed;
  int32 max_keys;  // 0: what the setting says
};

// The definition of `name` as committed now (or changed by this transaction), or nullptr. Valid until the next call into the server.
const Reservation* find_reservation(std::string_view name);

// A copy of it. Raises 42704 if there is none.
Reservation needed_reservation(std::string_view name);

// How many slots the reservation has under this key: none under one that it does not take (any more).
int32 slots_under(const Reservation& reservation, std::string_view key);

// Raises 22023 if the reservation is keyed and the key empty, or the reverse.
void check_key(const Reservation& reservation, std::string_view key);

}  // namespace taskq::pg
