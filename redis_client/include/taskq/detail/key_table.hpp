// The buckets of one keyed limit in memory: a hash table in shards, each under a spin lock, so that looking up and spending is one step.
//
// A key costs one cache line and a part of one, as long as it has at most 15 bytes and nobody has refunded, reserved, charged or paused it. Keys are
// created only by calls that take something. A key is forgotten only if that changes nothing: it is full and not paused. So an
// offender never comes back with a fresh budget; where all keys of a full table are in use, new ones are denied (too_many_keys).
// Thread-safety: all functions, any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "taskq/detail/bucket.hpp"
#include "taskq/detail/hot_pair.hpp"
#include "taskq/detail/short_text.hpp"

namespace taskq::detail {

class SpinLock {
 public:
  void lock() noexcept {
    for (Backoff backoff; held_.exchange(true, std::memory_order_acquire); backoff.pause()) {
    }
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  std::atomic<bool> held_ = false;
};

class KeyTable {
 public:
  // max_keys 0: no bound.
  KeyTable(const LimitDefinition& definition, const Clock& clock, std::size_t max_keys);
  ~KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // The same as run() with Op::acquire; the short way for keys that are known.
  Answer acquire(std::string_view key, std::int64_t cost);

  // REQUIRES: the key is one (check_key).
  Answer run(const Request& request);

  // Forgets the key if it is full. True if it is not there now.
  bool forget(std::string_view key);

  bool contains(std::string_view key);
  bool remove(std::string_view key);
  std::size_t clear();
  std::size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

  // Forgets keys that are full and that nobody has tried to spend from for `idle` or longer. Answers how many.
  std::size_t sweep(Micros idle);

  // Least recently used first.
  std::vector<std::string> keys();

  const LimitDefinition& definition() const noexcept { return definition_; }

 private:
  struct Slot;
  struct Shard;
  struct Candidate;

  Answer take(const Request& request, std::uint64_t hash);
  bool take_short(Slot& slot, std::int64_t cost, Micros now, Answer& answer) const;
  Answer take_from(Slot& slot, const Request& request, Micros now);
  Answer run_on(Slot& slot, const Request& request, Micros now);
  Answer run_on_nobody(const Request& request);
  Answer refuse() const noexcept;
  bool take_seat();
  bool make_room();
  std::vector<Candidate> full_keys(Micros& first_full_at);
  Bucket bucket_of(const Slot& slot) const;
  Micros full_at(const Slot& slot, Micros now) const;
  Shard& shard_of(std::uint64_t hash) noexcept;
  template <class Goes>
  bool erase(std::string_view key, Goes&& goes);

  const LimitDefinition definition_;
  const Clock& clock_;
  const std::size_t max_keys_;
  const std::uint64_t seed_;
  std::unique_ptr<Shard[]> shards_;
  std::atomic<std::size_t> size_ = 0;

  // Until `no_room_until_` no key becomes full, unless something was given back or a key came since (`changes_`), or the clock was set back.
  std::mutex room_;
  std::atomic<std::uint64_t> changes_ = 0;
  std::uint64_t searched_after_ = 0;
  Micros searched_at_ = 0;
  Micros no_room_until_ = kNotPaused;
};

}  // namespace taskq::detail
