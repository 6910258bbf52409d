// The handle of a group: a jsonb that says what the group took, for release_all. A job may keep it with its own data.
#pragma once

#include "decision_row.hpp"
#include "group.hpp"

#include "pg.hpp"

namespace taskq::pg {

Datum handle_datum(const GroupRequest* requests, int count);

struct HeldSlot {
  std::string_view name;
  std::string_view key;
  int32 index;
  int64 fence;
};

// In the order in which they were written, which is that of the requests.
struct Handle {
  HeldSlot* slots = nullptr;
  int slot_count = 0;
  GivenDecision* decisions = nullptr;
  int decision_count = 0;
};

// Reads it back. Raises 22023 if it is no handle.
Handle handle_arg(FunctionCallInfo fcinfo, int position);

}  // namespace taskq::pg
