// acquire_all, release_all, explain_acquire.
#include "args.hpp"
#include "count_decision.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "group_explain.hpp"
#include "group_handle.hpp"
#include "group_release.hpp"
#include "group_row.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

SQL_FUNCTION(taskq_acquire_all) {
  check_may_write("acquire_all");
  const GivenRequests given = requests_arg(fcinfo, 0);
  return group_datum(fcinfo, given.list, given.count, counted(given.list, given.count, acquire_group(given.list, given.count)));
}

SQL_FUNCTION(taskq_release_all) {
  check_may_write("release_all");
  TupleDesc columns;
  if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "taskq.release_all must return a row");
  columns = BlessTupleDesc(columns);
  const Released released = release_group(handle_arg(fcinfo, 0), bool_arg(fcinfo, 1, "refund"));
  Datum values[] = {Int32GetDatum(released.slots), Int32GetDatum(released.lost), Int32GetDatum(released.refunded)};
  bool nulls[3] = {};
  return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

SQL_FUNCTION(taskq_explain_acquire) {
  const GivenRequests given = requests_arg(fcinfo, 0);
  InitMaterializedSRF(fcinfo, 0);
  look_at_group(given.list, given.count);
  auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  for (int i = 0; i < given.count; ++i) put_explanation(result, i + 1, given.list[i]);
  return Datum{0};
}

}  // namespace taskq::pg
