// Request ids: UUID version 7 (RFC 9562), ordered by time.
#pragma once

#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

// A new id for the instant `at` (microseconds since 2000-01-01). Raises an error if the system has no randomness to give.
pg_uuid_t new_uuid(ratelimit::Micros at);

bool same_uuid(const pg_uuid_t& a, const pg_uuid_t& b);

}  // namespace taskq::pg
