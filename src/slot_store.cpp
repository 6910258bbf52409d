#include "slot_store.hpp"

#include "other_indexes.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

Datum key_datum(std::string_view key) {
  return PointerGetDatum(cstring_to_text_with_len(key.data(), static_cast<int>(key.size())));
}

// The first `count` columns of the primary key: reservation_id, key, slot_index.
IndexScanDesc begin_scan(OpenTable& slots, SlotName name, int32 index, int count) {
  ScanKeyData keys[3];
  ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(name.reservation_id));
  if (count > 1) ScanKeyEntryInitialize(&keys[1], 0, 2, BTEqualStrategyNumber, InvalidOid, C_COLLATION_OID, F_TEXTEQ, key_datum(name.key));
  if (count > 2) ScanKeyInit(&keys[2], 3, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(index));
  IndexScanDesc scan = index_beginscan(slots.table, slots.key(), SnapshotSelf, count, 0);
  index_rescan(scan, keys, count, nullptr, 0);
  return scan;
}

bool add_index_entry(OpenTable& slots, std::string_view key, int32 index, HeapTuple tuple, IndexUniqueCheck check, bool unchanged) {
  Datum values[3] = {Int32GetDatum(slot_row(tuple).reservation_id), key_datum(key), Int32GetDatum(index)};
  bool nulls[3] = {};
  return index_insert(slots.key(), values, nulls, &tuple->t_self, slots.table, check, unchanged, BuildIndexInfo(slots.key()));
}

HeapTuple form_row(TupleDesc columns, std::string_view key, const SlotRow& row) {
  pg_uuid_t job = row.job_id, worker = row.worker_id;
  check_columns(columns, slot_columns);
  Datum values[slot_columns] = {Int32GetDatum(row.reservation_id), Int32GetDatum(row.slot_index), Int64GetDatum(row.fence),
                                TimestampTzGetDatum(row.acquired_at), TimestampTzGetDatum(row.renewed_at), TimestampTzGetDatum(row.lease_expires_at),
                                UUIDPGetDatum(&job), UUIDPGetDatum(&worker), BoolGetDatum(row.surplus), key_datum(key)};
  bool nulls[slot_columns] = {};
  return heap_form_tuple(columns, values, nulls);
}

}  // namespace

// Newest places first: with an old snapshot open a hot slot has many index entries, and only the last is alive.
FoundRow find_slot(OpenTable& slots, SlotName name, int32 index, bool to_change) {
  const auto is_slot = [&](HeapTuple tuple) {
    const SlotRow row = slot_row(tuple);
    return row.reservation_id == name.reservation_id && row.slot_index == index && slot_key(tuple) == name.key;
  };
  FoundRow found, arriving;
  IndexScanDesc scan = begin_scan(slots, name, index, 3);
  while (ItemPointer place = index_getnext_tid(scan, BackwardScanDirection)) {
    found = newest_version(slots.table, *place, to_change, is_slot);
    if (found.exists) break;
    if (found.version.kind == VersionKind::arriving) arriving = found;
  }
  index_endscan(scan);
  return found.exists ? found : arriving;
}

bool replace_slot(OpenTable& slots, const FoundRow& found, const SlotRow& changed) {
  TM_FailureData failure;
  LockTupleMode mode;
  HeapTuple tuple = heap_copytuple(found.row);
  patch_slot(tuple, changed);
  const bool replaced = heap_update(slots.table, &found.row->t_self, tuple, GetCurrentCommandId(true), InvalidSnapshot,
                                    found.version.locked_by_us, &failure, &mode) == TM_Ok;
  if (replaced) {
    // The key has not changed and the row is ours: looking for duplicates would only read old versions.
    if (!HeapTupleIsHeapOnly(tuple)) {
      add_index_entry(slots, slot_key(tuple), changed.slot_index, tuple, UNIQUE_CHECK_NO, true);
      add_to_other_indexes(slots, tuple);
    }
    CommandCounterIncrement();  // so that a second call in the same command may replace the row again
  }
  heap_freetuple(tuple);
  return replaced;
}

bool insert_slot(OpenTable& slots, std::string_view key, const SlotRow& row) {
  HeapTuple tuple = form_row(RelationGetDescr(slots.table), key, row);
  const TransactionId self = GetCurrentTransactionId();
  tuple->t_data->t_ctid = place_of(SpeculativeInsertionLockAcquire(self), SpecTokenOffsetNumber);
  heap_insert(slots.table, tuple, GetCurrentCommandId(true), HEAP_INSERT_SPECULATIVE, nullptr);
  const bool alone = add_index_entry(slots, key, row.slot_index, tuple, UNIQUE_CHECK_PARTIAL, false);
  alone ? heap_finish_speculative(slots.table, &tuple->t_self) : heap_abort_speculative(slots.table, &tuple->t_self);
  if (alone) add_to_other_indexes(slots, tuple);
  SpeculativeInsertionLockRelease(self);
  CommandCounterIncrement();
  return alone;
}

bool delete_slot(OpenTable& slots, const FoundRow& found) {
  TM_FailureData failure;
  const bool deleted = heap_delete(slots.table, &found.row->t_self, GetCurrentCommandId(true), InvalidSnapshot,
                                   found.version.locked_by_us, &failure, false) == TM_Ok;
  if (deleted) CommandCounterIncrement();
  return deleted;
}

SlotScan begin_slot_scan(OpenTable& slots, SlotName name) { return {begin_scan(slots, name, 0, 2), name, false}; }

SlotScan begin_reservation_scan(OpenTable& slots, int32 reservation_id) {
  const SlotName name{.reservation_id = reservation_id, .key = {}};
  return {begin_scan(slots, name, 0, 1), name, true};
}

void end_slot_scan(const SlotScan& scan) { index_endscan(scan.scan); }

bool next_slot(const SlotScan& scan, OpenTable& slots, ScanDirection direction, FoundRow& found) {
  const auto is_wanted = [&](HeapTuple tuple) {
    return slot_row(tuple).reservation_id == scan.name.reservation_id && (scan.any_key || slot_key(tuple) == scan.name.key);
  };
  while (ItemPointer place = index_getnext_tid(scan.scan, direction)) {
    found = newest_version(slots.table, *place, false, is_wanted);
    if (found.row != nullptr) return true;
  }
  return false;
}

bool has_surplus(OpenTable& slots, SlotName name) {
  const SlotScan scan = begin_slot_scan(slots, name);
  FoundRow found;
  bool surplus = false;
  while (next_slot(scan, slots, BackwardScanDirection, found)) {
    if (!found.exists) continue;
    surplus = slot_row(found.row).surplus;
    break;
  }
  end_slot_scan(scan);
  return surplus;
}

int64 next_fence() { return nextval_internal(relations().fence_sequence, false); }

}  // namespace taskq::pg
