#include "stats_upkeep.hpp"

#include "relations.hpp"
#include "stats_table.hpp"
#include "table_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

bool has_row(Relation table, int32 id) {
  Relation index = index_open(RelationGetPrimaryKeyIndex(table), AccessShareLock);
  ScanKeyData key;
  ScanKeyInit(&key, 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(id));
  const bool found = with_row(table, index, &key, 1, [](TableRow) {});
  index_close(index, AccessShareLock);
  return found;
}

// With nobody writing the table, a row that is not seen is not there, nor about to come: a limit is counted only after its
// registration, and `all` was read before. Nor may we have written it ourselves: a drop may be rolled back yet.
void remove_missing(Oid oid, const Stats* all, int entries) {
  if (!ConditionalLockRelationOid(oid, ShareLock)) return;
  Relation table = table_open(oid, NoLock);
  if (CheckRelationLockedByMe(table, RowExclusiveLock, false)) return table_close(table, ShareLock);
  for (int i = 0; i < entries; ++i) {
    const StatsKey& key = all[i].key;
    if (key.database == MyDatabaseId && key.table == oid && !has_row(table, key.id)) remove_stats(key);
  }
  table_close(table, ShareLock);
}

bool is_of_dropped_table(const StatsKey& key) {
  if (key.database != MyDatabaseId) return !SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(key.database));
  return key.table != relations().limits && key.table != relations().reservations;
}

}  // namespace

void remove_stats_of_dropped() {
  if (stats_table == nullptr || RecoveryInProgress()) return;  // on a standby nothing is counted, and such a lock is not to be had
  int entries;
  Stats* all = all_stats(entries);
  for (int i = 0; i < entries; ++i) {
    if (is_of_dropped_table(all[i].key)) remove_stats(all[i].key);
  }
  remove_missing(relations().limits, all, entries);
  remove_missing(relations().reservations, all, entries);
  pfree(all);
}

}  // namespace taskq::pg
