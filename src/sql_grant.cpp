// grant_usage: three documented bundles of rights.
#include "args.hpp"
#include "errors.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr const char* looks =
    "taskq.peek(text, text), taskq.remaining(text, text), taskq.reset_after(text, text), taskq.peek_all(), taskq.version(), "
    "taskq.preview(text, float8, text), taskq.http_headers(taskq.rate_limit_decision), "
    "taskq.peek_reservation(text, text), taskq.peek_reservations(), taskq.request(text, float8, text, uuid, uuid, text), "
    "taskq.explain_acquire(taskq.acquire_request[]), taskq.peek_stats(), taskq.stats_info(), taskq.keyed(text, jsonpath)";

constexpr const char* takes =
    "taskq.acquire(text, float8, text), taskq.allow(text, float8, text), taskq.acquire_json(text, float8, text), "
    "taskq.require(text, float8, text), taskq.reserve(text, float8, interval, text), taskq.charge(text, float8, text), "
    "taskq.refund(taskq.rate_limit_decision), taskq.refund(text, float8, text), taskq.settle(taskq.rate_limit_decision, float8), "
    "taskq.wait(text, float8, text, interval, boolean, float8, interval, interval, text, uuid, uuid, text, integer, bigint, timestamptz), "
    "taskq.acquire_many(text[], float8[], text[]), taskq.acquire_all(taskq.acquire_request[]), taskq.release_all(jsonb, boolean), "
    "taskq.acquire_token_bucket(text, float8, float8, float8, text), "
    "taskq.acquire_leaky_bucket(text, float8, float8, float8, text), "
    "taskq.acquire_sliding_window(text, bigint, interval, text, float8, text), "
    "taskq.acquire_fixed_window(text, bigint, interval, float8, text), "
    "taskq.acquire_slot(text, uuid, uuid, text), taskq.release_slot(text, integer, uuid, text, bigint), "
    "taskq.renew_slot(text, integer, uuid, text, bigint), taskq.renew_slots(uuid), "
    "taskq.acquire_for_actor(text, uuid, uuid, jsonb, boolean), taskq.release_for_actor(jsonb)";

constexpr const char* operates =
    "taskq.register_token_bucket(text, float8, float8, float8, interval, boolean, text, boolean, boolean, text, integer), "
    "taskq.register_leaky_bucket(text, float8, float8, float8, interval, boolean, text, boolean, boolean, text, integer), "
    "taskq.register_sliding_window(text, bigint, interval, text, timestamptz, boolean, text, boolean, boolean, text, integer), "
    "taskq.register_fixed_window(text, bigint, interval, timestamptz, boolean, text, boolean, boolean, text, integer), "
    "taskq.drop_rate_limit(text), taskq.reset(text, text), taskq.pause(text, text, timestamptz), taskq.pause(text, timestamptz), "
    "taskq.resume(text, text), taskq.resume(text), taskq.sweep(), taskq.evict_idle(interval), "
    "taskq.register_reservation(text, integer, interval, boolean, boolean, integer), taskq.drop_reservation(text), taskq.sync_slots(text[]), "
    "taskq.set_queue_max_concurrent(text, integer, interval), taskq.register_actor(text, text, text[], text[], boolean), taskq.drop_actor(text), "
    "taskq.reset_stats(text, text)";

void run(const char* statement) {
  const int result = SPI_execute(statement, false, 0);
  if (result != SPI_OK_UTILITY) elog(ERROR, "GRANT failed: %s", SPI_result_code_string(result));
}

void grant(const char* what, const char* role) { run(psprintf("GRANT EXECUTE ON ROUTINE %s TO %s", what, role)); }

const char* role_arg(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "role");
  return quote_identifier(GetUserNameFromId(PG_GETARG_OID(position), false));
}

}  // namespace

SQL_FUNCTION(taskq_grant_usage) {
  const char* role = role_arg(fcinfo, 0);
  const std::string_view bundle = text_arg(fcinfo, 1, "bundle");
  const bool client = bundle == "client", is_operator = bundle == "operator", monitor = bundle == "monitor";
  if (!client && !is_operator && !monitor) {
    raise_invalid("unknown bundle of rights", psprintf("The bundle is \"%s\".", shown(bundle)), "Bundles are client, operator and monitor.");
  }
  // Else a type named "text" in front of ours would be taken for it.
  const int settings = NewGUCNestLevel();
  set_config_option("search_path", "pg_catalog, pg_temp", PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
  SPI_connect();
  run(psprintf("GRANT USAGE ON SCHEMA taskq TO %s", role));
  run(psprintf("GRANT USAGE ON TYPE taskq.rate_limit_decision, taskq.rate_limit_state, taskq.slot_decision, taskq.reservation_state, "
               "taskq.acquire_request, taskq.request_decision, taskq.group_decision, taskq.actor_decision TO %s", role));
  grant(looks, role);
  if (client || is_operator) grant(takes, role);
  if (is_operator) grant(operates, role);
  if (is_operator || monitor) {
    run(psprintf("GRANT SELECT ON taskq.rate_limits, taskq.rate_limit_status, taskq.reservations, taskq.reservation_status, "
                 "taskq.rate_limit_stats, taskq.queues, taskq.actors TO %s", role));
  }
  SPI_finish();
  AtEOXact_GUC(true, settings);
  PG_RETURN_VOID();
}

}  // namespace taskq::pg
