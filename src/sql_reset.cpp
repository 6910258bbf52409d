// reset, pause, resume, and the trigger that tells every session about changed definitions.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "define.hpp"
#include "errors.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

TimestampTz until_arg(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "until");
  const TimestampTz until = PG_GETARG_TIMESTAMPTZ(position);
  if (TIMESTAMP_IS_NOBEGIN(until)) raise_invalid("a pause must end in time", "until is -infinity.", "Use taskq.resume() to end a pause.");
  return until;
}

// A pause of everything: on the only bucket of a limit without keys, else on the definition.
void pause_all(FunctionCallInfo fcinfo, TimestampTz until) {
  Call call{};
  call.name = name_arg(fcinfo, 0);
  const Definition* definition = find_definition(call.name);
  if (definition == nullptr) raise_unknown(call.name);
  const Definition found = *definition;
  if (found.keyed) return pause_limit_until(found, until);
  if (found.paused_until != DT_NOBEGIN) pause_limit_until(found, DT_NOBEGIN);  // of a time when it had keys
  resolve_with(call, found);
  pause_bucket(call, until);
}

}  // namespace

SQL_FUNCTION(taskq_reset) {
  check_may_write("reset");
  Call call = look_args(fcinfo, 0, 1);
  PG_RETURN_BOOL(reset_bucket(call));
}

SQL_FUNCTION(taskq_pause) {
  check_may_write("pause");
  Call call = look_args(fcinfo, 0, 1);
  pause_bucket(call, until_arg(fcinfo, 2));
  PG_RETURN_VOID();
}

SQL_FUNCTION(taskq_pause_limit) {
  check_may_write("pause");
  pause_all(fcinfo, until_arg(fcinfo, 1));
  PG_RETURN_VOID();
}

SQL_FUNCTION(taskq_resume) {
  check_may_write("resume");
  Call call = look_args(fcinfo, 0, 1);
  pause_bucket(call, DT_NOBEGIN);
  PG_RETURN_VOID();
}

SQL_FUNCTION(taskq_resume_limit) {
  check_may_write("resume");
  pause_all(fcinfo, DT_NOBEGIN);
  PG_RETURN_VOID();
}

SQL_FUNCTION(taskq_definitions_changed) {
  if (!CALLED_AS_TRIGGER(fcinfo)) {
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED), errmsg("definitions_changed is a trigger function")));
  }
  CacheInvalidateRelcacheByRelid(RelationGetRelid(reinterpret_cast<TriggerData*>(fcinfo->context)->tg_relation));
  return PointerGetDatum(nullptr);
}

}  // namespace taskq::pg
