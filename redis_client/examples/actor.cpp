// Limits by name and by tenant, and slots, taken together: all or nothing.
#include <iostream>
#include <string>

#include "taskq/ratelimit.hpp"

using namespace std::chrono_literals;

struct ApiRequest {
  std::string tenant_id;
};

int main() {
  taskq::RateLimitRegistry registry;
  registry.add(taskq::TokenBucket("api", {.capacity = 100, .refill_per_second = 10}));
  registry.add(taskq::ConcurrencyReservation("api_slots", {.slots = 8, .lease = 30s}));
  const taskq::KeyedRateLimitRef<ApiRequest> per_tenant("api-per-tenant", [](const ApiRequest& r) { return r.tenant_id; },
                                                        {.capacity = 1, .refill_per_second = 0.1});
  const taskq::ActorLimits call_api{.rate_limits = {"api", per_tenant}, .reservations = {"api_slots"}};

  for (const char* tenant : {"acme", "zenith", "acme"}) {
    try {
      const auto held = registry.acquire_for_actor(call_api, "job", "worker", taskq::Payload(ApiRequest{tenant}));
      std::cout << tenant << ": runs\n";
    } catch (const taskq::ReservationUnavailable& refused) {
      std::cout << tenant << ": " << refused.name() << " says no, again in " << (refused.retry_after() + 999ms) / 1s << " s\n";
    }
  }
}
