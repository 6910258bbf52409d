// Token bucket, leaky bucket and GCRA: waits, fractions, clocks.
#include <catch2/catch.hpp>

#include "bucket.hpp"
#include "random.hpp"

namespace taskq::ratelimit::test {

TEST_CASE("B001 partly earned token shortens the wait") {
  Bucket b(TB(2, 0.5));
  CHECK(b.acquire(0_s, 2).rem == 0);
  const Answer denied = b.acquire(0.7_s);
  CHECK_FALSE(denied.ok);
  CHECK(denied.retry == 1.3_s);
  const Answer later = b.acquire(2_s);
  CHECK(later.ok);
  CHECK(later.rem == 0);
}

TEST_CASE("B002 a wait below a second is not zero") {
  // Burst 1: one cell per 20 ms.
  Bucket b(TB(1, 50));
  CHECK(b.acquire(0_s).ok);
  CHECK(b.acquire(0.005_s).retry == 0.015_s);
  CHECK(b.acquire(0.02_s).ok);
}

TEST_CASE("B003 a small deficit is a small wait, not none") {
  Bucket b(TB(2000, 500));
  CHECK(b.acquire(0_s, 2000).ok);
  CHECK(b.acquire(0_s, 1).retry == 0.002_s);
  CHECK(b.acquire(0_s, 3).retry == 0.006_s);
  Micros now = 0;
  int tries = 0, grants = 0;
  for (; grants < 100; ++tries) {
    const Answer a = b.acquire(now, 3);
    if (a.ok) ++grants;
    now += a.retry;
  }
  CHECK(tries <= 2 * grants);
}

TEST_CASE("B008 an allowed call has a wait of exactly zero") {
  Bucket b(GCRA(4, 120_s));
  const Answer first = b.acquire(0_s);
  CHECK(first.ok);
  CHECK(first.rem == 3);
  CHECK(first.retry == 0);
  CHECK(first.reset == 30_s);
}

TEST_CASE("B009 after the very last token the next one is a second away") {
  Bucket b(TB(5, 1));
  const Answer last = b.acquire(0_s, 5);
  CHECK(last.ok);
  CHECK(last.rem == 0);
  CHECK(last.retry == 0);
  const Answer look = b.peek(0_s);
  CHECK_FALSE(look.ok);
  CHECK(look.retry == 1_s);
}

TEST_CASE("B010 frequent polling does not eat the refill") {
  Bucket b(TB(10, 0.1));
  CHECK(b.acquire(0_s, 10).ok);
  int grants = 0;
  Micros first = 0;
  for (Micros now = 0.7_s; now <= 999.6_s; now += 0.7_s) {
    if (!b.acquire(now).ok) continue;
    if (++grants == 1) first = now;
  }
  CHECK(first == 10.5_s);
  CHECK(grants == 99);
}

TEST_CASE("B015 GCRA lets no call in early") {
  Bucket b(GCRA(6, 60_s));
  for (int i = 0; i < 6; ++i) CHECK(b.acquire(0_s).ok);
  CHECK(b.acquire(5.1_s).retry == 4.9_s);
  CHECK(b.acquire(9.999_s).retry == 0.001_s);
  const Answer a = b.acquire(10_s);
  CHECK(a.ok);
  CHECK(a.rem == 0);
}

TEST_CASE("B021 one per day") {
  Random random(21);
  for (int i = 0; i < 200; ++i) {
    const Micros start = 1'700'000'000_s + random.between(0, 999'999);
    Bucket b(TB(1, 1 / 86400.0), start);
    CHECK(b.acquire(start).ok);
    CHECK(b.acquire(start + 1_s).retry == 86'399_s);
    CHECK(b.acquire(start + 86'399.999999_s).retry == 1);
    CHECK(b.acquire(start + 86'400_s).ok);
  }
}

TEST_CASE("B022 a refill time that no double can say") {
  Bucket weekly(TB(1, 1 / 49.0)), monthly(TB(1, 1.0 / 2'592'000));
  CHECK(weekly.acquire(0_s).ok);
  CHECK(weekly.acquire(49_s - 1).retry == 1);
  CHECK(weekly.acquire(49_s).ok);
  CHECK(monthly.acquire(0_s).ok);
  CHECK(monthly.acquire(2'592'000_s - 1).retry == 1);
  CHECK(monthly.acquire(2'592'000_s).ok);
}

TEST_CASE("B023 fractional costs add up") {
  const auto grants = [](double capacity, double cost, int calls) {
    Bucket b(TB(capacity, 0));
    int ok = 0;
    for (int i = 0; i < calls; ++i) ok += b.acquire(0_s, cost).ok ? 1 : 0;
    CHECK(b.peek(0_s).rem == 0);
    return ok;
  };
  CHECK(grants(0.3, 0.1, 4) == 3);
  CHECK(grants(2.4, 0.8, 4) == 3);
  CHECK(grants(10, 0.1, 101) == 100);
}

TEST_CASE("B024 long idle times a high rate") {
  Bucket b(TB(1e9, 1e9));
  CHECK(b.acquire(0_s, 1e9).ok);
  CHECK(b.peek(30_days).rem == 1e9);
  CHECK(b.acquire(30_days, 1e9).ok);
  Bucket c(TB(9.8e8, 9.8e7));
  CHECK(c.acquire(0_s, 9.8e8).ok);
  CHECK(c.peek(10_s).rem == 9.8e8);
}

TEST_CASE("B025 a wait of three hundred thousand years is refused at definition") {
  CHECK(make_bucket(Kind::token_bucket, 1e9, 0.0001).error == DefinitionError::refill_too_slow);
  // The longest refill that is accepted still waits a positive time.
  Bucket b(TB(4503, 1e-6));
  CHECK(b.acquire(0_s, 4503).ok);
  CHECK(b.acquire(0_s, 4503).retry == 4'503'000'000_s);
}

TEST_CASE("B028 waits are rounded up to the microsecond") {
  Bucket b(TB(3, 3));
  CHECK(b.acquire(0_s, 3).ok);
  CHECK(b.acquire(0_s).retry == 333'334);
  CHECK(b.acquire(333'333).retry == 1);
  CHECK(b.acquire(333'334).ok);
}

TEST_CASE("B030 a bucket admits its capacity plus what refills") {
  Bucket b(TB(17, 17 / 30.0));
  int ok = 0;
  Answer first_denied;
  Micros denied_at = -1;
  for (int k = 0; k < 30; ++k) {
    for (const Micros now : {k * 1_s, k * 1_s + 0.25_s}) {
      const Answer a = b.acquire(now);
      ok += a.ok ? 1 : 0;
      if (!a.ok && denied_at < 0) denied_at = now, first_denied = a;
    }
  }
  CHECK(ok == 33);
  CHECK(denied_at == 11.25_s);
  CHECK(first_denied.retry == 1.102942_s);
}

TEST_CASE("B034 jitter between sessions mints no tokens") {
  Bucket b(TB(5, 1));
  CHECK(b.acquire(100_s, 5).ok);
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(b.acquire(i % 2 == 0 ? 99.99_s : 100_s).ok);
  CHECK(b.acquire(101_s).ok);
  CHECK_FALSE(b.acquire(101_s).ok);
}

TEST_CASE("B035 time that passes inside a transaction refills") {
  Bucket b(TB(1, 10));
  CHECK(b.acquire(0_s).ok);
  CHECK(b.acquire(0.3_s).ok);
}

TEST_CASE("B076 a cell shorter than a millisecond") {
  Bucket b(TB(1, 1'000'000));
  CHECK(b.acquire(0_s).ok);
  const Answer same_instant = b.acquire(0_s);
  CHECK_FALSE(same_instant.ok);
  CHECK(same_instant.retry == 1);
}

TEST_CASE("B086 a refund never lifts a bucket above full") {
  Bucket b(TB(10, 1));
  const Answer a = b.acquire(0_s, 4);
  b.give_back(10_s, a);
  CHECK(b.peek(10_s).rem == 10);
  b.give_back(10_s, a);
  CHECK(b.peek(10_s).rem == 10);
  CHECK(cost_units(b.limit(), -3) == 0);
  CHECK(cost_units(b.limit(), std::numeric_limits<double>::quiet_NaN()) == 0);
}

TEST_CASE("limitra 8.3 token and leaky bucket are one arithmetic") {
  Bucket token(TB(1, 3)), leaky(LB(1, 3));
  Micros now = 0;
  Random random(83);
  for (int i = 0; i < 500; ++i) {
    now += random.between(0, 400'000);
    const Answer t = token.acquire(now), l = leaky.acquire(now);
    REQUIRE(t.ok == l.ok);
    REQUIRE(t.rem == l.rem);
    REQUIRE(t.retry == l.retry);
    REQUIRE(t.reset == l.reset);
  }
}

TEST_CASE("limitra 8.3 a client paced at exactly the rate is always admitted") {
  for (const Micros start : {0_s, 1'000'000_s, 1'700'000'000_s}) {
    Bucket b(TB(1, 10), start);
    for (int k = 0; k < 1000; ++k) REQUIRE(b.acquire(start + k * 0.1_s).ok);
  }
}

TEST_CASE("limitra 8.4 after reset_after the bucket is full, and not before") {
  Bucket b(TB(1000, 100), 9'862'762.537692_s);
  const Answer a = b.acquire(9'862'762.537692_s, 2);
  CHECK(a.reset == 0.02_s);
  CHECK(b.peek(9'862'762.537692_s + a.reset).rem == 1000);
  CHECK(b.peek(9'862'762.537692_s + a.reset).reset == 0);
  CHECK(b.peek(9'862'762.537692_s + a.reset - 1).rem < 1000);
}

TEST_CASE("limitra 8.9 a late refund does not touch what others took") {
  Bucket b(TB(10, 1));
  const Answer early = b.acquire(0_s, 5);
  CHECK(b.acquire(5_s, 10).ok);
  b.give_back(5_s, early);
  CHECK(b.peek(5_s).rem == 0);
}

TEST_CASE("limitra 8.11 a clock set back lends nothing and locks nobody out") {
  Bucket b(TB(10, 10), 100_s);
  CHECK(b.acquire(100_s, 10).ok);
  const Answer denied = b.acquire(40_s, 1);
  CHECK_FALSE(denied.ok);
  CHECK(denied.rem == 0);
  CHECK(denied.retry == 0.1_s);
  CHECK(b.acquire(40.1_s, 1).ok);
  CHECK_FALSE(b.acquire(40.1_s, 1).ok);
}

TEST_CASE("a clock that swings by an hour grants what the hour is worth, once a swing, never more than a bucket") {
  Bucket b(TB(5, 1));
  CHECK(b.acquire(0_s, 5).ok);
  for (int swing = 0; swing < 10; ++swing) {
    CHECK_FALSE(b.acquire(0_s).ok);
    CHECK(b.acquire(3600_s, 5).ok);
    CHECK_FALSE(b.acquire(3600_s).ok);
  }
}

TEST_CASE("a clock a second behind is jitter, a microsecond more is a step") {
  Bucket b(TB(5, 1), 100_s);
  CHECK(b.acquire(100_s, 5).ok);
  CHECK(b.acquire(99_s).retry == 2_s);  // until 101 s by the caller's own clock
  CHECK(b.state().at == 100_s);
  CHECK(b.acquire(99_s - 1).retry == 1_s);
  CHECK(b.state().at == 99_s - 1);
}

TEST_CASE("a reservation is a place in the queue of time") {
  const Limit limit = TB(1, 10);
  State s = fresh(limit, 0);
  for (int i = 0; i < 5; ++i) {
    const Outcome o = meter::reserve(limit, s, 0, limit.capacity, 0.4_s);
    REQUIRE(o.decision.allowed);
    CHECK(o.decision.delay == i * 0.1_s);
    CHECK(o.decision.remaining == 0);
    s = o.next;
  }
  const Outcome sixth = meter::reserve(limit, s, 0, limit.capacity, 0.4_s);
  CHECK_FALSE(sixth.decision.allowed);
  CHECK(sixth.decision.delay == 0);
  CHECK(sixth.next == s);
  CHECK(sixth.decision.retry_after == 0.1_s);
  CHECK_FALSE(meter::reserve(limit, s, 0.1_s - 1, limit.capacity, 0.4_s).decision.allowed);
  CHECK(meter::reserve(limit, s, 0.1_s, limit.capacity, 0.4_s).decision.allowed);
  CHECK(meter::decide(limit, s, 0, limit.capacity).decision.retry_after == 0.5_s);
}

TEST_CASE("nobody gets a place at the end of an endless queue") {
  const Limit quota = TB(1, 0);
  const State spent = meter::decide(quota, fresh(quota, 0), 0, quota.capacity).next;
  const Outcome o = meter::reserve(quota, spent, 0, quota.capacity, kNever);
  CHECK_FALSE(o.decision.allowed);
  CHECK(o.decision.retry_after == kNever);
}

TEST_CASE("a charge is a debt that must be paid off") {
  Bucket b(TB(10, 1));
  const Answer a = b.charge(0_s, 25);
  CHECK(a.ok);
  CHECK(a.rem == 0);
  CHECK(a.reset == 25_s);
  CHECK(b.acquire(0_s).retry == 16_s);
  CHECK(b.acquire(16_s).ok);
  for (int i = 0; i < 3; ++i) b.charge(16_s, 4e9);
  CHECK(b.state().used == kMaxSum);
  CHECK(b.acquire(16_s).retry > 0);
}

TEST_CASE("a refund of a charge gives back all of it") {
  Bucket b(TB(10, 1)), quota(TB(10, 0));
  b.acquire(0_s, 5);
  b.give_back(0_s, b.charge(0_s, 25));
  CHECK(b.peek(0_s).rem == 5);
  b.give_back(2_s, b.charge(1_s, 25));
  CHECK(b.peek(2_s).rem == 7);
  quota.give_back(1_s, quota.charge(0_s, 25));
  CHECK(quota.peek(1_s).rem == 10);
}

TEST_CASE("a refund under a later charge gives back what is still owed") {
  Bucket b(TB(10, 1));
  const Answer first = b.acquire(0_s, 5);
  b.charge(0_s, 25);
  b.give_back(1_s, first);
  CHECK(b.acquire(1_s).retry == 16_s);  // 25 - 1 + 1 - 10, and 4 of the 5 came back
}

TEST_CASE("a charge larger than any bucket can be given back without overflow") {
  Bucket b(TB(100, 1 / 86400.0));
  const Answer a = b.charge(0_s, 1e9);
  b.give_back(0_s, a);
  CHECK(b.state().used >= 0);
  CHECK(b.state().used < kMaxSum);
}

TEST_CASE("what was just taken is given back whole, also by GCRA") {
  for (const Limit& limit : {TB(7, 3), LB(7, 3), GCRA(7, 60_s), GCRA(10, 3_s), GCRA(1000, 0.007_s)}) {
    for (const int cost : {1, 2, 3, 5, 6}) {
      Bucket b(limit);
      const Answer first = b.acquire(0_s, cost), second = b.acquire(0_s);
      b.give_back(0_s, second);
      CHECK(b.state().used == cost * power_of_ten(limit.scale) * limit.d);
      b.give_back(0_s, first);
      CHECK(b.state().used == 0);
    }
  }
}

TEST_CASE("a decision from before the clock was set back gives nothing back") {
  Bucket b(TB(5, 1), 100_s);
  const Answer before = b.acquire(100_s, 5);
  CHECK_FALSE(b.acquire(40_s, 5).ok);
  CHECK(b.acquire(45_s, 5).ok);
  b.give_back(45_s, before);
  CHECK(b.peek(45_s).rem == 0);
}

}  // namespace taskq::ratelimit::test
