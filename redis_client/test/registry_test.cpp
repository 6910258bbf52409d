// Names, groups, keyed references: what the seeds promise of RateLimitRegistry.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "subject.hpp"
#include "taskq/errors.hpp"
#include "taskq/json_payload.hpp"
#include "taskq/registry.hpp"
#include "taskq/sliding_window.hpp"
#include "taskq/token_bucket.hpp"

namespace taskq::test {

namespace {

struct ApiRequest {
  std::string tenant_id;
};

void from_json(const nlohmann::json& json, ApiRequest& request) { request.tenant_id = json.at("tenantId").get<std::string>(); }

KeyedRateLimitRef<ApiRequest> per_tenant(double capacity, double rate) {
  return {"per-tenant", [](const ApiRequest& r) { return r.tenant_id; }, {.capacity = capacity, .refill_per_second = rate}};
}

KeyedReservationRef<ApiRequest> slots_per_tenant(int slots) {
  return {"tenant-slots", [](const ApiRequest& r) { return r.tenant_id; }, {.slots = slots, .lease = 30s}};
}

Payload tenant(std::string id) { return Payload(ApiRequest{std::move(id)}); }

// A backend that fails from the nth call of acquire on, to see what is rolled back.
class FailingBackend final : public Backend {
 public:
  Store store() const noexcept override { return Store::memory; }
  Answer run(const Request&) override { throw Timeout("no answer"); }
  SlotAnswer run_slot(const SlotRequest&) override { throw Timeout("no answer"); }
};

}  // namespace

TEST_CASE("the same definition again is a no-op, another one an error") {
  RateLimitRegistry registry;
  registry.add(TokenBucket("api", {.capacity = 10, .refill_per_second = 1}));
  CHECK_NOTHROW(registry.add(TokenBucket("api", {.capacity = 10, .refill_per_second = 1})));
  CHECK_THROWS_AS(registry.add(TokenBucket("api", {.capacity = 11, .refill_per_second = 1})), InvalidArgument);
  CHECK_THROWS_AS(registry.add(SlidingWindow("api", {.max_requests = 10, .window = 1s})), InvalidArgument);
  CHECK_NOTHROW(registry.add(ConcurrencyReservation("api", {.slots = 1, .lease = 1s})));  // another namespace
  CHECK_THROWS_AS(registry.add(ConcurrencyReservation("api", {.slots = 2, .lease = 1s})), InvalidArgument);
  CHECK_THROWS_AS(registry.get_rate_limit("nobody"), NotFound);
  CHECK_THROWS_AS(registry.get_reservation("nobody"), NotFound);
}

TEST_CASE("a registry looks at its limits, resets them, and spends from them by name") {
  on_every_backend([](Subject& s) {
    RateLimitRegistry registry(s.backend);
    registry.add(TokenBucket("api", {.capacity = 2, .refill_per_second = 1}, s.backend));
    registry.add(ConcurrencyReservation("slots", {.slots = 1, .lease = 1s}, s.backend));
    CHECK(registry.acquire("api", 2).allowed());
    CHECK(registry.peek("api").is_exhausted);
    CHECK(registry.peek_all().size() == 1);
    registry.reset("api");
    CHECK(registry.peek("api").remaining == 2);
    {
      ScopedAcquire scope = registry.acquire("api");
      scope.refund_at_end();
    }
    CHECK(registry.peek("api").remaining == 2);
    { ScopedAcquire scope = registry.acquire("api"); }
    CHECK(registry.peek("api").remaining == 1);
    CHECK_THROWS_AS(registry.acquire("slots"), InvalidArgument);
    CHECK_THROWS_AS(registry.acquire("nobody"), NotFound);
  });
}

TEST_CASE("B051: a group that is refused leaves nothing held, and says how long to wait") {
  on_every_backend([](Subject& s) {
    RateLimitRegistry registry(s.backend);
    registry.add(ConcurrencyReservation("slots", {.slots = 2, .lease = 30s}, s.backend));
    registry.add(TokenBucket("first", {.capacity = 5, .refill_per_second = 1}, s.backend));
    registry.add(TokenBucket("second", {.capacity = 1, .refill_per_second = 0.1}, s.backend));
    const ActorLimits actor{.rate_limits = {"first", "second"}, .reservations = {"slots"}};
    AcquiredResources held = registry.acquire_for_actor(actor, "job1", "worker");
    CHECK(held.size() == 3);
    CHECK(held.slots().size() == 1);
    try {
      registry.acquire_for_actor(actor, "job2", "worker");
      FAIL("not refused");
    } catch (const ReservationUnavailable& refused) {
      CHECK(refused.name() == "second");
      CHECK(refused.retry_after() == 10s);
    }
    CHECK(registry.peek("first").remaining == 4);
    CHECK(registry.get_reservation("slots").peek().held == 1);
    held.release();
    CHECK(registry.get_reservation("slots").peek().held == 0);
    CHECK(registry.peek("first").remaining == 4);  // spent for good
  });
}

TEST_CASE("B048: the wait is the longest of all that refuse") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  registry.add(TokenBucket("short", {.capacity = 1, .refill_per_second = 1}, s.backend));
  registry.add(SlidingWindow("long", {.max_requests = 1, .window = 1200s}, SlidingStyle::log, s.backend));
  registry.acquire("short");
  registry.acquire("long");
  try {
    registry.acquire_for_actor({.rate_limits = {"short", "long"}}, "job", "worker");
    FAIL("not refused");
  } catch (const ReservationUnavailable& refused) {
    CHECK(refused.name() == "short");
    CHECK(refused.retry_after() == 1200s);
  }
}

TEST_CASE("a quota that never refills is refused with the default back-off") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  registry.add(TokenBucket("quota", {.capacity = 1}, s.backend));
  registry.acquire("quota");
  try {
    registry.acquire_for_actor({.rate_limits = {"quota"}}, "job", "worker");
    FAIL("not refused");
  } catch (const ReservationUnavailable& refused) {
    CHECK(refused.retry_after() == kDefaultReservationBackoff);
  }
}

TEST_CASE("what was taken is given back after any exception and when stopped") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  registry.add(ConcurrencyReservation("slots", {.slots = 1, .lease = 30s}, s.backend));
  registry.add(TokenBucket("api", {.capacity = 2, .refill_per_second = 1}, s.backend));
  registry.add(TokenBucket("elsewhere", {.capacity = 1}, std::make_shared<FailingBackend>()));
  CHECK_THROWS_AS(registry.acquire_for_actor({.rate_limits = {"api", "elsewhere"}, .reservations = {"slots"}}, "job", "worker"), Timeout);
  CHECK(registry.get_reservation("slots").peek().held == 0);
  CHECK(registry.peek("api").remaining == 2);

  std::stop_source stop;
  stop.request_stop();
  CHECK_THROWS_AS(registry.acquire_for_actor({.rate_limits = {"api"}}, "job", "worker", {}, stop.get_token()), Cancelled);
  CHECK(registry.peek("api").remaining == 2);
  CHECK_THROWS_AS(registry.acquire_for_actor({.rate_limits = {"api", "nobody"}}, "job", "worker"), NotFound);
  CHECK(registry.peek("api").remaining == 2);
}

TEST_CASE("work that never began gives everything back") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  registry.add(ConcurrencyReservation("slots", {.slots = 1, .lease = 30s}, s.backend));
  registry.add(TokenBucket("api", {.capacity = 2}, s.backend));
  registry.acquire_for_actor({.rate_limits = {"api"}, .reservations = {"slots"}}, "job", "worker").roll_back();
  CHECK(registry.peek("api").remaining == 2);
  CHECK(registry.get_reservation("slots").peek().held == 0);
  { const AcquiredResources gone = registry.acquire_for_actor({.rate_limits = {"api"}, .reservations = {"slots"}}, "job", "worker"); }
  CHECK(registry.peek("api").remaining == 1);
  CHECK(registry.get_reservation("slots").peek().held == 0);
}

TEST_CASE("keyed references give every tenant a budget of its own") {
  on_every_backend([](Subject& s) {
    RateLimitRegistry registry(s.backend);
    const ActorLimits actor{.rate_limits = {per_tenant(1, 0.1)}, .reservations = {slots_per_tenant(1)}};
    const auto a = registry.acquire_for_actor(actor, "job", "worker", tenant("a"));
    const auto b = registry.acquire_for_actor(actor, "job", "worker", Payload::from_json(R"({"tenantId": "b"})"));
    CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", tenant("a")), ReservationUnavailable);
    CHECK(registry.keyed_rate_limits() == 2);
    CHECK(registry.keyed_reservations() == 2);
  });
}

TEST_CASE("a payload is validated before anything is taken") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  registry.add(TokenBucket("api", {.capacity = 1}, s.backend));
  const ActorLimits actor{.rate_limits = {"api", per_tenant(1, 1)}};
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", Payload(42)), PayloadValidationError);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", Payload{}), PayloadValidationError);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", Payload::from_json("{}")), PayloadValidationError);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", Payload::from_json("{")), PayloadValidationError);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", tenant("")), InvalidArgument);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", tenant("a b")), InvalidArgument);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", tenant("a\n")), InvalidArgument);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", tenant(std::string(256, 'x'))), InvalidArgument);
  CHECK(registry.peek("api").remaining == 1);
  CHECK_NOTHROW(registry.acquire_for_actor(actor, "job", "worker", tenant(std::string(255, 'x'))));
}

TEST_CASE("B042: two names, one bucket? never") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  const auto key = [](const ApiRequest& r) { return r.tenant_id; };
  const KeyedRateLimitRef<ApiRequest> a("a", key, {.capacity = 1}), ab("a:b", key, {.capacity = 2});
  CHECK_NOTHROW(registry.acquire_for_actor({.rate_limits = {a}}, "job", "worker", tenant("b:c")));
  CHECK_NOTHROW(registry.acquire_for_actor({.rate_limits = {ab}}, "job", "worker", tenant("c")));
  CHECK_NOTHROW(registry.acquire_for_actor({.rate_limits = {ab}}, "job", "worker", tenant("c")));
  CHECK(registry.keyed_rate_limits() == 2);
  CHECK_THROWS_AS(registry.acquire_for_actor({.rate_limits = {per_tenant(1, 1)}}, "job", "worker", tenant("")), InvalidArgument);
  registry.acquire_for_actor({.rate_limits = {per_tenant(1, 1)}}, "job", "worker", tenant("x"));
  CHECK_THROWS_AS(registry.acquire_for_actor({.rate_limits = {per_tenant(2, 1)}}, "job", "worker", tenant("x")), InvalidArgument);
}

TEST_CASE("caps on keys are separate; idle keys make room, at most every 30 s") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend, {.max_keyed_rate_limits = 2, .max_keyed_reservations = 1, .keyed_idle = 1h});
  const ActorLimits limits{.rate_limits = {per_tenant(1, 1)}}, slots{.reservations = {slots_per_tenant(1)}};
  registry.acquire_for_actor(limits, "job", "worker", tenant("a"));
  registry.acquire_for_actor(limits, "job", "worker", tenant("b"));
  CHECK_THROWS_AS(registry.acquire_for_actor(limits, "job", "worker", tenant("c")), ReservationUnavailable);
  CHECK_NOTHROW(registry.acquire_for_actor(slots, "job", "worker", tenant("a")));
  CHECK_THROWS_AS(registry.acquire_for_actor(slots, "job", "worker", tenant("b")), ReservationUnavailable);
  s.clock->advance(1h);
  CHECK_NOTHROW(registry.acquire_for_actor(limits, "job", "worker", tenant("c")));
  CHECK(registry.keyed_rate_limits() == 1);
  registry.acquire_for_actor(limits, "job", "worker", tenant("d"));
  CHECK_THROWS_AS(registry.acquire_for_actor(limits, "job", "worker", tenant("e")), ReservationUnavailable);
}

TEST_CASE("a spent quota that never refills is never evicted: the cap fails closed") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend, {.max_keyed_rate_limits = 1});
  const ActorLimits actor{.rate_limits = {per_tenant(1, 0)}};
  registry.acquire_for_actor(actor, "job", "worker", tenant("a"));
  s.clock->advance(std::chrono::hours{1000});
  CHECK(registry.evict_idle_keyed_rate_limits(1h) == 0);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", tenant("b")), ReservationUnavailable);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker", tenant("a")), ReservationUnavailable);
}

TEST_CASE("held slots keep their key") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  auto held = registry.acquire_for_actor({.reservations = {slots_per_tenant(1)}}, "job", "worker", tenant("a"));
  CHECK(registry.evict_idle_keyed_reservations(0s) == 0);
  held.release();
  CHECK(registry.evict_idle_keyed_reservations(0s) == 1);
}

TEST_CASE("a queue's cap comes first, and its name is reserved") {
  const Subject s = memory_subject();
  RateLimitRegistry registry(s.backend);
  registry.set_queue_max_concurrent("external-api", 1, 30s);
  const ActorLimits actor{.queue = "external-api"};
  auto held = registry.acquire_for_actor(actor, "job", "worker");
  CHECK(held.size() == 1);
  CHECK_THROWS_AS(registry.acquire_for_actor(actor, "job", "worker"), ReservationUnavailable);
  CHECK_THROWS_AS(ConcurrencyReservation("taskq:global:queue:x", {.slots = 1, .lease = 1s}), InvalidArgument);
  CHECK_THROWS_AS(TokenBucket("taskq:x", {.capacity = 1}), InvalidArgument);
  registry.set_queue_max_concurrent("external-api", 0, 30s);
  CHECK(registry.acquire_for_actor(actor, "job", "worker").size() == 0);
}

}  // namespace taskq::test
