// The largest numbers that a definition, a clock or a charge may bring: no overflow (the sanitized run would stop), and
// every answer within its range.
#include <catch2/catch.hpp>
#include <vector>

#include "bucket.hpp"
#include "random.hpp"

namespace taskq::ratelimit::test {

namespace {

std::vector<Limit> extreme_limits() {
  std::vector<Limit> all;
  const auto add = [&](const Definition& d) {
    if (d.error == DefinitionError::none) all.push_back(d.limit);
  };
  for (const double capacity : {1e-6, 1.0, 1234567.891, 0x1p32, 0x1p52}) {
    for (const double rate : {0.0, 1e-9, 1 / 3.0, 1e6, 1e15, 0x1p62})
      add(make_bucket(Kind::token_bucket, capacity, rate));
  }
  for (const std::int64_t limit : {std::int64_t{1}, std::int64_t{1000}, kMaxProduct / 3, kMaxProduct}) {
    for (const Micros window : {Micros{1}, Micros{1000}, kMaxProduct / 7, kMaxProduct}) {
      add(make_fixed_window(limit, window));
      add(make_sliding_window(Kind::sliding_window_gcra, limit, window));
      add(make_sliding_window(Kind::sliding_window_counter, limit, window));
    }
  }
  return all;
}

void check_ranges(const Limit& limit, const Decision& d) {
  REQUIRE(d.remaining >= 0);
  REQUIRE(d.remaining <= limit.capacity * limit.d);
  REQUIRE((d.retry_after == 0) == d.allowed);
  REQUIRE(d.retry_after >= 0);
  REQUIRE(d.reset_after >= 0);
  REQUIRE(d.delay >= 0);
}

void check_ranges(const Limit& limit, const State& s) {
  REQUIRE(s.used >= 0);
  REQUIRE(s.used <= kMaxSum);
  REQUIRE(s.previous >= 0);
  REQUIRE(s.previous <= limit.capacity);
  if (limit.algorithm() != Algorithm::meter) {
    REQUIRE(s.start <= s.at);
    REQUIRE(s.at - s.start < limit.window);
  }
}

State any_call(Random& random, const Limit& limit, const State& s, Micros now) {
  const std::int64_t cost = random.spread(1, limit.most()), huge = random.spread(1, std::int64_t{1} << 62);
  const Outcome decided = decide(limit, s, now, cost);
  check_ranges(limit, decided.decision);
  const Decision& d = decided.decision;
  switch (random.between(1, 6)) {
    case 1:
      return charge(limit, s, now, huge).next;
    case 2:
      return refund(limit, s, now, huge);
    case 3: {
      const Decision c = charge(limit, s, now, huge).decision;
      return give_back(limit, charge(limit, s, now, huge).next, now,
                       {huge, c.decided_at, 0, c.remaining, c.reset_after});
    }
    case 4:
      return settle(limit, decided.next, now, {cost, d.decided_at, d.delay, d.remaining, d.reset_after}, huge);
    case 5:
      return change(limit, s, limit, static_cast<Inherit>(random.between(0, 4)), now);
    default:
      return d.allowed ? decided.next : s;
  }
}

}  // namespace

TEST_CASE("nothing overflows at the ends of every range") {
  Random random(301);
  const std::vector<Limit> limits = extreme_limits();
  REQUIRE(limits.size() > 40);
  for (int i = 0; i < 20'000; ++i) {
    const Limit& limit =
        limits[static_cast<std::size_t>(random.between(0, static_cast<std::int64_t>(limits.size()) - 1))];
    INFO("seed " << seed() << ", round " << i << ": kind " << static_cast<int>(limit.kind) << ", capacity "
                 << limit.capacity);
    Micros now = random.between(-(std::int64_t{1} << 59), std::int64_t{1} << 59);
    State s = fresh(limit, now);
    for (int call = 0; call < 10; ++call) {
      s = any_call(random, limit, s, now);
      check_ranges(limit, s);
      now += random.one_in(5) ? -random.spread(0, std::int64_t{1} << 58) : random.spread(0, std::int64_t{1} << 56);
    }
  }
}

TEST_CASE("a reservation may be made for the latest instant that fits, and not beyond") {
  const Limit limit = TB(0x1p52, 1e6);
  State s = fresh(limit, 0);
  s = decide(limit, s, 0, limit.capacity).next;
  s = meter::reserve(limit, s, 0, limit.capacity - 1, kNever).next;
  CHECK(s.used == kMaxSum);
  const Outcome o = meter::reserve(limit, s, 0, 1, kNever);
  CHECK_FALSE(o.decision.allowed);
  CHECK(o.decision.retry_after == 1);
  CHECK(meter::reserve(limit, s, 1, 1, kNever).decision.allowed);
}

TEST_CASE("times far apart are no overflow") {
  for (const Limit& limit : {TB(10, 1), FW(10, 60_s), SWC(10, 60_s), SWL(10, 60_s)}) {
    Bucket b(limit, -4'000'000'000'000_s);
    CHECK(b.acquire(-4'000'000'000'000_s, 10).ok);
    CHECK(b.acquire(4'000'000'000'000_s, 10).ok);
    CHECK_FALSE(b.acquire(-4'000'000'000'000_s, 10).ok);
  }
}

}  // namespace taskq::ratelimit::test
