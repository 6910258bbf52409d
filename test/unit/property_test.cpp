// Random sequences against the model: every answer, after every call, to the last microsecond and the last grain.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "bucket.hpp"
#include "model.hpp"
#include "random.hpp"

namespace taskq::ratelimit::test {

namespace {

using model::Fraction;
using model::Integer;

// The core, in units and with the waits as it gives them.
class Core {
 public:
  Core(const Limit& limit, Micros now) : limit_(limit), log_(limit, now) {
    if (!is_log()) state_ = fresh(limit, now);
  }

  Decision acquire(Micros now, std::int64_t cost) {
    return is_log() ? log_.acquire(now, cost) : keep(now, decide(limit_, state_, now, cost));
  }
  Decision preview(Micros now, std::int64_t cost) {
    return is_log() ? log_.preview(now, cost) : decide(limit_, state_, now, cost).decision;
  }
  Decision charge(Micros now, std::int64_t cost) {
    return is_log() ? log_.charge(now, cost) : keep(now, ratelimit::charge(limit_, state_, now, cost));
  }
  Decision reserve(Micros now, std::int64_t cost, Micros max_wait) {
    return keep(now, meter::reserve(limit_, state_, now, cost, max_wait));
  }
  void refund(Micros now, std::int64_t cost) {
    if (is_log()) return log_.refund_newest(now, cost);
    state_ = ratelimit::refund(limit_, state_, now, cost);
  }
  const State& state() const { return is_log() ? log_.state() : state_; }

 private:
  bool is_log() const { return limit_.algorithm() == Algorithm::log; }
  Decision keep(Micros now, const Outcome& o) {
    if (o.decision.allowed || clock_was_set_back(state_.at, now)) state_ = o.next;
    return o.decision;
  }

  Limit limit_;
  LogBucket log_;
  State state_;
};

// A rate that is awkward for somebody: for doubles, for decimals, for large or small windows.
Definition random_bucket(Random& random) {
  const Kind kind = random.one_in(2) ? Kind::token_bucket : Kind::leaky_bucket;
  const double capacity = static_cast<double>(random.spread(1, 1'000'000'000)) /
                          static_cast<double>(power_of_ten(static_cast<int>(random.between(0, 6))));
  static constexpr double kAwkward[] = {
      0, 0.1, 1 / 3.0, 1 / 49.0, 1 / 86400.0, 0.0166666667, 3.141592653589793, 1e6, 1234.5678901, 7e5};
  if (random.one_in(2)) return make_bucket(kind, capacity, kAwkward[random.between(0, 9)]);
  if (random.one_in(2))
    return make_bucket(kind, capacity,
                       static_cast<double>(random.spread(1, 100'000)) / static_cast<double>(random.spread(1, 100'000)));
  return make_bucket(kind, capacity, static_cast<double>(random.spread(1, 100'000)), random.spread(1, 86'400_s));
}

Definition random_window(Random& random, Kind kind, std::int64_t most, Micros longest) {
  const std::int64_t limit = random.spread(1, most);
  const Micros window = random.spread(1, longest);
  Definition made =
      kind == Kind::fixed_window ? make_fixed_window(limit, window) : make_sliding_window(kind, limit, window);
  const bool anchored = random.one_in(2) && (kind == Kind::fixed_window || kind == Kind::sliding_window_counter);
  if (anchored) made.limit = anchored_at(made.limit, random.between(-2 * window, 2 * window));
  return made;
}

// About as long as anything of this limit takes.
Micros horizon(const Limit& limit) {
  if (limit.algorithm() != Algorithm::meter) return 2 * limit.window;
  return limit.n == 0 ? 1000_s : smaller(kMaxProduct, 2 * meter::time_to_pay(limit, meter::full(limit)));
}

// Mostly forwards, often exactly to the instant that matters; sometimes a little behind, seldom a step back.
Micros next_time(Random& random, Micros seen, Micros retry, const Limit& limit, bool steps) {
  const std::int64_t dice = random.between(1, 20);
  if (dice <= 4) return seen;
  if (dice <= 7 && retry < kNever) return seen + retry;
  if (dice <= 9 && retry < kNever) return seen + larger(0, retry - 1);
  if (dice <= 12) return seen - random.between(0, kClockStep);
  if (dice == 13 && steps) return seen - kClockStep - random.spread(1, horizon(limit));
  return seen + random.spread(0, horizon(limit));
}

Micros random_start(Random& random) {
  static constexpr Micros kStarts[] = {0, 1'000'000_s, 1'700'000'000_s, -5_s, -1'000'000_s};
  return kStarts[random.between(0, 4)] + random.between(0, 999'999);
}

bool same_wait(Micros ours, const std::optional<Integer>& theirs) {
  return theirs ? Integer(ours) == *theirs : ours == kNever;
}

bool agree(const Limit& limit, const Decision& ours, const model::Answer& theirs) {
  return ours.allowed == theirs.allowed && Fraction(ours.remaining, limit.d) == theirs.remaining &&
         same_wait(ours.retry_after, theirs.retry) && same_wait(ours.reset_after, theirs.reset) &&
         ours.decided_at == theirs.time && ours.delay == theirs.delay;
}

std::string told(const Decision& d) {
  return (d.allowed ? "ok, " : "denied, ") + std::to_string(d.remaining) + " grains left, retry " +
         std::to_string(d.retry_after) + ", reset " + std::to_string(d.reset_after) + ", at " +
         std::to_string(d.decided_at) + ", delay " + std::to_string(d.delay);
}

std::string told(const std::optional<Integer>& wait) { return wait ? wait->str() : "never"; }

std::string told(const model::Answer& a) {
  return (a.allowed ? "ok, " : "denied, ") + a.remaining.str() + " units left, retry " + told(a.retry) + ", reset " +
         told(a.reset) + ", at " + a.time.str() + ", delay " + a.delay.str();
}

std::string told(const Limit& l) {
  return "kind " + std::to_string(static_cast<int>(l.kind)) + ", capacity " + std::to_string(l.capacity) + ", rate " +
         std::to_string(l.n) + "/" + std::to_string(l.d) + ", window " + std::to_string(l.window) + ", tick " +
         std::to_string(l.tick) + ", anchor " + (l.anchored ? std::to_string(l.anchor) : "none");
}

void check_wait_is_exact(Core& core, Micros now, std::int64_t cost, Micros retry) {
  REQUIRE(retry > 0);
  if (retry == kNever) {
    REQUIRE_FALSE(core.preview(now + kMaxProduct, cost).allowed);
    return;
  }
  REQUIRE(core.preview(now + retry, cost).allowed);
  REQUIRE_FALSE(core.preview(now + retry - 1, cost).allowed);
}

template <class Model>
void acquire_both(Core& core, Model& model, const Limit& limit, Micros now, std::int64_t cost, Decision& last) {
  const State before = core.state();
  const model::Answer expected = model::acquired(model, [&](Model& m) { return m.acquire(now, cost); });
  const Decision preview = core.preview(now, cost);
  INFO("preview of " << cost << ": " << told(preview));
  INFO("the model: " << told(expected));
  REQUIRE(agree(limit, preview, expected));
  REQUIRE(core.state() == before);
  last = core.acquire(now, cost);
  REQUIRE(last == preview);
  if (last.allowed) return;
  if (!clock_was_set_back(before.at, now)) REQUIRE(core.state() == before);
  check_wait_is_exact(core, now, cost, last.retry_after);
}

template <class Model>
void reserve_both(Core&, Model&, const Limit&, Micros, std::int64_t, Micros) {}

void reserve_both(Core& core, model::Tokens& model, const Limit& limit, Micros now, std::int64_t cost,
                  Micros max_wait) {
  if (core.state().used + cost * limit.d > kMaxSum) return;
  const Decision d = core.reserve(now, cost, max_wait);
  INFO("reserve " << cost << " within " << max_wait << ": " << told(d));
  REQUIRE(agree(limit, d, model::acquired(model, [&](model::Tokens& m) { return m.reserve(now, cost, max_wait); })));
}

template <class Model>
void run_sequence(Random& random, const Limit& limit, int steps) {
  const Micros start = random_start(random);
  Core core(limit, start);
  Model model(limit, start);
  Decision last;
  for (int i = 0; i < steps; ++i) {
    const Micros now = next_time(random, core.state().at, last.retry_after, limit, true);
    const std::int64_t cost = random.one_in(8) ? limit.most() : random.spread(1, limit.most());
    INFO("step " << i << ", clock " << now - start << " after the start, cost " << cost);
    const std::int64_t dice = random.between(1, 12);
    if (dice == 1 && limit.algorithm() != Algorithm::meter) {
      REQUIRE(agree(limit, core.charge(now, cost), model.charge(now, cost)));
    } else if (dice == 1 && core.state().used + cost * limit.d <= kMaxSum) {
      REQUIRE(agree(limit, core.charge(now, cost), model.charge(now, cost)));
    } else if (dice == 2) {
      core.refund(now, cost), model.refund(now, cost);
    } else if (dice == 3) {
      reserve_both(core, model, limit, now, cost, random.spread(0, horizon(limit)));
    } else {
      acquire_both(core, model, limit, now, cost, last);
    }
  }
}

template <class Model, class Define>
void run_sequences(std::uint64_t stream, int sequences, Define define) {
  Random random(stream);
  for (int done = 0; done < sequences;) {
    const Definition made = define(random);
    if (made.error != DefinitionError::none) continue;
    INFO("seed " << seed() << ", sequence " << done << ": " << told(made.limit));
    run_sequence<Model>(random, made.limit, 40);
    ++done;
  }
}

}  // namespace

TEST_CASE("property: token and leaky buckets answer as exact fractions do") {
  run_sequences<model::Tokens>(101, 3000, random_bucket);
}

TEST_CASE("property: GCRA answers as exact fractions do") {
  run_sequences<model::Tokens>(
      102, 1500, [](Random& r) { return random_window(r, Kind::sliding_window_gcra, 1'000'000, 30_days); });
}

TEST_CASE("property: fixed windows answer as counting by window does") {
  run_sequences<model::FixedWindow>(
      103, 2000, [](Random& r) { return random_window(r, Kind::fixed_window, kMaxProduct, 3650_days); });
}

TEST_CASE("property: counters answer as exact weights do, and their waits as a search does") {
  run_sequences<model::TwoCounter>(
      104, 1000, [](Random& r) { return random_window(r, Kind::sliding_window_counter, 1'000'000'000, 30_days); });
}

TEST_CASE("property: logs answer as keeping every unit does") {
  run_sequences<model::Log>(105, 2000,
                            [](Random& r) { return random_window(r, Kind::sliding_window_log, 300, 30_days); });
}

namespace {

struct Admitted {
  Micros at;
  std::int64_t cost;
};

// Only acquires, from callers whose clocks jitter by less than a second.
std::vector<Admitted> admitted_by(Random& random, const Limit& limit, int calls) {
  Core core(limit, random_start(random));
  std::vector<Admitted> all;
  Decision last;
  for (int i = 0; i < calls; ++i) {
    const Micros now = next_time(random, core.state().at, last.retry_after, limit, false);
    const std::int64_t cost = random.spread(1, limit.most());
    last = core.acquire(now, cost);
    if (last.allowed) all.push_back({last.decided_at, cost});
  }
  return all;
}

// The largest sum over any stretch of less than `window` microseconds.
Integer most_within(const std::vector<Admitted>& all, Micros window) {
  Integer most = 0;
  for (std::size_t first = 0; first < all.size(); ++first) {
    Integer sum = 0;
    for (std::size_t i = first; i < all.size() && all[i].at - all[first].at < window; ++i) sum += all[i].cost;
    most = std::max(most, sum);
  }
  return most;
}

}  // namespace

TEST_CASE("property: a bucket admits at most its capacity plus what refills, in any interval") {
  Random random(111);
  for (int done = 0; done < 1500;) {
    const Definition made =
        random.one_in(4) ? random_window(random, Kind::sliding_window_gcra, 1'000'000, 30_days) : random_bucket(random);
    if (made.error != DefinitionError::none) continue;
    ++done;
    const Limit& limit = made.limit;
    INFO("seed " << seed() << ": " << told(limit));
    const auto all = admitted_by(random, limit, 60);
    Integer worst = 0;
    for (std::size_t first = 0; first < all.size(); ++first) {
      Integer grains = 0;
      for (std::size_t i = first; i < all.size(); ++i) {
        grains += Integer(all[i].cost) * limit.d;
        worst = std::max<Integer>(worst, grains - Integer(limit.n) * (all[i].at - all[first].at));
      }
    }
    REQUIRE(worst <= meter::full(limit));
    if (limit.kind == Kind::sliding_window_gcra) REQUIRE(most_within(all, limit.window) <= 2 * limit.capacity - 1);
  }
}

TEST_CASE("property: windows admit what their definition says, in any interval") {
  Random random(112);
  for (int done = 0; done < 3000;) {
    static constexpr Kind kKinds[] = {Kind::fixed_window, Kind::sliding_window_counter, Kind::sliding_window_log};
    const Kind kind = kKinds[random.between(0, 2)];
    const Definition made = random_window(random, kind, 10'000, 30_days);
    if (made.error != DefinitionError::none) continue;
    ++done;
    INFO("seed " << seed() << ": " << told(made.limit));
    const std::int64_t limit = made.limit.capacity;
    const Integer most = most_within(admitted_by(random, made.limit, 60), made.limit.window);
    if (kind == Kind::sliding_window_log) REQUIRE(most <= limit);
    if (kind == Kind::sliding_window_counter) REQUIRE(most <= larger(1, 2 * limit - 1));
    if (kind == Kind::fixed_window) REQUIRE(most <= 2 * limit);
  }
}

TEST_CASE("property: a clock set back and forth grants what its forward moves are worth, and one capacity") {
  Random random(113);
  for (int done = 0; done < 1500;) {
    const Definition made = random_bucket(random);
    if (made.error != DefinitionError::none) continue;
    ++done;
    const Limit& limit = made.limit;
    INFO("seed " << seed() << ": " << told(limit));
    Core core(limit, 0);
    Integer grains = 0, forward = 0;
    for (int i = 0; i < 60; ++i) {
      const Micros before = core.state().at;
      const Micros now =
          random.one_in(3) ? before - random.spread(0, horizon(limit)) : before + random.spread(0, horizon(limit));
      const std::int64_t cost = random.spread(1, limit.most());
      const Decision d = core.acquire(now, cost);
      forward += larger(0, core.state().at - before);
      if (d.allowed) grains += Integer(cost) * limit.d;
    }
    REQUIRE(grains <= meter::full(limit) + forward * limit.n);
  }
}

}  // namespace taskq::ratelimit::test
