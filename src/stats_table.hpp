// Counts of decisions in the server's shared memory: one entry per limit or reservation of any database. There only if the library
// is preloaded and taskq_ratelimit.stats_entries is above 0.
//
// Locking: whoever counts holds the table's lock shared and adds atomically; entries are made, zeroed and removed under the lock held
// exclusively. So counts are exact and seen at once. Counting raises nothing, and waits for nothing but that lock, which is held for
// no more than one look-up or one copy of the table.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

enum class Counter : uint8 { allowed, limited, paused, full, too_many_keys, timed_out, shadow };
constexpr int counters = 7;

// `table` is rate_limits or reservations, `id` the primary key there. After DROP and CREATE EXTENSION numbers begin anew, but
// the tables are others.
struct StatsKey {
  Oid database;
  Oid table;
  int32 id;

  bool operator==(const StatsKey&) const = default;
};

struct Stats {
  StatsKey key;
  uint64 counts[counters];
  TimestampTz last_denied_at;  // -infinity: never
  TimestampTz reset_at;        // -infinity: never
};

// Shared by all backends; its lock and entries are found through it.
struct StatsTable {
  LWLock* lock;
  uint64 removals;             // of entries; under the lock
  pg_atomic_uint64 uncounted;  // decisions for which there was no room
};

extern StatsTable* stats_table;      // nullptr: nothing is counted. All functions below REQUIRE that it is not.
extern bool stats_were_preloaded;    // whether it could have been

// Asks the postmaster for the memory. Does nothing unless the library is being preloaded. Call after define_settings().
void register_stats();

// One more; in the table if there is an entry or room for one, else as uncounted.
void count(const StatsKey& key, Counter counter);

// Copies of all entries, palloc'd.
Stats* all_stats(int& number);
int stats_in_use();

// Sets the counts to 0, if there is such an entry.
void zero_stats(const StatsKey& key);

void remove_stats(const StatsKey& key);

}  // namespace taskq::pg
