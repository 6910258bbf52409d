// Random calls, answered by the client and by the core run single-threaded (test/unit/bucket.hpp): every answer has to be the same to the
// last unit, whether it came the short way or the long one. RC_PARAMS repeats a run.
#include <catch2/catch.hpp>
#include <rapidcheck.h>

#include "../../test/unit/bucket.hpp"
#include "taskq/detail/key_table.hpp"
#include "taskq/detail/memory_bucket.hpp"
#include "taskq/detail/wait.hpp"

namespace taskq::test {

namespace core = ratelimit::test;
using namespace std::chrono_literals;

namespace {

struct Call {
  Op op;
  Micros later;
  std::int64_t cost;
  std::size_t which;  // of the decisions so far
};

void showValue(const Call& call, std::ostream& out) {
  constexpr const char* names[] = {"acquire", "preview", "peek", "reserve", "charge", "refund", "give_back", "settle", "reset", "pause"};
  out << names[static_cast<int>(call.op)] << " " << call.cost << " after " << call.later << " us (" << call.which % 100 << ")";
}

LimitDefinition definition_of(const ratelimit::Limit& limit) {
  const double grains = static_cast<double>(limit.d) * static_cast<double>(ratelimit::power_of_ten(limit.scale));
  return {.name = "model", .limit = limit, .quota = 1, .grains_per_unit = grains, .one = 1};
}

// Times that matter: none, a little, about a window, and now and then a clock set back.
rc::Gen<Micros> steps_in_time(Micros window) {
  return rc::gen::weightedOneOf<Micros>({{4, rc::gen::just(Micros{0})},
                                         {6, rc::gen::inRange<Micros>(1, window / 4)},
                                         {2, rc::gen::inRange<Micros>(window / 2, 3 * window)},
                                         {1, rc::gen::inRange<Micros>(-900'000, 0)},
                                         {1, rc::gen::inRange<Micros>(-2 * window - 5'000'000, -1'000'001)}});
}

rc::Gen<std::vector<Call>> calls(const ratelimit::Limit& limit, Micros window) {
  const auto ops = rc::gen::weightedElement<Op>(
      {{12, Op::acquire}, {2, Op::preview}, {2, Op::peek}, {1, Op::charge}, {1, Op::refund}, {4, Op::give_back}, {1, Op::reset}});
  return rc::gen::container<std::vector<Call>>(
      rc::gen::construct<Call>(ops, steps_in_time(window), rc::gen::inRange<std::int64_t>(1, limit.capacity + 1), rc::gen::arbitrary<std::size_t>()));
}

// After something was given back: else a later decision may look like an earlier one, and what looks alike is given back once.
void go_past(FakeClock& clock, Micros at) { clock.set(TimePoint{Duration{ratelimit::larger(clock.now(), at) + 1}}); }

// What is given back comes after what was decided before, unless the clock was set back.
Micros after_all(Micros newest, Micros now) { return ratelimit::clock_was_set_back(newest, now) ? now : ratelimit::larger(now, newest + 1); }

// What one bucket did, through `run`, compared with the core's.
template <class Run>
void replay(const ratelimit::Limit& limit, const std::vector<Call>& script, FakeClock& clock, Run&& run) {
  core::Bucket model(limit, clock.now());
  const double per_unit = static_cast<double>(ratelimit::power_of_ten(limit.scale));
  std::vector<std::pair<Answer, core::Answer>> taken;
  std::vector<std::int64_t> costs;
  for (const Call& call : script) {
    clock.advance(Duration{call.later});
    const Micros now = clock.now();
    const double cost = static_cast<double>(call.cost) / per_unit;
    Request request{.op = call.op, .cost = call.cost};
    if (call.op == Op::give_back) {
      if (taken.empty()) continue;
      const std::size_t i = call.which % taken.size();
      request.taken = detail::taken_by(taken[i].first, costs[i]);
      request.id = taken[i].first.id;
      run(request);
      model.give_back(after_all(ratelimit::larger(model.state().at, taken[i].second.taken.decided_at), now), taken[i].second);
      taken.erase(taken.begin() + static_cast<std::ptrdiff_t>(i));
      costs.erase(costs.begin() + static_cast<std::ptrdiff_t>(i));
      go_past(clock, model.state().at);
      continue;
    }
    const Answer ours = run(request);
    core::Answer theirs;
    switch (call.op) {
      case Op::acquire: theirs = model.acquire(now, cost); break;
      case Op::preview: theirs = model.preview(now, cost); break;
      case Op::peek: theirs = model.peek(now); break;
      case Op::charge: theirs = model.charge(now, cost); break;
      case Op::refund:
        model.refund(after_all(model.state().at, now), cost);
        go_past(clock, model.state().at);
        continue;
      default:
        model = core::Bucket(limit, now);
        taken.clear();
        costs.clear();
        go_past(clock, model.state().at);
        continue;
    }
    const ratelimit::Decision& d = ours.decision;
    RC_ASSERT(d.decided_at == theirs.taken.decided_at);
    RC_ASSERT(d.remaining == theirs.taken.remaining);
    RC_ASSERT(d.reset_after == theirs.reset);
    if (call.op == Op::peek) continue;  // for another cost
    RC_ASSERT(d.allowed == theirs.ok);
    RC_ASSERT(d.retry_after == theirs.retry);
    if (call.op == Op::acquire && theirs.ok) {
      taken.emplace_back(ours, theirs);
      costs.push_back(call.cost);
    }
  }
}

void check_against_core(const ratelimit::Limit& limit, Micros window) {
  const LimitDefinition definition = definition_of(limit);
  CHECK(rc::check([&] {
    const auto script = *calls(limit, window);
    FakeClock clock;
    detail::MemoryBucket best(definition, clock);
    replay(limit, script, clock, [&](const Request& r) { return r.op == Op::acquire ? best.acquire(r.cost) : best.run(r); });

    FakeClock narrow_clock;
    detail::BasicMemoryBucket<detail::HotPair<false>> narrow(definition, narrow_clock);
    replay(limit, script, narrow_clock, [&](const Request& r) { return r.op == Op::acquire ? narrow.acquire(r.cost) : narrow.run(r); });
  }));
}

// A key's bucket is as old as its first use: so it is used once before.
void check_keys_against_core(const ratelimit::Limit& limit, Micros window) {
  const LimitDefinition definition = definition_of(limit);
  CHECK(rc::check([&] {
    const auto script = *calls(limit, window);
    FakeClock clock;
    detail::KeyTable table(definition, clock, 0);
    table.acquire("a key longer than a slot", 1);
    table.run({.op = Op::reset, .key = "a key longer than a slot"});
    replay(limit, script, clock, [&](Request r) {
      r.key = "a key longer than a slot";
      return r.op == Op::acquire ? table.acquire(r.key, r.cost) : table.run(r);
    });
  }));
}

}  // namespace

TEST_CASE("the memory backend answers as the core does: meters") {
  check_against_core(core::TB(7, 3), 2'000'000);
  check_against_core(core::TB(5, 0), 2'000'000);
  check_against_core(core::LB(2.5, 100 / 60.0), 2'000'000);
  check_against_core(core::GCRA(7, 2'000'000), 2'000'000);
  check_keys_against_core(core::TB(7, 3), 2'000'000);
}

TEST_CASE("the memory backend answers as the core does: windows") {
  check_against_core(core::FW(7, 2'000'003), 2'000'003);
  check_against_core(ratelimit::anchored_at(core::FW(7, 2'000'003), 17), 2'000'003);
  check_against_core(core::SWC(7, 2'000'000), 2'000'000);
  check_against_core(core::SWL(7, 2'000'000), 2'000'000);
  check_keys_against_core(core::FW(7, 2'000'003), 2'000'003);
  check_keys_against_core(ratelimit::anchored_at(core::FW(7, 2'000'003), 17), 2'000'003);
  check_keys_against_core(core::SWL(7, 2'000'000), 2'000'000);
}

}  // namespace taskq::test
