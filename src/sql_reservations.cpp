// register_reservation, drop_reservation, sync_slots.
#include "args.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "queue_caps.hpp"
#include "reservation_define.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

int32 slots_arg(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "slots");
  const int32 slots = PG_GETARG_INT32(position);
  if (slots >= 1 && slots <= max_slots) return slots;
  raise_invalid(slots < 1 ? "slots must be at least 1" : "slots must be at most 1000000", psprintf("slots is %d.", slots),
                "Give how many may run at the same time.");
}

Micros lease_arg(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "lease");
  return lease_micros(*PG_GETARG_INTERVAL_P(position));
}

// The names of all reservations, as text[]. REQUIRES: as owner.
Datum all_names(bool* none) {
  execute("SELECT array_agg(name ORDER BY name) FROM taskq.reservations", 0, nullptr, nullptr, nullptr);
  return SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, none);
}

SyncCounts sync_all(Datum names) {
  Datum* values;
  bool* nulls;
  int count;
  SyncCounts total;
  deconstruct_array(DatumGetArrayTypeP(names), TEXTOID, -1, false, TYPALIGN_INT, &values, &nulls, &count);
  for (int i = 0; i < count; ++i) {
    if (nulls[i]) raise_null("names");
    check_name(as_string(values[i]));
    const SyncCounts one = sync_reservation(as_string(values[i]));
    total.inserted += one.inserted;
    total.deleted += one.deleted;
    total.skipped_held += one.skipped_held;
  }
  return total;
}

SyncCounts sync_those(FunctionCallInfo fcinfo) {
  if (!is_null(fcinfo, 0)) return sync_all(PG_GETARG_DATUM(0));
  const OwnerRun run = begin_as_owner();
  bool none;
  const Datum names = all_names(&none);
  const SyncCounts total = none ? SyncCounts{} : sync_all(names);
  end_as_owner(run);
  return total;
}

}  // namespace

SQL_FUNCTION(taskq_register_reservation) {
  check_may_write("register_reservation");
  WantedReservation wanted;
  wanted.name = name_arg(fcinfo, 0);
  check_not_reserved(wanted.name);
  wanted.slots = slots_arg(fcinfo, 1);
  wanted.lease = lease_arg(fcinfo, 2);
  wanted.keyed = bool_arg(fcinfo, 3, "keyed");
  wanted.replace = bool_arg(fcinfo, 4, "replace");
  wanted.max_keys = max_keys_arg(fcinfo, 5, wanted.keyed);
  PG_RETURN_BOOL(define_reservation(wanted));
}

SQL_FUNCTION(taskq_drop_reservation) {
  check_may_write("drop_reservation");
  const std::string_view name = name_arg(fcinfo, 0);
  check_is_no_cap(name);
  drop_reservation(name);
  PG_RETURN_VOID();
}

SQL_FUNCTION(taskq_sync_slots) {
  check_may_write("sync_slots");
  TupleDesc columns;
  if (get_call_result_type(fcinfo, nullptr, &columns) != TYPEFUNC_COMPOSITE) elog(ERROR, "taskq.sync_slots must return a row");
  columns = BlessTupleDesc(columns);
  const SyncCounts counts = sync_those(fcinfo);
  Datum values[] = {Int64GetDatum(counts.inserted), Int64GetDatum(counts.deleted), Int64GetDatum(counts.skipped_held)};
  bool nulls[3] = {};
  return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

}  // namespace taskq::pg
