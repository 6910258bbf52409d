#include "reservations.hpp"

#include "errors.hpp"
#include "name_cache.hpp"
#include "relations.hpp"
#include "table_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

void fill(Reservation& reservation, const TableRow& row) {
  reservation.reservation_id = DatumGetInt32(row.datum(1));
  reservation.slots = DatumGetInt32(row.datum(4));
  reservation.lease = row.integer(6);
  reservation.keyed = row.boolean(7);
  reservation.max_keys = row.is_null(10) ? 0 : DatumGetInt32(row.datum(10));
}

constinit NameCache<Reservation> cache{.title = "taskq_ratelimit reservations",
                                       .table = &Relations::reservations,
                                       .by_name = &Relations::reservations_by_name,
                                       .fill = fill};

}  // namespace

const Reservation* find_reservation(std::string_view name) { return cache.find(name); }

Reservation needed_reservation(std::string_view name) {
  const Reservation* found = find_reservation(name);
  if (found == nullptr) raise_unknown_reservation(name);
  return *found;
}

int32 slots_under(const Reservation& reservation, std::string_view key) {
  return reservation.keyed == !key.empty() ? reservation.slots : 0;
}

void check_key(const Reservation& reservation, std::string_view key) {
  if (reservation.keyed && key.empty()) {
    raise_invalid(psprintf("reservation \"%s\" needs a key", reservation.name), "It is keyed, and the key is empty.",
                  "Say whom the slots are for: key => '...'.");
  }
  if (!reservation.keyed && !key.empty()) {
    raise_invalid(psprintf("reservation \"%s\" takes no key", reservation.name), psprintf("The key is \"%s\".", shown(key)),
                  "Register the reservation with keyed => true, or leave the key out.");
  }
}

}  // namespace taskq::pg
