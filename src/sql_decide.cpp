// acquire and its relatives: what takes from a limit that is registered.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "count_decision.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

void raise_denied(const Call& call, const Answer& answer) {
  const Micros wait = answer.decision.retry_after;
  const double left = ratelimit::to_amount(call.definition.limit, answer.decision.remaining);
  const char* detail = psprintf("The cost is %s, %s is left; reason: %s.", number_text(call.amount), number_text(left), reason_text(answer.reason));
  const bool never = wait == ratelimit::kNever;
  const char* hint = never ? "Waiting does not help." : psprintf("Retry after %s seconds.", number_text(static_cast<double>(wait) / 1e6));
  ereport(ERROR, (errcode(MAKE_SQLSTATE('T', 'Q', '4', '2', '9')), errmsg("rate limit \"%s\" exceeded", call.definition.name),
                  errdetail("%s", detail), errhint("%s", hint)));
}

}  // namespace

SQL_FUNCTION(taskq_acquire) {
  check_may_write("acquire");
  Call call = call_args(fcinfo, 0, 1, 2, CostRule::takes);
  return decision_datum(fcinfo, call, counted(call, acquire_bucket(call)));
}

SQL_FUNCTION(taskq_allow) {
  check_may_write("allow");
  Call call = call_args(fcinfo, 0, 1, 2, CostRule::takes);
  PG_RETURN_BOOL(counted(call, acquire_bucket(call)).decision.allowed);
}

SQL_FUNCTION(taskq_require) {
  check_may_write("require");
  Call call = call_args(fcinfo, 0, 1, 2, CostRule::takes);
  const Answer answer = counted(call, acquire_bucket(call));
  if (!answer.decision.allowed) raise_denied(call, answer);
  return decision_datum(fcinfo, call, answer);
}

SQL_FUNCTION(taskq_preview) {
  Call call = call_args(fcinfo, 0, 1, 2, CostRule::takes);
  return decision_datum(fcinfo, call, preview_bucket(call));
}

SQL_FUNCTION(taskq_reserve) {
  check_may_write("reserve");
  const Micros max_wait = is_null(fcinfo, 2) ? ratelimit::kMaxProduct : interval_arg(fcinfo, 2, "max_wait");
  Call call = call_args(fcinfo, 0, 1, 3, CostRule::takes);
  if (call.definition.limit.algorithm() != ratelimit::Algorithm::meter) {
    raise_invalid("only buckets and sliding windows of style gcra can reserve ahead",
                  psprintf("Limit \"%s\" is of kind %s.", call.definition.name, kind_text(call.definition.limit.kind)),
                  "Use CALL taskq.wait(), which retries on windows.");
  }
  return decision_datum(fcinfo, call, counted(call, acquire_bucket(call, max_wait)));
}

SQL_FUNCTION(taskq_charge) {
  check_may_write("charge");
  Call call = call_args(fcinfo, 0, 1, 2, CostRule::gives);
  return decision_datum(fcinfo, call, charge_bucket(call));
}

}  // namespace taskq::pg
