// What would become of a request, and why, in words.
#pragma once

#include "group.hpp"

#include "pg.hpp"

namespace taskq::pg {

// One row of explain_acquire. REQUIRES: the group has been looked at.
void put_explanation(ReturnSetInfo* result, int position, const GroupRequest& request);

}  // namespace taskq::pg
