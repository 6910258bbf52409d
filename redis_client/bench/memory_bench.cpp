// What a decision costs in memory, beside the clock read that it contains. `make client-bench`; read the medians.
#include <benchmark/benchmark.h>

#include <memory>
#include <string>
#include <vector>

#include "taskq/fixed_window.hpp"
#include "taskq/limiter_manager.hpp"
#include "taskq/memory_backend.hpp"
#include "taskq/token_bucket.hpp"

namespace {

using namespace std::chrono_literals;

template <class Clock>
std::shared_ptr<taskq::Backend> memory() {
  return std::make_shared<taskq::MemoryBackend>(std::make_shared<Clock>());
}

template <class Clock>
void clock_read(benchmark::State& state) {
  const Clock clock;
  const taskq::Clock& any = clock;
  for (auto _ : state) benchmark::DoNotOptimize(any.now());
}

template <class Clock>
void bucket_allows(benchmark::State& state) {
  taskq::TokenBucket bucket("bench", {.capacity = 1e9, .refill_per_second = 1e9}, memory<Clock>());
  for (auto _ : state) benchmark::DoNotOptimize(bucket.acquire());
}

template <class Clock>
void bucket_denies(benchmark::State& state) {
  taskq::TokenBucket bucket("bench", {.capacity = 1, .refill_per_second = 1e-6}, memory<Clock>());
  bucket.acquire();
  for (auto _ : state) benchmark::DoNotOptimize(bucket.acquire());
}

template <class Clock>
void window_allows(benchmark::State& state) {
  taskq::FixedWindow window("bench", {.max_requests = 1'000'000'000'000, .window = 1h}, memory<Clock>());
  for (auto _ : state) benchmark::DoNotOptimize(window.acquire());
}

taskq::TokenBucket& hot_bucket() {
  static taskq::TokenBucket bucket("hot", {.capacity = 1e9, .refill_per_second = 1e9}, memory<taskq::TscClock>());
  return bucket;
}

void two_threads(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(hot_bucket().acquire());
}

// Keys in an order that no cache foresees.
const std::vector<std::string>& shuffled_keys(std::size_t count) {
  static std::vector<std::string> keys;
  if (keys.size() == count) return keys;
  keys.clear();
  for (std::size_t i = 0; i < count; ++i) keys.push_back("user:" + std::to_string(i));
  std::uint64_t random = 1;
  for (std::size_t i = count; i > 1; --i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    std::swap(keys[i - 1], keys[(random >> 33) % i]);
  }
  return keys;
}

void keyed(benchmark::State& state) {
  const auto& keys = shuffled_keys(static_cast<std::size_t>(state.range(0)));
  taskq::LimiterManager users(taskq::TokenBucket("users", {.capacity = 1e9, .refill_per_second = 1e9}, memory<taskq::TscClock>()));
  for (const std::string& key : keys) users.acquire(key);
  std::size_t next = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(users.acquire(keys[next]));
    if (++next == keys.size()) next = 0;
  }
}

}  // namespace

BENCHMARK(keyed)->Arg(1'000)->Arg(1'000'000);
BENCHMARK(clock_read<taskq::TscClock>);
BENCHMARK(bucket_allows<taskq::TscClock>);
BENCHMARK(bucket_denies<taskq::TscClock>);
BENCHMARK(window_allows<taskq::TscClock>);
BENCHMARK(clock_read<taskq::SteadyClock>);
BENCHMARK(bucket_allows<taskq::SteadyClock>);
BENCHMARK(bucket_denies<taskq::SteadyClock>);
BENCHMARK(window_allows<taskq::SteadyClock>);
BENCHMARK(two_threads)->Threads(2)->UseRealTime();

BENCHMARK_MAIN();
