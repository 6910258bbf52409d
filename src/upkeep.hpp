// What sweep() and the background worker that calls it agree upon.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// Bounds a sweep's transaction: it deletes about so many rows of each kind. If it deleted that many there may be more.
constexpr int64 most_per_sweep = 10'000;

}  // namespace taskq::pg
