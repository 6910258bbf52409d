// One row of a definitions' table, found through an index.
#pragma once

#include <string_view>

#include "pg.hpp"

namespace taskq::pg {

struct TableRow {
  TupleTableSlot* slot;

  Datum datum(AttrNumber column, bool* is_null = nullptr) const {
    bool ignored;
    return slot_getattr(slot, column, is_null == nullptr ? &ignored : is_null);
  }
  int64 integer(AttrNumber column) const { return DatumGetInt64(datum(column)); }
  bool boolean(AttrNumber column) const { return DatumGetBool(datum(column)); }
  bool is_null(AttrNumber column) const {
    bool null;
    datum(column, &null);
    return null;
  }
  std::string_view string(AttrNumber column) const {
    auto* value = DatumGetTextPP(datum(column));
    return {VARDATA_ANY(value), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(value))};
  }
};

template <class Use>
bool look_once(Relation table, Relation index, ScanKey keys, int key_count, Use& use) {
  IndexScanDesc scan = index_beginscan(table, index, SnapshotSelf, key_count, 0);
  index_rescan(scan, keys, key_count, nullptr, 0);
  TupleTableSlot* slot = table_slot_create(table, nullptr);
  const bool found = index_getnext_slot(scan, ForwardScanDirection, slot);
  if (found) use(TableRow{slot});
  ExecDropSingleTupleTableSlot(slot);
  index_endscan(scan);
  return found;
}

// Runs `use` on the row that an index finds for `keys`, as committed now; false if there is none. Without a snapshot, as buckets are
// read: one would not be allowed in a parallel query, and would take part in serialization conflicts. A row that is replaced at this very
// moment can be missed, so it is looked for again before it is said not to exist.
template <class Use>
bool with_row(Relation table, Relation index, ScanKey keys, int key_count, Use use) {
  for (int looks = 0; looks < 3; ++looks) {
    if (look_once(table, index, keys, key_count, use)) return true;
  }
  return false;
}

}  // namespace taskq::pg
