// http_headers: a decision as HTTP response fields.
#include <cmath>

#include "args.hpp"
#include "decision_row.hpp"
#include "definitions.hpp"
#include "epoch.hpp"
#include "sql_function.hpp"
#include "taskq_ratelimit/http_headers.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::HeaderInput;
using ratelimit::Limit;
using ratelimit::Micros;

namespace {

// The window of the policy; of a bucket, the time of a full refill.
Micros policy_window(const Limit& limit) {
  if (limit.window > 0) return limit.window;
  return limit.n == 0 ? 0 : ratelimit::meter::time_to_pay(limit, limit.capacity * limit.d);
}

// Time until one more whole unit can be had, where the decision tells.
Micros more_after(const Limit& limit, const GivenDecision& given) {
  if (limit.kind == ratelimit::Kind::fixed_window) return given.shown.reset_after;
  if (limit.algorithm() != ratelimit::Algorithm::meter || limit.n == 0 || given.shown.remaining >= given.quota) return 0;
  const double grains = static_cast<double>(limit.d) * static_cast<double>(ratelimit::power_of_ten(limit.scale));
  const double missing = (std::floor(given.shown.remaining) + 1 - given.shown.remaining) * grains / static_cast<double>(limit.n);
  return missing > 9e15 ? 0 : static_cast<Micros>(std::ceil(missing));
}

}  // namespace

SQL_FUNCTION(taskq_http_headers) {
  const GivenDecision given = given_decision(fcinfo, 0);
  HeaderInput in{.name = given.name,
                 .allowed = given.allowed,
                 .quota = given.quota,
                 .remaining = given.shown.remaining,
                 .retry_after = given.retry_after,
                 .reset_after = given.shown.reset_after,
                 .decided_at = given.shown.decided_at + unix_epoch};
  if (const Definition* definition = find_definition(given.name)) {
    in.window = policy_window(definition->limit);
    in.more_after = more_after(definition->limit, given);
  }
  StringInfoData json;
  initStringInfo(&json);
  ratelimit::http_headers(in, [&](std::string_view field, std::string_view value) {
    appendStringInfoString(&json, json.len == 0 ? "{" : ", ");
    escape_json(&json, pnstrdup(field.data(), field.size()));
    appendStringInfoString(&json, ": ");
    escape_json(&json, pnstrdup(value.data(), value.size()));
  });
  appendStringInfoString(&json, json.len == 0 ? "{}" : "}");
  return DirectFunctionCall1(jsonb_in, CStringGetDatum(json.data));
}

}  // namespace taskq::pg
