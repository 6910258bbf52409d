// The rows of taskq.rate_limit_window_entries: what a sliding window of style log has admitted.
//
// Entries belong to their bucket (bucket_store.hpp, rule 6): whoever writes here has replaced the bucket's row in the same
// transaction. Readers may come without that: they then read entries of a state that may just have become old, which shows
// as `missing` or as a superseded bucket row, and they start over.
#pragma once

#include "taskq_ratelimit/log.hpp"

#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct StoredEntry {
  ratelimit::log::Entry entry;
  ItemPointerData place;
  pg_uuid_t request_id;
};

// Access for the core's log functions. `missing` is set when an entry that the state promises is not there.
struct Entries {
  OpenTable* table = nullptr;
  int64 bucket_id = 0;
  bool missing = false;
  int probes = 0;
  // Set for a log whose units were all taken at one time and are not stored yet (a definition has just changed).
  ratelimit::Micros all_at = ratelimit::kNever;

  ratelimit::log::Entry reaching(int64 unit);
};

// The first entry with upto >= unit (forward) or the last with upto <= unit (backward). False if there is none.
bool find_entry(OpenTable& table, int64 bucket_id, int64 unit, ScanDirection direction, StoredEntry& found);

// Entries with from < upto <= to, oldest first, at most `most`. Returns how many were found.
int list_entries(OpenTable& table, int64 bucket_id, int64 from, int64 to, StoredEntry* list, int most);

void add_entry(OpenTable& table, int64 bucket_id, const ratelimit::log::Entry& entry, const pg_uuid_t& request_id);
void delete_entry(OpenTable& table, const StoredEntry& entry);
void change_entry(OpenTable& table, int64 bucket_id, const StoredEntry& entry, const ratelimit::log::Entry& changed);

int64 next_bucket_id();

}  // namespace taskq::pg
