// The background workers that sweep, if the library is preloaded: a launcher, which starts one worker after the other, and
// these workers, each of which sweeps one database and ends.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

constexpr const char* extension_name = "taskq_ratelimit";

// Asks the postmaster for the launcher. Does nothing unless the library is being preloaded.
void register_sweeper();

}  // namespace taskq::pg
