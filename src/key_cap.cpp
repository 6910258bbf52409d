#include "key_cap.hpp"

#include <cstring>

#include "row_chain.hpp"
#include "settings.hpp"
#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

constexpr Micros remembered_for = 60 * 1'000'000;
constexpr Micros shortest_hopeless = 1'000'000;
constexpr int64 most_excess = 1000;     // seen by one count
constexpr Micros rest_per_search = 16;  // so searching takes a small part of the time, however many keys there are

constinit KeyMemory memories[32]{};

KeyMemory& memory_of(const KeySpace& space) {
  const Oid table = RelationGetRelid(space.rows.table);
  KeyMemory& memory = memories[(static_cast<uint32>(space.owner) + table) % lengthof(memories)];
  const bool known = memory.table == table && memory.owner == space.owner && memory.most == space.most &&
                     memory.generation == cache_generation;
  if (known) return memory;
  memory = KeyMemory{};
  memory.table = table;
  memory.owner = space.owner;
  memory.most = space.most;
  memory.generation = cache_generation;
  return memory;
}

int32 owner_of(HeapTuple row) { return *reinterpret_cast<const int32*>(GETSTRUCT(row)); }

bool has_row(KeyWalk& walk, ItemPointerData place, std::string_view key) {
  const KeySpace& space = walk.space;
  const FoundRow found = newest_version(space.rows.table, place, false,
                                        [&](HeapTuple row) { return owner_of(row) == space.owner && space.key_of(row) == key; });
  if (found.row == nullptr) return false;
  heap_freetuple(found.row);
  return true;
}

int64 count_keys(KeySpace& space, int64 upto) {
  int64 count = 0;
  KeyWalk walk = begin_key_walk(space, {});
  while (count < upto && next_key(walk)) ++count;
  end_key_walk(walk);
  return count;
}

void count_again(KeySpace& space, KeyMemory& memory) {
  const int64 count = count_keys(space, int64{space.most} + most_excess);
  const int32 room = count >= space.most ? 0 : static_cast<int32>(space.most - count);
  const int32 least = space.most / 1024 > 1 ? space.most / 1024 : 1;
  const int32 share = room / 64 > least ? room / 64 : least;
  memory.full = room == 0;
  memory.excess = memory.full ? static_cast<int32>(count - space.most) : 0;
  memory.left = memory.full || share < room ? share : room;
  memory.counted_again = GetCurrentTimestamp() + remembered_for;
}

}  // namespace

// Keys are not empty: the empty one names the single bucket of those who need no key.
KeyWalk begin_key_walk(KeySpace& space, std::string_view from) {
  ScanKeyData keys[2];
  ScanKeyInit(&keys[0], 1, BTEqualStrategyNumber, F_INT4EQ, Int32GetDatum(space.owner));
  const bool at_start = from.empty();
  const StrategyNumber strategy = at_start ? BTGreaterStrategyNumber : BTGreaterEqualStrategyNumber;
  ScanKeyEntryInitialize(&keys[1], 0, 2, strategy, InvalidOid, C_COLLATION_OID, at_start ? F_TEXT_GT : F_TEXT_GE,
                         PointerGetDatum(cstring_to_text_with_len(from.data(), static_cast<int>(from.size()))));
  IndexScanDesc scan = index_beginscan(space.rows.table, space.rows.key(), SnapshotSelf, 2, 0);
  scan->xs_want_itup = true;
  index_rescan(scan, keys, 2, nullptr, 0);
  return {.space = space, .scan = scan};
}

// Entries of one key lie side by side; once a row of it was met, the others are passed over unread.
bool next_key(KeyWalk& walk) {
  while (ItemPointer place = index_getnext_tid(walk.scan, ForwardScanDirection)) {
    CHECK_FOR_INTERRUPTS();
    bool null;
    const Datum stored = index_getattr(walk.scan->xs_itup, 2, walk.scan->xs_itupdesc, &null);
    text* plain = DatumGetTextPP(stored);  // a copy if it was compressed
    const std::string_view key{VARDATA_ANY(plain), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(plain))};
    const bool same = walk.key_bytes >= 0 && key == walk.key();
    const bool next = !same && key.size() <= sizeof(walk.key_text) && has_row(walk, *place, key);
    if (next) {
      walk.key_bytes = static_cast<int32>(key.size());
      std::memcpy(walk.key_text, key.data(), key.size());
    }
    if (reinterpret_cast<Pointer>(plain) != DatumGetPointer(stored)) pfree(plain);
    if (next) return true;
  }
  return false;
}

void end_key_walk(const KeyWalk& walk) { index_endscan(walk.scan); }

bool is_below_cap(const KeySpace& space) {
  const Size row = MAXALIGN(MAXALIGN(SizeofHeapTupleHeader) + space.row_bytes) + sizeof(ItemIdData);
  const Size rows_per_page = (BLCKSZ - SizeOfPageHeaderData) / row;
  return RelationGetNumberOfBlocks(space.rows.table) * rows_per_page < static_cast<Size>(space.most);
}

KeyMemory& counted_keys(KeySpace& space) {
  KeyMemory& memory = memory_of(space);
  if (is_hopeless(memory)) return memory;
  if (memory.left <= 0 || GetCurrentTimestamp() >= memory.counted_again) count_again(space, memory);
  return memory;
}

bool is_hopeless(const KeyMemory& memory) { return memory.hopeless_until > GetCurrentTimestamp(); }

void remember_hand(KeyMemory& memory, std::string_view key) {
  memory.hand_bytes = static_cast<int32>(key.size());
  std::memcpy(memory.hand, key.data(), key.size());
}

void remember_hopeless(KeyMemory& memory, TimestampTz started) {
  memory.left = 0;
  if (test_clock_is_set) return;  // its time goes as the test wants
  const TimestampTz now = GetCurrentTimestamp();
  memory.hopeless_until = now + ratelimit::larger(shortest_hopeless, rest_per_search * (now - started));
}

}  // namespace taskq::pg
