// Refunds of decisions, against the history in which the call never was, and against what a bucket may admit at most.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bucket.hpp"
#include "random.hpp"

namespace taskq::ratelimit::test {

namespace {

Taken taken_by(const Decision& d, std::int64_t cost) {
  return {cost, d.decided_at, d.delay, d.remaining, d.reset_after};
}

// Small numbers: everything meets everything.
Limit random_meter(Random& random) {
  const Kind kind = random.one_in(3) ? Kind::sliding_window_gcra : Kind::token_bucket;
  const Rational rate = reduced(random.one_in(10) ? 0 : random.between(1, 7), random.between(1, 9));
  Limit limit{.kind = kind,
              .capacity = random.between(1, 12),
              .n = static_cast<std::int64_t>(rate.n),
              .d = static_cast<std::int64_t>(rate.d)};
  if (limit.n == 0) limit.kind = Kind::token_bucket;
  return limit;
}

Limit random_limit(Random& random) {
  if (random.one_in(2)) return random_meter(random);
  const std::int64_t capacity = random.between(1, 12);
  const Micros window = random.between(1, 40);
  return random.one_in(2) ? FW(capacity, window) : SWC(capacity, window);
}

Outcome call(const Limit& limit, const State& s, Micros now, std::int64_t cost, Micros max_wait) {
  return limit.algorithm() == Algorithm::meter ? meter::reserve(limit, s, now, cost, max_wait)
                                               : decide(limit, s, now, cost);
}

std::string told(const Limit& l) {
  return "kind " + std::to_string(static_cast<int>(l.kind)) + ", capacity " + std::to_string(l.capacity) + ", rate " +
         std::to_string(l.n) + "/" + std::to_string(l.d) + ", window " + std::to_string(l.window);
}

// Two histories that differ in one call: `without` has it cheaper, or not at all.
struct Histories {
  State with, without;
  Taken taken;

  // What others are admitted to do happens in both.
  bool others(const Limit& limit, Micros now, std::int64_t cost, Micros max_wait) {
    const Outcome o = call(limit, with, now, cost, max_wait);
    if (!o.decision.allowed) return false;
    with = o.next;
    without = charge(limit, without, now, cost).next;
    return true;
  }

  bool the_call(const Limit& limit, Micros now, std::int64_t cost, std::int64_t cheaper, Micros max_wait) {
    const Outcome o = call(limit, with, now, cost, max_wait);
    if (!o.decision.allowed) return false;
    with = o.next;
    taken = taken_by(o.decision, cost);
    without = cheaper == 0 ? advance(limit, without, now) : charge(limit, without, now, cheaper).next;
    return true;
  }
};

// Refunds (or settles at `cheaper`) one call of many and compares. Time jitters, but is not set back.
void one_call_is_undone(Random& random, const Limit& limit) {
  const State s = fresh(limit, 0);
  Histories h{s, s, {}};
  Micros now = 0;
  const auto others = [&](std::int64_t calls) {
    bool any = false;
    for (; calls > 0; --calls) {
      now += random.between(-2, 7);
      any |= h.others(limit, now, random.between(1, limit.capacity), random.between(0, 9));
    }
    return any;
  };
  others(random.between(0, 4));
  const std::int64_t cost = random.between(1, limit.capacity),
                     cheaper = random.one_in(2) ? 0 : random.between(0, cost - 1);
  if (!h.the_call(limit, now, cost, cheaper, random.between(0, 9))) return;
  const bool alone = !others(random.between(0, 4));
  now += random.between(0, 12);

  const State before = advance(limit, h.with, now), expected = advance(limit, h.without, now);
  const State after = settle(limit, h.with, now, h.taken, cheaper);
  INFO(told(limit) << ": cost " << cost << " settled at " << cheaper << " leaves " << after.used
                   << ", not calling leaves " << expected.used);
  REQUIRE(after.at == before.at);
  REQUIRE(after.used <= before.used);
  REQUIRE(after.previous <= before.previous);
  REQUIRE(after.used >= expected.used);
  REQUIRE(after.previous >= expected.previous);
  // If nobody else called all of it comes back; to within two microseconds' worth where a call costs less than one
  // refills.
  const bool exact = limit.algorithm() != Algorithm::meter || limit.d >= limit.n;
  if (alone) REQUIRE(after.used - expected.used <= (exact ? 0 : 2 * limit.n));
}

}  // namespace

TEST_CASE("property: a refund never leaves more than if the call had never been") {
  Random random(201);
  for (int i = 0; i < 200'000; ++i) {
    INFO("seed " << seed() << ", round " << i);
    one_call_is_undone(random, random_limit(random));
  }
}

namespace {

struct Kept {
  Micros ready;
  std::int64_t cost;
  Taken taken;
};

// Any mixture of calls, reservations and refunds; what was not refunded.
std::vector<Kept> kept_by(Random& random, const Limit& limit, Micros longest_wait) {
  State s = fresh(limit, 0);
  std::vector<Kept> kept;
  Micros now = 0;
  for (std::int64_t i = random.between(3, 14); i > 0; --i) {
    if (random.one_in(2)) now += random.between(0, 7);
    if (kept.empty() || !random.one_in(3)) {
      const std::int64_t cost = random.between(1, limit.capacity);
      const Outcome o = meter::reserve(limit, s, now, cost, random.between(0, longest_wait));
      if (!o.decision.allowed) continue;
      s = o.next;
      kept.push_back({o.decision.decided_at + o.decision.delay, cost, taken_by(o.decision, cost)});
    } else {
      const auto refunded = kept.begin() + random.between(0, static_cast<std::int64_t>(kept.size()) - 1);
      s = give_back(limit, s, now, refunded->taken);
      kept.erase(refunded);
    }
  }
  return kept;
}

// Instants of reservations are rounded up to the microsecond, which n - 1 grains are worth.
void check_no_interval_has_too_much(const Limit& limit, const std::vector<Kept>& kept) {
  for (const Kept& first : kept) {
    for (const Kept& last : kept) {
      if (last.ready < first.ready) continue;
      std::int64_t grains = 0;
      for (const Kept& k : kept) grains += k.ready >= first.ready && k.ready <= last.ready ? k.cost * limit.d : 0;
      REQUIRE(grains <= meter::full(limit) + limit.n * (last.ready - first.ready) + larger(0, limit.n - 1));
    }
  }
}

}  // namespace

TEST_CASE("property: whatever is refunded, the calls that were kept fit into the bucket") {
  Random random(202);
  for (int i = 0; i < 100'000; ++i) {
    const Limit limit = random_meter(random);
    INFO("seed " << seed() << ", round " << i << ": " << told(limit));
    check_no_interval_has_too_much(limit, kept_by(random, limit, i % 2 == 0 ? 0 : 20));
  }
}

TEST_CASE("calls of one instant are refunded whole in any order") {
  for (const Limit& limit : {TB(10, 1), GCRA(10, 60_s), FW(10, 60_s), SWC(10, 60_s)}) {
    for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {1, 2, 0}}) {
      Bucket b(limit);
      Answer calls[3];
      for (Answer& a : calls) a = b.acquire(5_s, 3);
      for (const std::size_t i : order) b.give_back(5_s, calls[i]);
      CHECK(b.peek(5_s).rem == 10);
    }
  }
}

TEST_CASE("a refund after others were refunded gives back no more than is owed") {
  Bucket b(TB(10, 1));
  const Answer first = b.acquire(0_s, 5), second = b.acquire(0_s, 5);
  b.give_back(0_s, first);
  CHECK(b.acquire(4_s, 5).ok);
  // Since the first was taken back, four of the second's five had been refilled: one is owed.
  b.give_back(4_s, second);
  CHECK(b.peek(4_s).rem == 5);
}

TEST_CASE("a place in the queue is not given to a second caller while others stand behind it") {
  const Limit limit = TB(1, 1);
  State s = fresh(limit, 0);
  std::vector<Taken> taken;
  for (int i = 0; i < 3; ++i) {
    const Outcome o = meter::reserve(limit, s, 0, limit.capacity, 10_s);
    s = o.next;
    taken.push_back(taken_by(o.decision, limit.capacity));
  }
  // The last is ready at 2 s; whoever comes next is ready after it.
  const State middle_left = give_back(limit, s, 0, taken[1]);
  CHECK(meter::reserve(limit, middle_left, 0, limit.capacity, 10_s).decision.delay == 3_s);
  const State last_left = give_back(limit, s, 0, taken[2]);
  CHECK(meter::reserve(limit, last_left, 0, limit.capacity, 10_s).decision.delay == 2_s);
}

TEST_CASE("a caller who comes after a place was given back gets an instant of its own") {
  const Limit limit = TB(5, 1);
  const std::int64_t one = limit.capacity / 5;
  State s = decide(limit, fresh(limit, 0), 0, limit.capacity).next;
  const Outcome first = meter::reserve(limit, s, 0, one, 10_s);
  const Outcome second = meter::reserve(limit, first.next, 0, one, 10_s);
  REQUIRE(second.decision.delay == 2_s);
  s = give_back(limit, second.next, 0, taken_by(first.decision, one));
  CHECK(meter::reserve(limit, s, 0, one, 10_s).decision.delay == 3_s);
}

TEST_CASE("a past call is not given back to a queue that has been promised its instants") {
  const Limit limit = TB(4, 1);
  State s = fresh(limit, 0);
  const Outcome first = decide(limit, s, 0, 2 * limit.capacity / 4);
  s = meter::reserve(limit, first.next, 0, limit.capacity, 10_s).next;  // ready at 2 s
  s = meter::reserve(limit, s, 0, limit.capacity / 2, 10_s).next;       // ready at 4 s
  s = give_back(limit, s, 1_s, taken_by(first.decision, limit.capacity / 2));
  // Without the first call the bucket would have been full before the second went, and not fuller afterwards.
  CHECK(meter::reserve(limit, s, 4_s, limit.capacity, 10_s).decision.delay == 4_s);
}

TEST_CASE("settling at the same cost changes nothing, at more charges the rest") {
  Bucket b(TB(10, 1));
  const Answer a = b.acquire(0_s, 4);
  b.settle(0_s, a, 4);
  CHECK(b.peek(0_s).rem == 6);
  b.settle(0_s, a, 14);
  CHECK(b.acquire(0_s).retry == 5_s);
}

TEST_CASE("settling at zero gives all of it back") {
  for (const Limit& limit : {TB(10, 1), GCRA(10, 60_s), FW(10, 60_s), SWC(10, 60_s)}) {
    Bucket b(limit);
    CHECK(b.acquire(0_s, 2).ok);
    b.settle(0_s, b.acquire(0_s, 4), 0);
    CHECK(b.peek(0_s).rem == 8);
  }
}

}  // namespace taskq::ratelimit::test
