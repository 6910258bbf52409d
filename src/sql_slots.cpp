// acquire_slot, release_slot, renew_slot, renew_slots, peek_reservation, peek_reservation_if_there.
#include "args.hpp"
#include "count_decision.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "relations.hpp"
#include "row_type.hpp"
#include "slot_leases.hpp"
#include "slot_ops.hpp"
#include "sql_function.hpp"
#include "uuid.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constinit KnownType decision_type{};
constinit KnownType state_type{};

Datum text_datum(std::string_view text) {
  return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

int32 slot_arg(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "slot_index");
  return PG_GETARG_INT32(position);
}

// Arguments worker_id and fence: one of them at least.
Holder holder_args(FunctionCallInfo fcinfo, int worker_position, int fence_position, pg_uuid_t& worker) {
  Holder holder;
  worker = uuid_arg(fcinfo, worker_position);
  if (!same_uuid(worker, pg_uuid_t{})) holder.worker = &worker;
  holder.has_fence = !is_null(fcinfo, fence_position);
  if (holder.has_fence) holder.fence = PG_GETARG_INT64(fence_position);
  if (holder.worker == nullptr && !holder.has_fence) {
    raise_invalid("say whose lease it is", "Neither worker_id nor fence is given.",
                  "Pass the worker_id of the acquire, or the fence that it answered, or both.");
  }
  return holder;
}

Datum slot_datum(FunctionCallInfo fcinfo, const SlotAnswer& answer, std::string_view name, std::string_view key) {
  Datum values[] = {BoolGetDatum(answer.allowed), Int32GetDatum(answer.slot_index), Int64GetDatum(answer.fence),
                    TimestampTzGetDatum(answer.lease_expires_at), IntervalPGetDatum(interval_of(answer.retry_after)),
                    Float8GetDatum(static_cast<double>(answer.retry_after) / 1e6), text_datum(name), text_datum(key),
                    CStringGetTextDatum(slot_reason_text(answer.reason))};
  bool nulls[9] = {};
  nulls[1] = nulls[2] = nulls[3] = !answer.allowed;
  return HeapTupleGetDatum(heap_form_tuple(row_type(fcinfo, decision_type, 9), values, nulls));
}

Datum state_datum_of(FunctionCallInfo fcinfo, const SlotCounts& counts, std::string_view name, std::string_view key) {
  const int32 slots = slots_under(counts.reservation, key), free = slots > counts.held ? slots - counts.held : 0;
  Datum values[] = {text_datum(name), text_datum(key), Int32GetDatum(slots), Int32GetDatum(counts.held), Int32GetDatum(free),
                    IntervalPGetDatum(interval_of(counts.reservation.lease)), TimestampTzGetDatum(counts.first_end)};
  bool nulls[7] = {};
  nulls[6] = counts.held == 0;
  return HeapTupleGetDatum(heap_form_tuple(row_type(fcinfo, state_type, 7), values, nulls));
}

// One lease of a worker: renewed, or reported as lost.
void put_renewed(ReturnSetInfo* result, std::string_view name, const WorkersLease& lease, const pg_uuid_t& worker) {
  const Holder holder{.worker = &worker, .has_fence = true, .fence = lease.fence};
  TimestampTz end = lease.lease_expires_at;
  const bool renewed = extend_slot(name, lease.key, lease.slot_index, holder, end, Missing::allows);
  if (!renewed && find_reservation(name) == nullptr) return;  // dropped meanwhile: its leases are gone, not lost to others
  Datum values[] = {text_datum(name), text_datum(lease.key), Int32GetDatum(lease.slot_index), Int64GetDatum(lease.fence),
                    BoolGetDatum(renewed), TimestampTzGetDatum(end)};
  bool nulls[6] = {};
  HeapTuple tuple = heap_form_tuple(result->setDesc, values, nulls);
  tuplestore_puttuple(result->setResult, tuple);
  heap_freetuple(tuple);
}

// Those of one reservation, given as a row (reservation_id, name).
void renew_leases_in(ReturnSetInfo* result, HeapTuple row, TupleDesc columns, const WorkersLeases& leases, const pg_uuid_t& worker) {
  bool null;
  const int32 reservation_id = DatumGetInt32(SPI_getbinval(row, columns, 1, &null));
  const std::string_view name = as_string(SPI_getbinval(row, columns, 2, &null));
  for (int i = 0; i < leases.count; ++i) {
    if (leases.list[i].reservation_id == reservation_id) put_renewed(result, name, leases.list[i], worker);
  }
}

}  // namespace

SQL_FUNCTION(taskq_acquire_slot) {
  check_may_write("acquire_slot");
  const std::string_view name = name_arg(fcinfo, 0), key = key_arg(fcinfo, 3);
  const pg_uuid_t job = uuid_arg(fcinfo, 1), worker = uuid_arg(fcinfo, 2);
  return slot_datum(fcinfo, counted(take_slot(name, key, job, worker)), name, key);
}

SQL_FUNCTION(taskq_release_slot) {
  check_may_write("release_slot");
  pg_uuid_t worker;
  const Holder holder = holder_args(fcinfo, 2, 4, worker);
  PG_RETURN_BOOL(free_slot(name_arg(fcinfo, 0), key_arg(fcinfo, 3), slot_arg(fcinfo, 1), holder));
}

SQL_FUNCTION(taskq_renew_slot) {
  check_may_write("renew_slot");
  pg_uuid_t worker;
  TimestampTz end;
  const Holder holder = holder_args(fcinfo, 2, 4, worker);
  if (!extend_slot(name_arg(fcinfo, 0), key_arg(fcinfo, 3), slot_arg(fcinfo, 1), holder, end)) PG_RETURN_NULL();
  PG_RETURN_TIMESTAMPTZ(end);
}

SQL_FUNCTION(taskq_renew_slots) {
  check_may_write("renew_slots");
  check_given(fcinfo, 0, "worker_id");
  const pg_uuid_t worker = uuid_arg(fcinfo, 0);
  InitMaterializedSRF(fcinfo, 0);
  if (same_uuid(worker, pg_uuid_t{})) return Datum{0};  // stands for "none" in the table
  relations();
  const WorkersLeases leases = leases_of(worker);
  if (leases.count == 0) return Datum{0};
  const OwnerRun run = begin_as_owner();
  execute("SELECT reservation_id, name FROM taskq.reservations ORDER BY name", 0, nullptr, nullptr, nullptr);
  const SPITupleTable* rows = SPI_tuptable;
  const uint64 count = SPI_processed;
  auto* result = reinterpret_cast<ReturnSetInfo*>(fcinfo->resultinfo);
  for (uint64 i = 0; i < count; ++i) renew_leases_in(result, rows->vals[i], rows->tupdesc, leases, worker);
  end_as_owner(run);
  return Datum{0};
}

SQL_FUNCTION(taskq_peek_reservation) {
  const std::string_view name = name_arg(fcinfo, 0), key = key_arg(fcinfo, 1);
  return state_datum_of(fcinfo, count_slots(needed_reservation(name), key), name, key);
}

SQL_FUNCTION(taskq_peek_reservation_if_there) {
  const std::string_view name = name_arg(fcinfo, 0), key = key_arg(fcinfo, 1);
  const Reservation* reservation = find_reservation(name);
  if (reservation == nullptr) PG_RETURN_NULL();
  const SlotCounts counts = count_slots(Reservation{*reservation}, key);
  if (counts.held == 0 && slots_under(counts.reservation, key) == 0) PG_RETURN_NULL();
  return state_datum_of(fcinfo, counts, name, key);
}

}  // namespace taskq::pg
