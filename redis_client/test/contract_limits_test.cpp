// What every limiter does on every backend.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "subject.hpp"
#include "taskq/errors.hpp"
#include "taskq/fixed_window.hpp"
#include "taskq/leaky_bucket.hpp"
#include "taskq/sliding_window.hpp"
#include "taskq/token_bucket.hpp"

namespace taskq::test {

TEST_CASE("a token bucket starts full, is spent, and refills") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("stripe_api", {.capacity = 10, .refill_per_second = 10}, s.backend);
    for (int left = 9; left >= 0; --left) {
      const Decision d = bucket.acquire();
      CHECK(d.allowed());
      CHECK(d.remaining() == left);
      CHECK(d.retry_after() == 0us);
    }
    const Decision denied = bucket.acquire();
    CHECK_FALSE(denied.allowed());
    CHECK(denied.reason() == Reason::limited);
    CHECK(denied.retry_after() == 100ms);
    CHECK(denied.reset_after() == 1s);
    s.clock->advance(*denied.retry_after() - 1us);
    CHECK_FALSE(bucket.acquire().allowed());
    s.clock->advance(1us);
    CHECK(bucket.acquire().allowed());
    CHECK(bucket.acquire().remaining() == 0);
  });
}

TEST_CASE("a quota that never refills has no retry_after") {
  on_every_backend([](Subject& s) {
    TokenBucket quota("quota", {.capacity = 2}, s.backend);
    CHECK(quota.acquire(2).allowed());
    s.clock->advance(std::chrono::hours{24 * 365});
    const Decision denied = quota.acquire();
    CHECK_FALSE(denied.allowed());
    CHECK(denied.retry_after() == std::nullopt);
    CHECK(denied.reset_after() == std::nullopt);
  });
}

TEST_CASE("definitions that can never be right are refused") {
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = 0, .refill_per_second = 1}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = -1}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = std::nan("")}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = 1, .refill_per_second = -1}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = 1, .refill_per_second = HUGE_VAL}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = 1, .refill_per_second = 1, .refill_amount = 1, .refill_period = 1s}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = 1, .refill_amount = 1}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("", {.capacity = 1}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("a\nb", {.capacity = 1}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket(std::string(256, 'x'), {.capacity = 1}), InvalidArgument);
  CHECK_THROWS_AS(LeakyBucket("x", {.capacity = 0}), InvalidArgument);
  CHECK_THROWS_AS(FixedWindow("x", {.max_requests = 0, .window = 1s}), InvalidArgument);
  CHECK_THROWS_AS(FixedWindow("x", {.max_requests = 1, .window = 0s}), InvalidArgument);
  CHECK_THROWS_AS(SlidingWindow("x", {.max_requests = 1, .window = -1s}), InvalidArgument);
  CHECK_THROWS_AS(SlidingWindow("x", {.max_requests = 1, .window = 1s, .anchor = TimePoint{}}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("x", {.capacity = 1, .ttl = 0s}), InvalidArgument);
  CHECK_NOTHROW(TokenBucket(std::string(255, 'x'), {.capacity = 1e-6}));
  CHECK_NOTHROW(TokenBucket("per-minute", {.capacity = 100, .refill_amount = 100, .refill_period = 60s}));
}

TEST_CASE("costs that can never be admitted are refused, and change nothing") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("bucket", {.capacity = 10, .refill_per_second = 1}, s.backend);
    FixedWindow window("window", {.max_requests = 10, .window = 1s}, s.backend);
    for (const double cost : {0.0, -1.0, 11.0, 1e-9, HUGE_VAL, std::nan("")}) {
      INFO(cost);
      CHECK_THROWS_AS(bucket.acquire(cost), InvalidArgument);
      CHECK_THROWS_AS(bucket.preview(cost), InvalidArgument);
      CHECK_THROWS_AS(bucket.wait(cost), InvalidArgument);
      CHECK_THROWS_AS(window.acquire(cost), InvalidArgument);
    }
    CHECK_THROWS_AS(window.acquire(1.5), InvalidArgument);
    CHECK_THROWS_AS(window.reserve(1), InvalidArgument);
    CHECK_THROWS_AS(bucket.reserve(1, -1us), InvalidArgument);
    CHECK(bucket.remaining() == 10);
    CHECK(bucket.acquire(2.4).remaining() == 7.6);
  });
}

TEST_CASE("B086: a refund gives back what is owed, once") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("bucket", {.capacity = 10, .refill_per_second = 1}, s.backend);
    const Decision four = bucket.acquire(4);
    s.clock->advance(10s);
    CHECK(bucket.refund(four) == 0);
    CHECK(bucket.remaining() == 10);
    const Decision again = bucket.acquire(4);
    CHECK(bucket.refund(again) == 3.999999);  // a refund comes a microsecond after its decision: that much has come back already
    CHECK(bucket.refund(again) == 0);
    CHECK(bucket.remaining() == 10);
    CHECK_THROWS_AS(bucket.refund(-3.0), InvalidArgument);
    CHECK_THROWS_AS(bucket.refund(std::nan("")), InvalidArgument);
    CHECK(bucket.refund(3.0) == 0);

    SlidingWindow log("log", {.max_requests = 3, .window = 60s}, SlidingStyle::log, s.backend);
    const Decision first = log.acquire();
    CHECK(first.request_id().has_value());
    s.clock->advance(1s);
    log.acquire();
    s.clock->advance(1s);
    log.acquire();
    CHECK(log.refund(first) == 1);
    CHECK(log.refund(first) == 0);
    s.clock->advance(1s);
    CHECK(log.acquire().allowed());
    CHECK(log.acquire().retry_after() == 58s);
  });
}

TEST_CASE("a settlement replaces the estimate by the truth, once") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("bucket", {.capacity = 10}, s.backend);
    const Decision estimate = bucket.acquire(4);
    CHECK(bucket.settle(estimate, 1) == 3);
    CHECK(bucket.settle(estimate, 1) == 0);
    CHECK(bucket.settle(bucket.acquire(2), 5) == -3);
    CHECK(bucket.remaining() == 4);
    bucket.charge(5);
    CHECK(bucket.remaining() == 0);
    CHECK_FALSE(bucket.acquire().allowed());
  });
}

TEST_CASE("a pause denies everything until its end") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("bucket", {.capacity = 10, .refill_per_second = 1}, s.backend);
    bucket.pause(5s);
    const Decision paused = bucket.acquire();
    CHECK_FALSE(paused.allowed());
    CHECK(paused.reason() == Reason::paused);
    CHECK(paused.retry_after() == 5s);
    CHECK(bucket.peek().paused_until == TimePoint{Duration{s.clock->now() + 5'000'000}});
    s.clock->advance(5s);
    CHECK(bucket.acquire().allowed());
    bucket.pause(5s);
    bucket.reset();
    CHECK_FALSE(bucket.acquire().allowed());
    bucket.resume();
    CHECK(bucket.acquire().allowed());
    CHECK(bucket.peek().paused_until == std::nullopt);
  });
}

TEST_CASE("a limit in shadow lets everybody through and says so") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("bucket", {.capacity = 1, .shadow = true}, s.backend);
    CHECK(bucket.acquire().reason() == Reason::ok);
    const Decision shadow = bucket.acquire();
    CHECK(shadow.allowed());
    CHECK(shadow.reason() == Reason::shadow);
    CHECK(bucket.refund(shadow) == 0);
  });
}

TEST_CASE("reserve gives every caller an instant of its own") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("bucket", {.capacity = 1, .refill_per_second = 10}, s.backend);
    for (int i = 0; i < 6; ++i) CHECK(bucket.reserve().delay() == i * 100ms);
    const Decision late = bucket.reserve(1, 300ms);
    CHECK_FALSE(late.allowed());
    CHECK(late.retry_after() == 300ms);
  });
}

TEST_CASE("B082: a crowd that waits is let in one by one, in order") {
  const Subject s = memory_subject();
  s.clock->move_when_slept_on(true);
  TokenBucket bucket("bucket", {.capacity = 1, .refill_per_second = 10}, s.backend);
  const Micros start = s.clock->now();
  for (int i = 0; i < 6; ++i) {
    const Decision d = bucket.wait();
    CHECK(d.allowed());
    CHECK(s.clock->now() == start + i * 100'000);
  }
  SlidingWindow window("window", {.max_requests = 1, .window = 1s}, SlidingStyle::log, s.backend);
  const Micros then = s.clock->now();
  for (int i = 0; i < 3; ++i) {
    CHECK(window.wait().allowed());
    CHECK(s.clock->now() == then + i * 1'000'000);
  }
}

TEST_CASE("B083: waiting ends at its deadline or when it is stopped, and takes nothing then") {
  const Subject s = memory_subject();
  s.clock->move_when_slept_on(true);
  TokenBucket bucket("bucket", {.capacity = 1, .refill_amount = 1, .refill_period = 60s}, s.backend);
  bucket.acquire();
  const Micros start = s.clock->now();
  const Decision late = bucket.wait(1, 50ms);
  CHECK_FALSE(late.allowed());
  CHECK(late.retry_after() == 60s);
  CHECK(s.clock->now() == start);  // 60 s are more than 50 ms: at once
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(bucket.wait(1, kForever, stop.get_token()).allowed());
  CHECK_THROWS_AS(bucket.wait(1, -1us), InvalidArgument);
  s.clock->advance(60s);
  CHECK(bucket.wait(1, 0us).allowed());
  TokenBucket quota("quota", {.capacity = 1}, s.backend);
  quota.acquire();
  CHECK_FALSE(quota.wait().allowed());  // for ever is longer than anybody waits
}

TEST_CASE("B087: header units and rounding") {
  const auto clock = std::make_shared<FakeClock>(TimePoint{Duration{1'700'000'000'250'000}});
  TokenBucket bucket("name", {.capacity = 10, .refill_per_second = 2}, std::make_shared<MemoryBackend>(clock));
  bucket.acquire(10);
  const Headers headers = http_headers(bucket.acquire());
  const auto field = [&](std::string_view name) {
    for (const auto& header : headers) {
      if (header.first == name) return header.second;
    }
    return std::string("(none)");
  };
  CHECK(field("Retry-After") == "1");
  CHECK(field("RateLimit") == "\"name\";r=0;t=1");
  CHECK(field("RateLimit-Policy") == "\"name\";q=10;w=5");
  CHECK(field("RateLimit-Reset") == "5");
  CHECK(field("X-RateLimit-Reset") == "1700000006");
  clock->advance(1'495ms);
  CHECK(bucket.preview().remaining() == 1.99);
  clock->advance(5s);
  const Headers allowed = http_headers(bucket.acquire());
  CHECK(std::none_of(allowed.begin(), allowed.end(), [](const auto& f) { return f.first == "Retry-After"; }));
}

TEST_CASE("B088: header fields that cannot be written correctly are left out") {
  TokenBucket odd("per \"user\" / \xc3\xa9", {.capacity = 1});
  for (const auto& [field, value] : http_headers(odd.acquire())) {
    CHECK(field != "RateLimit");
    CHECK(field != "RateLimit-Policy");
  }
  FixedWindow short_window("w", {.max_requests = 1, .window = 500ms});
  CHECK(http_headers(short_window.acquire())[0].second == "\"w\";q=1;w=1");
}

TEST_CASE("a limiter is a handle; one of the same name on the same backend is another") {
  on_every_backend([](Subject& s) {
    TokenBucket one("bucket", {.capacity = 2}, s.backend);
    Limiter copy = one;
    TokenBucket other("bucket", {.capacity = 2}, s.backend);
    one.acquire();
    copy.acquire();
    CHECK_FALSE(other.acquire().allowed());
  });
  TokenBucket alone("bucket", {.capacity = 1}), elsewhere("bucket", {.capacity = 1});
  alone.acquire();
  CHECK(elsewhere.acquire().allowed());
}

TEST_CASE("a clock that is set back credits nothing, and nobody waits longer than one refill") {
  on_every_backend([](Subject& s) {
    TokenBucket bucket("bucket", {.capacity = 10, .refill_per_second = 1}, s.backend);
    FixedWindow window("window", {.max_requests = 5, .window = 10s}, s.backend);
    bucket.acquire(10);
    window.acquire(5);
    s.clock->advance(-60s);
    CHECK(bucket.acquire().retry_after() == 1s);
    CHECK_FALSE(window.acquire().allowed());
    CHECK(*window.acquire().retry_after() <= 10s);
    s.clock->advance(10s);
    CHECK(bucket.remaining() == 10);
    CHECK(window.remaining() == 5);
  });
}

}  // namespace taskq::test
