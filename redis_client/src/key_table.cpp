#include "taskq/detail/key_table.hpp"

#include <algorithm>
#include <bit>
#include <random>
#include <utility>

#include "taskq/detail/hash.hpp"
#include "taskq/detail/huge_allocator.hpp"

namespace taskq::detail {

using ratelimit::Algorithm;
using ratelimit::Limit;
using ratelimit::Outcome;
using ratelimit::State;

std::uint64_t process_seed() noexcept {
  static const std::uint64_t seed = [] {
    std::random_device device;
    return (std::uint64_t{device()} << 32) | device();
  }();
  return seed;
}

namespace {

constexpr std::size_t kShardBits = 6;
constexpr std::size_t kShards = std::size_t{1} << kShardBits;
constexpr Micros kRetryWhenFull = 1'000'000;  // no promise: somebody else's key has to become full

constexpr bool fits_in_slot(const Limit& limit) noexcept {
  return limit.algorithm() == Algorithm::meter || limit.algorithm() == Algorithm::fixed_window;
}

}  // namespace

// One cache line. `rest`, if there, is the bucket, and `at` and `used` mean nothing.
struct alignas(64) KeyTable::Slot {
  std::uint64_t hash = 0;  // 0: nobody lives here
  Micros at = 0;
  std::int64_t used = 0;
  Micros born = 0;     // when it was made; a fixed window without anchor starts there
  Micros touched = 0;  // when somebody last tried to take something
  std::unique_ptr<Bucket> rest;
  ShortText key;
};

// Open addressing, linear probing, at most three quarters full.
struct alignas(64) KeyTable::Shard {
  SpinLock lock;
  std::size_t count = 0;
  std::vector<Slot, HugeAllocator<Slot>> slots;

  std::size_t mask() const noexcept { return slots.size() - 1; }

  Slot* find(std::uint64_t hash, std::string_view key) noexcept {
    if (slots.empty()) return nullptr;
    for (std::size_t i = hash & mask(); slots[i].hash != 0; i = (i + 1) & mask()) {
      if (slots[i].hash == hash && slots[i].key.view() == key) return &slots[i];
    }
    return nullptr;
  }

  Slot& place(Slot&& slot) noexcept {
    std::size_t i = slot.hash & mask();
    while (slots[i].hash != 0) i = (i + 1) & mask();
    slots[i] = std::move(slot);
    return slots[i];
  }

  void resize(std::size_t size) {
    std::vector<Slot, HugeAllocator<Slot>> old(size);
    old.swap(slots);
    for (Slot& slot : old) {
      if (slot.hash != 0) place(std::move(slot));
    }
  }

  Slot& add(Slot&& slot) {
    if (4 * (count + 1) > 3 * slots.size()) resize(std::max<std::size_t>(4, 2 * slots.size()));
    ++count;
    return place(std::move(slot));
  }

  // Later slots of the same run move up, so that no search ends early.
  void erase(std::size_t hole) noexcept {
    slots[hole] = Slot{};
    --count;
    for (std::size_t i = (hole + 1) & mask(); slots[i].hash != 0; i = (i + 1) & mask()) {
      const std::size_t home = slots[i].hash & mask();
      if (((i - home) & mask()) < ((i - hole) & mask())) continue;
      slots[hole] = std::move(slots[i]);
      slots[i].hash = 0;
      hole = i;
    }
  }

  void shrink() {
    if (count == 0) {
      std::vector<Slot, HugeAllocator<Slot>>().swap(slots);
    } else if (8 * count < slots.size()) {
      resize(std::bit_ceil(2 * count));
    }
  }

  template <class Goes>
  std::size_t erase_if(Goes&& goes) {
    std::size_t erased = 0;
    for (std::size_t i = 0; i < slots.size();) {
      if (slots[i].hash == 0 || !goes(slots[i])) {
        ++i;
        continue;
      }
      erase(i);
      ++erased;
    }
    if (erased > 0) shrink();
    return erased;
  }
};

struct KeyTable::Candidate {
  Micros touched;
  std::string key;
};

KeyTable::KeyTable(const LimitDefinition& definition, const Clock& clock, std::size_t max_keys)
    : definition_(definition), clock_(clock), max_keys_(max_keys), seed_(process_seed()), shards_(new Shard[kShards]) {}

KeyTable::~KeyTable() = default;

KeyTable::Shard& KeyTable::shard_of(std::uint64_t hash) noexcept { return shards_[hash >> (64 - kShardBits)]; }

Answer KeyTable::run(const Request& request) {
  const std::uint64_t h = hash(request.key, seed_) | 1;
  switch (request.op) {
    case Op::acquire:
    case Op::reserve:
    case Op::charge:
    case Op::pause: return take(request, h);
    default: break;
  }
  if (request.op != Op::preview && request.op != Op::peek) changes_.fetch_add(1, std::memory_order_release);
  Shard& shard = shard_of(h);
  const std::lock_guard lock(shard.lock);
  Slot* slot = shard.find(h, request.key);
  return slot != nullptr ? run_on(*slot, request, clock_.now()) : run_on_nobody(request);
}

// For calls that create the key if it is not there.
Answer KeyTable::take(const Request& request, std::uint64_t h) {
  Shard& shard = shard_of(h);
  for (;;) {
    {
      const std::lock_guard lock(shard.lock);
      Slot* known = shard.find(h, request.key);
      const Micros now = clock_.now();
      if (known != nullptr) return take_from(*known, request, now);
      if (take_seat()) {
        if (max_keys_ > 0) changes_.fetch_add(1, std::memory_order_release);
        Slot fresh{.hash = h, .at = now, .used = 0, .born = now, .touched = now, .rest = nullptr, .key = ShortText(request.key)};
        return take_from(shard.add(std::move(fresh)), request, now);
      }
    }
    if (!make_room()) return refuse();
  }
}

Answer KeyTable::acquire(std::string_view key, std::int64_t cost) {
  const std::uint64_t h = hash(key, seed_) | 1;
  Shard& shard = shard_of(h);
  {
    const std::lock_guard lock(shard.lock);
    Answer answer;
    Slot* slot = shard.find(h, key);
    if (slot != nullptr && take_short(*slot, cost, clock_.now(), answer)) return answer;
  }
  check_key(key);
  return take({.op = Op::acquire, .key = key, .cost = cost}, h);
}

// For slots without a bucket. False if that is not possible.
bool KeyTable::take_short(Slot& slot, std::int64_t cost, Micros now, Answer& answer) const {
  const Limit& limit = definition_.limit;
  slot.touched = now;
  if (slot.rest || !fits_in_slot(limit) || ratelimit::clock_was_set_back(slot.at, now)) return false;
  State state{.at = slot.at, .used = slot.used};
  if (limit.algorithm() == Algorithm::fixed_window) {
    state.start = ratelimit::window_holding(slot.at, limit.anchored ? limit.anchor : slot.born, limit.window);
  }
  const Outcome o = limit.algorithm() == Algorithm::meter ? ratelimit::meter::decide(limit, state, now, cost)
                                                          : ratelimit::fixed_window::decide(limit, state, now, cost);
  if (o.decision.allowed) {
    slot.at = o.next.at;
    slot.used = o.next.used;
  }
  answer.decision = o.decision;
  answer.reason = o.decision.allowed ? Reason::ok : Reason::limited;
  cast_shadow(definition_, answer);
  return true;
}

Answer KeyTable::take_from(Slot& slot, const Request& request, Micros now) {
  Answer answer;
  if (request.op == Op::acquire && take_short(slot, request.cost, now, answer)) return answer;
  slot.touched = now;
  return run_on(slot, request, now);
}

// The bucket that a slot without one stands for. It is in the slot's words that a key lives most cheaply.
Bucket KeyTable::bucket_of(const Slot& slot) const {
  const Limit& limit = definition_.limit;
  Bucket bucket(limit, slot.born);
  if (!fits_in_slot(limit)) return bucket;
  bucket.state.at = slot.at;
  bucket.state.used = slot.used;
  if (limit.algorithm() == Algorithm::meter) bucket.state.tail = slot.at;
  else bucket.state.start = ratelimit::window_holding(slot.at, bucket.state.start, limit.window);
  return bucket;
}

Answer KeyTable::run_on(Slot& slot, const Request& request, Micros now) {
  const bool looks = request.op == Op::preview || request.op == Op::peek;
  if (!slot.rest && looks) return bucket_of(slot).run(definition_, request, now);
  if (!slot.rest) slot.rest = std::make_unique<Bucket>(bucket_of(slot));
  return slot.rest->run(definition_, request, now);
}

Answer KeyTable::run_on_nobody(const Request& request) {
  const Micros now = clock_.now();
  return Bucket(definition_.limit, now).run(definition_, request, now);
}

Answer KeyTable::refuse() const noexcept {
  Answer answer{.decision = {.retry_after = kRetryWhenFull, .reset_after = kRetryWhenFull, .decided_at = clock_.now()},
                .reason = Reason::too_many_keys,
                .id = {}};
  cast_shadow(definition_, answer);
  return answer;
}

bool KeyTable::take_seat() {
  if (size_.fetch_add(1, std::memory_order_relaxed) < max_keys_ || max_keys_ == 0) return true;
  size_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

// When forgetting this key would change nothing.
Micros KeyTable::full_at(const Slot& slot, Micros now) const {
  const Request look{.op = Op::peek};
  const Answer answer = slot.rest ? slot.rest->run(definition_, look, now) : bucket_of(slot).run(definition_, look, now);
  const Micros full = ratelimit::saturating_add(answer.decision.decided_at, answer.decision.reset_after);
  return answer.decision.reset_after == 0 && answer.paused_until <= now ? now : ratelimit::larger(full, answer.paused_until);
}

std::vector<KeyTable::Candidate> KeyTable::full_keys(Micros& first_full_at) {
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].lock);
    const Micros now = clock_.now();
    for (const Slot& slot : shards_[i].slots) {
      if (slot.hash == 0) continue;
      const Micros at = full_at(slot, now);
      first_full_at = ratelimit::smaller(first_full_at, at);
      if (at <= now) found.push_back({slot.touched, std::string(slot.key.view())});
    }
  }
  return found;
}

// Forgets the least recently used of the keys that are full: one, or an eighth of the table, so that a crowd of new keys does not
// search the table each. False if none is.
bool KeyTable::make_room() {
  const std::lock_guard room(room_);
  if (size() < max_keys_) return true;
  const std::uint64_t changes = changes_.load(std::memory_order_acquire);
  const Micros now = clock_.now();
  if (changes == searched_after_ && now >= searched_at_ && now < no_room_until_) return false;
  Micros first_full_at = ratelimit::kNever;
  std::vector<Candidate> full = full_keys(first_full_at);
  searched_after_ = changes;
  searched_at_ = now;
  no_room_until_ = first_full_at;
  const std::size_t wanted = std::min(full.size(), std::max<std::size_t>(1, max_keys_ / 8));
  std::nth_element(full.begin(), full.begin() + static_cast<std::ptrdiff_t>(wanted > 0 ? wanted - 1 : 0), full.end(),
                   [](const Candidate& a, const Candidate& b) { return a.touched < b.touched; });
  for (std::size_t i = 0; i < wanted; ++i) {
    erase(full[i].key, [&](const Slot& slot) { return full_at(slot, now) <= now; });
  }
  return !full.empty();
}

bool KeyTable::contains(std::string_view key) {
  const std::uint64_t h = hash(key, seed_) | 1;
  Shard& shard = shard_of(h);
  const std::lock_guard lock(shard.lock);
  return shard.find(h, key) != nullptr;
}

template <class Goes>
bool KeyTable::erase(std::string_view key, Goes&& goes) {
  const std::uint64_t h = hash(key, seed_) | 1;
  Shard& shard = shard_of(h);
  const std::lock_guard lock(shard.lock);
  const Slot* slot = shard.find(h, key);
  if (slot == nullptr || !goes(*slot)) return false;
  shard.erase(static_cast<std::size_t>(slot - shard.slots.data()));
  size_.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

bool KeyTable::remove(std::string_view key) {
  return erase(key, [](const Slot&) { return true; });
}

bool KeyTable::forget(std::string_view key) {
  bool full = true;
  erase(key, [&](const Slot& slot) {
    const Micros now = clock_.now();
    return full = full_at(slot, now) <= now;
  });
  return full;
}

std::size_t KeyTable::clear() {
  std::size_t erased = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].lock);
    erased += shards_[i].erase_if([](const Slot&) { return true; });
  }
  size_.fetch_sub(erased, std::memory_order_relaxed);
  return erased;
}

std::size_t KeyTable::sweep(Micros idle) {
  std::size_t erased = 0;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].lock);
    const Micros now = clock_.now();
    erased += shards_[i].erase_if([&](const Slot& slot) { return now - slot.touched >= idle && full_at(slot, now) <= now; });
  }
  size_.fetch_sub(erased, std::memory_order_relaxed);
  return erased;
}

std::vector<std::string> KeyTable::keys() {
  std::vector<Candidate> all;
  for (std::size_t i = 0; i < kShards; ++i) {
    const std::lock_guard lock(shards_[i].lock);
    for (const Slot& slot : shards_[i].slots) {
      if (slot.hash != 0) all.push_back({slot.touched, std::string(slot.key.view())});
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) { return a.touched < b.touched; });
  std::vector<std::string> names;
  names.reserve(all.size());
  for (Candidate& c : all) names.push_back(std::move(c.key));
  return names;
}

}  // namespace taskq::detail
