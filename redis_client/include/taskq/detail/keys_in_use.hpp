// The keys that a registry has seen, when each was last acquired, and how many there may be. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "taskq/clock.hpp"

namespace taskq::detail {

inline constexpr Micros kEvictAtMostEvery = 30 * ratelimit::kMicrosPerSecond;

// Never the same for two pairs: a name has no control characters.
inline std::string pair_name(std::string_view name, std::string_view key) {
  std::string joined(name);
  joined += '\x1f';
  joined += key;
  return joined;
}

class KeysInUse {
 public:
  struct Key {
    std::string base;
    std::string key;
    Micros used_at = 0;
  };

  std::size_t size() const noexcept { return keys_.size(); }
  void clear() { keys_.clear(); }

  // `forget(key)` is asked whether a key may go.
  template <class Forget>
  std::size_t evict(Micros now, Micros idle, Forget&& forget) {
    return std::erase_if(keys_, [&](const auto& entry) { return now - entry.second.used_at >= idle && forget(entry.second); });
  }

  // False if the table is full, also after looking for idle keys, which is done at most every 30 s.
  template <class Forget>
  bool use(Key key, std::size_t most, Micros now, Micros idle, Forget&& forget) {
    const std::string name = pair_name(key.base, key.key);
    if (const auto known = keys_.find(name); known != keys_.end()) {
      known->second.used_at = now;
      return true;
    }
    if (keys_.size() >= most && (!evicted_ || now - evicted_at_ >= kEvictAtMostEvery)) {
      evicted_ = true;
      evicted_at_ = now;
      evict(now, idle, forget);
    }
    if (keys_.size() >= most) return false;
    key.used_at = now;
    keys_.emplace(name, std::move(key));
    return true;
  }

 private:
  std::unordered_map<std::string, Key> keys_;
  Micros evicted_at_ = 0;
  bool evicted_ = false;
};

}  // namespace taskq::detail
