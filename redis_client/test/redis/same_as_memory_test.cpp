// Every operation on Redis against the same on the memory backend, with one clock that a test drives, backwards as well: no difference.
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "../../../test/unit/random.hpp"
#include "scripts.hpp"
#include "taskq/detail/bucket.hpp"
#include "taskq/memory_backend.hpp"
#include "taskq/redis.hpp"

namespace taskq::test {

using ratelimit::kNever;
using ratelimit::test::Random;
using namespace std::chrono_literals;

namespace {

std::string url() { return std::string("redis://127.0.0.1:") + std::getenv("TASKQ_TEST_REDIS_PORT"); }

LimitDefinition random_definition(Random& random, const std::string& name) {
  switch (random.between(0, 4)) {
    case 0: return define_bucket(name, Kind::token_bucket, {.capacity = static_cast<double>(random.between(1, 50)), .refill_per_second = static_cast<double>(random.between(0, 20))});
    case 1: return define_bucket(name, Kind::leaky_bucket, {.capacity = static_cast<double>(random.between(1, 50)) / 4, .refill_per_second = static_cast<double>(random.between(1, 20)) / 3});
    case 2: return define_window(name, Kind::fixed_window, {.max_requests = random.between(1, 20), .window = Duration{random.between(1, 10'000'000)}});
    case 3: return define_window(name, Kind::sliding_window_counter, {.max_requests = random.between(1, 20), .window = Duration{random.between(1'000, 10'000'000)}});
    default:
      return define_window(name, random.one_in(3) ? Kind::sliding_window_gcra : Kind::sliding_window_log, {.max_requests = random.between(1, 20), .window = Duration{random.between(1'000, 10'000'000)}});
  }
}

struct Past {
  ratelimit::Taken taken;
  RequestId on_redis, in_memory;
};

void same(const Answer& redis, const Answer& memory) {
  CHECK(redis.decision.allowed == memory.decision.allowed);
  CHECK(redis.decision.remaining == memory.decision.remaining);
  CHECK(redis.decision.retry_after == memory.decision.retry_after);
  CHECK(redis.decision.reset_after == memory.decision.reset_after);
  CHECK(redis.decision.delay == memory.decision.delay);
  CHECK(redis.decision.decided_at == memory.decision.decided_at);
  CHECK(redis.reason == memory.reason);
  CHECK(redis.given_back == memory.given_back);
}

Op random_op(Random& random, const LimitDefinition& limit) {
  constexpr Op ops[] = {Op::acquire, Op::acquire, Op::acquire, Op::acquire, Op::acquire, Op::preview, Op::peek, Op::charge, Op::refund,
                        Op::give_back, Op::settle, Op::give_back, Op::pause, Op::reset, Op::reserve};
  Op op = ops[random.between(0, std::ssize(ops) - 1)];
  if (op == Op::reserve && limit.limit.algorithm() != ratelimit::Algorithm::meter) op = Op::acquire;
  if ((op == Op::reset || op == Op::pause) && !random.one_in(3)) op = Op::acquire;
  return op;
}

}  // namespace

TEST_CASE("every operation answers on Redis what it answers in memory") {
  const auto clock = std::make_shared<FakeClock>();
  redis::given_clock = clock.get();
  RedisBackend redis({.url = url(), .prefix = "same" + std::to_string(ratelimit::test::seed())});
  Random random(7);
  for (int round = 0; round < 150; ++round) {
    const LimitDefinition limit = random_definition(random, "limit " + std::to_string(round));
    detail::Bucket bucket(limit.limit, clock->now());
    bool used = false;
    std::vector<Past> past;
    std::set<std::pair<Micros, std::int64_t>> done;
    for (int step = 0; step < 60; ++step) {
      const int way = static_cast<int>(random.between(0, 19));
      clock->advance(Duration{way == 0 ? -random.spread(1'000'001, 100'000'000) : way < 5 ? 0 : random.spread(1, 3'000'000)});
      if (!used) bucket = detail::Bucket(limit.limit, clock->now());  // a window begins with its first use
      Request request{.op = random_op(random, limit), .limit = &limit};
      request.cost = random.between(1, random.one_in(4) ? limit.limit.most() : ratelimit::larger(1, limit.limit.most() / 5));
      if (request.op == Op::reserve) request.max_wait = random.spread(1, 10'000'000);
      if (request.op == Op::pause) request.until = random.one_in(5) ? kNever : clock->now() + random.between(-1'000'000, 2'000'000);
      Request twin = request;
      if (request.op == Op::give_back || request.op == Op::settle) {
        if (past.empty()) continue;
        const auto which = random.between(0, std::ssize(past) - 1);
        const Past p = past[static_cast<std::size_t>(which)];
        request.taken = twin.taken = p.taken;
        request.id = p.on_redis;
        twin.id = p.in_memory;
        past.erase(past.begin() + which);
        // Two decisions that look alike are one to a refund; for how long that is known differs.
        if (!done.emplace(p.taken.decided_at, p.taken.remaining).second) continue;
        if (request.op == Op::settle) request.cost = twin.cost = random.between(0, 2 * p.taken.cost);
      }
      INFO("round " << round << " step " << step << " kind " << static_cast<int>(limit.limit.kind) << " op " << static_cast<int>(request.op) << " cost " << request.cost << " now " << clock->now());
      const Answer there = redis.run(request), here = bucket.run(limit, twin, clock->now());
      same(there, here);
      if (here.decision.allowed && here.reason == Reason::ok && (request.op == Op::acquire || request.op == Op::reserve)) {
        past.push_back({{.cost = request.cost, .decided_at = here.decision.decided_at, .delay = here.decision.delay, .remaining = here.decision.remaining, .reset_after = here.decision.reset_after}, there.id, here.id});
      }
      if (request.op == Op::reset) past.clear();
      used = used || (request.op != Op::peek && request.op != Op::preview);
    }
  }
}

}  // namespace taskq::test
