#include "row_wait.hpp"

#include "settings.hpp"
#include "subtransaction.hpp"
#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr int most_turns = 10, pauses_per_turn = 60;  // some 3 us each: less than a switch to another process and back
constexpr long first_nap = 15, longest_nap = 500;  // microseconds

bool has_ended(const Version& version) {
  return version.other_is_group ? group_has_ended(version.other) : !TransactionIdIsInProgress(version.other);
}

TimestampTz waited(const Patience& patience) { return GetCurrentTimestamp() - patience.started; }

// The time left in milliseconds, at least 1; 0 for no limit; -1 when it is used up.
int time_left(const Patience& patience) {
  const TimestampTz by_setting = lock_timeout == 0 ? ratelimit::kNever : TimestampTz{lock_timeout} * 1000;
  const TimestampTz limit = ratelimit::smaller(by_setting, patience.limit);
  if (limit == ratelimit::kNever) return 0;
  const TimestampTz left = limit - waited(patience);
  return left <= 0 ? -1 : static_cast<int>(ratelimit::smaller(left / 1000 + 1, INT_MAX));
}

void turn_or_nap(Patience& patience) {
  if (patience.turns < most_turns) {
    ++patience.turns;
    for (int i = 0; i < pauses_per_turn; ++i) SPIN_DELAY();
    return;
  }
  pg_usleep(patience.next_nap);
  patience.next_nap = patience.next_nap * 2 < longest_nap ? patience.next_nap * 2 : longest_nap;
}

// Waits in the lock manager. The wait runs in a subtransaction because the only way out of it is an error.
bool wait_in_lock_manager(TransactionId other, Relation table, ItemPointer row, int timeout) {
  const bool ours = timeout > 0 && (LockTimeout == 0 || timeout < LockTimeout);
  const int callers_timeout = LockTimeout;
  const SubtransactionStart start;
  volatile bool ended = true;
  BeginInternalSubTransaction(nullptr);
  PG_TRY();
  {
    if (ours) LockTimeout = timeout;
    XactLockTableWait(other, table, row, row == nullptr ? XLTW_None : XLTW_Update);
    LockTimeout = callers_timeout;
    ReleaseCurrentSubTransaction();
  }
  PG_CATCH();
  {
    LockTimeout = callers_timeout;
    ErrorData* error = start.undo_after_error();
    if (!ours || error->sqlerrcode != ERRCODE_LOCK_NOT_AVAILABLE) ReThrowError(error);
    ended = false;
  }
  PG_END_TRY();
  start.restore();
  return ended;
}

}  // namespace

bool wait_for_other(Patience& patience, const Version& version, Relation table, ItemPointer row) {
  if (patience.started == 0) {
    patience.started = GetCurrentTimestamp();
    patience.next_nap = first_nap;
  }
  patience.turns = 0;
  while (!has_ended(version)) {
    CHECK_FOR_INTERRUPTS();
    const int left = time_left(patience);
    if (left < 0) return false;
    if (version.other_is_group || waited(patience) < naps_until) {
      turn_or_nap(patience);
    } else if (!wait_in_lock_manager(version.other, table, row, left)) {
      return false;
    }
  }
  return true;
}

}  // namespace taskq::pg
