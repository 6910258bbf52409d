// sweep and evict_idle: deleting what no decision needs any more. Never waits for a bucket that is in use.
#include "actor_tickets.hpp"
#include "args.hpp"
#include "bucket_ops.hpp"
#include "clock.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "relations.hpp"
#include "slot_sweep.hpp"
#include "sql_function.hpp"
#include "stats_upkeep.hpp"
#include "upkeep.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

constexpr int64 most_per_call = most_per_sweep;
constexpr long rows_per_fetch = 500;
constexpr Micros longest_wait_for_writers = 1'000'000;
constexpr Micros idle_before_sweep = Micros{3600} * 1'000'000;

std::string_view column(HeapTuple row, TupleDesc columns, int number) {
  bool null;
  return as_string(SPI_getbinval(row, columns, number, &null));
}

// False if the limit is gone, or takes keys no more or only now, since the query's snapshot.
bool is_nameable(const Call& call) {
  const Definition* present = find_definition(call.name);
  return present != nullptr && takes_key(*present, call.key);
}

// Runs `use(call)` for every (name, key) that the query finds, until it has done enough. REQUIRES: as owner.
template <class Use>
int64 for_buckets(const char* query, TimestampTz at, Use use) {
  Oid types[] = {TIMESTAMPTZOID};
  Datum values[] = {TimestampTzGetDatum(at)};
  Portal cursor = SPI_cursor_open_with_args(nullptr, query, 1, types, values, nullptr, false, 0);
  int64 done = 0;
  for (;;) {
    SPI_cursor_fetch(cursor, true, rows_per_fetch);
    if (SPI_processed == 0 || done >= most_per_call) break;
    SPITupleTable* rows = SPI_tuptable;
    const uint64 count = SPI_processed;
    for (uint64 i = 0; i < count && done < most_per_call; ++i) {
      Call call{};
      call.name = column(rows->vals[i], rows->tupdesc, 1);
      call.key = column(rows->vals[i], rows->tupdesc, 2);
      if (!is_nameable(call)) continue;
      resolve(call);
      done += use(call);
    }
    SPI_freetuptable(rows);
  }
  SPI_cursor_close(cursor);
  return done;
}

int64 evict_older_than(TimestampTz before) {
  return for_buckets("SELECT l.name, b.key FROM taskq.rate_limit_buckets AS b JOIN taskq.rate_limits AS l "
                     "ON l.limit_id = b.limit_id WHERE l.keyed AND (b.key <> '' OR l.ad_hoc) AND b.at <= $1",
                     before, [&](Call& call) -> int64 { return evict_bucket(call, before) ? 1 : 0; });
}

int64 trim_logs(TimestampTz now) {
  return for_buckets("SELECT l.name, b.key FROM taskq.rate_limit_buckets AS b JOIN taskq.rate_limits AS l "
                     "ON l.limit_id = b.limit_id WHERE b.bucket_id <> 0 AND (l.keyed = (b.key <> '') OR l.ad_hoc) "
                     "AND b.tail < b.used AND (b.tail < b.previous OR b.window_start "
                     "+ l.window_us * interval '1 microsecond' <= $1)",
                     now, [](Call& call) { return trim_bucket(call, most_per_call); });
}

// A deletion that skips rows which others have in hand. Its one parameter bounds it.
uint64 delete_some(const char* statement) {
  Oid types[] = {INT8OID};
  Datum values[] = {Int64GetDatum(most_per_call)};
  return execute(statement, 1, types, values, nullptr);
}

// Buckets that no call can name: their limit is gone, or keyed where they have no key, or the reverse.
uint64 delete_orphans() {
  return delete_some("DELETE FROM taskq.rate_limit_buckets WHERE ctid = ANY (ARRAY(SELECT b.ctid FROM taskq.rate_limit_buckets AS b "
                     "WHERE NOT EXISTS (SELECT FROM taskq.rate_limits AS l WHERE l.limit_id = b.limit_id "
                     "AND (l.keyed = (b.key <> '') OR l.ad_hoc)) LIMIT $1 FOR UPDATE OF b SKIP LOCKED))");
}

uint64 delete_orphaned_entries() {
  return delete_some("DELETE FROM taskq.rate_limit_window_entries WHERE ctid = ANY (ARRAY(SELECT e.ctid "
                     "FROM taskq.rate_limit_window_entries AS e WHERE NOT EXISTS (SELECT FROM taskq.rate_limit_buckets AS b "
                     "WHERE b.bucket_id = e.bucket_id) LIMIT $1 FOR UPDATE OF e SKIP LOCKED))");
}

uint64 delete_refunds(TimestampTz now) {
  Oid types[] = {TIMESTAMPTZOID, INT8OID};
  Datum values[] = {TimestampTzGetDatum(now), Int64GetDatum(most_per_call)};
  return execute("DELETE FROM taskq.rate_limit_refunds WHERE ctid = ANY (ARRAY(SELECT ctid FROM taskq.rate_limit_refunds "
                 "WHERE useless_at < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))", 2, types, values, nullptr);
}

bool has_ended(VirtualTransactionId transaction) { return VirtualXactLock(transaction, false); }

// True once everybody who was writing a table when it was called is through with it; false if that takes more than a second.
bool writers_have_ended(Oid table) {
  LOCKTAG tag;
  SET_LOCKTAG_RELATION(tag, MyDatabaseId, table);
  const TimestampTz started = GetCurrentTimestamp();
  for (VirtualTransactionId* writer = GetLockConflicts(&tag, ShareLock, nullptr); VirtualTransactionIdIsValid(*writer); ++writer) {
    while (!has_ended(*writer)) {
      CHECK_FOR_INTERRUPTS();
      if (GetCurrentTimestamp() - started > longest_wait_for_writers) return false;
      pg_usleep(1000);
    }
  }
  return true;
}

// The versions that are former ones now, as int8[]; NULL if there are none.
Datum former_versions(bool* none) {
  execute("SELECT pg_catalog.array_agg(limit_id::bigint << 32 | version) FROM taskq.rate_limit_versions", 0, nullptr, nullptr, nullptr);
  return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, none);
}

// Versions that no bucket needs. An open transaction may hold a bucket, seen by nobody else, under a version that was replaced
// meanwhile: so those who write now must be through. Who comes later has seen the present definitions.
uint64 delete_versions() {
  if (IsolationUsesXactSnapshot()) return 0;
  bool none;
  Datum values[] = {former_versions(&none)};
  Oid types[] = {INT8ARRAYOID};
  if (none || !writers_have_ended(relations().limits) || !writers_have_ended(relations().buckets)) return 0;
  return execute("DELETE FROM taskq.rate_limit_versions WHERE ctid = ANY (ARRAY(SELECT v.ctid FROM taskq.rate_limit_versions AS v "
                 "WHERE (v.limit_id::bigint << 32 | v.version) = ANY ($1) AND NOT EXISTS (SELECT FROM taskq.rate_limit_buckets AS b "
                 "WHERE b.limit_id = v.limit_id AND b.version <= v.version) FOR UPDATE OF v SKIP LOCKED))", 1, types, values, nullptr);
}

}  // namespace

SQL_FUNCTION(taskq_evict_idle) {
  check_may_write("evict_idle");
  const Micros idle_for = interval_arg(fcinfo, 0, "idle_for");
  const OwnerRun run = begin_as_owner();
  const TimestampTz before = clock_now() - idle_for;
  const int64 evicted = evict_older_than(before) + evict_slots(before);
  end_as_owner(run);
  PG_RETURN_INT64(evicted);
}

SQL_FUNCTION(taskq_sweep) {
  check_may_write("sweep");
  TupleDesc columns;
  if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "taskq.sweep must return a row");
  columns = BlessTupleDesc(columns);
  const TimestampTz now = clock_now();
  const OwnerRun run = begin_as_owner();
  const int64 entries = trim_logs(now);
  const int64 buckets = evict_older_than(now - idle_before_sweep) + static_cast<int64>(delete_orphans());
  const int64 orphans = static_cast<int64>(delete_orphaned_entries());
  const int64 refunds = static_cast<int64>(delete_refunds(now));
  const int64 versions = static_cast<int64>(delete_versions());
  const int64 tickets = sweep_tickets(now, most_per_call);
  const int64 slots = sweep_slots(now - idle_before_sweep);  // last: "full" waits until we have committed
  end_as_owner(run);
  remove_stats_of_dropped();
  Datum values[] = {Int64GetDatum(buckets), Int64GetDatum(entries + orphans), Int64GetDatum(refunds), Int64GetDatum(versions),
                    Int64GetDatum(slots), Int64GetDatum(tickets)};
  bool nulls[6] = {};
  return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

}  // namespace taskq::pg
