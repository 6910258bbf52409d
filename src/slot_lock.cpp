#include "slot_lock.hpp"

#include "relations.hpp"
#include "settings.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr long nap = 200;                            // microseconds
constexpr TimestampTz longest_wait = 10 * 1'000'000;  // where waiting for ever is allowed: who has the lock may be waiting for us

LOCKTAG tag_of(int32 reservation_id) {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, MyDatabaseId, relations().slots, static_cast<uint32>(reservation_id), 0);
  return tag;
}

}  // namespace

bool has_waited_enough(TimestampTz started, ratelimit::Micros patience) {
  const TimestampTz most = lock_timeout == 0 ? longest_wait : TimestampTz{lock_timeout} * 1000;
  return GetCurrentTimestamp() - started >= ratelimit::smaller(most, patience);
}

bool lock_reservation(int32 reservation_id, LOCKMODE mode, ratelimit::Micros patience) {
  const LOCKTAG tag = tag_of(reservation_id);
  const TimestampTz started = GetCurrentTimestamp();
  while (LockAcquire(&tag, mode, false, true) == LOCKACQUIRE_NOT_AVAIL) {
    CHECK_FOR_INTERRUPTS();
    if (has_waited_enough(started, patience)) return false;
    pg_usleep(nap);
  }
  AcceptInvalidationMessages();  // the definition may have been changed under the lock
  return true;
}

void unlock_reservation(int32 reservation_id, LOCKMODE mode) {
  const LOCKTAG tag = tag_of(reservation_id);
  LockRelease(&tag, mode, false);
}

}  // namespace taskq::pg
