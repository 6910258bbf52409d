// Giving back what a decision took, or a part of it, once.
#pragma once

#include "decision_row.hpp"

#include "pg.hpp"

namespace taskq::pg {

// Replaces the cost of the decision by `actual` (0: gives all of it back). Returns how much was given back, negative if more was debited;
// 0 if the decision took nothing or was refunded or settled before. Raises 42704 and 22023 as acquire does, 55P03 if the bucket is in use.
double settle_once(const GivenDecision& given, double actual);

}  // namespace taskq::pg
