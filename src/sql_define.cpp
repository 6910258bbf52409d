// register_..., acquire_... (definition and decision in one call), drop_rate_limit.
#include "args.hpp"
#include "bucket_ops.hpp"
#include "count_decision.hpp"
#include "decision_row.hpp"
#include "define.hpp"
#include "errors.hpp"
#include "sql_function.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Algorithm;
using ratelimit::DefinitionError;
using ratelimit::Inherit;
using ratelimit::Kind;
using ratelimit::Limit;
using ratelimit::Micros;
namespace core = ratelimit;

namespace {

// Periods beyond the bound are cut when they are read.
const char* period_text(Micros period) {
  return period > ratelimit::kMaxProduct ? "more than 142 years" : psprintf("%s seconds", number_text(static_cast<double>(period) / 1e6));
}

const char* rate_given(double capacity, const char* rate) {
  return psprintf("The capacity is %s, the refill rate is %s.", number_text(capacity), rate);
}

Limit bucket_at_rate(Kind kind, double capacity, double per_second) {
  const core::Definition made = core::make_bucket(kind, capacity, per_second);
  if (made.error != DefinitionError::none) {
    raise_definition(made.error, rate_given(capacity, psprintf("%s per second", number_text(per_second))));
  }
  return made.limit;
}

Limit bucket_by_period(Kind kind, double capacity, double amount, Micros period) {
  const core::Definition made = core::make_bucket(kind, capacity, amount, period);
  if (made.error != DefinitionError::none) {
    raise_definition(made.error, rate_given(capacity, psprintf("%s per %s", number_text(amount), period_text(period))));
  }
  return made.limit;
}

// Arguments 2..4: a rate per second, or an amount and a period.
Limit bucket_args(FunctionCallInfo fcinfo, Kind kind, double& per_second) {
  const double capacity = float_arg(fcinfo, 1, "capacity");
  const bool by_rate = !is_null(fcinfo, 2), by_period = !is_null(fcinfo, 3) || !is_null(fcinfo, 4);
  if (by_rate == by_period) {
    raise_invalid("give the refill rate in one of two ways", by_rate ? "Both are given." : "None is given.",
                  "Either a rate per second, or an amount and a period.");
  }
  if (by_rate) {
    per_second = float_arg(fcinfo, 2, "refill_per_second");
    return bucket_at_rate(kind, capacity, per_second);
  }
  const double amount = float_arg(fcinfo, 3, "refill_amount");
  const Micros period = interval_arg(fcinfo, 4, "refill_period");
  const Limit limit = bucket_by_period(kind, capacity, amount, period);
  per_second = amount * 1e6 / static_cast<double>(period);
  return limit;
}

Limit window_limit(Kind kind, int64 max_requests, Micros period) {
  const core::Definition made = kind == Kind::fixed_window ? core::make_fixed_window(max_requests, period) : core::make_sliding_window(kind, max_requests, period);
  if (made.error != DefinitionError::none) {
    raise_definition(made.error, psprintf("max_requests is %lld, the period is %s.", static_cast<long long>(max_requests), period_text(period)));
  }
  return made.limit;
}

Kind style_arg(FunctionCallInfo fcinfo, int position) {
  const std::string_view style = text_arg(fcinfo, position, "style");
  Kind kind = Kind::sliding_window_log;
  if (style_from_text(style, kind)) return kind;
  raise_invalid("unknown style of a sliding window", psprintf("The style is \"%s\".", shown(style)), "Styles are log, gcra and counter.");
}

void anchor_arg(FunctionCallInfo fcinfo, int position, Limit& limit) {
  if (is_null(fcinfo, position)) return;
  const TimestampTz anchor = PG_GETARG_TIMESTAMPTZ(position);
  if (limit.algorithm() != Algorithm::fixed_window && limit.algorithm() != Algorithm::two_counter) {
    raise_invalid("only fixed windows and sliding windows of style counter have an anchor", "An anchor is given.", "Leave the anchor out.");
  }
  if (TIMESTAMP_NOT_FINITE(anchor)) raise_invalid("anchor must be finite", "The anchor is infinite.", "Give an instant such as '1970-01-01 00:00+00'.");
  limit = core::anchored_at(limit, anchor);
}

void storage_arg(FunctionCallInfo fcinfo, int position) {
  const std::string_view storage = text_arg(fcinfo, position, "storage");
  if (storage != "table") raise_invalid("unknown storage", psprintf("The storage is \"%s\".", shown(storage)), "This version stores limits in a table: storage => 'table'.");
}

Inherit inherit_arg(FunctionCallInfo fcinfo, int position) {
  const std::string_view text = text_arg(fcinfo, position, "inherit");
  Inherit inherit = Inherit::consumed;
  if (inherit_from_text(text, inherit)) return inherit;
  raise_invalid("unknown mode of inheritance", psprintf("inherit is \"%s\".", shown(text)), "Modes are consumed, as_is, proportional, additive and reset.");
}

// The last six arguments of every register_ function: keyed, storage, shadow, replace, inherit, max_keys.
Wanted common_args(FunctionCallInfo fcinfo, int first) {
  Wanted wanted;
  wanted.name = name_arg(fcinfo, 0);
  check_not_reserved(wanted.name);
  wanted.keyed = bool_arg(fcinfo, first, "keyed");
  storage_arg(fcinfo, first + 1);
  wanted.shadow = bool_arg(fcinfo, first + 2, "shadow");
  wanted.replace = bool_arg(fcinfo, first + 3, "replace");
  wanted.inherit = inherit_arg(fcinfo, first + 4);
  wanted.max_keys = max_keys_arg(fcinfo, first + 5, wanted.keyed);
  return wanted;
}

Datum register_bucket(FunctionCallInfo fcinfo, Kind kind, const char* function) {
  check_may_write(function);
  Wanted wanted = common_args(fcinfo, 5);
  wanted.limit = bucket_args(fcinfo, kind, wanted.refill_per_second);
  PG_RETURN_BOOL(define(wanted));
}

// The decision of a call that brings its definition along.
Datum acquire_ad_hoc(FunctionCallInfo fcinfo, const Limit& limit, double per_second, int cost, int key) {
  Wanted wanted;
  wanted.name = name_arg(fcinfo, 0);
  check_not_reserved(wanted.name);
  wanted.limit = limit;
  wanted.keyed = wanted.ad_hoc = wanted.replace = true;
  wanted.refill_per_second = per_second;
  Call call{};
  call.name = wanted.name;
  call.amount = float_arg(fcinfo, cost, "cost");
  call.key = key_arg(fcinfo, key);
  call.rule = CostRule::takes;
  checked_units(limit, pnstrdup(wanted.name.data(), wanted.name.size()), call.amount, call.rule);
  resolve_with(call, *define_ad_hoc(wanted));
  return decision_datum(fcinfo, call, counted(call, acquire_bucket(call)));
}

Datum acquire_ad_hoc_bucket(FunctionCallInfo fcinfo, Kind kind, const char* function) {
  check_may_write(function);
  const double per_second = float_arg(fcinfo, 2, "refill_per_second");
  return acquire_ad_hoc(fcinfo, bucket_at_rate(kind, float_arg(fcinfo, 1, "capacity"), per_second), per_second, 3, 4);
}

}  // namespace

SQL_FUNCTION(taskq_register_token_bucket) { return register_bucket(fcinfo, Kind::token_bucket, "register_token_bucket"); }

SQL_FUNCTION(taskq_register_leaky_bucket) { return register_bucket(fcinfo, Kind::leaky_bucket, "register_leaky_bucket"); }

SQL_FUNCTION(taskq_register_sliding_window) {
  check_may_write("register_sliding_window");
  Wanted wanted = common_args(fcinfo, 5);
  wanted.limit = window_limit(style_arg(fcinfo, 3), int_arg(fcinfo, 1, "max_requests"), interval_arg(fcinfo, 2, "period"));
  anchor_arg(fcinfo, 4, wanted.limit);
  PG_RETURN_BOOL(define(wanted));
}

SQL_FUNCTION(taskq_register_fixed_window) {
  check_may_write("register_fixed_window");
  Wanted wanted = common_args(fcinfo, 4);
  wanted.limit = window_limit(Kind::fixed_window, int_arg(fcinfo, 1, "max_requests"), interval_arg(fcinfo, 2, "period"));
  anchor_arg(fcinfo, 3, wanted.limit);
  PG_RETURN_BOOL(define(wanted));
}

SQL_FUNCTION(taskq_acquire_token_bucket) { return acquire_ad_hoc_bucket(fcinfo, Kind::token_bucket, "acquire_token_bucket"); }

SQL_FUNCTION(taskq_acquire_leaky_bucket) { return acquire_ad_hoc_bucket(fcinfo, Kind::leaky_bucket, "acquire_leaky_bucket"); }

SQL_FUNCTION(taskq_acquire_sliding_window) {
  check_may_write("acquire_sliding_window");
  const Limit limit = window_limit(style_arg(fcinfo, 3), int_arg(fcinfo, 1, "max_requests"), interval_arg(fcinfo, 2, "period"));
  return acquire_ad_hoc(fcinfo, limit, 0, 4, 5);
}

SQL_FUNCTION(taskq_acquire_fixed_window) {
  check_may_write("acquire_fixed_window");
  const Limit limit = window_limit(Kind::fixed_window, int_arg(fcinfo, 1, "max_requests"), interval_arg(fcinfo, 2, "period"));
  return acquire_ad_hoc(fcinfo, limit, 0, 3, 4);
}

SQL_FUNCTION(taskq_drop_rate_limit) {
  check_may_write("drop_rate_limit");
  Call call{};
  call.name = name_arg(fcinfo, 0);
  const Definition* definition = find_definition(call.name);
  if (definition == nullptr) raise_unknown(call.name);
  const Definition dropped = *definition;
  drop_definition(dropped);
  PG_RETURN_VOID();
}

}  // namespace taskq::pg
