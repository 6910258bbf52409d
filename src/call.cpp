#include "call.hpp"

#include "errors.hpp"
#include "relations.hpp"
#include "taskq_ratelimit/amount.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Limit;

namespace {

void check_key(const Definition& definition, std::string_view key) {
  if (takes_key(definition, key)) return;
  if (definition.keyed) {
    raise_invalid(psprintf("rate limit \"%s\" needs a key", definition.name), "It is keyed, and the key is empty.",
                  "Say whom the limit applies to: key => '...'.");
  }
  raise_invalid(psprintf("rate limit \"%s\" takes no key", definition.name), psprintf("The key is \"%s\".", shown(key)),
                "Register the limit with keyed => true, or leave the key out.");
}

bool is_in_range(double amount, CostRule rule) {
  return ratelimit::is_finite(amount) && (rule == CostRule::may_be_0 ? amount >= 0 : amount > 0);
}

const char* cost_hint(CostRule rule) {
  switch (rule) {
    case CostRule::takes: return "To look without spending use taskq.peek() or taskq.preview().";
    case CostRule::may_be_0: return "Give what was really used; 0 gives everything back.";
    default: return "Give an amount such as 1.";
  }
}

const char* cost_given(double amount) { return psprintf("The cost is %s.", number_text(amount)); }

double most_of(const Limit& limit) { return ratelimit::to_amount(limit, limit.capacity * limit.d); }

}  // namespace

bool takes_key(const Definition& definition, std::string_view key) {
  return definition.ad_hoc || definition.keyed != key.empty();
}

int64 checked_units(const Limit& limit, const char* limit_name, double amount, CostRule rule) {
  if (!is_in_range(amount, rule)) {
    raise_invalid(rule == CostRule::may_be_0 ? "cost must be a finite number, 0 or above" : "cost must be a finite number above 0", cost_given(amount),
                  cost_hint(rule));
  }
  if (limit.window > 0 && !ratelimit::is_whole(amount)) {
    raise_invalid("cost of a window must be a whole number", cost_given(amount), "Windows count calls; for fractions use a token bucket.");
  }
  const int64 units = ratelimit::units(amount, limit.scale);
  if (units == 0 && amount > 0) {
    raise_invalid("cost is below the smallest unit of the limit", cost_given(amount),
                  psprintf("Limit \"%s\" counts in steps of %s.", limit_name,
                           number_text(1.0 / static_cast<double>(ratelimit::power_of_ten(limit.scale)))));
  }
  if (rule == CostRule::takes && (units < 0 || units > limit.most())) {
    raise_invalid("cost is above what the limit can ever admit",
                  psprintf("The cost is %s, limit \"%s\" admits %s at most.", number_text(amount), limit_name, number_text(most_of(limit))),
                  "Such a call could never succeed: split it, or raise the limit.");
  }
  return units < 0 ? ratelimit::kMaxProduct : units;
}

void resolve_with(Call& call, const Definition& definition) {
  call.definition = definition;
  call.generation = cache_generation;
  check_key(call.definition, call.key);
  if (call.rule == CostRule::none) return;
  call.cost = checked_units(call.definition.limit, call.definition.name, call.amount, call.rule);
}

void resolve(Call& call) {
  const Definition* definition = find_definition(call.name);
  if (definition == nullptr) raise_unknown(call.name);
  resolve_with(call, *definition);
}

}  // namespace taskq::pg
