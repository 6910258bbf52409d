// What the two kinds of waiting share: sleeping while holding nothing, and obeying who interrupts it.
#pragma once

#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

// How long a CALL may still wait.
struct Deadline {
  TimestampTz started = GetCurrentTimestamp();
  ratelimit::Micros timeout = ratelimit::kNever;

  ratelimit::Micros waited() const { return GetCurrentTimestamp() - started; }
  ratelimit::Micros left() const {
    return timeout == ratelimit::kNever ? ratelimit::kMaxProduct : ratelimit::larger(0, timeout - waited());
  }
};

bool is_interrupted();

// Sleeps until `until`; false if the session was told to stop.
bool sleep_until(TimestampTz until);

// Runs `undo` undisturbed by the interrupt that is pending, as far as it can, and then obeys the interrupt. `undo` must not
// wait in the lock manager: nothing could end that wait.
template <class Undo>
[[noreturn]] void obey_after(Undo undo) {
  PG_TRY();
  {
    InterruptHoldoffCount = InterruptHoldoffCount + 1;
    undo();
    InterruptHoldoffCount = InterruptHoldoffCount - 1;
  }
  PG_CATCH();
  {
    CHECK_FOR_INTERRUPTS();  // an error has ended the hold-off
    PG_RE_THROW();
  }
  PG_END_TRY();
  CHECK_FOR_INTERRUPTS();
  elog(ERROR, "interrupted for an unknown reason");
}

}  // namespace taskq::pg
