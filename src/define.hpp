// Writing definitions.
#pragma once

#include <string_view>

#include "definitions.hpp"

#include "pg.hpp"

namespace taskq::pg {

// A definition as asked for. What a user wrote is kept beside what it means, for the table.
struct Wanted {
  std::string_view name;
  ratelimit::Limit limit;
  bool keyed = false;
  bool shadow = false;
  bool ad_hoc = false;
  bool replace = false;
  ratelimit::Inherit inherit = ratelimit::Inherit::consumed;
  double refill_per_second = 0;  // buckets
  int32 max_keys = 0;            // 0: what the setting says
};

// Registers `wanted`. True if anything was written, false if the same definition was there already. Raises 42710 if another one is and
// `replace` is not set.
bool define(const Wanted& wanted);

// The definition for an ad-hoc call: registered if new, replaced (what was used stays used) if another ad-hoc call defined it
// differently. Raises 42710 if the name was registered with another definition.
const Definition* define_ad_hoc(const Wanted& wanted);

// Sets or (-infinity) ends the pause of a whole limit.
void pause_limit_until(const Definition& definition, TimestampTz until);

void drop_definition(const Definition& definition);

}  // namespace taskq::pg
