#include "decision_row.hpp"

#include "args.hpp"
#include "errors.hpp"
#include "relations.hpp"
#include "row_type.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::kNever;
using ratelimit::Limit;
using ratelimit::Micros;

namespace {

enum DecisionColumn {
  allowed, remaining, retry_after, bucket_name, backend, request_id, key_column, cost, quota, reset_after, delay, reason,
  retry_after_seconds, reset_after_seconds, decided_at, decision_columns
};

enum StateColumn {
  s_bucket_name, s_backend, s_is_exhausted, s_tokens_remaining, s_remaining, s_retry_after, s_capacity, s_limit, s_window, s_style,
  s_refill_per_second, s_key, s_paused_until, s_updated_at, s_kind, s_reset_after, state_columns
};

constinit KnownType decision_type{};
constinit KnownType state_type{};

Datum text_datum(std::string_view text) {
  return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

double seconds(Micros micros) { return static_cast<double>(micros) / 1e6; }

static_assert(int{state_columns} >= int{decision_columns});

struct Fields {
  Datum values[state_columns];
  bool nulls[state_columns];

  void put(int column, Datum value) { values[column] = value; nulls[column] = false; }
  void put_null(int column) { values[column] = Datum{0}; nulls[column] = true; }
  void put_wait(int column, Micros wait) {
    wait == kNever ? put_null(column) : put(column, IntervalPGetDatum(interval_of(wait)));
  }
  void put_seconds(int column, Micros wait) { wait == kNever ? put_null(column) : put(column, Float8GetDatum(seconds(wait))); }
};

double quota_of(const Limit& limit) { return ratelimit::to_amount(limit, limit.capacity * limit.d); }

double refill_per_second(const Limit& limit) {
  return static_cast<double>(limit.n) * 1e6 / (static_cast<double>(limit.d) * static_cast<double>(ratelimit::power_of_ten(limit.scale)));
}

void put_definition(Fields& f, const Limit& limit) {
  const bool is_bucket = limit.window == 0;
  is_bucket ? f.put(s_capacity, Float8GetDatum(quota_of(limit))) : f.put_null(s_capacity);
  is_bucket ? f.put_null(s_limit) : f.put(s_limit, Int64GetDatum(limit.capacity));
  is_bucket ? f.put_null(s_window) : f.put_wait(s_window, limit.window);
  is_bucket ? f.put(s_refill_per_second, Float8GetDatum(refill_per_second(limit))) : f.put_null(s_refill_per_second);
  style_text(limit.kind) == nullptr ? f.put_null(s_style) : f.put(s_style, CStringGetTextDatum(style_text(limit.kind)));
  f.put(s_kind, CStringGetTextDatum(kind_text(limit.kind)));
}

// The columns of a decision given as an argument.
struct GivenRow {
  HeapTupleHeader row;
  bool has(const char* column, Datum& value) const {
    bool null;
    value = GetAttributeByName(row, column, &null);
    return !null;
  }
  Datum needed(const char* column) const {
    Datum value;
    if (!has(column, value)) raise_null(psprintf("decision.%s", column));
    return value;
  }
  Micros wait(const char* column, Micros if_null) const {
    Datum value;
    return has(column, value) ? interval_micros(*DatumGetIntervalP(value), column) : if_null;
  }
};

}  // namespace

Interval* interval_of(Micros micros) {
  auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
  interval->time = micros;
  return interval;
}

const char* reason_text(Reason reason) {
  switch (reason) {
    case Reason::ok: return "ok";
    case Reason::limited: return "limited";
    case Reason::paused: return "paused";
    case Reason::shadow: return "shadow";
    case Reason::too_many_keys: return "too_many_keys";
    default: return "lock_timeout";
  }
}

void check_decision_shape(TupleDesc columns) { check_columns(columns, decision_columns); }

HeapTuple decision_tuple(TupleDesc columns, const Call& call, const Answer& answer) {
  const Limit& limit = call.definition.limit;
  const ratelimit::Decision& d = answer.decision;
  Fields f;
  f.put(allowed, BoolGetDatum(d.allowed));
  f.put(remaining, Float8GetDatum(ratelimit::to_amount(limit, d.remaining)));
  f.put_wait(retry_after, d.retry_after);
  f.put(bucket_name, CStringGetTextDatum(call.definition.name));
  f.put(backend, text_datum("postgres"));
  answer.has_request_id ? f.put(request_id, UUIDPGetDatum(&answer.request_id)) : f.put_null(request_id);
  f.put(key_column, text_datum(call.key));
  f.put(cost, Float8GetDatum(call.amount));
  f.put(quota, Float8GetDatum(quota_of(limit)));
  f.put_wait(reset_after, d.reset_after);
  f.put_wait(delay, d.delay);
  f.put(reason, CStringGetTextDatum(reason_text(answer.reason)));
  f.put_seconds(retry_after_seconds, d.retry_after);
  f.put_seconds(reset_after_seconds, d.reset_after);
  f.put(decided_at, TimestampTzGetDatum(d.decided_at));
  return heap_form_tuple(columns, f.values, f.nulls);
}

Datum decision_datum(FunctionCallInfo fcinfo, const Call& call, const Answer& answer) {
  return HeapTupleGetDatum(decision_tuple(row_type(fcinfo, decision_type, decision_columns), call, answer));
}

Datum state_datum(FunctionCallInfo fcinfo, const Call& call, const Answer& answer) {
  const Limit& limit = call.definition.limit;
  const ratelimit::Decision& d = answer.decision;
  const double left = ratelimit::to_amount(limit, d.remaining);
  Fields f;
  f.put(s_bucket_name, CStringGetTextDatum(call.definition.name));
  f.put(s_backend, text_datum("postgres"));
  f.put(s_is_exhausted, BoolGetDatum(!d.allowed));
  limit.window == 0 ? f.put(s_tokens_remaining, Float8GetDatum(left)) : f.put_null(s_tokens_remaining);
  f.put(s_remaining, Float8GetDatum(left));
  d.allowed ? f.put_null(s_retry_after) : f.put_wait(s_retry_after, d.retry_after);
  put_definition(f, limit);
  f.put(s_key, text_datum(call.key));
  const bool paused = answer.paused_until > d.decided_at;
  paused ? f.put(s_paused_until, TimestampTzGetDatum(answer.paused_until)) : f.put_null(s_paused_until);
  const bool used = answer.used_at != DT_NOBEGIN;
  used ? f.put(s_updated_at, TimestampTzGetDatum(answer.used_at)) : f.put_null(s_updated_at);
  f.put_wait(s_reset_after, d.reset_after);
  return HeapTupleGetDatum(heap_form_tuple(row_type(fcinfo, state_type, state_columns), f.values, f.nulls));
}

GivenDecision given_decision(FunctionCallInfo fcinfo, int position) {
  check_given(fcinfo, position, "decision");
  const GivenRow row{PG_GETARG_HEAPTUPLEHEADER(position)};
  GivenDecision given;
  Datum value;
  given.name = as_string(row.needed("bucket_name"));
  given.key = as_string(row.needed("key"));
  given.allowed = DatumGetBool(row.needed("allowed"));
  given.took = given.allowed && as_string(row.needed("reason")) == "ok";
  given.quota = row.has("quota", value) ? DatumGetFloat8(value) : 0;
  given.has_retry_after = row.has("retry_after", value);
  given.retry_after = row.wait("retry_after", kNever);
  given.shown.cost = DatumGetFloat8(row.needed("cost"));
  given.shown.remaining = DatumGetFloat8(row.needed("remaining"));
  given.shown.decided_at = DatumGetTimestampTz(row.needed("decided_at"));
  given.shown.delay = row.wait("delay", 0);
  given.shown.reset_after = row.wait("reset_after", kNever);
  if (row.has("request_id", value)) given.shown.request_id = *DatumGetUUIDP(value);
  return given;
}

}  // namespace taskq::pg
