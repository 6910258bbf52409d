// Statistics of what is no more: entries are looked for, and removed, when somebody reads the statistics or sweeps. Numbers are never used
// again, so until then they only take room.
#pragma once

namespace taskq::pg {

// Removes the entries of dropped limits, reservations and databases. Leaves those of a table that somebody is just writing for the
// next time: never waits. Does nothing if no statistics are kept.
void remove_stats_of_dropped();

}  // namespace taskq::pg
