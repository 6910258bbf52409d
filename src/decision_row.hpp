// Decisions and states as SQL sees them.
#pragma once

#include "bucket_ops.hpp"
#include "call.hpp"

#include "pg.hpp"

namespace taskq::pg {

// taskq.rate_limit_decision as a value.
Datum decision_datum(FunctionCallInfo fcinfo, const Call& call, const Answer& answer);
void check_decision_shape(TupleDesc columns);  // before the first decision_tuple with them
HeapTuple decision_tuple(TupleDesc columns, const Call& call, const Answer& answer);

// taskq.rate_limit_state as a value.
Datum state_datum(FunctionCallInfo fcinfo, const Call& call, const Answer& answer);

// Reads a taskq.rate_limit_decision that a user shows again. `took` is false if it took nothing. Raises 22004 for missing fields.
struct GivenDecision {
  std::string_view name;
  std::string_view key;
  bool took = false;
  bool allowed = false;
  ShownDecision shown;
  double quota = 0;
  bool has_retry_after = false;
  ratelimit::Micros retry_after = 0;
};
GivenDecision given_decision(FunctionCallInfo fcinfo, int position);

const char* reason_text(Reason reason);

// An interval of so many microseconds; palloc'd.
Interval* interval_of(ratelimit::Micros micros);

}  // namespace taskq::pg
