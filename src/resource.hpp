// What a name means where a call takes both rate limits and reservations: each kind has names of its own, and one name may be both.
#pragma once

#include <string_view>

#include "pg.hpp"

namespace taskq::pg {

enum class ResourceKind : uint8 { rate_limit, reservation };

const char* resource_kind_text(ResourceKind kind);  // "rate_limit" or "reservation"

// The kind that `wanted` says (empty: whatever there is). If both are there, whoever `names_holder` (a job or a worker) means the
// reservation. Raises 42704 if there is none, 42P08 if it stays unclear, 22023 if `wanted` is no kind.
ResourceKind resource_kind(std::string_view name, std::string_view wanted, bool names_holder);

}  // namespace taskq::pg
