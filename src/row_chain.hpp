// Following a row's chain of versions, from a place that is known to the newest version.
#pragma once

#include "heap_place.hpp"
#include "tuple_version.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct FoundRow {
  bool exists = false;      // the newest version is known; `row` is a copy of it
  Version version;          // live, busy or (if !exists) arriving or gone
  HeapTuple row = nullptr;  // palloc'd copy with t_self; also of a row that is arriving
};

// One walk along a chain of versions, holding one page at a time.
struct ChainWalk {
  Relation table;
  bool to_change;  // also cleans pages of dead versions, if they are nearly full
  Buffer buffer = InvalidBuffer;
  TransactionId predecessors_remover = InvalidTransactionId;
};

// Cleaning a page writes WAL, so it waits until room is short. (The server would start at the fillfactor, that is at every update.)
inline void clean_if_nearly_full(Relation table, Buffer buffer) {
  Page page = BufferGetPage(buffer);
  const auto lower = reinterpret_cast<PageHeader>(page)->pd_lower, upper = reinterpret_cast<PageHeader>(page)->pd_upper;
  if (PageIsFull(page) || upper - lower < BLCKSZ / 10) heap_page_prune_opt(table, buffer);
}

inline void enter_page(ChainWalk& walk, BlockNumber block) {
  if (BufferIsValid(walk.buffer) && BufferGetBlockNumber(walk.buffer) == block) return;
  if (BufferIsValid(walk.buffer)) UnlockReleaseBuffer(walk.buffer);
  walk.buffer = ReadBuffer(walk.table, block);
  if (walk.to_change) clean_if_nearly_full(walk.table, walk.buffer);
  LockBuffer(walk.buffer, BUFFER_LOCK_SHARE);
}

inline void leave_page(ChainWalk& walk) {
  if (BufferIsValid(walk.buffer)) UnlockReleaseBuffer(walk.buffer);
  walk.buffer = InvalidBuffer;
}

// True if `tuple` is the successor that the walk expects, or its first step.
inline bool continues_chain(const ChainWalk& walk, const HeapTupleData& tuple) {
  return !TransactionIdIsValid(walk.predecessors_remover) ||
         TransactionIdEquals(HeapTupleHeaderGetRawXmin(tuple.t_data), walk.predecessors_remover);
}

// Follows the chain from `place` to its newest version, as long as `is_row(tuple)` says that it is the row wanted.
template <class IsRow>
FoundRow newest_version(Relation table, ItemPointerData place, bool to_change, IsRow is_row) {
  ChainWalk walk{.table = table, .to_change = to_change};
  FoundRow found;
  for (;;) {
    HeapTupleData tuple;
    enter_page(walk, ItemPointerGetBlockNumber(&place));
    if (!tuple_at(table, walk.buffer, place, tuple)) break;
    if (!continues_chain(walk, tuple) || !is_row(&tuple)) break;
    const Version version = classify(tuple);
    found.version = version;
    if (version.kind == VersionKind::superseded) {
      walk.predecessors_remover = HeapTupleHeaderGetUpdateXid(tuple.t_data);
      place = tuple.t_data->t_ctid;
      continue;
    }
    found.exists = version.kind == VersionKind::live || version.kind == VersionKind::busy;
    if (version.kind != VersionKind::gone) found.row = heap_copytuple(&tuple);
    break;
  }
  leave_page(walk);
  return found;
}

}  // namespace taskq::pg
