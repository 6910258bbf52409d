#include "entry_store.hpp"

#include "heap_place.hpp"
#include "other_indexes.hpp"
#include "tuple_version.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::log::Entry;

namespace {

// All columns are fixed-width and never null, so a row can be read in place.
struct EntryRow {
  int64 bucket_id;
  int64 upto;
  int64 cost;
  TimestampTz at;
  pg_uuid_t request_id;
};

constexpr int entry_columns = 5;

EntryRow* entry_row(HeapTuple tuple) { return reinterpret_cast<EntryRow*>(GETSTRUCT(tuple)); }

StoredEntry stored(HeapTuple tuple) {
  const EntryRow& row = *entry_row(tuple);
  return {{row.upto, row.cost, row.at}, tuple->t_self, row.request_id};
}

bool counts(const Version& version) { return version.kind == VersionKind::live || version.kind == VersionKind::busy; }

// Copies the version of the row at `place` that counts. False if none does: entries are only ever changed under their bucket's
// row, so there is at most one among the versions that share an index entry.
bool fetch(Relation table, ItemPointerData place, StoredEntry& found) {
  Buffer buffer = ReadBuffer(table, ItemPointerGetBlockNumber(&place));
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  bool ok = false;
  HeapTupleData tuple;
  while (tuple_at(table, buffer, place, tuple)) {
    const Version version = classify(tuple);
    ok = counts(version);
    if (ok) found = stored(&tuple);
    if (version.kind != VersionKind::superseded || !HeapTupleHeaderIsHotUpdated(tuple.t_data)) break;
    place = tuple.t_data->t_ctid;
  }
  UnlockReleaseBuffer(buffer);
  return ok;
}

IndexScanDesc begin_scan(OpenTable& table, int64 bucket_id, int64 unit, ScanDirection direction) {
  ScanKeyData keys[2];
  const bool forward = ScanDirectionIsForward(direction);
  ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT8EQ, Int64GetDatum(bucket_id));
  ScanKeyInit(&keys[1], 2, forward ? BTGreaterEqualStrategyNumber : BTLessEqualStrategyNumber, forward ? F_INT8GE : F_INT8LE,
              Int64GetDatum(unit));
  IndexScanDesc scan = index_beginscan(table.table, table.key(), SnapshotSelf, 2, 0);
  index_rescan(scan, keys, 2, nullptr, 0);
  return scan;
}

void add_index_entry(OpenTable& table, int64 bucket_id, int64 upto, HeapTuple tuple) {
  Datum values[2] = {Int64GetDatum(bucket_id), Int64GetDatum(upto)};
  bool nulls[2] = {};
  index_insert(table.key(), values, nulls, &tuple->t_self, table.table, UNIQUE_CHECK_NO, false, BuildIndexInfo(table.key()));
  add_to_other_indexes(table, tuple);
}

}  // namespace

bool find_entry(OpenTable& table, int64 bucket_id, int64 unit, ScanDirection direction, StoredEntry& found) {
  IndexScanDesc scan = begin_scan(table, bucket_id, unit, direction);
  bool ok = false;
  while (ItemPointer place = index_getnext_tid(scan, direction)) {
    ok = fetch(table.table, *place, found);
    if (ok) break;
  }
  index_endscan(scan);
  return ok;
}

Entry Entries::reaching(int64 unit) {
  if (all_at != ratelimit::kNever) return {.upto = unit, .cost = 1, .at = all_at};
  StoredEntry found;
  ++probes;
  const bool there = find_entry(*table, bucket_id, unit, ForwardScanDirection, found);
  // An entry that begins later means that the one wanted was deleted meanwhile.
  if (there && found.entry.upto - found.entry.cost < unit) return found.entry;
  missing = true;
  return {.upto = unit, .cost = 1, .at = 0};
}

int list_entries(OpenTable& table, int64 bucket_id, int64 from, int64 to, StoredEntry* list, int most) {
  int count = 0;
  if (from >= to) return 0;
  IndexScanDesc scan = begin_scan(table, bucket_id, from + 1, ForwardScanDirection);
  while (count < most) {
    ItemPointer place = index_getnext_tid(scan, ForwardScanDirection);
    if (place == nullptr) break;
    if (!fetch(table.table, *place, list[count])) continue;
    if (list[count].entry.upto > to) break;
    ++count;
  }
  index_endscan(scan);
  return count;
}

void add_entry(OpenTable& table, int64 bucket_id, const Entry& entry, const pg_uuid_t& request_id) {
  pg_uuid_t id = request_id;
  Datum values[entry_columns] = {Int64GetDatum(bucket_id), Int64GetDatum(entry.upto), Int64GetDatum(entry.cost),
                                 TimestampTzGetDatum(entry.at), UUIDPGetDatum(&id)};
  bool nulls[entry_columns] = {};
  check_columns(RelationGetDescr(table.table), entry_columns);
  HeapTuple tuple = heap_form_tuple(RelationGetDescr(table.table), values, nulls);
  heap_insert(table.table, tuple, GetCurrentCommandId(true), 0, nullptr);
  add_index_entry(table, bucket_id, entry.upto, tuple);
  heap_freetuple(tuple);
}

void delete_entry(OpenTable& table, const StoredEntry& entry) {
  ItemPointerData place = entry.place;
  simple_heap_delete(table.table, &place);
}

void change_entry(OpenTable& table, int64 bucket_id, const StoredEntry& entry, const Entry& changed) {
  pg_uuid_t id = entry.request_id;
  ItemPointerData place = entry.place;
  Datum values[entry_columns] = {Int64GetDatum(bucket_id), Int64GetDatum(changed.upto), Int64GetDatum(changed.cost),
                                 TimestampTzGetDatum(changed.at), UUIDPGetDatum(&id)};
  bool nulls[entry_columns] = {};
  check_columns(RelationGetDescr(table.table), entry_columns);
  HeapTuple tuple = heap_form_tuple(RelationGetDescr(table.table), values, nulls);
  simple_heap_update(table.table, &place, tuple);
  if (!HeapTupleIsHeapOnly(tuple)) add_index_entry(table, bucket_id, changed.upto, tuple);
  CommandCounterIncrement();
}

int64 next_bucket_id() { return nextval_internal(relations().entry_sequence, false); }

}  // namespace taskq::pg
