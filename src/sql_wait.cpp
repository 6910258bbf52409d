// CALL taskq.wait(...): sleeps until it is the caller's turn.
//
// Each attempt is a transaction of its own, committed before the sleep: while it sleeps the session holds no row lock, no
// snapshot and no transaction id. Buckets and gcra take a place in the queue of time and sleep once; windows retry after retry_after.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "row_wait.hpp"
#include "settings.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::kNever;
using ratelimit::Micros;

namespace {

constexpr Micros longest_nap = 1'000'000;  // between looks at a pause, which may end early

void check_may_commit(FunctionCallInfo fcinfo) {
  const bool may = fcinfo->context != nullptr && IsA(fcinfo->context, CallContext) &&
                   !reinterpret_cast<CallContext*>(fcinfo->context)->atomic;
  if (may) return;
  ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION), errmsg("taskq.wait cannot run inside a transaction block"),
                  errdetail("It commits before it sleeps, so that it holds no lock meanwhile."),
                  errhint("CALL it on its own, or use taskq.reserve() and sleep for the delay.")));
}

void check_real_clock() {
  if (!test_clock_is_set) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("taskq.wait needs the real clock"),
                  errdetail("taskq_ratelimit.test_clock is set."), errhint("RESET taskq_ratelimit.test_clock.")));
}

bool is_interrupted() { return QueryCancelPending || ProcDiePending; }

// Sleeps until `until`; false if the session was told to stop.
bool sleep_until(TimestampTz until) {
  for (;;) {
    const Micros left = until - GetCurrentTimestamp();
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

// Gives the place of `answer` back, undisturbed by the interrupt that is pending, and so without waiting in the lock manager: nothing
// could end that wait.
void hand_back(Call& call, const Answer& answer) {
  InterruptHoldoffCount = InterruptHoldoffCount + 1;
  const ShownDecision shown{.cost = call.amount,
                            .remaining = ratelimit::to_amount(call.definition.limit, answer.decision.remaining),
                            .decided_at = answer.decision.decided_at,
                            .delay = answer.decision.delay,
                            .reset_after = answer.decision.reset_after};
  call.amount = 0;
  call.rule = CostRule::may_be_0;
  call.patience = naps_until;
  EnsurePortalSnapshotExists();
  resolve(call);
  settle_bucket(call, shown);
  SPI_commit();
  InterruptHoldoffCount = InterruptHoldoffCount - 1;
}

// Whoever is interrupted while waiting for a place in time hands the place back, if nobody holds the bucket, then obeys.
[[noreturn]] void leave_queue(Call& call, const Answer& answer) {
  PG_TRY();
  {
    hand_back(call, answer);
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

struct Waiting {
  Answer answer;
  TimestampTz started = GetCurrentTimestamp();
  Micros timeout = kNever;

  Micros left() const {
    if (timeout == kNever) return ratelimit::kMaxProduct;
    return ratelimit::larger(0, timeout - (GetCurrentTimestamp() - started));
  }
};

Micros nap_before_retry(const Answer& answer, Micros left) {
  if (answer.reason == Reason::lock_timeout) return 0;
  const Micros wait = answer.decision.retry_after;
  const bool may_end_early = answer.reason == Reason::paused || answer.reason == Reason::too_many_keys;
  if (may_end_early) return ratelimit::smaller(ratelimit::smaller(wait, longest_nap), left);
  return wait;
}

// One attempt, and the sleep after it. True if the answer is final.
bool attempt(Call& call, Waiting& waiting) {
  // Without a snapshot of ours, the versions that an attempt has read could be removed and their places taken while it decides.
  EnsurePortalSnapshotExists();
  const bool is_meter = call.definition.limit.algorithm() == ratelimit::Algorithm::meter;
  const Micros max_wait = is_meter ? waiting.left() : 0;
  call.patience = waiting.left();
  waiting.answer = acquire_bucket(call, max_wait);
  // reserve answers when it would have found a place within max_wait; whoever stops waiting wants to know when it could go.
  if (waiting.answer.reason == Reason::limited) waiting.answer.decision.retry_after = ratelimit::saturating_add(waiting.answer.decision.retry_after, max_wait);
  const Answer& answer = waiting.answer;
  SPI_commit();
  if (answer.decision.allowed) {
    if (answer.decision.delay > 0 && !sleep_until(GetCurrentTimestamp() + answer.decision.delay)) leave_queue(call, answer);
    return true;
  }
  const Micros left = waiting.left();
  const bool too_long = answer.reason == Reason::limited && answer.decision.retry_after > left;
  if (left == 0 || too_long || (answer.decision.retry_after == kNever && answer.reason == Reason::limited)) return true;
  if (!sleep_until(GetCurrentTimestamp() + nap_before_retry(answer, left))) CHECK_FOR_INTERRUPTS();
  resolve(call);
  return false;
}

Datum result_row(FunctionCallInfo fcinfo, const Call& call, const Waiting& waiting) {
  TupleDesc columns;
  if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "taskq.wait must return a row");
  const ratelimit::Decision& d = waiting.answer.decision;
  Datum values[] = {BoolGetDatum(d.allowed), Float8GetDatum(ratelimit::to_amount(call.definition.limit, d.remaining)),
                    IntervalPGetDatum(interval_of(GetCurrentTimestamp() - waiting.started)),
                    d.retry_after == kNever ? Datum{0} : IntervalPGetDatum(interval_of(d.retry_after)),
                    CStringGetTextDatum(reason_text(waiting.answer.reason))};
  bool nulls[] = {false, false, false, d.retry_after == kNever, false};
  return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), values, nulls));
}

std::string_view kept(std::string_view text) { return {pnstrdup(text.data(), text.size()), text.size()}; }

}  // namespace

SQL_FUNCTION(taskq_wait_for_turn) {
  check_may_write("wait");
  check_may_commit(fcinfo);
  check_real_clock();
  Waiting waiting;
  if (!is_null(fcinfo, 3)) waiting.timeout = interval_arg(fcinfo, 3, "timeout");
  SPI_connect_ext(SPI_OPT_NONATOMIC);
  Call call = call_args(fcinfo, 0, 1, 2, CostRule::takes);
  call.name = kept(call.name);
  call.key = kept(call.key);
  // However long it waits, its memory does not grow.
  MemoryContext each = AllocSetContextCreateInternal(CurrentMemoryContext, "taskq.wait attempt", ALLOCSET_SMALL_SIZES);
  MemoryContext before = MemoryContextSwitchTo(each);
  while (!attempt(call, waiting)) {
    CHECK_FOR_INTERRUPTS();
    MemoryContextReset(each);
  }
  MemoryContextSwitchTo(before);
  SPI_finish();
  return result_row(fcinfo, call, waiting);
}

}  // namespace taskq::pg
