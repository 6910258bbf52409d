// What a decision costs in memory, beside the clock read that it contains. `make client-bench`; read the medians.
#include <benchmark/benchmark.h>

#include <memory>

#include "taskq/fixed_window.hpp"
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

}  // namespace

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
