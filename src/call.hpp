// One call as the user makes it: on which limit and key, for what cost. Resolving it checks all of that against the definition.
#pragma once

#include <string_view>

#include "definitions.hpp"

#include "pg.hpp"

namespace taskq::pg {

enum class CostRule : uint8 {
  none,      // the call has no cost
  takes,     // 0 < cost <= the most the limit can ever admit
  gives,     // 0 < cost
  may_be_0   // 0 <= cost
};

struct Call {
  Definition definition;
  std::string_view name;
  std::string_view key;
  double amount = 0;  // as given
  CostRule rule = CostRule::none;
  int64 cost = 0;     // in units of the limit
  uint64 generation = 0;  // of all definitions, when this one was looked up
  ratelimit::Micros patience = ratelimit::kNever;  // waits for others' rows at most so long, if the setting allows it
};

// Whether buckets of the limit have such a key: a keyed limit needs one, the others take none, an ad-hoc limit takes either.
bool takes_key(const Definition& definition, std::string_view key);

// Looks the definition up (again) and checks key and cost. Raises 42704 for an unknown name, 22023 for anything out of range.
void resolve(Call& call);

// The same for a definition that is already in call.definition.
void resolve_with(Call& call, const Definition& definition);

// `amount` in units of the limit. Raises 22023 as resolve does.
int64 checked_units(const ratelimit::Limit& limit, const char* limit_name, double amount, CostRule rule);

}  // namespace taskq::pg
