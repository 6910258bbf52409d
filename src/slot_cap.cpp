#include "slot_cap.hpp"

#include "clock.hpp"
#include "key_cap.hpp"
#include "settings.hpp"
#include "slot_deletion.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr Size shortest_key = 2;  // one byte and its length

int32 most_keys(const Reservation& reservation) {
  return reservation.max_keys > 0 ? reservation.max_keys : max_keys_per_reservation;
}

bool has_rows(OpenTable& slots, SlotName name) {
  const SlotScan scan = begin_slot_scan(slots, name);
  FoundRow found;
  const bool any = next_slot(scan, slots, ForwardScanDirection, found);
  end_slot_scan(scan);
  return any;
}

bool is_free(const FoundRow& found) {
  return found.version.kind == VersionKind::live && slot_row(found.row).lease_expires_at <= clock_now();
}

// True if `use(found)` says so for every row of the key.
template <class Use>
bool for_all_rows(OpenTable& slots, SlotName name, Use use) {
  const SlotScan scan = begin_slot_scan(slots, name);
  FoundRow found;
  bool all = true;
  while (all && next_slot(scan, slots, ForwardScanDirection, found)) {
    all = use(found);
    heap_freetuple(found.row);
  }
  end_slot_scan(scan);
  return all;
}

// Looks at all rows first: a key with a lease keeps its others, too. Somebody may take one meanwhile: then the rest stays.
bool evict_key(OpenTable& slots, SlotName name) {
  if (!for_all_rows(slots, name, is_free)) return false;
  lock_evicting();
  return for_all_rows(slots, name, [&](const FoundRow& found) { return is_free(found) && delete_slot(slots, found); });
}

}  // namespace

bool has_room_for_slot(OpenTable& slots, const Reservation& reservation, std::string_view key) {
  if (key.empty() || has_rows(slots, {reservation.reservation_id, key})) return true;
  KeySpace keys{.rows = slots, .owner = reservation.reservation_id, .most = most_keys(reservation),
                .row_bytes = slot_fixed_bytes + shortest_key, .key_of = slot_key};
  return make_room(keys, [&](std::string_view other) { return evict_key(slots, {reservation.reservation_id, other}); });
}

}  // namespace taskq::pg
