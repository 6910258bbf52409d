// Sliding windows of style log: exact, and no dearer with a large limit.
#include <bit>
#include <catch2/catch.hpp>

#include "bucket.hpp"
#include "random.hpp"

namespace taskq::ratelimit::test {

TEST_CASE("B007 denied calls do not prolong the block") {
  Bucket b(SWL(4, 10_s));
  for (const Micros now : {0_s, 1_s, 2_s, 3_s}) CHECK(b.acquire(now).ok);
  for (const Micros now : {4_s, 5_s, 6_s, 7_s, 8_s, 9_s}) CHECK_FALSE(b.acquire(now).ok);
  const Answer a = b.acquire(10_s);
  CHECK(a.ok);
  CHECK(a.rem == 0);
  CHECK(b.acquire(10.5_s).retry == 0.5_s);
}

TEST_CASE("B011 an entry exactly one window old has left") {
  Bucket b(SWL(1, 10_s));
  CHECK(b.acquire(0_s).ok);
  CHECK(b.acquire(9.999999_s).retry == 1);
  CHECK(b.acquire(10_s).ok);
}

TEST_CASE("B013 entries that have left do not count after a pause") {
  Bucket b(SWL(2, 1_s));
  CHECK(b.acquire(0_s).ok);
  CHECK(b.acquire(0.1_s).ok);
  CHECK(b.acquire(1.5_s).rem == 1);
}

TEST_CASE("B014 many calls in one tick are many entries") {
  Bucket b(SWL(10, 60_s));
  int ok = 0;
  Answer last;
  for (int i = 0; i < 25; ++i) {
    const Answer a = b.acquire(7_s);
    if (a.ok) ++ok, last = a;
  }
  CHECK(ok == 10);
  CHECK(b.log().entries().all().size() == 10);
  b.give_back(7_s, last);
  CHECK(b.log().entries().all().size() == 9);
  CHECK(b.peek(7_s).rem == 1);
}

TEST_CASE("B027 windows longer than 24.8 days") {
  Bucket b(SWL(5, 365_days));
  CHECK(b.acquire(0_s, 5).ok);
  CHECK(b.acquire(2'151'360_s).retry == 29'384'640_s);
  Bucket fixed(FW(5, 365_days));
  CHECK(fixed.acquire(0_s, 5).ok);
  CHECK(fixed.acquire(2'151'360_s).retry == 29'384'640_s);
}

TEST_CASE("B031 a sliding log has no boundary to burst at") {
  Bucket b(SWL(10, 60_s));
  for (int i = 0; i < 10; ++i) CHECK(b.acquire(59.9_s).ok);
  CHECK(b.acquire(60_s).retry == 59.9_s);
}

TEST_CASE("B086 a refund removes exactly its entry") {
  Bucket b(SWL(3, 60_s));
  const Answer first = b.acquire(0_s);
  CHECK(b.acquire(1_s).ok);
  CHECK(b.acquire(2_s).ok);
  b.give_back(3_s, first);
  b.give_back(3_s, first);
  CHECK(b.acquire(3_s).ok);
  CHECK(b.acquire(3_s).retry == 58_s);
}

TEST_CASE("units of one call leave together, and a dear call waits for the entry that must leave") {
  Bucket b(SWL(5, 10_s));
  CHECK(b.acquire(0_s, 2).ok);
  CHECK(b.acquire(1_s).ok);
  CHECK(b.acquire(2_s, 2).ok);
  CHECK(b.acquire(3_s, 2).retry == 7_s);
  CHECK(b.acquire(3_s, 3).retry == 8_s);
  CHECK(b.acquire(3_s, 5).retry == 9_s);
  CHECK(b.peek(10_s).rem == 2);
}

TEST_CASE("a lowered limit waits until enough has left") {
  Bucket b(SWL(5, 10_s));
  for (int i = 0; i < 5; ++i) CHECK(b.acquire(i * 1_s).ok);
  b.replace(5_s, SWL(2, 10_s));
  CHECK(b.peek(5_s).rem == 0);
  CHECK(b.acquire(5_s).retry == 8_s);
  CHECK(b.acquire(5_s, 2).retry == 9_s);
}

TEST_CASE("a log may be charged beyond its limit") {
  Bucket b(SWL(3, 10_s));
  CHECK(b.acquire(0_s, 2).ok);
  CHECK(b.charge(1_s, 4).rem == 0);
  CHECK(b.acquire(2_s).retry == 9_s);
  CHECK(b.peek(11_s).rem == 3);
}

TEST_CASE("limitra 8.2 waiting exactly retry_after is enough for a log") {
  Bucket b(SWL(1, 607.714593_s), 210.535143_s);
  CHECK(b.acquire(210.535143_s).ok);
  const Answer denied = b.acquire(216.255517_s);
  CHECK(denied.retry == 601.994219_s);
  CHECK(b.acquire(216.255517_s + denied.retry).ok);
}

TEST_CASE("limitra 8.4 reset_after says exactly when a log is empty") {
  Bucket b(SWL(3, 3600_s));
  CHECK(b.acquire(0.171832_s).reset == 3600_s);
  CHECK(b.peek(3600.171831_s).reset == 1);
  CHECK(b.peek(3600.171831_s).rem == 2);
  CHECK(b.peek(3600.171832_s).reset == 0);
  CHECK(b.peek(3600.171832_s).rem == 3);
}

TEST_CASE("limitra 8.7 a dear call is one entry") {
  Bucket b(SWL(10'000'000, 10_s));
  CHECK(b.acquire(0_s, 10'000'000).ok);
  CHECK(b.log().entries().all().size() == 1);
  CHECK(b.acquire(1_s, 10'000'000).retry == 9_s);
}

TEST_CASE("limitra 8.9 a refund does not drop another call's entry") {
  Bucket b(SWL(2, 10_s));
  const Answer a = b.acquire(0_s);
  CHECK(b.acquire(4_s).ok);
  b.give_back(5_s, a);
  CHECK(b.acquire(10_s).ok);
  CHECK(b.acquire(10_s).retry == 4_s);
}

TEST_CASE("limitra 8.11 entries of the future become entries of now") {
  Bucket b(SWL(5, 60_s), 100_s);
  CHECK(b.acquire(50_s).ok);
  CHECK(b.acquire(100_s, 4).ok);
  CHECK(b.acquire(70_s).retry == 40_s);
  CHECK(b.acquire(70_s, 5).retry == 60_s);
  CHECK(b.acquire(110_s).ok);
  CHECK(b.acquire(129_s, 2).retry == 1_s);
  CHECK(b.acquire(130_s, 4).ok);
}

TEST_CASE("a log does not credit jitter") {
  Bucket b(SWL(5, 10_s));
  CHECK(b.acquire(100_s, 5).ok);
  for (int i = 0; i < 100; ++i) CHECK_FALSE(b.acquire(i % 2 == 0 ? 99.5_s : 109.999999_s).ok);
  CHECK(b.acquire(109.5_s).retry == 0.5_s);
  CHECK(b.acquire(110_s, 5).ok);
}

namespace {

// A log of `units` entries of cost 1, one each microsecond from 0 on; full.
LogBucket full_log(std::int64_t units, Micros window) {
  LogBucket b(SWL(units, window), 0);
  for (Micros now = 0; now < units; ++now) b.acquire(now, 1);
  REQUIRE(log::live(b.state()) == units);
  b.entries().forget_probes();
  return b;
}

int probes_of(LogBucket& b, Micros now, std::int64_t cost, bool allowed) {
  b.entries().forget_probes();
  CHECK(b.acquire(now, cost).allowed == allowed);
  return b.entries().probes();
}

}  // namespace

TEST_CASE("filling a log needs no look at its entries") {
  LogBucket b(SWL(1'000'000, 60_s), 0);
  for (Micros now = 0; now < 1'000'000; ++now) b.acquire(now, 1);
  CHECK(b.entries().all().size() == 1'000'000);
  CHECK(b.entries().probes() == 0);
}

TEST_CASE("the cost of a call does not grow with the log") {
  const std::int64_t units = 1'000'000;
  LogBucket b = full_log(units, 60_s);
  const int log2 = std::bit_width(static_cast<std::uint64_t>(units));
  CHECK(probes_of(b, 30_s, 1, false) == 0);
  CHECK(probes_of(b, 30_s, 500'000, false) <= 1);
  CHECK(probes_of(b, 60_s, 1, true) <= 3);      // one has left
  CHECK(probes_of(b, 60_s, 1, false) == 0);     // none since
  CHECK(probes_of(b, 60_s + 3, 1, true) <= 5);  // three more
  CHECK(probes_of(b, 60_s + 900'000, 1, true) <= 2 * log2);
  CHECK(probes_of(b, 200_s, 1, true) == 0);  // all of them
}

TEST_CASE("a steady stream needs a few probes a call, whatever the limit") {
  for (const std::int64_t units : {100, 10'000, 1'000'000}) {
    LogBucket b = full_log(units, 2_s);
    int worst = 0;
    for (Micros now = 2_s; now < 2_s + 90; ++now) worst = std::max(worst, probes_of(b, now, 1, true));
    INFO("limit " << units);
    CHECK(worst <= 3);
  }
}

TEST_CASE("skipping what has left finds the same state as counting") {
  Random random(17);
  for (int round = 0; round < 300; ++round) {
    LogBucket b(SWL(1'000'000, 1000), 0);
    Micros now = 0;
    for (std::int64_t i = random.between(1, 200); i > 0; --i)
      b.acquire(now += random.between(0, 12), random.spread(1, 5000));
    const Micros later = now + random.between(0, 1100);
    std::int64_t expected = 0;
    for (const auto& s : b.entries().all()) expected += later - s.entry.at < 1000 ? s.entry.cost : 0;
    const State state = log::advance(b.limit(), b.state(), later, b.entries());
    REQUIRE(log::live(state) == expected);
  }
}

}  // namespace taskq::ratelimit::test
