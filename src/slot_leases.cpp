#include "slot_leases.hpp"

#include "slot_store.hpp"
#include "uuid.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

int by_slot(const void* left, const void* right) {
  const auto &a = *static_cast<const WorkersLease*>(left), &b = *static_cast<const WorkersLease*>(right);
  if (a.reservation_id != b.reservation_id) return a.reservation_id < b.reservation_id ? -1 : 1;
  const int by_key = a.key.compare(b.key);
  return by_key != 0 ? by_key : a.slot_index - b.slot_index;
}

// Several versions of a row lead to the same newest one.
void drop_repeated(WorkersLeases& leases) {
  int kept = 0;
  for (int i = 0; i < leases.count; ++i) {
    if (kept == 0 || by_slot(&leases.list[kept - 1], &leases.list[i]) != 0) leases.list[kept++] = leases.list[i];
  }
  leases.count = kept;
}

void add(WorkersLeases& leases, int& room, HeapTuple row) {
  if (leases.count == room) {
    room *= 2;
    leases.list = static_cast<WorkersLease*>(repalloc_huge(leases.list, sizeof(WorkersLease) * static_cast<Size>(room)));
  }
  const SlotRow slot = slot_row(row);
  leases.list[leases.count++] = {slot.reservation_id, slot.slot_index, slot.fence, slot.lease_expires_at, slot_key(row)};
}

// The newest version of the row that `tuple` is a version of.
FoundRow newest_of(Relation table, HeapTuple tuple) {
  const int32 reservation_id = slot_row(tuple).reservation_id, index = slot_row(tuple).slot_index;
  return newest_version(table, tuple->t_self, false, [&](HeapTuple version) {
    return slot_row(version).reservation_id == reservation_id && slot_row(version).slot_index == index;
  });
}

}  // namespace

WorkersLeases leases_of(const pg_uuid_t& worker) {
  OpenTable slots = open_slots(RowExclusiveLock);
  int room = 16;
  WorkersLeases leases{.list = static_cast<WorkersLease*>(palloc(sizeof(WorkersLease) * static_cast<Size>(room))), .count = 0};
  TableScanDesc scan = table_beginscan(slots.table, SnapshotAny, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection)) {
    CHECK_FOR_INTERRUPTS();
    if (!same_uuid(slot_row(tuple).worker_id, worker)) continue;
    const FoundRow found = newest_of(slots.table, tuple);
    if (found.exists && same_uuid(slot_row(found.row).worker_id, worker)) add(leases, room, found.row);
  }
  table_endscan(scan);
  close_table(slots);
  pg_qsort(leases.list, static_cast<size_t>(leases.count), sizeof(WorkersLease), by_slot);
  drop_repeated(leases);
  return leases;
}

}  // namespace taskq::pg
