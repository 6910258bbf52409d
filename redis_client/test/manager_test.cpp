// Many keys: what limitra's RateLimitManager does, with its defects repaired.
#include <catch2/catch.hpp>
#include <set>

#include "subject.hpp"
#include "taskq/errors.hpp"
#include "taskq/fixed_window.hpp"
#include "taskq/limiter_manager.hpp"
#include "taskq/sliding_window.hpp"
#include "taskq/token_bucket.hpp"

namespace taskq::test {

namespace {

LimiterManager users(const Subject& s, const BucketOptions& options, std::size_t max_keys = 0) {
  return LimiterManager(TokenBucket("users", options, s.backend), {.max_keys = max_keys});
}

}  // namespace

TEST_CASE("every key has a bucket of its own") {
  on_every_backend([](Subject& s) {
    LimiterManager manager = users(s, {.capacity = 1, .refill_per_second = 1});
    CHECK(manager.acquire("a").allowed());
    CHECK_FALSE(manager.acquire("a").allowed());
    CHECK(manager.acquire("b").allowed());
    CHECK(manager.peek("a").is_exhausted);
    CHECK(manager.peek("a").key == "a");
    manager.reset("a");
    CHECK(manager.acquire("a").allowed());
  });
}

TEST_CASE("B044: NUL is refused, all other bytes are distinct keys") {
  on_every_backend([](Subject& s) {
    LimiterManager manager = users(s, {.capacity = 1});
    CHECK_THROWS_AS(manager.acquire(std::string_view("a\0b", 3)), InvalidArgument);
    CHECK_THROWS_AS(manager.acquire(""), InvalidArgument);
    CHECK_THROWS_AS(manager.acquire(std::string(1025, 'x')), InvalidArgument);
    for (const char* key : {" ", "'", "\"", "\\", "{}", "\u00e9", "e\u0301", "K", "k", "k ", "}x", "a}b{c", "{", "a", "a*", "a%", "a_b"}) {
      INFO(key);
      CHECK(manager.acquire(key).allowed());
      CHECK_FALSE(manager.acquire(key).allowed());
    }
  });
}

TEST_CASE("B043: long keys that differ in their last byte are distinct") {
  on_every_backend([](Subject& s) {
    LimiterManager manager = users(s, {.capacity = 1});
    for (const std::size_t size : {14u, 15u, 16u, 17u, 31u, 300u, 1024u}) {
      std::string key(size, 'x');
      CHECK(manager.acquire(key).allowed());
      key.back() = 'y';
      CHECK(manager.acquire(key).allowed());
      CHECK_FALSE(manager.acquire(key).allowed());
    }
  });
}

TEST_CASE("looking creates no key, and a bad cost neither") {
  const Subject s = memory_subject();
  LimiterManager manager = users(s, {.capacity = 5, .refill_per_second = 1});
  const Decision first = manager.acquire("known");
  manager.preview("a");
  manager.peek("a");
  manager.remaining("a");
  manager.reset_after("a");
  manager.reset("a");
  manager.refund("a", 1.0);
  manager.refund("a", first);
  CHECK_THROWS_AS(manager.acquire("a", 6), InvalidArgument);
  CHECK_THROWS_AS(manager.wait("a", 0), InvalidArgument);
  CHECK_THROWS_AS(manager.wait("a", 1, -1us), InvalidArgument);
  CHECK(manager.keys() == std::vector<std::string>{"known"});
  CHECK(manager.contains("known"));
  CHECK_FALSE(manager.contains("a"));
  CHECK(manager.remove("known"));
  CHECK_FALSE(manager.remove("known"));
}

TEST_CASE("cleanup forgets keys that are full and idle, and never one that owes") {
  const Subject s = memory_subject();
  LimiterManager manager(FixedWindow("hourly", {.max_requests = 5, .window = 1h}, s.backend));
  manager.acquire("owes", 5);
  manager.acquire("pays back");
  manager.refund("pays back", 1.0);
  s.clock->advance(299s);
  CHECK(manager.cleanup(300s) == 0);
  s.clock->advance(1s);
  CHECK(manager.cleanup(300s) == 1);
  CHECK_FALSE(manager.acquire("owes").allowed());
  s.clock->advance(1h);
  CHECK(manager.cleanup(300s) == 1);
  CHECK(manager.size() == 0);
}

TEST_CASE("B085: a full table of keys makes room by a key that is full, never by an offender") {
  const Subject s = memory_subject();
  LimiterManager manager = users(s, {.capacity = 2, .refill_per_second = 0.001}, 3);
  manager.acquire("a", 2);
  manager.acquire("b");
  manager.refund("b", 1.0);
  s.clock->advance(1us);
  manager.acquire("c");
  manager.refund("c", 1.0);
  CHECK(manager.acquire("d", 2).allowed());
  CHECK_FALSE(manager.contains("b"));  // the least recently used of the two
  CHECK_FALSE(manager.acquire("a").allowed());
  CHECK(manager.acquire("c", 2).allowed());
  const Decision refused = manager.acquire("e");
  CHECK_FALSE(refused.allowed());
  CHECK(refused.reason() == Reason::too_many_keys);
  CHECK(refused.retry_after() == 1s);
  CHECK(manager.size() == 3);
  CHECK_FALSE(manager.acquire("e").allowed());
  manager.refund("c", 2.0);
  CHECK(manager.acquire("e").allowed());
  CHECK_FALSE(manager.contains("c"));
}

TEST_CASE("a crowd of new keys stays bounded, and room comes with time") {
  const Subject s = memory_subject();
  LimiterManager manager = users(s, {.capacity = 1, .refill_per_second = 1}, 10);
  int allowed = 0;
  for (int i = 0; i < 1000; ++i) allowed += manager.acquire("user:" + std::to_string(i)).allowed() ? 1 : 0;
  CHECK(allowed == 10);
  CHECK(manager.size() == 10);
  s.clock->advance(999'999us);
  CHECK_FALSE(manager.acquire("late").allowed());
  s.clock->advance(1us);
  CHECK(manager.acquire("late").allowed());
  CHECK(manager.size() <= 10);
}

TEST_CASE("B084: a million one-time keys are forgotten when they are full; a spent quota is not") {
  const Subject s = memory_subject();
  LimiterManager manager = users(s, {.capacity = 2, .refill_per_second = 1});
  LimiterManager quotas(TokenBucket("quotas", {.capacity = 1}, s.backend));
  constexpr int kMany = 100'000;  // a tenth of the case's million: the same, in less time
  for (int i = 0; i < kMany; ++i) manager.acquire("user:" + std::to_string(i));
  for (int i = 0; i < 100; ++i) quotas.acquire("user:" + std::to_string(i));
  for (int i = 0; i < kMany; ++i) manager.peek("unknown:" + std::to_string(i));
  CHECK(manager.size() == kMany);
  s.clock->advance(2s);
  CHECK(manager.cleanup(1s) == kMany);
  CHECK(manager.size() == 0);
  s.clock->advance(std::chrono::hours{10'000});
  CHECK(quotas.cleanup(0us) == 0);
  CHECK_FALSE(quotas.acquire("user:7").allowed());
}

TEST_CASE("keys that come and go in any order are all found") {
  const Subject s = memory_subject();
  LimiterManager manager = users(s, {.capacity = 1});
  std::set<std::string> there;
  std::uint64_t random = 7;
  for (int i = 0; i < 20'000; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    const std::string key = "key:" + std::to_string((random >> 33) % 500);
    if ((random & (1u << 20)) != 0) {
      REQUIRE(manager.acquire(key).allowed() == there.insert(key).second);
    } else {
      REQUIRE(manager.remove(key) == (there.erase(key) == 1));
    }
  }
  const auto keys = manager.keys();
  CHECK(std::set<std::string>(keys.begin(), keys.end()) == there);
}

TEST_CASE("the pair of name and key is what counts, not the definition's handle") {
  const Subject s = memory_subject();
  LimiterManager one = users(s, {.capacity = 1}), other = users(s, {.capacity = 1});
  CHECK(one.acquire("a").allowed());
  CHECK_FALSE(other.acquire("a").allowed());
  CHECK_THROWS_AS(users(s, {.capacity = 2}), InvalidArgument);
}

}  // namespace taskq::test
