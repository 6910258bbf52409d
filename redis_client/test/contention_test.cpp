// Threads that contend while the limit refills. What was admitted is compared with exact arithmetic: each allowed decision carries its time
// and the balance after it, so that the whole history can be put in order and checked, however fast or slow the machine is.
#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "taskq/detail/memory_bucket.hpp"
#include "taskq/fixed_window.hpp"
#include "taskq/limiter_manager.hpp"
#include "taskq/memory_backend.hpp"
#include "taskq/reservation.hpp"
#include "taskq/sliding_window.hpp"
#include "taskq/token_bucket.hpp"

namespace taskq::test {

using namespace std::chrono_literals;

namespace {

constexpr int kThreads = 4;

template <class Work>
void in_threads(int count, Work&& work) {
  std::vector<std::jthread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&work, i] { work(i); });
}

struct Seen {
  Micros at;
  std::int64_t remaining;  // grains
};

// Whoever was allowed, in the order in which it happened: time goes on, and within one microsecond the balance falls.
std::vector<Seen> in_order(std::vector<std::vector<Seen>>& by_thread) {
  std::vector<Seen> all;
  for (auto& seen : by_thread) all.insert(all.end(), seen.begin(), seen.end());
  std::sort(all.begin(), all.end(), [](const Seen& a, const Seen& b) { return a.at != b.at ? a.at < b.at : a.remaining > b.remaining; });
  return all;
}

// Every balance follows from the one before: refilled for the time between, clamped at full, less one cost. Nothing more was admitted.
void check_history(const ratelimit::Limit& limit, std::int64_t cost, std::vector<Seen> all) {
  const std::int64_t full = limit.capacity * limit.d;
  Seen before{all.front().at, full};
  int wrong = 0;
  for (const Seen& now : all) {
    const ratelimit::Wide refilled = before.remaining + ratelimit::Wide{limit.n} * (now.at - before.at);
    const ratelimit::Wide there = refilled > full ? full : refilled;
    if (there - cost * limit.d != now.remaining || now.remaining < 0) ++wrong;
    before = now;
  }
  CHECK(wrong == 0);
}

template <class Bucket>
void contend(Bucket& bucket, const ratelimit::Limit& limit, std::int64_t cost, int calls) {
  std::vector<std::vector<Seen>> by_thread(kThreads);
  std::atomic<int> denied = 0;
  in_threads(kThreads, [&](int thread) {
    for (int i = 0; i < calls; ++i) {
      const ratelimit::Decision d = bucket.acquire(cost).decision;
      if (d.allowed) by_thread[static_cast<std::size_t>(thread)].push_back({d.decided_at, d.remaining});
      else ++denied;
    }
  });
  CHECK(denied > 0);
  std::vector<Seen> all = in_order(by_thread);
  REQUIRE(all.size() > static_cast<std::size_t>(limit.capacity / cost));
  check_history(limit, cost, std::move(all));
}

LimitDefinition bucket_of(double capacity, double rate) {
  return define_bucket("contended", Kind::token_bucket, {.capacity = capacity, .refill_per_second = rate});
}

}  // namespace

TEST_CASE("a bucket that refills under contention admits exactly burst + rate * elapsed", "[threads]") {
  const LimitDefinition limit = bucket_of(100, 200'000);
  const SteadyClock steady;
  detail::MemoryBucket best(limit, steady);
  contend(best, limit.limit, limit.one, 20'000);
  detail::BasicMemoryBucket<detail::HotPair<false>> narrow(limit, steady);
  contend(narrow, limit.limit, limit.one, 20'000);
  const TscClock tsc;
  detail::MemoryBucket fast(limit, tsc);
  contend(fast, limit.limit, limit.one, 20'000);
}

TEST_CASE("B059: no oversell", "[threads]") {
  TokenBucket quota("quota", {.capacity = 100});
  std::atomic<int> allowed = 0;
  in_threads(20, [&](int) {
    for (int i = 0; i < 25; ++i) allowed += quota.acquire().allowed() ? 1 : 0;
  });
  CHECK(allowed == 100);
}

TEST_CASE("fixed windows and logs admit exactly their limit under contention", "[threads]") {
  FixedWindow fixed("fixed", {.max_requests = 1000, .window = 1h});
  SlidingWindow log("log", {.max_requests = 1000, .window = 1h});
  SlidingWindow counter("counter", {.max_requests = 1000, .window = 1h}, SlidingStyle::counter);
  std::atomic<int> by_fixed = 0, by_log = 0, by_counter = 0;
  in_threads(kThreads, [&](int) {
    for (int i = 0; i < 500; ++i) {
      by_fixed += fixed.acquire().allowed() ? 1 : 0;
      by_log += log.acquire().allowed() ? 1 : 0;
      by_counter += counter.acquire().allowed() ? 1 : 0;
    }
  });
  CHECK(by_fixed == 1000);
  CHECK(by_log == 1000);
  CHECK(by_counter == 1000);
}

TEST_CASE("acquires, refunds, settlements and looks contend and lose nothing", "[threads]") {
  TokenBucket quota("quota", {.capacity = 1000});
  in_threads(kThreads, [&](int) {
    for (int i = 0; i < 2000; ++i) {
      const Decision d = quota.acquire(2);
      if (!d.allowed()) continue;
      quota.peek();
      if (i % 2 == 0) quota.refund(d);
      else quota.settle(d, 1), quota.refund(1.0);
    }
  });
  CHECK(quota.remaining() == 1000);
}

TEST_CASE("B060: a key that many use first at once", "[threads]") {
  LimiterManager users(TokenBucket("users", {.capacity = 5}));
  std::atomic<int> allowed = 0;
  in_threads(20, [&](int) { allowed += users.acquire("new").allowed() ? 1 : 0; });
  CHECK(allowed == 5);
  CHECK(users.size() == 1);
}

TEST_CASE("keys come, are swept and come back while threads spend: none gets more than its quota", "[threads]") {
  LimiterManager users(TokenBucket("users", {.capacity = 3}), {.max_keys = 64});
  std::atomic<int> allowed = 0;
  in_threads(kThreads, [&](int thread) {
    for (int i = 0; i < 2000; ++i) {
      allowed += users.acquire("user:" + std::to_string(i % 64)).allowed() ? 1 : 0;
      if (i % 100 == 0) users.cleanup(0us);
      if (thread == 0) users.peek("nobody:" + std::to_string(i));
    }
  });
  CHECK(allowed == 3 * 64);
  CHECK(users.size() == 64);
}

TEST_CASE("B057: slots are never denied while one is free, and never held twice", "[threads]") {
  ConcurrencyReservation slots("slots", {.slots = 8, .lease = 30s});
  std::atomic<int> denied = 0, twice = 0;
  std::array<std::atomic<int>, 8> held{};
  in_threads(8, [&](int thread) {
    const std::string worker = "worker" + std::to_string(thread);
    for (int i = 0; i < 2000; ++i) {
      const SlotDecision d = slots.try_acquire("job", worker);
      if (!d.allowed) {
        ++denied;
        continue;
      }
      auto& here = held[static_cast<std::size_t>(d.slot.index)];
      if (here.fetch_add(1) != 0) ++twice;
      here.fetch_sub(1);
      slots.release(d.slot.index, worker, d.slot.fence);
    }
  });
  CHECK(denied == 0);
  CHECK(twice == 0);
}

}  // namespace taskq::test
