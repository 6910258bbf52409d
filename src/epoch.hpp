// The two epochs.
#pragma once

#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

// 1970-01-01 lies so many microseconds before 2000-01-01, from which timestamptz counts.
constexpr ratelimit::Micros unix_epoch = ratelimit::Micros{POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE} * USECS_PER_DAY;

}  // namespace taskq::pg
