#include "relations.hpp"

namespace taskq::pg {

constinit uint64 cache_generation = 1;

namespace {

constinit Relations known;
constinit bool known_is_valid = false;
constinit Oid watched_types[4]{};  // the relations of row types, newest first

bool is_watched_type(Oid relation) {
  for (const Oid type : watched_types) {
    if (relation == type) return true;
  }
  return false;
}

bool is_ours(Oid relation) {
  return relation == InvalidOid || relation == known.limits || relation == known.buckets || relation == known.entries ||
         relation == known.buckets_key || relation == known.entries_key || relation == known.reservations ||
         relation == known.slots || relation == known.slots_key || relation == known.queues || relation == known.actors ||
         relation == known.actors_key || relation == known.tickets || is_watched_type(relation);
}

void forget(Datum, Oid relation) {
  if (!known_is_valid || !is_ours(relation)) return;
  known_is_valid = false;
  ++cache_generation;
}

Oid find(const char* name, Oid schema) {
  const Oid relation = get_relname_relid(name, schema);
  if (!OidIsValid(relation)) {
    ereport(ERROR, (errcode(ERRCODE_UNDEFINED_TABLE), errmsg("relation taskq.%s does not exist", name),
                    errhint("Run CREATE EXTENSION taskq_ratelimit.")));
  }
  return relation;
}

OpenTable open(Oid table, Oid key, LOCKMODE mode) { return {.table = table_open(table, mode), .key_oid = key, .mode = mode}; }

}  // namespace

const Relations& relations() {
  AcceptInvalidationMessages();
  if (known_is_valid) return known;
  const Oid schema = get_namespace_oid("taskq", false);
  known.limits = find("rate_limits", schema);
  known.limits_by_name = find("rate_limits_name_key", schema);
  known.buckets = find("rate_limit_buckets", schema);
  known.buckets_key = find("rate_limit_buckets_pkey", schema);
  known.entries = find("rate_limit_window_entries", schema);
  known.entries_key = find("rate_limit_window_entries_pkey", schema);
  known.entry_sequence = find("rate_limit_bucket_id", schema);
  known.reservations = find("reservations", schema);
  known.reservations_by_name = find("reservations_name_key", schema);
  known.slots = find("reservation_slots", schema);
  known.slots_key = find("reservation_slots_pkey", schema);
  known.fence_sequence = find("reservation_fence", schema);
  known.queues = find("queues", schema);
  known.actors = find("actors", schema);
  known.actors_key = find("actors_pkey", schema);
  known.tickets = find("actor_tickets", schema);
  known_is_valid = true;
  return known;
}

const Relations& relations_last_seen() { return known; }

void check_columns(TupleDesc shape, int columns) {
  if (shape->natts != columns) elog(ERROR, "a table or type of taskq_ratelimit has %d columns instead of %d", shape->natts, columns);
}

bool relations_are_known() { return known_is_valid; }

void watch_relations() { CacheRegisterRelcacheCallback(forget, Datum{0}); }

void watch_row_type(Oid type) {
  const Oid relation = get_typ_typrelid(type);
  if (is_watched_type(relation)) return;
  for (int i = 3; i > 0; --i) watched_types[i] = watched_types[i - 1];
  watched_types[0] = relation;
}

OpenTable open_buckets(LOCKMODE mode) { return open(known.buckets, known.buckets_key, mode); }
OpenTable open_entries(LOCKMODE mode) { return open(known.entries, known.entries_key, mode); }
OpenTable open_slots(LOCKMODE mode) { return open(known.slots, known.slots_key, mode); }

void close_table(const OpenTable& open) {
  if (open.opened_key != nullptr) index_close(open.opened_key, NoLock);
  table_close(open.table, NoLock);
}

}  // namespace taskq::pg
