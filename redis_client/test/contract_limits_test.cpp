// What every limiter does on every backend.
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

}  // namespace taskq::test
