#include "stats_table.hpp"

#include "clock.hpp"
#include "settings.hpp"

#include "pg.hpp"

namespace taskq::pg {

constinit StatsTable* stats_table = nullptr;
constinit bool stats_were_preloaded = false;

namespace {

constexpr const char* title = "taskq_ratelimit stats";

struct Entry {
  StatsKey key;
  pg_atomic_uint64 counts[counters];
  pg_atomic_uint64 last_denied_at;
  TimestampTz reset_at;
};

// Where this backend has found an entry. Entries stay where they are until one is removed.
struct Place {
  StatsKey key;
  Entry* entry;
  uint64 removals;
};

constinit HTAB* entries = nullptr;
constinit Place places[16]{};
constinit shmem_request_hook_type next_request = nullptr;
constinit shmem_startup_hook_type next_startup = nullptr;

void request() {
  if (next_request != nullptr) next_request();
  RequestAddinShmemSpace(add_size(MAXALIGN(sizeof(StatsTable)), hash_estimate_size(stats_entries, sizeof(Entry))));
  RequestNamedLWLockTranche(title, 1);
}

void start() {
  if (next_startup != nullptr) next_startup();
  bool found;
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  stats_table = static_cast<StatsTable*>(ShmemInitStruct(title, sizeof(StatsTable), &found));
  if (!found) {
    stats_table->lock = &GetNamedLWLockTranche(title)->lock;
    stats_table->removals = 0;
    pg_atomic_init_u64(&stats_table->uncounted, 0);
  }
  HASHCTL control{};
  control.keysize = sizeof(StatsKey);
  control.entrysize = sizeof(Entry);
  entries = ShmemInitHash("taskq_ratelimit stats entries", stats_entries, stats_entries, &control, HASH_ELEM | HASH_BLOBS);
  LWLockRelease(AddinShmemInitLock);
}

Entry* find(const StatsKey& key) {
  Place& place = places[static_cast<uint32>(key.id) % lengthof(places)];
  if (place.entry != nullptr && place.removals == stats_table->removals && place.key == key) return place.entry;
  place = {.key = key, .entry = static_cast<Entry*>(hash_search(entries, &key, HASH_FIND, nullptr)), .removals = stats_table->removals};
  return place.entry;
}

// The server's table would go on growing into memory that is meant for others.
bool is_full() { return hash_get_num_entries(entries) >= stats_entries; }

void zero(Entry& entry, TimestampTz reset_at) {
  for (auto& counter : entry.counts) pg_atomic_write_u64(&counter, 0);
  pg_atomic_write_u64(&entry.last_denied_at, static_cast<uint64>(DT_NOBEGIN));
  entry.reset_at = reset_at;
}

// nullptr if there is no room. REQUIRES: the lock is held exclusively.
Entry* find_or_make(const StatsKey& key) {
  if (Entry* entry = find(key)) return entry;
  if (is_full()) return nullptr;
  auto* entry = static_cast<Entry*>(hash_search(entries, &key, HASH_ENTER_NULL, nullptr));
  if (entry == nullptr) return nullptr;
  for (auto& counter : entry->counts) pg_atomic_init_u64(&counter, 0);
  pg_atomic_init_u64(&entry->last_denied_at, 0);
  zero(*entry, DT_NOBEGIN);
  return entry;
}

void add(Entry& entry, Counter counter) {
  pg_atomic_fetch_add_u64(&entry.counts[static_cast<int>(counter)], 1);
  if (counter == Counter::allowed) return;
  if (counter == Counter::shadow) return add(entry, Counter::allowed);
  pg_atomic_write_u64(&entry.last_denied_at, static_cast<uint64>(clock_now()));
}

Stats copy_of(Entry& entry) {
  Stats copy{.key = entry.key, .counts = {}, .last_denied_at = 0, .reset_at = entry.reset_at};
  for (int i = 0; i < counters; ++i) copy.counts[i] = pg_atomic_read_u64(&entry.counts[i]);
  copy.last_denied_at = static_cast<TimestampTz>(pg_atomic_read_u64(&entry.last_denied_at));
  return copy;
}

}  // namespace

void register_stats() {
  if (!process_shared_preload_libraries_in_progress) return;
  stats_were_preloaded = true;
  if (stats_entries == 0) return;
  next_request = shmem_request_hook;
  shmem_request_hook = request;
  next_startup = shmem_startup_hook;
  shmem_startup_hook = start;
}

void count(const StatsKey& key, Counter counter) {
  LWLockAcquire(stats_table->lock, LW_SHARED);
  Entry* entry = find(key);
  if (entry == nullptr && !is_full()) {
    LWLockRelease(stats_table->lock);
    LWLockAcquire(stats_table->lock, LW_EXCLUSIVE);
    entry = find_or_make(key);
  }
  if (entry != nullptr) add(*entry, counter);
  LWLockRelease(stats_table->lock);
  if (entry == nullptr) pg_atomic_fetch_add_u64(&stats_table->uncounted, 1);
}

int stats_in_use() {
  LWLockAcquire(stats_table->lock, LW_SHARED);
  const auto in_use = static_cast<int>(hash_get_num_entries(entries));
  LWLockRelease(stats_table->lock);
  return in_use;
}

Stats* all_stats(int& number) {
  LWLockAcquire(stats_table->lock, LW_SHARED);
  const auto most = static_cast<Size>(hash_get_num_entries(entries));
  auto* copies = static_cast<Stats*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(Stats) * (most + 1)));
  HASH_SEQ_STATUS scan;
  hash_seq_init(&scan, entries);
  number = 0;
  while (auto* entry = static_cast<Entry*>(hash_seq_search(&scan))) copies[number++] = copy_of(*entry);
  LWLockRelease(stats_table->lock);
  return copies;
}

void zero_stats(const StatsKey& key) {
  LWLockAcquire(stats_table->lock, LW_EXCLUSIVE);
  if (Entry* entry = find(key)) zero(*entry, clock_now());
  LWLockRelease(stats_table->lock);
}

void remove_stats(const StatsKey& key) {
  LWLockAcquire(stats_table->lock, LW_EXCLUSIVE);
  hash_search(entries, &key, HASH_REMOVE, nullptr);
  ++stats_table->removals;
  LWLockRelease(stats_table->lock);
}

}  // namespace taskq::pg
