// register_actor, drop_actor, keyed, acquire_for_actor, release_for_actor.
#include "actor_acquire.hpp"
#include "actor_define.hpp"
#include "args.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "group_handle.hpp"
#include "group_release.hpp"
#include "group_row.hpp"
#include "queue_caps.hpp"
#include "row_type.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr int decision_columns = 8, decisions_column = 7;

constinit KnownType decision_type{};

std::string_view actor_arg(FunctionCallInfo fcinfo, int position) {
  const std::string_view actor = text_arg(fcinfo, position, "actor");
  check_name(actor);
  return actor;
}

void queue_arg(FunctionCallInfo fcinfo, int position, Actor& actor) {
  actor.has_queue = !is_null(fcinfo, position);
  if (!actor.has_queue) return;
  actor.queue = as_string(PG_GETARG_DATUM(position));
  check_queue(actor.queue);
}

ArrayType* references_arg(FunctionCallInfo fcinfo, int position, const char* argument) {
  check_given(fcinfo, position, argument);
  return PG_GETARG_ARRAYTYPE_P(position);
}

Datum answer_datum(FunctionCallInfo fcinfo, const ActorRequests& requests, const ActorAnswer& answer) {
  TupleDesc columns = row_type(fcinfo, decision_type, decision_columns);
  const GroupAnswer& group = answer.group;
  Datum values[decision_columns] = {
      BoolGetDatum(group.allowed),
      group.allowed ? Datum{0} : CStringGetTextDatum(resource_text(*group.refused_by)),
      IntervalPGetDatum(interval_of(answer.retry_after)),
      group.allowed ? handle_datum(requests.list, requests.count) : Datum{0},
      Float8GetDatum(static_cast<double>(answer.retry_after) / 1e6),
      CStringGetTextDatum(group.allowed ? "ok" : outcome_text(*group.refused_by)),
      TimestampTzGetDatum(answer.ticket_at),
      decisions_datum(TupleDescAttr(columns, decisions_column)->atttypid, requests.list, requests.count)};
  bool nulls[decision_columns] = {false, group.allowed, false, !group.allowed, false, false, !answer.has_ticket, false};
  return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

}  // namespace

SQL_FUNCTION(taskq_register_actor) {
  check_may_write("register_actor");
  Actor wanted;
  wanted.name = actor_arg(fcinfo, 0);
  check_not_reserved(wanted.name);
  queue_arg(fcinfo, 1, wanted);
  ArrayType* limits = references_arg(fcinfo, 2, "rate_limits");
  read_references(wanted, ResourceKind::reservation, references_arg(fcinfo, 3, "reservations"));
  wanted.reservations = wanted.count;
  read_references(wanted, ResourceKind::rate_limit, limits);
  PG_RETURN_BOOL(define_actor(wanted, bool_arg(fcinfo, 4, "replace")));
}

SQL_FUNCTION(taskq_drop_actor) {
  check_may_write("drop_actor");
  drop_actor(actor_arg(fcinfo, 0));
  PG_RETURN_VOID();
}

SQL_FUNCTION(taskq_keyed) {
  const std::string_view name = name_arg(fcinfo, 0);
  check_given(fcinfo, 1, "path");
  return keyed_reference(name, PG_GETARG_DATUM(1));
}

SQL_FUNCTION(taskq_acquire_for_actor) {
  check_may_write("acquire_for_actor");
  const Actor actor = needed_actor(actor_arg(fcinfo, 0));
  const pg_uuid_t job = uuid_arg(fcinfo, 1), worker = uuid_arg(fcinfo, 2);
  const Jsonb* payload = is_null(fcinfo, 3) ? nullptr : PG_GETARG_JSONB_P(3);
  const bool ticket = bool_arg(fcinfo, 4, "ticket");
  const ActorRequests requests = requests_of(actor, job, worker, payload);
  return answer_datum(fcinfo, requests, acquire_for_actor(requests, ticket));
}

SQL_FUNCTION(taskq_release_for_actor) {
  check_may_write("release_for_actor");
  TupleDesc columns;
  if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "taskq.release_for_actor must return a row");
  columns = BlessTupleDesc(columns);
  const Released released = release_group(handle_arg(fcinfo, 0), false);
  Datum values[] = {Int32GetDatum(released.slots), Int32GetDatum(released.lost)};
  bool nulls[2] = {};
  return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

}  // namespace taskq::pg
