// Giving back: refund and settle.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "errors.hpp"
#include "refund.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

SQL_FUNCTION(taskq_refund_decision) {
  check_may_write("refund");
  PG_RETURN_FLOAT8(settle_once(given_decision(fcinfo, 0), 0));
}

SQL_FUNCTION(taskq_settle) {
  check_may_write("settle");
  const double actual = float_arg(fcinfo, 1, "actual_cost");
  PG_RETURN_FLOAT8(settle_once(given_decision(fcinfo, 0), actual));
}

SQL_FUNCTION(taskq_refund_amount) {
  check_may_write("refund");
  Call call = call_args(fcinfo, 0, 1, 2, CostRule::gives);
  PG_RETURN_FLOAT8(refund_bucket(call));
}

}  // namespace taskq::pg
