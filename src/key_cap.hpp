// The cap on the keys of one limit or one reservation, so that whoever makes up keys cannot fill the disk. Asked only when the first
// row of a key is about to be made; a call on a key that is there never comes here.
//
// Nobody keeps a count: it would be one hot row for all. So keys are counted along the primary key, and a backend remembers what it
// found:
// - a table too small to hold so many rows has room, whoever they belong to;
// - with room left, the next keys are made without counting again, a 64th of the room at most (but a 1024th of the cap at least);
// - at the cap, each new key takes the place of an idle one that is deleted in the same transaction; above it, of two;
// - where none was idle, all new keys are turned away for a while, without looking again.
// The count sees what others have inserted and not committed yet. It misses what is made behind its back while it walks, and what
// others may still make uncounted: each other session that makes keys at the same time exceeds the cap by one key, or by a 64th of it
// if that is more.
//
// No snapshot takes part, so nothing here raises a serialization failure, and nothing waits.
#pragma once

#include <string_view>

#include "definitions.hpp"
#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

// The keys of one limit or reservation: rows of a table whose primary key begins with (owner, key). Each row begins with its owner.
struct KeySpace {
  OpenTable& rows;
  int32 owner;
  int32 most;         // keys; 0: no cap
  Size row_bytes;     // of the smallest row, without its header
  std::string_view (*key_of)(HeapTuple row);
};

// What this backend remembers of one key space.
struct KeyMemory {
  Oid table;
  int32 owner;
  int32 most;
  uint64 generation;         // of all caches; 0: nothing is remembered
  int32 left;                // so many more keys are made before they are counted again,
  TimestampTz counted_again;  // or from then on
  bool full;                 // each in the place of an idle one,
  int32 excess;              // and so many in the place of another one, too
  TimestampTz hopeless_until;
  int32 hand_bytes;          // the search for an idle key goes on where the last one ended
  char hand[max_key_bytes];

  std::string_view hand_key() const { return {hand, static_cast<std::size_t>(hand_bytes)}; }
};

// A walk over the keys that have a row which exists or is arriving, in order.
struct KeyWalk {
  KeySpace& space;
  IndexScanDesc scan;
  int32 key_bytes = -1;  // -1: none yet
  char key_text[max_key_bytes]{};

  std::string_view key() const { return {key_text, static_cast<std::size_t>(key_bytes)}; }
};

KeyWalk begin_key_walk(KeySpace& space, std::string_view from);
bool next_key(KeyWalk& walk);
void end_key_walk(const KeyWalk& walk);

// True if the table could not hold so many keys if it were full of the smallest rows.
bool is_below_cap(const KeySpace& space);

// What is remembered, brought up to date: counts if that is due.
KeyMemory& counted_keys(KeySpace& space);

bool is_hopeless(const KeyMemory& memory);
void remember_hand(KeyMemory& memory, std::string_view key);
void remember_hopeless(KeyMemory& memory, TimestampTz started);

// `evict(key)` on one key after the other, from the hand on and around, until it says true.
template <class Evict>
bool evict_one(KeySpace& space, KeyMemory& memory, Evict& evict) {
  bool evicted = false;
  for (int round = 0; round < 2 && !evicted; ++round) {
    const bool around = round == 1;
    KeyWalk walk = begin_key_walk(space, around ? std::string_view{} : memory.hand_key());
    const auto is_done = [&] { return evicted || !next_key(walk) || (around && walk.key() >= memory.hand_key()); };
    while (!is_done()) evicted = evict(walk.key());
    if (evicted) remember_hand(memory, walk.key());
    end_key_walk(walk);
  }
  return evicted;
}

// True if one more key may be made. `evict(key)` deletes what there is of a key if it is idle, without waiting, and says whether it did.
template <class Evict>
bool make_room(KeySpace& space, Evict evict) {
  if (space.most == 0 || is_below_cap(space)) return true;
  KeyMemory& memory = counted_keys(space);
  if (is_hopeless(memory)) return false;
  --memory.left;
  if (!memory.full) return true;
  const TimestampTz started = GetCurrentTimestamp();
  if (!evict_one(space, memory, evict)) return remember_hopeless(memory, started), false;
  if (memory.excess > 0 && evict_one(space, memory, evict)) --memory.excess;
  return true;
}

}  // namespace taskq::pg
