#include "bucket_round.hpp"

#include "clock.hpp"
#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Algorithm;
using ratelimit::Micros;
using ratelimit::State;
namespace log = ratelimit::log;

namespace {

BucketRow new_row(const Definition& definition, Micros now) {
  const bool is_log = definition.limit.algorithm() == Algorithm::log;
  const State state = is_log ? log::fresh(definition.limit, now) : ratelimit::fresh(definition.limit, now);
  return {definition.limit_id, definition.version, 0, state, DT_NOBEGIN};
}

}  // namespace

Tables open_tables(const Definition& definition, LOCKMODE mode) {
  for (;;) {
    relations();
    Tables tables{.buckets = open_buckets(mode), .entries = {}, .has_entries = false};
    // A bucket whose state was written under a former definition may have entries, too.
    if (definition.limit.algorithm() == Algorithm::log || definition.version > 1) {
      tables.entries = open_entries(mode);
      tables.has_entries = true;
    }
    // Until the locks were there a key could be exchanged for another (REINDEX CONCURRENTLY) and be given up.
    if (relations_are_known()) return tables;
    close_tables(tables);
  }
}

void close_tables(const Tables& tables) {
  if (tables.has_entries) close_table(tables.entries);
  close_table(tables.buckets);
}

Work begin_work(const Call& call, Tables& tables, const FoundBucket& found) {
  Work work{.definition = call.definition, .key = call.key};
  work.now = clock_now();
  work.existed = found.exists;
  work.row = found.exists ? *bucket_row(found.row) : new_row(call.definition, work.now);
  work.entries = {.table = &tables.entries, .bucket_id = work.row.bucket_id};
  return work;
}

bool write_work(Tables& tables, Work& work, const FoundBucket& found) {
  if (work.plan.add && work.row.bucket_id == 0) work.row.bucket_id = work.entries.bucket_id = next_bucket_id();
  const BucketName name{work.row.limit_id, work.key};
  bool written;
  if (found.exists) {
    HeapTuple changed = heap_copytuple(found.row);
    *bucket_row(changed) = work.row;
    written = replace_bucket(tables.buckets, name, found, changed);
    heap_freetuple(changed);
  } else {
    written = insert_bucket(tables.buckets, name, work.row);
  }
  if (written) carry_out(work);
  return written;
}

bool is_consistent(Tables& tables, const Work& work, const FoundBucket& found) {
  if (work.entries.probes == 0) return true;
  return !work.entries.missing && !(found.exists && is_superseded(tables.buckets, found.row));
}

bool is_stale(const Call& call, const Work& work) { return work.row.version > call.definition.version; }

bool is_outdated(const Call& call) {
  const Definition* present = find_definition(call.definition.name);
  return present == nullptr || present->limit_id != call.definition.limit_id || present->version != call.definition.version;
}

void renew(Call& call, Tables& tables, LOCKMODE mode) {
  close_tables(tables);
  forget_definitions();  // a bucket may know of a change that nobody has told us of: its trigger was disabled
  resolve(call);
  tables = open_tables(call.definition, mode);
}

void renew_if_due(Call& call, Tables& tables, LOCKMODE mode) {
  relations();
  if (call.generation != cache_generation) renew(call, tables, mode);
}

void raise_in_use(const Call& call) {
  ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                  errmsg("rate limit \"%s\" is in use by another transaction", call.definition.name),
                  errdetail("Waited %d ms.", lock_timeout), errhint("Try again, or raise taskq_ratelimit.lock_timeout.")));
}

}  // namespace taskq::pg
