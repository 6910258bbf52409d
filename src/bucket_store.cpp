#include "bucket_store.hpp"

#include "bucket_places.hpp"
#include "heap_place.hpp"
#include "other_indexes.hpp"
#include "relations.hpp"

namespace taskq::pg {

namespace {

bool is_bucket(HeapTuple tuple, BucketName name) {
  return bucket_row(tuple)->limit_id == name.limit_id && bucket_key(tuple) == name.key;
}

// Where a row is looked for, and whose it is.
struct Walk {
  OpenTable& buckets;
  BucketName name;
  bool to_change;
};

FoundBucket walk_chain(const Walk& walk, ItemPointerData place) {
  return newest_version(walk.buckets.table, place, walk.to_change, [&](HeapTuple tuple) { return is_bucket(tuple, walk.name); });
}

IndexScanDesc begin_key_scan(OpenTable& buckets, BucketName name) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(name.limit_id));
  ScanKeyEntryInitialize(&keys[1], 0, 2, BTEqualStrategyNumber, InvalidOid, C_COLLATION_OID, F_TEXTEQ,
                         PointerGetDatum(cstring_to_text_with_len(name.key.data(), static_cast<int>(name.key.size()))));
  IndexScanDesc scan = index_beginscan(buckets.table, buckets.key(), SnapshotSelf, 2, 0);
  index_rescan(scan, keys, 2, nullptr, 0);
  return scan;
}

// Through the index, newest places first: with an old snapshot open a hot bucket has many index entries, and only the last is alive.
FoundBucket find_by_index(const Walk& walk) {
  FoundBucket found, arriving;
  IndexScanDesc scan = begin_key_scan(walk.buckets, walk.name);
  while (ItemPointer place = index_getnext_tid(scan, BackwardScanDirection)) {
    found = walk_chain(walk, *place);
    if (found.exists) {
      remembered_places(walk.name).root = *place;
      break;
    }
    if (found.version.kind == VersionKind::arriving) arriving = found;
  }
  index_endscan(scan);
  return found.exists ? found : arriving;
}

void index_values(BucketName name, Datum* values, bool* nulls) {
  values[0] = Int32GetDatum(name.limit_id);
  values[1] = PointerGetDatum(cstring_to_text_with_len(name.key.data(), static_cast<int>(name.key.size())));
  nulls[0] = nulls[1] = false;
}

bool add_index_entry(OpenTable& buckets, BucketName name, HeapTuple tuple, IndexUniqueCheck check, bool unchanged) {
  Datum values[2];
  bool nulls[2];
  index_values(name, values, nulls);
  return index_insert(buckets.key(), values, nulls, &tuple->t_self, buckets.table, check, unchanged, BuildIndexInfo(buckets.key()));
}

HeapTuple form_row(TupleDesc columns, BucketName name, const BucketRow& row) {
  const ratelimit::State& s = row.state;
  Datum values[bucket_columns] = {Int32GetDatum(row.limit_id), Int32GetDatum(row.version), Int64GetDatum(row.bucket_id),
                                  Int64GetDatum(s.at), Int64GetDatum(s.start), Int64GetDatum(s.used),
                                  Int64GetDatum(s.previous), Int64GetDatum(s.tail), Int64GetDatum(s.newest),
                                  TimestampTzGetDatum(row.paused_until),
                                  PointerGetDatum(cstring_to_text_with_len(name.key.data(), static_cast<int>(name.key.size())))};
  bool nulls[bucket_columns] = {};
  check_columns(columns, bucket_columns);
  return heap_form_tuple(columns, values, nulls);
}

}  // namespace

FoundBucket find_bucket(OpenTable& buckets, BucketName name, bool to_change) {
  const Walk walk{.buckets = buckets, .name = name, .to_change = to_change};
  Places& places = remembered_places(name);
  FoundBucket found;
  if (ItemPointerIsValid(&places.newest)) found = walk_chain(walk, places.newest);
  if (!found.exists && ItemPointerIsValid(&places.root)) found = walk_chain(walk, places.root);
  if (!found.exists) found = find_by_index(walk);
  if (found.exists) places.newest = found.row->t_self;
  return found;
}

bool replace_bucket(OpenTable& buckets, BucketName name, const FoundBucket& found, HeapTuple changed) {
  TM_FailureData failure;
  LockTupleMode mode;
  // heap_update takes a lock of our own for one to wait for, too; if told to wait, it looks whose it is and goes on.
  const bool wait = found.version.locked_by_us;
  const TM_Result result = heap_update(buckets.table, &found.row->t_self, changed, GetCurrentCommandId(true), InvalidSnapshot,
                                       wait, &failure, &mode);
  if (result != TM_Ok) return false;
  Places& places = remembered_places(name);
  places.newest = changed->t_self;
  if (!HeapTupleIsHeapOnly(changed)) {
    // The key has not changed and the row is ours: looking for duplicates would only read old versions.
    add_index_entry(buckets, name, changed, UNIQUE_CHECK_NO, true);
    add_to_other_indexes(buckets, changed);
    places.root = changed->t_self;
  }
  CommandCounterIncrement();  // so that a second call in the same command may replace the row again
  return true;
}

bool insert_bucket(OpenTable& buckets, BucketName name, const BucketRow& row) {
  HeapTuple tuple = form_row(RelationGetDescr(buckets.table), name, row);
  const TransactionId self = GetCurrentTransactionId();
  tuple->t_data->t_ctid = place_of(SpeculativeInsertionLockAcquire(self), SpecTokenOffsetNumber);
  heap_insert(buckets.table, tuple, GetCurrentCommandId(true), HEAP_INSERT_SPECULATIVE, nullptr);
  const bool alone = add_index_entry(buckets, name, tuple, UNIQUE_CHECK_PARTIAL, false);
  if (alone) {
    heap_finish_speculative(buckets.table, &tuple->t_self);
    add_to_other_indexes(buckets, tuple);
    remembered_places(name).newest = remembered_places(name).root = tuple->t_self;
  } else {
    heap_abort_speculative(buckets.table, &tuple->t_self);
  }
  SpeculativeInsertionLockRelease(self);
  CommandCounterIncrement();
  return alone;
}

bool delete_bucket(OpenTable& buckets, HeapTuple found) {
  TM_FailureData failure;
  const bool deleted = heap_delete(buckets.table, &found->t_self, GetCurrentCommandId(true), InvalidSnapshot, false, &failure,
                                   false) == TM_Ok;
  if (deleted) CommandCounterIncrement();
  return deleted;
}

bool is_superseded(OpenTable& buckets, HeapTuple found) {
  HeapTupleData tuple;
  Buffer buffer = ReadBuffer(buckets.table, ItemPointerGetBlockNumber(&found->t_self));
  LockBuffer(buffer, BUFFER_LOCK_SHARE);
  bool superseded = true;
  if (tuple_at(buckets.table, buffer, found->t_self, tuple) &&
      TransactionIdEquals(HeapTupleHeaderGetRawXmin(tuple.t_data), HeapTupleHeaderGetRawXmin(found->t_data))) {
    const VersionKind kind = classify(tuple).kind;
    superseded = kind == VersionKind::superseded || kind == VersionKind::gone;
  }
  UnlockReleaseBuffer(buffer);
  return superseded;
}

}  // namespace taskq::pg
