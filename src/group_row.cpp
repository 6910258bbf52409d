#include "group_row.hpp"

#include "args.hpp"
#include "decision_row.hpp"
#include "errors.hpp"
#include "group_handle.hpp"
#include "relations.hpp"
#include "row_type.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::kNever;
using ratelimit::Limit;
using ratelimit::Micros;

namespace {

enum RequestColumn { q_name, q_cost, q_key, q_job_id, q_worker_id, q_kind, request_columns };

enum DecisionColumn {
  d_kind, d_name, d_key, d_allowed, d_reason, d_cost, d_remaining, d_retry_after, d_retry_after_seconds, d_quota, d_reset_after, d_request_id,
  d_decided_at, d_slot_index, d_fence, d_lease_expires_at, decision_columns
};

constexpr int group_columns = 7, decisions_column = 3;

constinit KnownType group_type{};

struct Row {
  Datum values[decision_columns];
  bool nulls[decision_columns];

  explicit Row(bool null) {
    for (bool& n : nulls) n = null;
  }
  void put(int column, Datum value) {
    values[column] = value;
    nulls[column] = false;
  }
  void put_wait(int column, Micros wait) {
    if (wait != kNever) put(column, IntervalPGetDatum(interval_of(wait)));
  }
};

Datum text_datum(std::string_view text) {
  return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

// A field of requests[i] that must be there.
Datum needed(const Row& row, int column, const char* field) {
  if (row.nulls[column]) raise_null(psprintf("request.%s", field));
  return row.values[column];
}

GroupRequest request_of(const Row& row) {
  const std::string_view kind = row.nulls[q_kind] ? std::string_view{} : as_string(row.values[q_kind]);
  const std::string_view name = as_string(needed(row, q_name, "name"));
  check_name(name);
  const ResourceKind meant = resource_kind(name, kind, !row.nulls[q_job_id] || !row.nulls[q_worker_id]);
  GroupRequest request = checked_request(meant, name, as_string(needed(row, q_key, "key")), DatumGetFloat8(needed(row, q_cost, "cost")));
  if (!row.nulls[q_job_id]) request.job = *DatumGetUUIDP(row.values[q_job_id]);
  if (!row.nulls[q_worker_id]) request.worker = *DatumGetUUIDP(row.values[q_worker_id]);
  return request;
}

GroupRequest read_request(Datum given, TupleDesc columns) {
  HeapTupleHeader header = DatumGetHeapTupleHeader(given);
  HeapTupleData tuple{};
  tuple.t_len = HeapTupleHeaderGetDatumLength(header);
  tuple.t_data = header;
  Row row{false};
  heap_deform_tuple(&tuple, columns, row.values, row.nulls);
  return request_of(row);
}

void put_limit(Row& row, const GroupRequest& r) {
  const Limit& limit = r.call.definition.limit;
  const ratelimit::Decision& d = r.answer.decision;
  row.put(d_remaining, Float8GetDatum(ratelimit::to_amount(limit, d.remaining)));
  row.put(d_quota, Float8GetDatum(ratelimit::to_amount(limit, limit.capacity * limit.d)));
  row.put_wait(d_reset_after, d.reset_after);
  if (r.answer.has_request_id) row.put(d_request_id, UUIDPGetDatum(&r.answer.request_id));
  row.put(d_decided_at, TimestampTzGetDatum(d.decided_at));
}

void put_slot(Row& row, const GroupRequest& r) {
  row.put(d_quota, Float8GetDatum(static_cast<double>(r.reservation.slots)));
  if (!r.has_lease) return;
  row.put(d_slot_index, Int32GetDatum(r.slot.slot_index));
  row.put(d_fence, Int64GetDatum(r.slot.fence));
  row.put(d_lease_expires_at, TimestampTzGetDatum(r.slot.lease_expires_at));
}

HeapTuple decision_row(TupleDesc columns, const GroupRequest& r) {
  Row row{true};
  row.put(d_kind, CStringGetTextDatum(resource_kind_text(r.kind)));
  row.put(d_name, text_datum(r.name));
  row.put(d_key, text_datum(r.key));
  row.put(d_allowed, BoolGetDatum(r.allowed()));
  row.put(d_reason, CStringGetTextDatum(outcome_text(r)));
  row.put(d_cost, Float8GetDatum(r.cost));
  row.put_wait(d_retry_after, r.retry_after());
  if (r.retry_after() != kNever) row.put(d_retry_after_seconds, Float8GetDatum(static_cast<double>(r.retry_after()) / 1e6));
  if (r.kind == ResourceKind::rate_limit) {
    put_limit(row, r);
  } else {
    put_slot(row, r);
  }
  return heap_form_tuple(columns, row.values, row.nulls);
}

}  // namespace

GroupRequest checked_request(ResourceKind kind, std::string_view name, std::string_view key, double cost) {
  check_key_length(key);
  GroupRequest request;
  request.kind = kind;
  request.name = name;
  request.key = key;
  request.cost = cost;
  return request;
}

GivenRequests requests_arg(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "requests");
  ArrayType* array = PG_GETARG_ARRAYTYPE_P(position);
  Datum* values;
  bool* nulls;
  GivenRequests given;
  deconstruct_array(array, ARR_ELEMTYPE(array), -1, false, TYPALIGN_DOUBLE, &values, &nulls, &given.count);
  if (given.count > max_requests) {
    raise_invalid(psprintf("a group takes at most %d requests", max_requests), psprintf("It has %d requests.", given.count),
                  "Split it, or use taskq.acquire_many() for decisions that need not hold together.");
  }
  TupleDesc columns = lookup_rowtype_tupdesc(ARR_ELEMTYPE(array), -1);
  check_columns(columns, request_columns);
  given.list = static_cast<GroupRequest*>(palloc(sizeof(GroupRequest) * static_cast<Size>(given.count + 1)));
  for (int i = 0; i < given.count; ++i) {
    if (nulls[i]) raise_null("requests");
    given.list[i] = read_request(values[i], columns);
  }
  ReleaseTupleDesc(columns);
  return given;
}

Datum group_datum(FunctionCallInfo fcinfo, const GroupRequest* requests, int count, const GroupAnswer& answer) {
  TupleDesc columns = row_type(fcinfo, group_type, group_columns);
  const bool has_wait = answer.retry_after != kNever;
  Datum values[group_columns] = {
      BoolGetDatum(answer.allowed),
      answer.allowed ? Datum{0} : CStringGetTextDatum(resource_text(*answer.refused_by)),
      has_wait ? IntervalPGetDatum(interval_of(answer.retry_after)) : Datum{0},
      decisions_datum(TupleDescAttr(columns, decisions_column)->atttypid, requests, count),
      answer.allowed ? handle_datum(requests, count) : Datum{0},
      Float8GetDatum(static_cast<double>(answer.retry_after) / 1e6),
      CStringGetTextDatum(answer.allowed ? "ok" : outcome_text(*answer.refused_by))};
  bool nulls[group_columns] = {false, answer.allowed, !has_wait, false, !answer.allowed, !has_wait, false};
  return HeapTupleGetDatum(heap_form_tuple(columns, values, nulls));
}

Datum decisions_datum(Oid array_type, const GroupRequest* requests, int count) {
  const Oid type = get_element_type(array_type);
  TupleDesc columns = lookup_rowtype_tupdesc(type, -1);
  check_columns(columns, decision_columns);
  auto* elements = static_cast<Datum*>(palloc(sizeof(Datum) * static_cast<Size>(count + 1)));
  for (int i = 0; i < count; ++i) elements[i] = HeapTupleGetDatum(decision_row(columns, requests[i]));
  ReleaseTupleDesc(columns);
  return PointerGetDatum(construct_array(elements, count, type, -1, false, TYPALIGN_DOUBLE));
}

const char* resource_text(const GroupRequest& request) {
  return psprintf("%s:%.*s", resource_kind_text(request.kind), static_cast<int>(request.name.size()), request.name.data());
}

const char* outcome_text(const GroupRequest& request) {
  return request.kind == ResourceKind::rate_limit ? reason_text(request.answer.reason) : slot_reason_text(request.slot.reason);
}

}  // namespace taskq::pg
