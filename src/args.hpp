// Arguments of SQL functions, fetched and checked. Everything is refused that could not mean anything: NULL, empty or over-long
// names, control characters, intervals with months.
#pragma once

#include <string_view>

#include "call.hpp"
#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

bool is_null(FunctionCallInfo fcinfo, int position);

// Raises 22004 if the argument is null.
void check_given(FunctionCallInfo fcinfo, int position, const char* argument);

std::string_view text_arg(FunctionCallInfo fcinfo, int position, const char* argument);
double float_arg(FunctionCallInfo fcinfo, int position, const char* argument);
int64 int_arg(FunctionCallInfo fcinfo, int position, const char* argument);
// A cap on keys; NULL is 0, which stands for the setting. Raises 22023 if it is below 1, or given for what has no keys.
int32 max_keys_arg(FunctionCallInfo fcinfo, int position, bool keyed);

bool bool_arg(FunctionCallInfo fcinfo, int position, const char* argument);

// All zeros for NULL.
pg_uuid_t uuid_arg(FunctionCallInfo fcinfo, int position);

std::string_view as_string(Datum text);

// A name that may be registered, or looked up.
std::string_view name_arg(FunctionCallInfo fcinfo, int position);
void check_name(std::string_view name);

// Raises 22023 if the name begins as only our own do: users must not define such.
void check_not_reserved(std::string_view name);

// At most 1024 bytes.
std::string_view key_arg(FunctionCallInfo fcinfo, int position);
void check_key_length(std::string_view key);

// An interval in microseconds. Raises 22023 for months and years: they have no fixed length. A day is 24 hours.
ratelimit::Micros interval_arg(FunctionCallInfo fcinfo, int position, const char* argument);
ratelimit::Micros interval_micros(const Interval& interval, const char* argument);

// The length of a lease: above 0, at most 142 years.
ratelimit::Micros lease_micros(const Interval& interval);

// The usual (name, cost, key), resolved.
Call call_args(FunctionCallInfo fcinfo, int name, int cost, int key, CostRule rule);

// The usual (name, key), resolved.
Call look_args(FunctionCallInfo fcinfo, int name, int key);

}  // namespace taskq::pg
