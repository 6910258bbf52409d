#include "refund.hpp"

#include "args.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "taskq_ratelimit/amount.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Limit;
using ratelimit::Micros;

namespace {

// When a refund of this decision could not give back anything any more.
TimestampTz useless_at(const Limit& limit, const ShownDecision& shown) {
  const bool never = limit.never_refills();
  const Micros life = limit.window > 0 ? limit.window * 2 : ratelimit::ceil_div(limit.capacity * limit.d, never ? 1 : limit.n);
  return never ? DT_NOEND : ratelimit::saturating_add(shown.decided_at + shown.delay, life);
}

bool note_once(const Call& call, const ShownDecision& shown) {
  Datum values[] = {Int32GetDatum(call.definition.limit_id),
                    PointerGetDatum(cstring_to_text_with_len(call.key.data(), static_cast<int>(call.key.size()))),
                    TimestampTzGetDatum(shown.decided_at), Float8GetDatum(shown.remaining),
                    TimestampTzGetDatum(useless_at(call.definition.limit, shown))};
  Oid types[] = {INT4OID, TEXTOID, TIMESTAMPTZOID, FLOAT8OID, TIMESTAMPTZOID};
  return run_as_owner("INSERT INTO taskq.rate_limit_refunds (limit_id, key, decided_at, remaining, useless_at) "
                      "VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING", 5, types, values, nullptr) == 1;
}

// What acquire never answers cannot be taken back.
void check_shown(const ShownDecision& shown) {
  const bool plausible = ratelimit::is_finite(shown.remaining) && shown.remaining >= 0 && !TIMESTAMP_NOT_FINITE(shown.decided_at);
  if (plausible) return;
  raise_invalid("this is not a decision of acquire",
                psprintf("remaining is %s, decided_at is %s.", number_text(shown.remaining), timestamptz_to_str(shown.decided_at)),
                "Pass the decision as it was answered.");
}

}  // namespace

double settle_once(const GivenDecision& given, double actual) {
  Call call{};
  call.name = given.name;
  call.key = given.key;
  call.amount = actual;
  call.rule = CostRule::may_be_0;
  check_key_length(call.key);
  resolve(call);
  checked_units(call.definition.limit, call.definition.name, given.shown.cost, CostRule::gives);
  check_shown(given.shown);
  if (!given.took) return 0;
  // Whoever notes the same decision holds the bucket: so a note that a snapshot does not show is never met half-way.
  if (IsolationUsesXactSnapshot()) hold_bucket(call);
  if (!note_once(call, given.shown)) return 0;
  return settle_bucket(call, given.shown);
}

}  // namespace taskq::pg
