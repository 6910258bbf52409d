// Where "now" comes from: microseconds since 2000-01-01, as timestamptz stores them. Moves within a transaction.
#pragma once

#include "settings.hpp"
#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

inline ratelimit::Micros clock_now() { return test_clock_is_set ? test_clock_time : GetCurrentTimestamp(); }

}  // namespace taskq::pg
