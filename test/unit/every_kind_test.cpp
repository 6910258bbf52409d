// What must hold for all six kinds of limits alike.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "bucket.hpp"

namespace taskq::ratelimit::test {

namespace {

struct Named {
  std::string name;
  Limit limit;
};

// `units` per `window`, all of them there at the start; the buckets refill only `rate` per second.
std::vector<Named> all_kinds(std::int64_t units, Micros window, double rate) {
  const double capacity = static_cast<double>(units);
  return {{"token bucket", TB(capacity, rate)}, {"leaky bucket", LB(capacity, rate)},
          {"log", SWL(units, window)},          {"gcra", GCRA(units, window)},
          {"counter", SWC(units, window)},      {"fixed window", FW(units, window)}};
}

const double kNotNumbers[] = {std::nan(""), HUGE_VAL, -1.0, -0.0};

}  // namespace

TEST_CASE("B006 remaining stops at zero") {
  for (const auto& [name, limit] : all_kinds(3, 60_s, 0.001)) {
    INFO(name);
    Bucket b(limit);
    for (const double rem : {2, 1, 0, 0, 0}) CHECK(b.acquire(0_s).rem == rem);
    b.charge(0_s, 2);
    CHECK(b.peek(1_s).rem == 0);
  }
}

TEST_CASE("B012 exactly the limit, not one more") {
  for (const auto& [name, limit] : all_kinds(7, 60_s, 0.001)) {
    INFO(name);
    Bucket b(limit);
    for (const double rem : {6, 5, 4, 3, 2, 1, 0}) {
      const Answer a = b.acquire(0_s);
      CHECK(a.ok);
      CHECK(a.rem == rem);
      CHECK(a.retry == 0);
    }
    const Answer eighth = b.acquire(0_s);
    CHECK_FALSE(eighth.ok);
    CHECK(eighth.rem == 0);
    CHECK(eighth.retry > 0);
  }
}

TEST_CASE("B016 a call too large for now leaves the rest usable") {
  Bucket bucket(TB(10, 0.1));
  CHECK(bucket.acquire(0_s, 8).rem == 2);
  const Answer denied = bucket.acquire(0_s, 5);
  CHECK_FALSE(denied.ok);
  CHECK(denied.rem == 2);
  CHECK(denied.retry == 30_s);
  CHECK(bucket.acquire(0_s, 1).rem == 1);
  for (const Limit& limit : {FW(10, 60_s), SWL(10, 60_s), SWC(10, 60_s), GCRA(10, 60_s)}) {
    Bucket b(limit);
    CHECK(b.acquire(0_s, 8).ok);
    CHECK(b.acquire(0_s, 5).rem == 2);
    CHECK(b.acquire(0_s, 2).rem == 0);
  }
}

TEST_CASE("B017 a cost above the limit could never be admitted, the limit itself can") {
  for (const auto& [name, limit] : all_kinds(3, 10_s, 1)) {
    INFO(name);
    CHECK(cost_units(limit, 4) == 0);
    CHECK(cost_units(limit, 3) == limit.most());
    CHECK(Bucket(limit).acquire(0_s, 3).ok);
  }
  CHECK(cost_units(TB(3, 1.5), 3.0000005) == 0);
  CHECK(cost_units(TB(3, 1.5), 3.0000004) > 0);
}

TEST_CASE("B018 what is not a number is neither a definition nor a cost") {
  for (const double x : kNotNumbers) {
    INFO(x);
    CHECK(make_bucket(Kind::token_bucket, x, 1.0).error != DefinitionError::none);
    CHECK(make_bucket(Kind::token_bucket, 1.0, x).error != DefinitionError::none);
    CHECK(make_bucket(Kind::leaky_bucket, 1.0, x, 1_s).error != DefinitionError::none);
    for (const auto& [name, limit] : all_kinds(3, 10_s, 1)) CHECK(cost_units(limit, x) == 0);
  }
  for (const std::int64_t x : {std::int64_t{0}, std::int64_t{-1}, kMaxProduct + 1, kNever, -kNever}) {
    INFO(x);
    CHECK(make_bucket(Kind::token_bucket, 1.0, 1.0, x).error != DefinitionError::none);
    CHECK(make_fixed_window(x, 60_s).error != DefinitionError::none);
    CHECK(make_fixed_window(1, x).error != DefinitionError::none);
    for (const Kind kind : {Kind::sliding_window_log, Kind::sliding_window_gcra, Kind::sliding_window_counter}) {
      CHECK(make_sliding_window(kind, x, 60_s).error != DefinitionError::none);
      CHECK(make_sliding_window(kind, 1, x).error != DefinitionError::none);
    }
  }
}

TEST_CASE("B018 windows take whole numbers, buckets fractions down to their unit") {
  for (const Limit& limit : {SWL(3, 10_s), GCRA(3, 10_s), SWC(3, 10_s), FW(3, 10_s)}) {
    CHECK(cost_units(limit, 1.5) == 0);
    CHECK(cost_units(limit, 0.9999999999) == 0);
    CHECK(cost_units(limit, 2) == 2);
  }
  CHECK(cost_units(TB(3, 1), 0.000001) == 1);
}

TEST_CASE("B019 a cost of zero, or one that rounds to it, is refused") {
  for (const auto& [name, limit] : all_kinds(2, 60_s, 0.001)) {
    INFO(name);
    CHECK(cost_units(limit, 0) == 0);
    CHECK(cost_units(limit, 0.0000004) == 0);
  }
}

TEST_CASE("B020 limits of size zero are refused, limits that never refill are not") {
  CHECK(make_bucket(Kind::token_bucket, 0, 1.0).error == DefinitionError::capacity_not_positive);
  CHECK(make_sliding_window(Kind::sliding_window_log, 0, 60_s).error == DefinitionError::requests_not_positive);
  Bucket quota(TB(1, 0));
  CHECK(quota.acquire(0_s).reset == kNever);
  for (const Micros now : {1_s, 34'560'000_s}) {
    const Answer a = quota.acquire(now);
    CHECK_FALSE(a.ok);
    CHECK(a.retry == kNever);
  }
}

TEST_CASE("B026 idle time is not a savings account") {
  for (const auto& [name, limit] : all_kinds(3, 3_s, 1)) {
    INFO(name);
    Bucket b(limit);
    CHECK(b.acquire(0_s).ok);
    for (int i = 0; i < 3; ++i) CHECK(b.acquire(3600_s).ok);
    const Answer fourth = b.acquire(3600_s);
    CHECK_FALSE(fourth.ok);
    if (limit.algorithm() == Algorithm::meter) CHECK(fourth.retry == 1_s);
  }
}

TEST_CASE("B033 the clock steps back") {
  for (const auto& [name, limit] : all_kinds(5, 60_s, 1)) {
    INFO(name);
    Bucket b(limit);
    CHECK(b.acquire(100_s, 5).ok);
    const Answer denied = b.acquire(40_s);
    CHECK_FALSE(denied.ok);
    CHECK(denied.rem == 0);
    CHECK(denied.retry > 0);
    // The counter fades within the next window; the others are through within one window or one full refill.
    const Micros longest = limit.algorithm() == Algorithm::two_counter ? 120_s : 60_s;
    CHECK(denied.retry <= longest);
    CHECK_FALSE(b.acquire(40_s + denied.retry - 1).ok);
    CHECK(b.acquire(40_s + denied.retry).ok);
  }
}

TEST_CASE("B033 after a step back the wait runs on, whoever asks meanwhile") {
  for (const auto& [name, limit] : all_kinds(5, 60_s, 1)) {
    INFO(name);
    Bucket b(limit);
    CHECK(b.acquire(1000_s, 5).ok);
    const Micros until = 40_s + b.acquire(40_s).retry;
    for (Micros now = 40_s; now < until; now += 0.3_s) CHECK(now + b.acquire(now).retry == until);
    CHECK(b.acquire(until).ok);
  }
}

TEST_CASE("B034 jitter below a second credits nothing, whatever the kind") {
  for (const auto& [name, limit] : all_kinds(5, 60_s, 1 / 12.0)) {
    INFO(name);
    Bucket b(limit);
    CHECK(b.acquire(100_s, 5).ok);
    const Micros through = 100_s + b.acquire(100_s).retry;
    for (int i = 0; i < 200; ++i) {
      const Micros now = i % 2 == 0 ? 99.01_s : 100_s;
      const Answer a = b.acquire(now);
      CHECK_FALSE(a.ok);
      CHECK(now + a.retry == through);
    }
    CHECK(b.acquire(through).ok);
  }
}

TEST_CASE("B040 the same definition is the same limit, another one is not") {
  CHECK(TB(10, 0.1) == TB(10, 0.1));
  CHECK(TB(10, 0.1) == checked(make_bucket(Kind::token_bucket, 10, 1, 10_s)));
  CHECK_FALSE(TB(10, 0.1) == TB(10, 0.2));
  CHECK_FALSE(TB(10, 0.1) == LB(10, 0.1));
  CHECK_FALSE(FW(10, 60_s) == anchored_at(FW(10, 60_s), 0));
}

TEST_CASE("B041 one more in the limit is one more, not a new budget") {
  const auto ten = all_kinds(10, 60_s, 0.001), eleven = all_kinds(11, 60_s, 0.001);
  for (std::size_t i = 0; i < ten.size(); ++i) {
    INFO(ten[i].name);
    Bucket b(ten[i].limit);
    CHECK(b.acquire(0_s, 10).ok);
    b.replace(0_s, eleven[i].limit);
    CHECK(b.acquire(0_s).ok);
    CHECK_FALSE(b.acquire(0_s).ok);
  }
}

TEST_CASE("limitra 8.5 limits that no double counts are refused, the largest that are accepted are exact") {
  CHECK(make_bucket(Kind::token_bucket, 0x1p54, 1.0).error == DefinitionError::capacity_too_large);
  CHECK(make_bucket(Kind::token_bucket, 9007199254740993.0, 1.0).error == DefinitionError::capacity_too_large);
  Bucket b(TB(0x1p52, 1e6));
  CHECK(b.acquire(0_s, 0x1p52).ok);
  CHECK(b.acquire(0_s).retry == 1);
  for (const Limit& limit : {FW(kMaxProduct, 60_s), SWL(kMaxProduct, 60_s)}) {
    Bucket w(limit);
    CHECK(w.acquire(0_s, 0x1p52 - 1).rem == 1);
    CHECK(w.acquire(0_s).rem == 0);
    CHECK_FALSE(w.acquire(0_s).ok);
  }
}

TEST_CASE("limitra 8.7 definitions without a finite end are refused, each by its bound") {
  const auto bucket = [](double capacity, double rate) {
    return make_bucket(Kind::token_bucket, capacity, rate).error;
  };
  CHECK(bucket(1, 5e-324) == DefinitionError::refill_too_slow);
  CHECK(bucket(1, 1e-300) == DefinitionError::refill_too_slow);
  CHECK(bucket(1, 1e300) == DefinitionError::rate_too_large);
  CHECK(bucket(1e-6, 1e16) == DefinitionError::rate_too_large);
  CHECK(bucket(1e300, 1) == DefinitionError::capacity_too_large);
  CHECK(bucket(1e-7, 1) == DefinitionError::capacity_too_small);
  CHECK(make_fixed_window(5, kMaxProduct + 1).error == DefinitionError::window_too_long);
  CHECK(make_fixed_window(kMaxProduct + 1, 1).error == DefinitionError::requests_too_large);
  Bucket tiny(FW(1, 1));
  CHECK(tiny.acquire(1'000'000_s).ok);
  CHECK_FALSE(tiny.acquire(1'000'000_s).ok);
  CHECK(tiny.acquire(1'000'000_s + 1).ok);
}

TEST_CASE("an exact rate is an amount each period") {
  const auto exact = [](double amount, Micros period) { return make_bucket(Kind::token_bucket, 100, amount, period); };
  CHECK(exact(100, 60_s).limit == TB(100, 100 / 60.0));
  CHECK(exact(1, 86'400_s).limit == TB(100, 1 / 86'400.0));
  CHECK(exact(0, 60_s).limit.never_refills());
  CHECK(exact(-1, 60_s).error == DefinitionError::rate_negative);
  CHECK(exact(1, 0).error == DefinitionError::period_not_positive);
  CHECK(exact(1e30, 60_s).error == DefinitionError::rate_too_large);
}

TEST_CASE("an exact amount is not rounded to a unit") {
  const auto exact = [](double amount, Micros period) {
    return checked(make_bucket(Kind::token_bucket, 1, amount, period));
  };
  CHECK(exact(5 / 3.0, 1_s) == TB(1, 5 / 3.0));
  CHECK(exact(1e-7, 1_s) == TB(1, 1e-7));
  CHECK(exact(1.5e-6, 1_s) == TB(1, 1.5e-6));
  CHECK(make_bucket(Kind::token_bucket, 1, 1e-20, 1_s).error == DefinitionError::refill_too_slow);
}

TEST_CASE("what peek shows is what is left, and whether one more would pass") {
  for (const auto& [name, limit] : all_kinds(3, 60_s, 1)) {
    INFO(name);
    Bucket b(limit);
    CHECK(b.peek(0_s).rem == 3);
    CHECK(b.peek(0_s).ok);
    CHECK(b.peek(0_s).reset == 0);
    CHECK(b.acquire(0_s, 3).ok);
    const State before = b.state();
    const Answer look = b.peek(0_s), preview = b.preview(0_s);
    CHECK(b.state() == before);
    CHECK_FALSE(look.ok);
    CHECK(look.retry == preview.retry);
    CHECK(look.reset == preview.reset);
    CHECK(preview.retry == b.acquire(0_s).retry);
  }
}

TEST_CASE("a refund right after its decision restores what was there") {
  for (const auto& [name, limit] : all_kinds(10, 60_s, 1)) {
    INFO(name);
    Bucket b(limit);
    CHECK(b.acquire(0_s, 3).ok);
    const Answer a = b.acquire(5_s, 4);
    const double left = b.peek(5_s).rem;
    b.give_back(5_s, a);
    CHECK(b.peek(5_s).rem == left + 4);
  }
}

TEST_CASE("a refund of nothing that was taken changes nothing, and never lifts above the limit") {
  for (const auto& [name, limit] : all_kinds(10, 60_s, 1)) {
    INFO(name);
    Bucket b(limit);
    b.refund(0_s, 5);
    CHECK(b.peek(0_s).rem == 10);
    CHECK(b.acquire(1_s, 3).ok);
    b.refund(1_s, 10);
    CHECK(b.peek(1_s).rem == 10);
  }
}

TEST_CASE("what was decided before a bucket was made fresh is not given back to the fresh one") {
  for (const Limit& limit : {TB(10, 1), GCRA(10, 60_s), FW(10, 60_s), SWC(10, 60_s)}) {
    const Outcome old = decide(limit, fresh(limit, 10_s), 10_s, limit.capacity);
    State s = fresh(limit, 11_s);
    s = decide(limit, s, 11_s, limit.capacity).next;
    const Decision& d = old.decision;
    const State after = give_back(limit, s, 11_s, {limit.capacity, d.decided_at, d.delay, d.remaining, d.reset_after});
    CHECK(after.used == s.used);
  }
}

}  // namespace taskq::ratelimit::test
