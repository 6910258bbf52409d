#include "tuple_version.hpp"

namespace taskq::pg {

namespace {

enum class Fate { committed, own, running, aborted };

Fate fate_of(TransactionId xid) {
  if (!TransactionIdIsValid(xid)) return Fate::aborted;
  if (TransactionIdIsCurrentTransactionId(xid)) return Fate::own;
  // In this order: a transaction marks itself committed before it leaves the list of running ones.
  if (TransactionIdIsInProgress(xid)) return Fate::running;
  return TransactionIdDidCommit(xid) ? Fate::committed : Fate::aborted;
}

Fate fate_of_insertion(HeapTupleHeader tuple) {
  if (HeapTupleHeaderXminCommitted(tuple)) return Fate::committed;
  if (HeapTupleHeaderXminInvalid(tuple)) return Fate::aborted;
  return fate_of(HeapTupleHeaderGetRawXmin(tuple));
}

// What a committed replacement or deletion left behind.
VersionKind after_removal(const HeapTupleData& tuple) {
  const bool deleted = HeapTupleHeaderIndicatesMovedPartitions(tuple.t_data) ||
                       ItemPointerEquals(&tuple.t_data->t_ctid, const_cast<ItemPointer>(&tuple.t_self));
  return deleted ? VersionKind::gone : VersionKind::superseded;
}

// The newest version, unless somebody else has locked it.
Version by_lockers(HeapTupleHeader tuple) {
  const TransactionId locker = HeapTupleHeaderGetRawXmax(tuple);
  if (tuple->t_infomask & HEAP_XMAX_IS_MULTI) {
    if (group_has_ended(locker)) return {.kind = VersionKind::live, .locked_by_us = MultiXactIdIsRunning(locker, false)};
    return {.kind = VersionKind::busy, .other = locker, .other_is_group = true};
  }
  const Fate fate = fate_of(locker);
  if (fate == Fate::running) return {.kind = VersionKind::busy, .other = locker};
  return {.kind = VersionKind::live, .locked_by_us = fate == Fate::own};
}

Version by_remover(const HeapTupleData& row) {
  HeapTupleHeader tuple = row.t_data;
  if (tuple->t_infomask & HEAP_XMAX_INVALID) return {.kind = VersionKind::live};
  if (HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask)) return by_lockers(tuple);
  if (tuple->t_infomask & HEAP_XMAX_COMMITTED) return {.kind = after_removal(row)};
  const TransactionId remover = HeapTupleHeaderGetUpdateXid(tuple);
  switch (fate_of(remover)) {
    case Fate::committed:
    case Fate::own: return {.kind = after_removal(row)};
    case Fate::running: return {.kind = VersionKind::busy, .other = remover};
    default: return by_lockers(tuple);  // rolled back, but others may have locked the row meanwhile
  }
}

}  // namespace

bool group_has_ended(MultiXactId group) {
  MultiXactMember* members = nullptr;
  const int count = GetMultiXactIdMembers(group, &members, false, false);
  bool ended = true;
  for (int i = 0; i < count; ++i) {
    const TransactionId xid = members[i].xid;
    if (!TransactionIdIsCurrentTransactionId(xid) && TransactionIdIsInProgress(xid)) ended = false;
  }
  if (count > 0) pfree(members);
  return ended;
}

Version classify(const HeapTupleData& tuple) {
  switch (fate_of_insertion(tuple.t_data)) {
    case Fate::aborted: return {.kind = VersionKind::gone};
    case Fate::running: return {.kind = VersionKind::arriving, .other = HeapTupleHeaderGetRawXmin(tuple.t_data)};
    default: return by_remover(tuple);
  }
}

}  // namespace taskq::pg
