// The extension's own tables, found once per backend and forgotten when one of them changes.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// Counts up whenever a definition or one of the tables changed: whoever caches something compares it.
extern uint64 cache_generation;

struct Relations {
  Oid limits = InvalidOid;
  Oid limits_by_name = InvalidOid;
  Oid buckets = InvalidOid;
  Oid buckets_key = InvalidOid;
  Oid entries = InvalidOid;
  Oid entries_key = InvalidOid;
  Oid entry_sequence = InvalidOid;
  Oid reservations = InvalidOid;
  Oid reservations_by_name = InvalidOid;
  Oid slots = InvalidOid;
  Oid slots_key = InvalidOid;
  Oid fence_sequence = InvalidOid;
  Oid queues = InvalidOid;
  Oid actors = InvalidOid;
  Oid actors_key = InvalidOid;
  Oid tickets = InvalidOid;
};

// Looks the tables up, if this has not been done since they last changed. Also takes in what other sessions have committed to
// the definitions. Call first in every function.
const Relations& relations();

// As they were when they were last looked up, at the latest by the call that is just ending. Looks nothing up, raises nothing.
const Relations& relations_last_seen();

// Raises an internal error if rows of that shape do not have so many columns: somebody has altered the table or type.
void check_columns(TupleDesc shape, int columns);

// True unless one of the tables has changed since.
bool relations_are_known();

// Lets a change of this row type count as a change, too.
void watch_row_type(Oid type);

void watch_relations();  // registers the invalidation callback; call once, from _PG_init

// A table, open, and its primary key, opened when it is first needed: a bucket whose place is known does without. Locks are kept
// until the transaction ends, as usual.
struct OpenTable {
  Relation table = nullptr;
  Relation opened_key = nullptr;
  Oid key_oid = InvalidOid;
  LOCKMODE mode = NoLock;

  Relation key() {
    if (opened_key == nullptr) opened_key = index_open(key_oid, mode);
    return opened_key;
  }
};

OpenTable open_buckets(LOCKMODE mode);
OpenTable open_entries(LOCKMODE mode);
OpenTable open_slots(LOCKMODE mode);
void close_table(const OpenTable& open);

}  // namespace taskq::pg
