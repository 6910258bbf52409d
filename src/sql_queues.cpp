// set_queue_max_concurrent, and the triggers on taskq.queues.
#include "args.hpp"
#include "errors.hpp"
#include "queue_caps.hpp"
#include "reservations.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

enum QueueColumn : int { c_name = 1, c_max_concurrent, c_lease };

// 0 for NULL, which means no cap.
int32 max_concurrent_arg(FunctionCallInfo fcinfo, int position) {
  if (is_null(fcinfo, position)) return 0;
  const int32 most = PG_GETARG_INT32(position);
  if (most >= 1 && most <= max_slots) return most;
  raise_invalid(most < 1 ? "max_concurrent must be at least 1" : "max_concurrent must be at most 1000000",
                psprintf("max_concurrent is %d.", most), "Use NULL to lift the cap.");
}

struct QueueRow {
  HeapTuple tuple;
  TupleDesc columns;

  Datum at(int column, bool& null) const { return heap_getattr(tuple, column, columns, &null); }
  std::string_view name() const {
    bool null;
    return as_string(at(c_name, null));
  }
};

void enforce(const QueueRow& row) {
  check_queue(row.name());
  bool uncapped, null;
  const int32 most = DatumGetInt32(row.at(c_max_concurrent, uncapped));
  const ratelimit::Micros lease = lease_micros(*DatumGetIntervalP(row.at(c_lease, null)));
  if (uncapped) {
    lift_cap(row.name());
  } else {
    enforce_cap(row.name(), most, lease);
  }
}

void follow(const TriggerData& trigger) {
  const TupleDesc columns = trigger.tg_relation->rd_att;
  const QueueRow before{trigger.tg_trigtuple, columns};
  if (TRIGGER_FIRED_BY_TRUNCATE(trigger.tg_event)) return lift_all_caps();
  if (TRIGGER_FIRED_BY_DELETE(trigger.tg_event)) return lift_cap(before.name());
  if (TRIGGER_FIRED_BY_INSERT(trigger.tg_event)) return enforce(before);
  const QueueRow after{trigger.tg_newtuple, columns};
  if (before.name() != after.name()) lift_cap(before.name());
  enforce(after);
}

}  // namespace

SQL_FUNCTION(taskq_set_queue_max_concurrent) {
  check_may_write("set_queue_max_concurrent");
  const std::string_view queue = text_arg(fcinfo, 0, "queue");
  check_queue(queue);
  const int32 most = max_concurrent_arg(fcinfo, 1);
  const Interval* lease = is_null(fcinfo, 2) ? nullptr : PG_GETARG_INTERVAL_P(2);
  if (lease != nullptr) lease_micros(*lease);
  PG_RETURN_BOOL(set_queue_cap(queue, most, lease));
}

SQL_FUNCTION(taskq_queues_changed) {
  if (!CALLED_AS_TRIGGER(fcinfo)) {
    ereport(ERROR, (errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED), errmsg("queues_changed is a trigger function")));
  }
  follow(*reinterpret_cast<TriggerData*>(fcinfo->context));
  return PointerGetDatum(nullptr);
}

}  // namespace taskq::pg
