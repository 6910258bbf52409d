// Sliding windows of style counter: weights, waits of three kinds, ticks.
#include <catch2/catch.hpp>

#include "bucket.hpp"

namespace taskq::ratelimit::test {

namespace {

Limit epoch_aligned(std::int64_t limit, Micros window) { return anchored_at(SWC(limit, window), 0); }

// A bucket with `previous` units in the window before the one that starts at 60 s.
Bucket with_previous(std::int64_t limit, double previous) {
  Bucket b(epoch_aligned(limit, 60_s));
  REQUIRE(b.acquire(0_s, previous).ok);
  return b;
}

}  // namespace

TEST_CASE("B029 the last window's weight is in remaining and in the wait") {
  Bucket b = with_previous(100, 80);
  CHECK(b.acquire(60_s, 5).ok);
  CHECK(b.peek(75_s).rem == 35);
  CHECK(b.acquire(75_s).rem == 34);
  CHECK(b.acquire(75_s, 34).rem == 0);
  CHECK(b.acquire(75_s).retry == 0.75_s);
  CHECK_FALSE(b.acquire(75.749999_s).ok);
  CHECK(b.acquire(75.75_s).ok);
}

TEST_CASE("the last window fades far enough within this one") {
  Bucket b = with_previous(10, 10);
  CHECK(b.acquire(60_s).retry == 6_s);
  CHECK(b.acquire(66_s - 1).retry == 1);
  CHECK(b.acquire(66_s).rem == 0);
}

TEST_CASE("this window's end is the earliest instant") {
  Bucket b = with_previous(10, 4);
  CHECK(b.acquire(90_s, 8).ok);
  // 8 of this window leave no room for 2 beside anything of the last one.
  CHECK(b.acquire(90_s, 2).retry == 30_s);
  CHECK_FALSE(b.acquire(120_s - 1, 2).ok);
  CHECK(b.acquire(120_s, 2).ok);
}

TEST_CASE("this window fades far enough within the next one") {
  Bucket b(epoch_aligned(10, 60_s));
  CHECK(b.acquire(0_s, 10).ok);
  CHECK(b.acquire(20_s, 3).retry == 58_s);
  CHECK_FALSE(b.acquire(78_s - 1, 3).ok);
  CHECK(b.acquire(78_s, 3).ok);
}

TEST_CASE("all of the limit at once needs two windows without anybody") {
  Bucket b(SWC(10, 10_s));
  CHECK(b.acquire(3_s).ok);
  CHECK(b.acquire(3_s, 10).retry == 17_s);
  CHECK_FALSE(b.acquire(20_s - 1, 10).ok);
  CHECK(b.acquire(20_s, 10).ok);
}

TEST_CASE("waits are rounded up to ticks, elapsed time down") {
  const Limit limit = epoch_aligned(10'000, 30_days);
  REQUIRE(limit.tick == 10);
  Bucket b(limit);
  CHECK(b.acquire(0_s, 10'000).ok);
  const Answer denied = b.acquire(30_days + 3);
  CHECK(denied.retry == 259'200'000 - 3);
  CHECK_FALSE(b.acquire(30_days + 3 + denied.retry - 1).ok);
  CHECK(b.acquire(30_days + 3 + denied.retry).ok);
}

TEST_CASE("a window that is no whole number of ticks waits no longer than its end") {
  Limit limit = SWC(7, 1'000'003);
  limit.tick = 1000;
  Bucket b(limit);
  CHECK(b.acquire(0_s, 7).ok);
  CHECK(b.acquire(0_s, 7).retry == 2 * 1'000'003);
  CHECK_FALSE(b.acquire(2 * 1'000'003 - 1, 7).ok);
  CHECK(b.acquire(2 * 1'000'003, 7).ok);
}

TEST_CASE("limitra 8.5 the largest limits are counted to the unit") {
  const std::int64_t most = kMaxProduct / 10;
  const Limit limit = SWC(most, 10);
  REQUIRE(limit.tick == 1);
  State s = fresh(limit, 0);
  s = decide(limit, s, 0, most - 1).next;
  CHECK(decide(limit, s, 0, 1).decision.remaining == 0);
  s = decide(limit, s, 0, 1).next;
  CHECK_FALSE(decide(limit, s, 0, 1).decision.allowed);
  CHECK(make_sliding_window(Kind::sliding_window_counter, std::int64_t{1} << 60, 10_s).error ==
        DefinitionError::requests_too_large);
}

TEST_CASE("limitra 8.5 a weight is not snapped to a near whole number") {
  Bucket b(epoch_aligned(500'000'001, 1_s));
  CHECK(b.acquire(0_s, 500'000'001).ok);
  // A microsecond before it is over the last window weighs 500.000001: 501 units.
  CHECK(b.peek(2_s - 1).rem == 499'999'500);
  CHECK_FALSE(b.acquire(2_s - 1, 499'999'501).ok);
  CHECK(b.acquire(2_s - 1, 499'999'500).ok);
}

TEST_CASE("limitra 8.6 a boundary is neither missed nor counted twice") {
  Bucket b(SWC(3, 0.3_s), 1'000'000_s);
  CHECK(b.peek(1'000'000.3_s).rem == 3);
  CHECK(b.acquire(1'000'000.6_s, 3).ok);
  CHECK_FALSE(b.acquire(1'000'000.9_s, 3).ok);
  CHECK(b.state().start == 1'000'000.6_s);
}

TEST_CASE("limitra 8.6 a microsecond before two windows the last one still counts") {
  Bucket b(SWC(3, 10_s));
  CHECK(b.acquire(0_s, 3).ok);
  CHECK(b.peek(20_s - 1).rem == 2);
  CHECK(b.peek(20_s - 1).reset == 1);
  CHECK(b.peek(20_s).rem == 3);
}

TEST_CASE("limitra 8.9 a late refund goes to the window it was taken from") {
  Bucket b(SWC(10, 10_s));
  const Answer first = b.acquire(9_s, 4);
  CHECK(b.acquire(15_s, 4).ok);
  b.give_back(15_s, first);
  CHECK(b.peek(15_s).rem == 6);
  b.give_back(21_s, first);
  CHECK(b.peek(21_s).rem == 6);
}

TEST_CASE("limitra 8.10 at most two limits less one within one window length") {
  for (const int limit : {10, 100, 1000}) {
    Bucket b(SWC(limit, 10_s));
    CHECK(b.acquire(9.999_s, limit).ok);
    int more = 0;
    for (Micros now = 10_s; now < 19.999_s; now += 1000) more += b.acquire(now).ok ? 1 : 0;
    CHECK(more == limit - 1);
  }
}

TEST_CASE("limitra 8.10 obeying retry_after at cost 1 gets (limit - 1)/limit of the nominal rate") {
  Bucket b(SWC(10, 10_s));
  Micros now = 0;
  int granted = 0;
  while (now < 10'000_s) {
    const Answer a = b.acquire(now);
    granted += a.ok ? 1 : 0;
    now += a.retry;
  }
  CHECK(granted >= 9000);
  CHECK(granted <= 9010);
}

TEST_CASE("limitra 8.11 a clock set back keeps both counts") {
  Bucket b(epoch_aligned(10, 60_s), 600_s);
  CHECK(b.acquire(600_s, 8).ok);
  CHECK(b.acquire(660_s, 2).ok);
  const Answer a = b.peek(90_s);
  CHECK(a.rem == 4);  // 8 * 1/2 + 2 in the window 60..120
  CHECK(b.acquire(90_s, 4).ok);
  CHECK(b.state().start == 60_s);
  CHECK(b.acquire(90_s).retry == 7.5_s);
}

TEST_CASE("a set back counter gives nothing back for what came before") {
  Bucket b(SWC(5, 10_s), 100_s);
  const Answer before = b.acquire(100_s, 5);
  CHECK_FALSE(b.acquire(40_s).ok);
  CHECK(b.acquire(60_s, 5).ok);
  b.give_back(60_s, before);
  CHECK(b.peek(60_s).rem == 0);
}

TEST_CASE("a plain refund takes from this window first, then from the last") {
  Bucket b = with_previous(10, 6);
  CHECK(b.acquire(60_s, 4).ok);
  b.refund(60_s, 5);
  CHECK(b.state().used == 0);
  CHECK(b.state().previous == 5);
  b.refund(60_s, 10);
  CHECK(b.peek(60_s).rem == 10);
  CHECK(b.peek(60_s).reset == 0);
}

TEST_CASE("a charge fills the window and stops at the limit") {
  Bucket b(SWC(10, 10_s));
  CHECK(b.charge(0_s, 7).rem == 3);
  CHECK(b.charge(0_s, 4e15).rem == 0);
  CHECK(b.acquire(0_s).retry == 11_s);
}

}  // namespace taskq::ratelimit::test
