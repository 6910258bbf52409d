// The Redis backend with the server's own clock: connections, scripts that are lost, slots.
#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <thread>

#include "connection.hpp"
#include "taskq/errors.hpp"
#include "taskq/redis.hpp"

namespace taskq::test {

using namespace std::chrono_literals;

namespace {

std::string url() { return std::string("redis://127.0.0.1:") + std::getenv("TASKQ_TEST_REDIS_PORT"); }

// Talks to the server beside the backend.
void tell(std::initializer_list<std::string_view> words) {
  redis::Connection connection(redis::parse_url(url()), 1s, 5s);
  redis::check(*connection.ask(std::span(words.begin(), words.size())));
}

std::string fresh_prefix() {
  static int count = 0;
  return "test" + std::to_string(getpid()) + "x" + std::to_string(++count);
}

const LimitDefinition& quota() {
  static const LimitDefinition limit = define_bucket("quota", Kind::token_bucket, {.capacity = 5});
  return limit;
}

bool acquire(Backend& backend) { return backend.run({.op = Op::acquire, .limit = &quota(), .cost = 1'000'000}).decision.allowed; }

}  // namespace

TEST_CASE("a script that the server has lost is loaded again") {
  RedisBackend redis({.url = url(), .prefix = fresh_prefix()});
  CHECK(acquire(redis));
  tell({"SCRIPT", "FLUSH"});
  CHECK(acquire(redis));
}

TEST_CASE("a connection that was closed while it was idle is replaced") {
  RedisBackend redis({.url = url(), .prefix = fresh_prefix()});
  CHECK(acquire(redis));
  tell({"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"});
  CHECK(acquire(redis));
}

TEST_CASE("a late answer is never taken for that of the next call") {
  RedisBackend redis({.url = url(), .command_timeout = 50ms, .prefix = fresh_prefix()});
  CHECK(acquire(redis));
  std::thread sleeper([] { tell({"DEBUG", "SLEEP", "0.4"}); });
  std::this_thread::sleep_for(100ms);
  CHECK_THROWS_AS(acquire(redis), Timeout);
  sleeper.join();
  const Answer answer = redis.run({.op = Op::peek, .limit = &quota(), .cost = 1'000'000});
  CHECK(answer.decision.remaining <= 4'000'000);
  CHECK(answer.decision.remaining >= 3'000'000);  // the call that timed out may have taken effect
}

TEST_CASE("no server: ConnectionError; a wrong password: neither that nor Timeout") {
  RedisBackend nobody({.url = "redis://127.0.0.1:1", .prefix = fresh_prefix()});
  CHECK_THROWS_AS(acquire(nobody), ConnectionError);
  RedisBackend stranger({.url = "redis://:wrong@127.0.0.1:" + url().substr(url().rfind(':') + 1), .prefix = fresh_prefix()});
  try {
    acquire(stranger);
    FAIL("accepted");
  } catch (const ConnectionError&) {
    FAIL("taken for a lost connection");
  } catch (const Timeout&) {
    FAIL("taken for a time-out");
  } catch (const BackendError& error) {
    CHECK(std::string(error.what()).find("redis: ") == 0);
  }
}

TEST_CASE("a forked child makes connections of its own") {
  RedisBackend redis({.url = url(), .prefix = fresh_prefix()});
  CHECK(acquire(redis));
  const pid_t child = fork();
  if (child == 0) {
    bool allowed = false;
    try {
      allowed = acquire(redis) && acquire(redis);
    } catch (...) {
    }
    _exit(allowed ? 0 : 1);
  }
  CHECK(acquire(redis));
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(redis.run({.op = Op::peek, .limit = &quota(), .cost = 1'000'000}).decision.remaining == 1'000'000);
}

TEST_CASE("what is no record of ours is an error") {
  const std::string prefix = fresh_prefix();
  RedisBackend redis({.url = url(), .prefix = prefix});
  CHECK(acquire(redis));
  redis::Connection connection(redis::parse_url(url()), 1s, 1s);
  const std::string pattern = "b:{" + prefix + "*";
  const std::string_view keys[] = {"KEYS", pattern};
  const redis::Reply found = connection.ask(keys);
  REQUIRE(found->elements == 1);
  const std::string key(found->element[0]->str, found->element[0]->len);
  const std::string_view ttl[] = {"PTTL", key};
  CHECK(connection.ask(ttl)->integer > 1'000'000);  // kept for quota_life
  const std::string_view spoil[] = {"SET", key, "something else"};
  connection.ask(spoil);
  CHECK_THROWS_AS(acquire(redis), BackendError);
}

TEST_CASE("names and keys never meet, whatever they contain") {
  const std::string prefix = fresh_prefix();
  RedisBackend redis({.url = url(), .prefix = prefix});
  const LimitDefinition a = define_bucket("a", Kind::token_bucket, {.capacity = 1}), ab = define_bucket("a}:b{", Kind::token_bucket, {.capacity = 1});
  for (const LimitDefinition* limit : {&a, &ab}) {
    for (const char* key : {"", "b:c", "}:b{", "c"}) {
      INFO(limit->name << " " << key);
      CHECK(redis.run({.op = Op::acquire, .limit = limit, .key = key, .cost = 1'000'000}).decision.allowed);
    }
  }
}

TEST_CASE("many at once, and all or nothing") {
  RedisBackend redis({.url = url(), .prefix = fresh_prefix()});
  const LimitDefinition small = define_bucket("small", Kind::token_bucket, {.capacity = 1});
  std::vector<Request> requests(100, {.op = Op::acquire, .limit = &quota(), .cost = 1'000'000});
  const std::vector<Answer> answers = redis.run_many(requests);
  REQUIRE(answers.size() == 100);
  CHECK(std::count_if(answers.begin(), answers.end(), [](const Answer& a) { return a.decision.allowed; }) == 5);
  redis.run({.op = Op::reset, .limit = &quota()});
  const Request of_quota = requests[0], of_small{.op = Op::acquire, .limit = &small, .cost = 1'000'000};
  const std::vector<GroupItem> items{{.limit = &of_quota}, {.limit = &of_small}};
  CHECK(redis.acquire_all(items).allowed);
  const GroupAnswer refused = redis.acquire_all(items);
  CHECK_FALSE(refused.allowed);
  CHECK(refused.refused_by == 1);
  CHECK(refused.retry_after == ratelimit::kNever);
  CHECK(redis.run({.op = Op::peek, .limit = &quota(), .cost = 1'000'000}).decision.remaining == 4'000'000);
}

TEST_CASE("slots: never more than there are, fenced, free when the lease ends") {
  RedisBackend redis({.url = url(), .prefix = fresh_prefix()});
  ReservationDefinition gpu = define_reservation("gpu", 2, 10s);
  const SlotAnswer first = redis.run_slot({.op = SlotOp::acquire, .reservation = &gpu, .worker_id = "w1"});
  const SlotAnswer second = redis.run_slot({.op = SlotOp::acquire, .reservation = &gpu, .worker_id = "w2"});
  CHECK((first.done && second.done));
  CHECK(first.slot_index != second.slot_index);
  CHECK(second.fence > first.fence);
  const SlotAnswer full = redis.run_slot({.op = SlotOp::acquire, .reservation = &gpu});
  CHECK_FALSE(full.done);
  CHECK(full.retry_after > 0);
  CHECK(full.retry_after <= 10'000'000);
  CHECK_FALSE(redis.run_slot({.op = SlotOp::release, .reservation = &gpu, .slot_index = first.slot_index, .fence = second.fence}).done);
  CHECK_FALSE(redis.run_slot({.op = SlotOp::renew, .reservation = &gpu, .worker_id = "w2", .slot_index = first.slot_index}).done);
  CHECK(redis.run_slot({.op = SlotOp::renew, .reservation = &gpu, .worker_id = "w1"}).expires_at > first.expires_at);
  CHECK(redis.run_slot({.op = SlotOp::release, .reservation = &gpu, .slot_index = first.slot_index, .fence = first.fence}).done);
  CHECK_FALSE(redis.run_slot({.op = SlotOp::release, .reservation = &gpu, .slot_index = first.slot_index, .fence = first.fence}).done);
  CHECK(redis.run_slot({.op = SlotOp::peek, .reservation = &gpu}).held == 1);

  gpu.slots = 1;  // fewer: what is held counts, a surplus slot goes when it is released
  CHECK_FALSE(redis.run_slot({.op = SlotOp::acquire, .reservation = &gpu}).done);
  CHECK(redis.run_slot({.op = SlotOp::release, .reservation = &gpu, .worker_id = "w2", .slot_index = second.slot_index}).done);
  const SlotAnswer only = redis.run_slot({.op = SlotOp::acquire, .reservation = &gpu});
  CHECK(only.done);
  CHECK(only.slot_index == 0);

  const ReservationDefinition brief = define_reservation("brief", 1, 30ms);
  CHECK(redis.run_slot({.op = SlotOp::acquire, .reservation = &brief}).done);
  const SlotAnswer wait = redis.run_slot({.op = SlotOp::acquire, .reservation = &brief});
  if (!wait.done) std::this_thread::sleep_for(std::chrono::microseconds(wait.retry_after));
  CHECK(redis.run_slot({.op = SlotOp::acquire, .reservation = &brief}).done);
}

}  // namespace taskq::test
