// Fixed windows: boundaries, anchors, late refunds.
#include <catch2/catch.hpp>

#include "bucket.hpp"

namespace taskq::ratelimit::test {

namespace {

Limit epoch_aligned(std::int64_t limit, Micros window) { return anchored_at(FW(limit, window), 0); }

}  // namespace

TEST_CASE("B004 obeying the wait gets through at the edge of a window") {
  const Micros start = 1'700'000'040_s;
  Bucket b(epoch_aligned(5, 60_s), start);
  for (int i = 0; i < 5; ++i) CHECK(b.acquire(start + 58.4_s).ok);
  CHECK(b.acquire(start + 58.9_s).retry == 1.1_s);
  CHECK(b.acquire(start + 59.999999_s).retry == 1);
  const Answer a = b.acquire(start + 60_s);
  CHECK(a.ok);
  CHECK(a.rem == 4);
}

TEST_CASE("B031 a double burst at a boundary is what a fixed window allows") {
  Bucket b(epoch_aligned(10, 60_s));
  for (int i = 0; i < 10; ++i) CHECK(b.acquire(59.9_s).ok);
  CHECK_FALSE(b.acquire(59.9_s).ok);
  for (int i = 0; i < 10; ++i) CHECK(b.acquire(60_s).ok);
  CHECK_FALSE(b.acquire(60_s).ok);
}

TEST_CASE("B032 the first call of a window counts") {
  Bucket b(FW(4, 30_s));
  CHECK(b.acquire(0_s, 4).ok);
  CHECK(b.acquire(30_s).rem == 3);
}

TEST_CASE("B037 past January 2038") {
  Bucket b(epoch_aligned(1, 60_s), 2'147'483'640_s);
  CHECK(b.acquire(2'147'483'640_s).ok);
  const Answer denied = b.acquire(2'147'483'647_s);
  CHECK_FALSE(denied.ok);
  CHECK(denied.retry == 53_s);
  CHECK(2'147'483'647_s + denied.reset == 2'147'483'700_s);
  CHECK(b.acquire(2'147'483'700_s).ok);
}

TEST_CASE("windows start where the bucket was created, whenever it is looked at") {
  Bucket b(FW(5, 10_s), 1007_s);
  CHECK(b.peek(1020_s).reset == 0);
  CHECK(b.acquire(1025_s).reset == 2_s);
  CHECK(b.acquire(1027_s).reset == 10_s);
}

TEST_CASE("an anchor may lie in the past, in the future, or before the epoch") {
  for (const Micros anchor : {7_s, 1'000'007_s, -53_s}) {
    Bucket b(anchored_at(FW(5, 10_s), anchor), 1000_s);
    CHECK(b.acquire(1000_s).reset == 7_s);
    CHECK(b.acquire(1007_s).reset == 10_s);
  }
}

TEST_CASE("instants before the epoch are instants") {
  Bucket b(epoch_aligned(1, 60_s), -90_s);
  CHECK(b.acquire(-90_s).ok);
  CHECK(b.acquire(-61_s).retry == 1_s);
  CHECK(b.acquire(-60_s).ok);
  CHECK(b.acquire(0_s).ok);
}

TEST_CASE("limitra 8.1 the boundary instant belongs to the new window, once") {
  Bucket b(FW(5, 0.1_s), 1'000'000_s);
  CHECK(b.acquire(1'000'000_s, 5).ok);
  int admitted = 0;
  for (int i = 0; i < 1000; ++i) admitted += b.acquire(1'000'000.1_s).ok ? 1 : 0;
  CHECK(admitted == 5);
}

TEST_CASE("limitra 8.1 a spend at the boundary is not forgotten") {
  Bucket b(FW(1, 0.3_s), 1'700'000'000_s);
  CHECK(b.acquire(1'700'000'000.3_s).ok);
  CHECK_FALSE(b.acquire(1'700'000'000.33_s).ok);
}

TEST_CASE("limitra 8.1 several windows later the phase has not moved") {
  Bucket b(FW(5, 1.1_s), 16.505901_s);
  // 42 windows later, to the microsecond.
  CHECK(b.acquire(62.705901_s, 5).reset == 1.1_s);
  CHECK_FALSE(b.acquire(62.705901_s).ok);
  CHECK(b.state().start == 62.705901_s);
}

TEST_CASE("limitra 8.1 a boundary is not a microsecond late") {
  Bucket b(FW(3, 0.3_s), 1'000'000_s);
  CHECK(b.acquire(1'000'000.3_s, 2).ok);
  CHECK(b.acquire(1'000'000.6_s, 3).ok);
}

TEST_CASE("limitra 8.2 waiting exactly retry_after is enough") {
  Bucket b(FW(1, 10_s), 0.390667_s);
  CHECK(b.acquire(0.390667_s).ok);
  const Answer denied = b.acquire(2.294858_s);
  CHECK_FALSE(b.acquire(2.294858_s + denied.retry - 1).ok);
  CHECK(b.acquire(2.294858_s + denied.retry).ok);
}

TEST_CASE("limitra 8.9 a late refund does not credit the new window") {
  Bucket b(FW(5, 10_s));
  const Answer old = b.acquire(0_s, 5);
  CHECK(b.acquire(11_s, 3).ok);
  b.give_back(11_s, old);
  CHECK(b.peek(11_s).rem == 2);
}

TEST_CASE("limitra 8.10 at most two limits within one window length") {
  Bucket b(FW(10, 10_s));
  CHECK(b.acquire(9.999999_s, 10).ok);
  CHECK(b.acquire(10_s, 10).ok);
  CHECK_FALSE(b.acquire(19.999998_s).ok);
}

TEST_CASE("limitra 8.11 a clock set back waits for one window at most") {
  Bucket b(FW(5, 60_s), 100_s);
  CHECK(b.acquire(100_s, 5).ok);
  const Answer denied = b.acquire(40_s);
  CHECK_FALSE(denied.ok);
  CHECK(denied.retry == 60_s);
  CHECK(b.state().start == 40_s);
  CHECK(b.acquire(99_s).retry == 1_s);
  CHECK(b.acquire(100_s).ok);
}

TEST_CASE("a window that was set back keeps its phase and its count") {
  Bucket b(epoch_aligned(5, 60_s), 3600_s);
  CHECK(b.acquire(3605_s, 3).ok);
  const Answer a = b.acquire(1234_s, 2);
  CHECK(a.ok);
  CHECK(a.rem == 0);
  CHECK(b.state().start == 1200_s);
  CHECK(b.acquire(1234_s).retry == 26_s);
}

TEST_CASE("a refund of a decision from before the clock was set back gives nothing") {
  Bucket b(FW(5, 10_s), 100_s);
  const Answer before = b.acquire(100_s, 5);
  CHECK_FALSE(b.acquire(40_s).ok);
  CHECK(b.acquire(51_s, 5).ok);
  b.give_back(51_s, before);
  CHECK(b.peek(51_s).rem == 0);
}

TEST_CASE("a bucket whose clock was set back behind its creation still takes refunds") {
  Bucket b(FW(5, 10_s), 100_s);
  CHECK(b.acquire(40_s).ok);
  const Answer a = b.acquire(41_s, 4);
  b.give_back(42_s, a);
  CHECK(b.peek(42_s).rem == 4);
}

TEST_CASE("jitter at a boundary is not a step back over it") {
  Bucket b(FW(5, 10_s));
  CHECK(b.acquire(10_s, 5).ok);
  const Answer lagging = b.acquire(9.9_s);
  CHECK_FALSE(lagging.ok);
  CHECK(lagging.retry == 10.1_s);
  CHECK(b.state().start == 10_s);
}

TEST_CASE("a window may be charged beyond its limit, and only that window") {
  Bucket b(FW(5, 10_s));
  CHECK(b.charge(0_s, 12).rem == 0);
  CHECK(b.acquire(9_s).retry == 1_s);
  CHECK(b.acquire(10_s).rem == 4);
  for (int i = 0; i < 5; ++i) b.charge(10_s, 4e15);
  CHECK(b.state().used == kMaxProduct);
}

TEST_CASE("settling a window replaces the estimate") {
  Bucket b(FW(10, 10_s));
  const Answer a = b.acquire(0_s, 6);
  b.settle(1_s, a, 2);
  CHECK(b.peek(1_s).rem == 8);
  const Answer c = b.acquire(2_s, 2);
  b.settle(3_s, c, 5);
  CHECK(b.peek(3_s).rem == 3);
  b.settle(4_s, c, 2);
  CHECK(b.peek(4_s).rem == 3);
}

}  // namespace taskq::ratelimit::test
