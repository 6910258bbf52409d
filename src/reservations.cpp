#include "reservations.hpp"

#include <cstring>

#include "errors.hpp"
#include "relations.hpp"
#include "table_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constinit HTAB* cache = nullptr;
constinit uint64 filled_in_generation = 0;

void fill(Reservation& reservation, const TableRow& row) {
  reservation.reservation_id = DatumGetInt32(row.datum(1));
  reservation.slots = DatumGetInt32(row.datum(4));
  reservation.lease = row.integer(6);
  reservation.keyed = row.boolean(7);
}

bool load(std::string_view name, Reservation& reservation) {
  const Relations& ours = relations();
  Relation table = table_open(ours.reservations, AccessShareLock);
  Relation index = index_open(ours.reservations_by_name, AccessShareLock);
  ScanKeyData key;
  ScanKeyEntryInitialize(&key, 0, 1, BTEqualStrategyNumber, InvalidOid, C_COLLATION_OID, F_TEXTEQ,
                         PointerGetDatum(cstring_to_text_with_len(name.data(), static_cast<int>(name.size()))));
  const bool found = with_row(table, index, &key, 1, [&](TableRow row) { fill(reservation, row); });
  index_close(index, AccessShareLock);
  table_close(table, AccessShareLock);
  return found;
}

void renew_cache() {
  if (cache != nullptr && filled_in_generation == cache_generation) return;
  if (cache != nullptr) hash_destroy(cache);
  HASHCTL control{};
  control.keysize = max_name_bytes + 1;
  control.entrysize = sizeof(Reservation);
  control.hcxt = CacheMemoryContext;
  cache = hash_create("taskq_ratelimit reservations", 64, &control, HASH_ELEM | HASH_STRINGS | HASH_CONTEXT);
  filled_in_generation = cache_generation;
}

}  // namespace

const Reservation* find_reservation(std::string_view name) {
  relations();
  renew_cache();
  if (name.size() > max_name_bytes) return nullptr;
  Reservation loaded{};
  std::memcpy(loaded.name, name.data(), name.size());
  auto* cached = static_cast<Reservation*>(hash_search(cache, loaded.name, HASH_FIND, nullptr));
  if (cached != nullptr) return cached;
  if (!load(name, loaded)) return nullptr;
  renew_cache();  // reading may have taken in more changes; what was read is at least as new
  cached = static_cast<Reservation*>(hash_search(cache, loaded.name, HASH_ENTER, nullptr));
  *cached = loaded;
  return cached;
}

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
