// What only looks: peek, remaining, reset_after. Works in read-only transactions and on standbys.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "decision_row.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

SQL_FUNCTION(taskq_peek) {
  Call call = look_args(fcinfo, 0, 1);
  return state_datum(fcinfo, call, peek_bucket(call));
}

SQL_FUNCTION(taskq_peek_if_there) {
  Call call{};
  call.name = name_arg(fcinfo, 0);
  call.key = key_arg(fcinfo, 1);
  const Definition* definition = find_definition(call.name);
  if (definition == nullptr || !takes_key(*definition, call.key)) PG_RETURN_NULL();
  resolve_with(call, *definition);
  return state_datum(fcinfo, call, peek_bucket(call));
}

SQL_FUNCTION(taskq_remaining) {
  Call call = look_args(fcinfo, 0, 1);
  const Answer answer = peek_bucket(call);
  PG_RETURN_FLOAT8(ratelimit::to_amount(call.definition.limit, answer.decision.remaining));
}

SQL_FUNCTION(taskq_reset_after) {
  Call call = look_args(fcinfo, 0, 1);
  const Answer answer = peek_bucket(call);
  if (answer.decision.reset_after == ratelimit::kNever) PG_RETURN_NULL();
  PG_RETURN_INTERVAL_P(interval_of(answer.decision.reset_after));
}

}  // namespace taskq::pg
