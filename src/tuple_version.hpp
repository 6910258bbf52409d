// Which version of a row is the newest, seen without a snapshot and without writing anything, not even a hint bit.
//
// A row's versions form a chain: each superseded version names its successor (t_ctid). The newest version that is committed, or our own,
// is the truth at every isolation level; a snapshot would show an older one.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

enum class VersionKind {
  live,        // the newest version
  busy,        // the newest version, but `other` is an open transaction that has replaced, deleted or locked it
  arriving,    // inserted by the open transaction `other`, not committed yet
  superseded,  // replaced; the successor is at t_ctid
  gone         // deleted, or its insertion was rolled back
};

struct Version {
  VersionKind kind = VersionKind::gone;
  TransactionId other = InvalidTransactionId;  // busy, arriving
  bool other_is_group = false;                 // `other` is a multixact: several lockers
  bool locked_by_us = false;                   // live, and we have locked it ourselves, as SELECT FOR UPDATE does
};

// REQUIRES: `tuple` knows its place (t_self), and the buffer that holds it is pinned and at least share-locked.
Version classify(const HeapTupleData& tuple);

// True once none of a multixact's members is running, but for our own transaction.
bool group_has_ended(MultiXactId group);

}  // namespace taskq::pg
