// Random numbers that a printed seed brings back. Single-threaded.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>

namespace taskq::ratelimit::test {

// TASKQ_TEST_SEED, or a fresh one for each run.
inline std::uint64_t seed() {
  static const std::uint64_t value = [] {
    const char* given = std::getenv("TASKQ_TEST_SEED");
    return given != nullptr ? std::strtoull(given, nullptr, 10) : std::uint64_t{std::random_device{}()};
  }();
  return value;
}

class Random {
 public:
  explicit Random(std::uint64_t stream) : engine_(seed() * 1'000'003 + stream) {}

  // REQUIRES: low <= high.
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(engine_() % (static_cast<std::uint64_t>(high - low) + 1));
  }
  bool one_in(std::int64_t n) { return between(1, n) == 1; }

  // Small and large numbers alike: every power of two up to `high` is as likely.
  std::int64_t spread(std::int64_t low, std::int64_t high) {
    const std::int64_t bits = between(0, 62);
    const std::int64_t cap = (std::int64_t{1} << bits) - 1;
    return high - low <= cap ? between(low, high) : low + between(0, cap);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace taskq::ratelimit::test
