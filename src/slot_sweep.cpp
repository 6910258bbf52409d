#include "slot_sweep.hpp"

#include "clock.hpp"
#include "owner.hpp"
#include "relations.hpp"
#include "slot_deletion.hpp"
#include "slot_store.hpp"
#include "upkeep.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

enum class Unneeded : uint8 { idle, surplus, orphaned };

// The newest version decides: the query that found the row has seen an older one perhaps.
bool is_unneeded(const SlotRow& row, Unneeded why, TimestampTz before) {
  switch (why) {
    case Unneeded::idle: return !row.surplus && row.acquired_at <= before && row.lease_expires_at <= before;
    case Unneeded::surplus: return row.surplus && row.lease_expires_at <= before;
    default: return true;  // numbers of reservations do not come back
  }
}

bool delete_unneeded(OpenTable& slots, SlotName name, int32 index, Unneeded why, TimestampTz before) {
  const FoundRow found = find_slot(slots, name, index, true);
  if (!found.exists || found.version.kind != VersionKind::live) return false;
  return is_unneeded(slot_row(found.row), why, before) && delete_slot(slots, found);
}

// `query` finds reservation, number and key of rows.
int64 delete_found(const char* query, Unneeded why, TimestampTz before) {
  Oid types[] = {TIMESTAMPTZOID, INT8OID};
  Datum values[] = {TimestampTzGetDatum(before), Int64GetDatum(most_per_sweep)};
  execute(query, 2, types, values, nullptr);
  SPITupleTable* rows = SPI_tuptable;
  const uint64 count = SPI_processed;
  if (count == 0 || !lock_sweeping()) return 0;
  OpenTable slots = open_slots(RowExclusiveLock);
  int64 deleted = 0;
  for (uint64 i = 0; i < count; ++i) {
    CHECK_FOR_INTERRUPTS();
    const auto value = [&](int column) {
      bool null;
      return SPI_getbinval(rows->vals[i], rows->tupdesc, column, &null);
    };
    text* key = DatumGetTextPP(value(3));
    const SlotName name{DatumGetInt32(value(1)), {VARDATA_ANY(key), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(key))}};
    deleted += delete_unneeded(slots, name, DatumGetInt32(value(2)), why, before);
  }
  close_table(slots);
  SPI_freetuptable(rows);
  return deleted;
}

}  // namespace

int64 evict_slots(TimestampTz before) {
  return delete_found("SELECT s.reservation_id, s.slot_index, s.key FROM taskq.reservation_slots AS s "
                      "JOIN taskq.reservations AS r ON r.reservation_id = s.reservation_id WHERE r.keyed AND NOT s.surplus "
                      "AND greatest(s.acquired_at, s.lease_expires_at) <= $1 AND NOT EXISTS (SELECT FROM taskq.reservation_slots AS u "
                      "WHERE u.reservation_id = s.reservation_id AND u.key = s.key AND greatest(u.acquired_at, u.lease_expires_at) > $1) "
                      "LIMIT $2", Unneeded::idle, before);
}

int64 sweep_slots(TimestampTz before) {
  const int64 surplus = delete_found("SELECT reservation_id, slot_index, key FROM taskq.reservation_slots "
                                     "WHERE surplus AND lease_expires_at <= $1 LIMIT $2", Unneeded::surplus, clock_now());
  const int64 orphaned = delete_found("SELECT reservation_id, slot_index, key FROM taskq.reservation_slots AS s "
                                      "WHERE $1 IS NOT NULL AND NOT EXISTS (SELECT FROM taskq.reservations AS r "
                                      "WHERE r.reservation_id = s.reservation_id) LIMIT $2", Unneeded::orphaned, before);
  return surplus + orphaned + evict_slots(before);
}

}  // namespace taskq::pg
