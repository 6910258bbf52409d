// CALL taskq.wait(...): sleeps until it is the caller's turn.
//
// Each attempt is a transaction of its own, committed before the sleep: while it sleeps the session holds no row lock, no
// snapshot and no transaction id. Buckets and gcra take a place in the queue of time and sleep once; windows retry after retry_after;
// for slots see slot_wait.cpp.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "count_decision.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "resource.hpp"
#include "row_wait.hpp"
#include "settings.hpp"
#include "slot_wait.hpp"
#include "sql_function.hpp"
#include "wait.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::kNever;
using ratelimit::Micros;

namespace {

enum Arg { name, cost, key, timeout, first_out, job_id = 9, worker_id, kind };
enum Out {
  out_allowed, out_remaining, out_waited, out_retry_after, out_reason, out_slot_index, out_fence, out_lease_expires_at, out_columns
};

struct Fields {
  Datum values[out_columns] = {};
  bool nulls[out_columns] = {true, true, true, true, true, true, true, true};

  void put(Out column, Datum value) { values[column] = value; nulls[column] = false; }
};

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

// Gives the place of `answer` back, without waiting in the lock manager.
void hand_back(Call& call, const Answer& answer) {
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
}

struct Waiting {
  Answer answer;
  Deadline deadline;
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
  const Micros max_wait = is_meter ? waiting.deadline.left() : 0;
  call.patience = waiting.deadline.left();
  waiting.answer = acquire_bucket(call, max_wait);
  // reserve answers when it would have found a place within max_wait; whoever stops waiting wants to know when it could go.
  if (waiting.answer.reason == Reason::limited) waiting.answer.decision.retry_after = ratelimit::saturating_add(waiting.answer.decision.retry_after, max_wait);
  const Answer& answer = waiting.answer;
  SPI_commit();
  if (answer.decision.allowed) {
    if (answer.decision.delay > 0 && !sleep_until(GetCurrentTimestamp() + answer.decision.delay)) {
      // Whoever is interrupted while waiting for a place in time hands the place back, if nobody holds the bucket, then obeys.
      obey_after([&] { hand_back(call, answer); });
    }
    return true;
  }
  const Micros left = waiting.deadline.left();
  const bool too_long = answer.reason == Reason::limited && answer.decision.retry_after > left;
  if (left == 0 || too_long || (answer.decision.retry_after == kNever && answer.reason == Reason::limited)) return true;
  if (!sleep_until(GetCurrentTimestamp() + nap_before_retry(answer, left))) CHECK_FOR_INTERRUPTS();
  resolve(call);
  return false;
}

// The row of INOUT arguments. What is not given here is NULL.
Datum result_row(FunctionCallInfo fcinfo, const Deadline& deadline, bool allowed, Micros retry_after, const char* reason,
                 Fields fields) {
  TupleDesc columns;
  if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "taskq.wait must return a row");
  fields.put(out_allowed, BoolGetDatum(allowed));
  fields.put(out_waited, IntervalPGetDatum(interval_of(deadline.waited())));
  if (retry_after != kNever) fields.put(out_retry_after, IntervalPGetDatum(interval_of(retry_after)));
  fields.put(out_reason, CStringGetTextDatum(reason));
  return HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(columns), fields.values, fields.nulls));
}

std::string_view kept(std::string_view text) { return {pnstrdup(text.data(), text.size()), text.size()}; }

// SPI ends before the row is made: the row has to outlive it.
Datum wait_for_limit(FunctionCallInfo fcinfo, const Deadline& deadline) {
  Waiting waiting{.answer = {}, .deadline = deadline};
  SPI_connect_ext(SPI_OPT_NONATOMIC);
  Call call = call_args(fcinfo, name, cost, key, CostRule::takes);
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
  const ratelimit::Decision& d = counted(call, waiting.answer).decision;
  Fields fields;
  fields.put(out_remaining, Float8GetDatum(ratelimit::to_amount(call.definition.limit, d.remaining)));
  return result_row(fcinfo, deadline, d.allowed, d.retry_after, reason_text(waiting.answer.reason), fields);
}

void check_cost_of_slot(FunctionCallInfo fcinfo) {
  const double amount = float_arg(fcinfo, cost, "cost");
  if (amount == 1) return;
  raise_invalid("cost of a slot must be 1", psprintf("The cost is %s.", number_text(amount)),
                "Leave the cost out; call once for each slot.");
}

Datum slot_row(FunctionCallInfo fcinfo, const Deadline& deadline, const SlotAnswer& answer) {
  Fields fields;
  if (answer.allowed) {
    fields.put(out_slot_index, Int32GetDatum(answer.slot_index));
    fields.put(out_fence, Int64GetDatum(answer.fence));
    fields.put(out_lease_expires_at, TimestampTzGetDatum(answer.lease_expires_at));
  }
  return result_row(fcinfo, deadline, answer.allowed, answer.retry_after, slot_reason_text(answer.reason), fields);
}

Datum wait_for_reservation(FunctionCallInfo fcinfo, const Deadline& deadline) {
  check_cost_of_slot(fcinfo);
  MemoryContext callers = CurrentMemoryContext;
  SPI_connect_ext(SPI_OPT_NONATOMIC);
  const SlotWish wish{.name = kept(name_arg(fcinfo, name)), .key = kept(key_arg(fcinfo, key)),
                      .job = uuid_arg(fcinfo, job_id), .worker = uuid_arg(fcinfo, worker_id)};
  const SlotAnswer answer = wait_for_slot(wish, deadline);
  MemoryContext ours = MemoryContextSwitchTo(callers);
  const Datum row = slot_row(fcinfo, deadline, answer);
  MemoryContextSwitchTo(ours);
  end_of_wait(wish, answer);
  counted(answer);
  SPI_finish();
  return row;
}

// The kind of thing that the name means.
ResourceKind kind_of(FunctionCallInfo fcinfo) {
  const std::string_view wanted = is_null(fcinfo, kind) ? std::string_view{} : text_arg(fcinfo, kind, "kind");
  return resource_kind(name_arg(fcinfo, name), wanted, !is_null(fcinfo, job_id) || !is_null(fcinfo, worker_id));
}

}  // namespace

SQL_FUNCTION(taskq_wait_for_turn) {
  check_may_write("wait");
  check_may_commit(fcinfo);
  check_real_clock();
  Deadline deadline;
  if (!is_null(fcinfo, timeout)) deadline.timeout = interval_arg(fcinfo, timeout, "timeout");
  return kind_of(fcinfo) == ResourceKind::reservation ? wait_for_reservation(fcinfo, deadline) : wait_for_limit(fcinfo, deadline);
}

}  // namespace taskq::pg
