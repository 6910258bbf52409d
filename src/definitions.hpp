// Definitions, cached per backend by name: an acquire reads one row, the bucket, not two. A change committed anywhere is
// seen by the next call, because relations() takes in invalidations first.
#pragma once

#include <string_view>

#include "taskq_ratelimit/change.hpp"
#include "taskq_ratelimit/limit.hpp"

#include "pg.hpp"

namespace taskq::pg {

constexpr int max_name_bytes = 255;
constexpr int max_key_bytes = 1024;

struct Definition {
  char name[max_name_bytes + 1];
  int32 limit_id;
  int32 version;
  ratelimit::Limit limit;
  bool keyed;
  bool shadow;
  bool ad_hoc;
  TimestampTz paused_until;  // of the whole limit; -infinity when not paused
  int32 max_keys;            // 0: what the setting says
};

// The definition of `name` as committed now (or changed by this transaction), or nullptr. Valid until the next call into the server.
const Definition* find_definition(std::string_view name);

// Makes the next look-up of every name read the table.
void forget_definitions();

// A definition that has been replaced, and how the bucket's state is to be carried over to the next version.
struct FormerDefinition {
  ratelimit::Limit limit;
  ratelimit::Inherit inherit;
  TimestampTz ended_at;
};

// Raises an internal error if it is not there: versions are kept as long as a bucket may need them.
FormerDefinition former_definition(int32 limit_id, int32 version);

const char* kind_text(ratelimit::Kind kind);
const char* style_text(ratelimit::Kind kind);  // nullptr unless a sliding window
const char* inherit_text(ratelimit::Inherit inherit);

// False if `text` names none.
bool style_from_text(std::string_view text, ratelimit::Kind& kind);
bool inherit_from_text(std::string_view text, ratelimit::Inherit& inherit);

}  // namespace taskq::pg
