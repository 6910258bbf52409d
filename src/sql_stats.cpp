// decision_counts, stats_info, reset_stats: the counts of decisions as SQL sees them.
#include "args.hpp"
#include "errors.hpp"
#include "relations.hpp"
#include "reservations.hpp"
#include "resource.hpp"
#include "settings.hpp"
#include "sql_function.hpp"
#include "stats_table.hpp"
#include "stats_upkeep.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

void check_stats_are_kept() {
  if (stats_table != nullptr) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("no statistics are kept"),
                  errdetail("%s", stats_were_preloaded ? "taskq_ratelimit.stats_entries is 0." : "The library was not loaded at server start."),
                  errhint("%s", stats_were_preloaded ? "Set taskq_ratelimit.stats_entries above 0 and restart the server."
                                                     : "Add taskq_ratelimit to shared_preload_libraries and restart the server.")));
}

bool is_of(const StatsKey& key, ResourceKind kind) {
  return key.database == MyDatabaseId && key.table == (kind == ResourceKind::rate_limit ? relations().limits : relations().reservations);
}

void put_counts(ReturnSetInfo* result, const Stats& stats, ResourceKind kind) {
  const auto number = [&](Counter counter) { return Int64GetDatum(static_cast<int64>(stats.counts[static_cast<int>(counter)])); };
  Datum values[] = {CStringGetTextDatum(resource_kind_text(kind)), Int32GetDatum(stats.key.id), number(Counter::allowed),
                    number(Counter::limited), number(Counter::paused), number(Counter::full), number(Counter::too_many_keys),
                    number(Counter::timed_out), number(Counter::shadow), TimestampTzGetDatum(stats.last_denied_at),
                    TimestampTzGetDatum(stats.reset_at)};
  bool nulls[11] = {};
  nulls[9] = stats.last_denied_at == DT_NOBEGIN;
  nulls[10] = stats.reset_at == DT_NOBEGIN;
  HeapTuple tuple = heap_form_tuple(result->setDesc, values, nulls);
  tuplestore_puttuple(result->setResult, tuple);
  heap_freetuple(tuple);
}

void zero_all(ResourceKind kind) {
  int entries;
  const Stats* all = all_stats(entries);
  for (int i = 0; i < entries; ++i) {
    if (is_of(all[i].key, kind)) zero_stats(all[i].key);
  }
}

// False if there is none of that kind and name.
bool zero_named(ResourceKind kind, std::string_view name) {
  StatsKey key{.database = MyDatabaseId, .table = InvalidOid, .id = 0};
  if (kind == ResourceKind::rate_limit) {
    const Definition* limit = find_definition(name);
    if (limit == nullptr) return false;
    key.table = relations().limits, key.id = limit->limit_id;
  } else {
    const Reservation* reservation = find_reservation(name);
    if (reservation == nullptr) return false;
    key.table = relations().reservations, key.id = reservation->reservation_id;
  }
  zero_stats(key);
  return true;
}

bool zero(FunctionCallInfo fcinfo, ResourceKind kind) {
  if (!is_null(fcinfo, 0)) return zero_named(kind, name_arg(fcinfo, 0));
  zero_all(kind);
  return true;
}

}  // namespace

SQL_FUNCTION(taskq_decision_counts) {
  InitMaterializedSRF(fcinfo, 0);
  if (stats_table == nullptr) return Datum{0};
  remove_stats_of_dropped();
  auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  check_columns(result->setDesc, 11);
  int entries;
  const Stats* all = all_stats(entries);
  for (int i = 0; i < entries; ++i) {
    for (ResourceKind kind : {ResourceKind::rate_limit, ResourceKind::reservation}) {
      if (is_of(all[i].key, kind)) put_counts(result, all[i], kind);
    }
  }
  return Datum{0};
}

SQL_FUNCTION(taskq_stats_info) {
  TupleDesc columns;
  if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "taskq.stats_info must return a row");
  columns = BlessTupleDesc(columns);
  check_columns(columns, 3);
  const bool kept = stats_table != nullptr;
  Datum values[] = {Int32GetDatum(kept ? stats_in_use() : 0), Int32GetDatum(stats_entries),
                    Int64GetDatum(kept ? static_cast<int64>(pg_atomic_read_u64(&stats_table->uncounted)) : 0)};
  bool nulls[] = {!kept, !kept, !kept};
  return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

SQL_FUNCTION(taskq_reset_stats) {
  check_stats_are_kept();
  const std::string_view wanted = is_null(fcinfo, 1) ? std::string_view{} : text_arg(fcinfo, 1, "kind");
  if (!wanted.empty()) {
    const ResourceKind kind = resource_kind({}, wanted, false);
    if (zero(fcinfo, kind)) PG_RETURN_VOID();
    kind == ResourceKind::rate_limit ? raise_unknown(name_arg(fcinfo, 0)) : raise_unknown_reservation(name_arg(fcinfo, 0));
  }
  const bool limits = zero(fcinfo, ResourceKind::rate_limit), reservations = zero(fcinfo, ResourceKind::reservation);
  if (!limits && !reservations) resource_kind(name_arg(fcinfo, 0), {}, true);  // raises that there is neither
  PG_RETURN_VOID();
}

}  // namespace taskq::pg
