#include "args.hpp"

#include "errors.hpp"
#include "taskq_ratelimit/amount.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

const char* interval_given(const Interval& interval, const char* argument) {
  Interval copy = interval;
  return psprintf("The %s is %s.", argument, DatumGetCString(DirectFunctionCall1(interval_out, PointerGetDatum(&copy))));
}

}  // namespace

bool is_null(FunctionCallInfo fcinfo, int position) { return PG_ARGISNULL(position); }

void check_given(FunctionCallInfo fcinfo, int position, const char* argument) {
  if (PG_ARGISNULL(position)) raise_null(argument);
}

pg_uuid_t uuid_arg(FunctionCallInfo fcinfo, int position) {
  return PG_ARGISNULL(position) ? pg_uuid_t{} : *PG_GETARG_UUID_P(position);
}

std::string_view as_string(Datum datum) {
  struct varlena* value = DatumGetTextPP(datum);
  return {VARDATA_ANY(value), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(value))};
}

std::string_view text_arg(FunctionCallInfo fcinfo, int position, const char* argument) {
  check_given(fcinfo, position, argument);
  return as_string(PG_GETARG_DATUM(position));
}

double float_arg(FunctionCallInfo fcinfo, int position, const char* argument) {
  check_given(fcinfo, position, argument);
  return PG_GETARG_FLOAT8(position);
}

int64 int_arg(FunctionCallInfo fcinfo, int position, const char* argument) {
  check_given(fcinfo, position, argument);
  return PG_GETARG_INT64(position);
}

bool bool_arg(FunctionCallInfo fcinfo, int position, const char* argument) {
  check_given(fcinfo, position, argument);
  return PG_GETARG_BOOL(position);
}

int32 max_keys_arg(FunctionCallInfo fcinfo, int position, bool keyed) {
  if (PG_ARGISNULL(position)) return 0;
  const int32 most = PG_GETARG_INT32(position);
  if (most < 1) {
    raise_invalid("max_keys must be at least 1", psprintf("max_keys is %d.", most), "Leave it out to have the cap of the setting.");
  }
  if (!keyed) {
    raise_invalid("max_keys needs keyed => true", psprintf("max_keys is %d, keyed is false.", most),
                  "Leave max_keys out: there is one key only.");
  }
  return most;
}

void check_name(std::string_view name) {
  if (name.empty()) raise_invalid("name must not be empty", "The name has 0 bytes.", "Give the limit a name of 1 to 255 bytes.");
  if (name.size() > max_name_bytes) {
    raise_invalid("name is too long", psprintf("The name has %d bytes.", static_cast<int>(name.size())),
                  "A name has 255 bytes at most; what varies belongs into the key.");
  }
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_control(name, i)) continue;
    raise_invalid("name contains a control character", psprintf("The name is \"%s\".", shown(name)), "Use printable characters only.");
  }
}

std::string_view name_arg(FunctionCallInfo fcinfo, int position) {
  const std::string_view name = text_arg(fcinfo, position, "name");
  check_name(name);
  return name;
}

void check_not_reserved(std::string_view name) {
  if (!name.starts_with("taskq:")) return;
  raise_invalid("names that begin with \"taskq:\" are reserved", psprintf("The name is \"%s\".", shown(name)), "Choose another name.");
}

void check_key_length(std::string_view key) {
  if (key.size() <= max_key_bytes) return;
  raise_invalid("key is too long", psprintf("The key has %d bytes.", static_cast<int>(key.size())),
                "A key has 1024 bytes at most; hash longer ones, for example with sha256().");
}

std::string_view key_arg(FunctionCallInfo fcinfo, int position) {
  const std::string_view key = text_arg(fcinfo, position, "key");
  check_key_length(key);
  return key;
}

Micros interval_micros(const Interval& interval, const char* argument) {
  if (interval.month != 0) {
    raise_invalid(psprintf("%s must not contain months or years", argument), interval_given(interval, argument), "They have no fixed length; use days, 24 hours each.");
  }
  const ratelimit::Wide micros = ratelimit::Wide{interval.day} * USECS_PER_DAY + interval.time;
  if (micros < 0) raise_invalid(psprintf("%s must not be negative", argument), interval_given(interval, argument), "Give a positive interval such as interval '1 minute'.");
  return micros > ratelimit::kMaxProduct ? ratelimit::kMaxProduct + 1 : static_cast<Micros>(micros);
}

Micros lease_micros(const Interval& interval) {
  const Micros lease = interval_micros(interval, "lease");
  if (lease > 0 && lease <= ratelimit::kMaxProduct) return lease;
  raise_invalid(lease <= 0 ? "lease must be above 0" : "lease is too long",
                lease <= 0 ? "The lease is 0." : "The lease is more than 142 years.",
                "Give how long a holder may be silent, such as interval '1 minute'.");
}

Micros interval_arg(FunctionCallInfo fcinfo, int position, const char* argument) {
  check_given(fcinfo, position, argument);
  return interval_micros(*PG_GETARG_INTERVAL_P(position), argument);
}

Call call_args(FunctionCallInfo fcinfo, int name, int cost, int key, CostRule rule) {
  Call call{};
  call.name = name_arg(fcinfo, name);
  call.amount = float_arg(fcinfo, cost, "cost");
  call.key = key_arg(fcinfo, key);
  call.rule = rule;
  resolve(call);
  return call;
}

Call look_args(FunctionCallInfo fcinfo, int name, int key) {
  Call call{};
  call.name = name_arg(fcinfo, name);
  call.key = key_arg(fcinfo, key);
  resolve(call);
  return call;
}

}  // namespace taskq::pg
