#include "taskq/request_id.hpp"

#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <random>

namespace taskq {

namespace {

// A forked child must not go on with its parent's numbers.
std::atomic<unsigned> forks{0};
const bool watching_forks = [] {
  pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  return true;
}();

std::uint64_t random_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

// splitmix64: unique enough beside the time, and no secret.
class Numbers {
 public:
  std::uint64_t next() {
    if (const unsigned seen = forks.load(std::memory_order_relaxed); !seeded_ || seen != forks_seen_) {
      state_ = random_seed();
      forks_seen_ = seen;
      seeded_ = true;
    }
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_ = 0;
  unsigned forks_seen_ = 0;
  bool seeded_ = false;
};

}  // namespace

RequestId RequestId::next(ratelimit::Micros now) noexcept {
  thread_local Numbers numbers;
  const std::uint64_t milliseconds = static_cast<std::uint64_t>(now / 1000) & 0xffff'ffff'ffffu;
  return {.high = milliseconds << 16 | 0x7000u | (numbers.next() & 0x0fffu), .low = (numbers.next() >> 2) | (std::uint64_t{2} << 62)};
}

std::string RequestId::to_string() const {
  char text[37];
  std::snprintf(text, sizeof text, "%08x-%04x-%04x-%04x-%012llx", static_cast<unsigned>(high >> 32),
                static_cast<unsigned>(high >> 16 & 0xffff), static_cast<unsigned>(high & 0xffff), static_cast<unsigned>(low >> 48),
                static_cast<unsigned long long>(low & 0xffff'ffff'ffffu));
  return text;
}

}  // namespace taskq
