#include "slot_deletion.hpp"

#include "relations.hpp"
#include "slot_lock.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

// Sweepers exclude each other, nobody else; whoever asks excludes all who delete.
constexpr LOCKMODE sweeping = ShareUpdateExclusiveLock, evicting = RowExclusiveLock, asking = ShareLock;
constexpr long nap = 200;  // microseconds

LOCKTAG deletion_lock() {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, MyDatabaseId, relations().slots, 0, 0);  // reservations are numbered from 1
  return tag;
}

bool try_lock(LOCKMODE mode) {
  const LOCKTAG tag = deletion_lock();
  return LockAcquire(&tag, mode, false, true) != LOCKACQUIRE_NOT_AVAIL;
}

// Who asks holds the lock for a moment only.
bool try_against_askers(LOCKMODE mode, int tries) {
  for (int i = 0; i < tries; ++i) {
    if (try_lock(mode)) return true;
    CHECK_FOR_INTERRUPTS();
    pg_usleep(nap);
  }
  return false;
}

bool is_anybody_deleting() {
  if (!try_lock(asking)) return true;
  const LOCKTAG tag = deletion_lock();
  LockRelease(&tag, asking, false);
  return false;
}

}  // namespace

bool lock_sweeping() { return try_against_askers(sweeping, 3); }

void lock_evicting() {
  while (!try_against_askers(evicting, 1)) {}
}

bool waits_for_deletion(TransactionId deleter, ratelimit::Micros patience, DeletionWait& wait) {
  if (!TransactionIdIsValid(deleter)) return false;
  if (!is_anybody_deleting()) return !TransactionIdIsInProgress(deleter);
  if (wait.since == 0) wait.since = GetCurrentTimestamp();
  wait.timed_out = has_waited_enough(wait.since, patience);
  pg_usleep(nap);
  return true;
}

}  // namespace taskq::pg
