#include "wait.hpp"

#include "pg.hpp"

namespace taskq::pg {

bool is_interrupted() { return QueryCancelPending || ProcDiePending; }

bool sleep_until(TimestampTz until) {
  for (;;) {
    const ratelimit::Micros left = until - GetCurrentTimestamp();
    if (is_interrupted()) return false;
    if (ProcSignalBarrierPending) ProcessProcSignalBarrier();  // DROP DATABASE and its like wait for every backend to do so
    if (left <= 0) return true;
    if (left < 2000) {
      pg_usleep(left);
      continue;
    }
    const long millis = static_cast<long>(left / 1000 < 60'000 ? left / 1000 - 1 : 60'000);
    WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, millis, PG_WAIT_EXTENSION);
    ResetLatch(MyLatch);
  }
}

}  // namespace taskq::pg
