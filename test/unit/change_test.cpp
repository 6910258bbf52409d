// A definition is replaced: what becomes of what was used.
#include <catch2/catch.hpp>

#include "bucket.hpp"
#include "random.hpp"

namespace taskq::ratelimit::test {

namespace {

constexpr Inherit kAll[] = {Inherit::consumed, Inherit::as_is, Inherit::proportional, Inherit::additive,
                            Inherit::reset};

// What is left under `other` right after `used` of `limit` were taken and the definition was replaced.
double left_after(const Limit& limit, double used, const Limit& other, Inherit inherit) {
  Bucket b(limit);
  if (used > 0) REQUIRE(b.acquire(0_s, used).ok);
  b.replace(0_s, other, inherit);
  return b.peek(0_s).rem;
}

}  // namespace

TEST_CASE("B038 raising a limit does not hurt") {
  Bucket gcra(GCRA(16, 32_s));
  CHECK(gcra.acquire(0_s, 4).ok);
  gcra.replace(0_s, GCRA(1600, 32_s));
  const Answer a = gcra.acquire(0_s);
  CHECK(a.ok);
  CHECK(a.rem == 1595);

  Bucket log(SWL(1, 6000_s));
  CHECK(log.acquire(0_s).ok);
  log.replace(0_s, SWL(10, 6000_s));
  CHECK(log.acquire(0_s).rem == 8);

  Bucket bucket(TB(10, 1));
  CHECK(bucket.acquire(0_s, 7).ok);
  bucket.replace(0_s, TB(20, 1));
  CHECK(bucket.acquire(0_s, 3).ok);
  CHECK(bucket.peek(0_s).rem == 10);
}

TEST_CASE("B038 raising a limit never takes a unit away, whatever is inherited") {
  for (const Inherit inherit : kAll) {
    INFO("inherit " << static_cast<int>(inherit));
    CHECK(left_after(TB(10, 1), 7, TB(20, 1), inherit) >= 3);
    CHECK(left_after(GCRA(16, 32_s), 4, GCRA(1600, 32_s), inherit) >= 12);
    CHECK(left_after(FW(10, 60_s), 7, FW(20, 60_s), inherit) >= 3);
    CHECK(left_after(SWC(10, 60_s), 7, SWC(20, 60_s), inherit) >= 3);
  }
}

TEST_CASE("B039 lowering the capacity") {
  Bucket b(TB(100, 1));
  b.replace(0_s, TB(10, 1));
  CHECK(b.acquire(0_s).rem == 9);
  CHECK(b.peek(0_s).rem == 9);
  CHECK(b.peek(1000_s).rem == 10);
}

TEST_CASE("B039 nothing above the new capacity is ever there") {
  for (const Inherit inherit : kAll) {
    for (const double used : {0.0, 1.0, 50.0, 99.0, 100.0}) {
      INFO("inherit " << static_cast<int>(inherit) << ", used " << used);
      const double left = left_after(TB(100, 1), used, TB(10, 1), inherit);
      CHECK(left >= 0);
      CHECK(left <= 10);
    }
  }
}

TEST_CASE("consumed: what was used stays used") {
  CHECK(left_after(TB(10, 1), 7, TB(20, 1), Inherit::consumed) == 13);
  CHECK(left_after(TB(10, 1), 7, TB(8, 1), Inherit::consumed) == 1);
  CHECK(left_after(TB(10, 1), 7, TB(5, 1), Inherit::consumed) == 0);
}

TEST_CASE("as_is: what was left stays left, clamped") {
  CHECK(left_after(TB(10, 1), 7, TB(20, 1), Inherit::as_is) == 3);
  CHECK(left_after(TB(10, 1), 7, TB(8, 1), Inherit::as_is) == 3);
  CHECK(left_after(TB(10, 1), 7, TB(2, 1), Inherit::as_is) == 2);
}

TEST_CASE("proportional: the same share is left") {
  CHECK(left_after(TB(10, 1), 7, TB(20, 1), Inherit::proportional) == 6);
  CHECK(left_after(TB(10, 1), 7, TB(5, 1), Inherit::proportional) == 1.5);
  CHECK(left_after(FW(10, 60_s), 7, FW(5, 60_s), Inherit::proportional) == 1);  // rounded against the caller
}

TEST_CASE("additive: a larger capacity adds the difference, a smaller one clamps") {
  CHECK(left_after(TB(10, 1), 7, TB(20, 1), Inherit::additive) == 13);
  CHECK(left_after(TB(10, 1), 7, TB(5, 1), Inherit::additive) == 3);
  CHECK(left_after(TB(10, 1), 7, TB(2, 1), Inherit::additive) == 2);
}

TEST_CASE("reset: starts full") {
  CHECK(left_after(TB(10, 1), 7, TB(20, 1), Inherit::reset) == 20);
  CHECK(left_after(FW(10, 60_s), 7, GCRA(5, 60_s), Inherit::reset) == 5);
}

TEST_CASE("another kind: what was used stays used in the new one's units") {
  CHECK(left_after(TB(10, 1), 3.5, FW(10, 60_s), Inherit::consumed) == 6);
  CHECK(left_after(FW(10, 60_s), 4, TB(10, 1 / 49.0), Inherit::consumed) == 6);
  CHECK(left_after(GCRA(7, 60_s), 3, SWC(7, 60_s), Inherit::consumed) == 4);
  CHECK(left_after(SWC(7, 60_s), 3, GCRA(7, 60_s), Inherit::consumed) == 4);
  CHECK(left_after(LB(2.5, 0.1), 0.5, TB(2.5, 0.1), Inherit::consumed) == 2);
}

TEST_CASE("another scale: fractions are carried over exactly, or against the caller") {
  // 1000 at 0.123456789 per second counts in ten-thousandths.
  const Limit coarse = TB(1000, 0.123456789), fine = TB(1000, 1);
  REQUIRE(coarse.scale == 4);
  CHECK(left_after(coarse, 0.125, fine, Inherit::consumed) == 999.875);
  const double left = left_after(fine, 0.000001, coarse, Inherit::consumed);
  CHECK(left <= 999.999999);
  CHECK(left > 999.9998);
}

TEST_CASE("the debt of a bucket goes on shrinking at the new rate") {
  Bucket b(TB(10, 1));
  CHECK(b.acquire(0_s, 10).ok);
  b.replace(4_s, TB(10, 2));
  CHECK(b.peek(4_s).rem == 4);
  CHECK(b.peek(7_s).rem == 10);
  CHECK(b.peek(6_s).rem == 8);
}

TEST_CASE("a window that keeps its length keeps its phase") {
  for (const Inherit inherit : {Inherit::consumed, Inherit::as_is, Inherit::proportional, Inherit::additive}) {
    Bucket b(FW(10, 60_s), 7_s);
    CHECK(b.acquire(7_s, 5).ok);
    b.replace(30_s, FW(20, 60_s), inherit);
    CHECK(b.state().start == 7_s);
    CHECK(b.peek(67_s).rem == 20);
  }
}

TEST_CASE("a window of another length starts at the change, with what was used") {
  Bucket b(FW(10, 60_s));
  CHECK(b.acquire(0_s, 4).ok);
  b.replace(30_s, FW(10, 3600_s));
  CHECK(b.peek(30_s).rem == 6);
  CHECK(b.peek(30_s).reset == 3600_s);
}

TEST_CASE("a counter keeps both windows when only its limit changes") {
  Bucket b(anchored_at(SWC(100, 60_s), 0));
  CHECK(b.acquire(0_s, 80).ok);
  CHECK(b.acquire(60_s, 5).ok);
  b.replace(75_s, anchored_at(SWC(200, 60_s), 0));
  CHECK(b.peek(75_s).rem == 135);
  CHECK(b.peek(120_s).rem == 195);
  b.replace(75_s, anchored_at(SWC(50, 60_s), 0));
  CHECK(b.peek(120_s).rem == 45);
}

TEST_CASE("a change under a jittering clock credits nothing") {
  Bucket b(TB(10, 1));
  CHECK(b.acquire(100_s, 10).ok);
  b.replace(99.5_s, TB(10, 2));
  CHECK(b.peek(100_s).rem == 0);
  CHECK(b.peek(101_s).rem == 2);
}

TEST_CASE("the same definition again changes nothing") {
  Random random(99);
  for (int i = 0; i < 2000; ++i) {
    const std::int64_t limit = random.spread(1, 1'000'000);
    const Micros window = random.spread(1, 86'400_s);
    const Limit kinds[] = {TB(static_cast<double>(limit), 7), FW(limit, window), SWC(limit, window)};
    const Limit& same = kinds[random.between(0, 2)];
    Bucket b(same);
    b.acquire(0_s, static_cast<double>(random.between(1, limit)));
    const Micros now = random.spread(0, 2 * window);
    const Answer before = b.peek(now);
    for (const Inherit inherit : {Inherit::consumed, Inherit::as_is, Inherit::proportional, Inherit::additive}) {
      Bucket changed = b;
      changed.replace(now, same, inherit);
      const Answer after = changed.peek(now);
      REQUIRE(after.rem == before.rem);
      // A counter that cannot keep both counts books them all in this window.
      const bool both_kept = same.algorithm() != Algorithm::two_counter || inherit == Inherit::consumed;
      if (both_kept) REQUIRE(after.retry == before.retry);
      REQUIRE(after.retry >= before.retry);
    }
  }
}

TEST_CASE("a change gives no unit away, for any two scales") {
  Random random(98);
  for (int i = 0; i < 20'000; ++i) {
    const Limit from{.scale = static_cast<int>(random.between(0, 6)),
                     .capacity = random.spread(1, 1'000'000),
                     .d = random.spread(1, 1'000'000)};
    const Limit to{.scale = static_cast<int>(random.between(0, 6)),
                   .capacity = random.spread(1, 1'000'000),
                   .d = random.spread(1, 1'000'000)};
    const std::int64_t used = random.between(0, from.capacity * from.d);
    const long double was_used = static_cast<long double>(to_amount(from, used)),
                      was_left = static_cast<long double>(to_amount(from, from.capacity * from.d)) - was_used;
    for (const Inherit inherit : {Inherit::consumed, Inherit::as_is, Inherit::proportional, Inherit::additive}) {
      const std::int64_t now_used = used_after_change(from, used, to, inherit);
      const std::int64_t full = to.capacity * to.d;
      REQUIRE(now_used >= 0);
      REQUIRE(now_used <= full);
      const long double left = static_cast<long double>(to_amount(to, full - now_used));
      const long double slack = 1e-12L * (left + was_left + was_used);
      if (inherit == Inherit::consumed && now_used < full)
        CHECK(static_cast<long double>(to_amount(to, now_used)) >= was_used - slack);
      if (inherit == Inherit::as_is) CHECK(left <= was_left + slack);
      if (inherit == Inherit::proportional)
        CHECK(Wide{full - now_used} * (from.capacity * from.d) <= Wide{full} * (from.capacity * from.d - used));
    }
  }
}

}  // namespace taskq::ratelimit::test
