// Limits and reservations by name, and many of them at once.
//
//   RateLimitRegistry registry;
//   registry.add(TokenBucket("stripe_calls", {.capacity = 100, .refill_per_second = 10}));
//   registry.add(ConcurrencyReservation("stripe_slots", {.slots = 8, .lease = 30s}));
//   ActorLimits charge{.rate_limits = {"stripe_calls"}, .reservations = {"stripe_slots"}};
//   AcquiredResources held = registry.acquire_for_actor(charge, job_id, worker_id);   // or ReservationUnavailable
//
// Rate limits and reservations have names of their own: the same name may be used in both.
// Thread-safety: all functions, any thread; an AcquiredResources or ScopedAcquire belongs to one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "taskq/keyed_ref.hpp"
#include "taskq/limiter.hpp"
#include "taskq/payload.hpp"
#include "taskq/reservation.hpp"

namespace taskq {

struct RegistryOptions {
  std::size_t max_keyed_rate_limits = 10'000;
  std::size_t max_keyed_reservations = 10'000;
  Duration keyed_idle = std::chrono::hours{1};  // what opportunistic eviction takes for idle
};

// Names and keyed references, in the order in which they are acquired: all reservations, then all rate limits.
struct ActorLimits {
  std::vector<std::variant<std::string, AnyKeyedRateLimitRef>> rate_limits{};
  std::vector<std::variant<std::string, AnyKeyedReservationRef>> reservations{};
  std::string queue{};  // if this queue has a cap, it comes first
};

// A decision that gives its cost back when the scope is left, if it was asked to. As in the seeds nothing is given back otherwise, not even
// after an exception.
class ScopedAcquire {
 public:
  ScopedAcquire(Limiter limiter, Decision decision) : limiter_(std::move(limiter)), decision_(decision) {}
  ScopedAcquire(ScopedAcquire&& other) noexcept
      : limiter_(other.limiter_), decision_(other.decision_), refunds_(std::exchange(other.refunds_, false)) {}
  ScopedAcquire& operator=(ScopedAcquire&&) = delete;
  ~ScopedAcquire();

  bool allowed() const noexcept { return decision_.allowed(); }
  explicit operator bool() const noexcept { return allowed(); }
  const Decision& decision() const noexcept { return decision_; }

  // Gives back at the end of the scope, unless keep() is called before.
  void refund_at_end() noexcept { refunds_ = true; }
  void keep() noexcept { refunds_ = false; }

 private:
  Limiter limiter_;
  Decision decision_;
  bool refunds_ = false;
};

// What an actor holds while it runs. When it goes, slots are released, in reverse order; what rate limits gave is spent for good.
class AcquiredResources {
 public:
  struct Held;

  AcquiredResources() noexcept;
  explicit AcquiredResources(std::vector<Held> held) noexcept;
  AcquiredResources(AcquiredResources&&) noexcept;
  AcquiredResources& operator=(AcquiredResources&&) noexcept;
  ~AcquiredResources();

  // Releases the slots. Goes on after a failure; throws the first one at the end.
  void release();

  // The work never began: gives everything back, slots and costs, in reverse order. Failures as in release().
  void roll_back();

  std::size_t size() const noexcept;
  std::vector<Slot> slots() const;

 private:
  friend class RateLimitRegistry;
  void append(std::span<const Held> held);
  void give_back(bool costs, bool quietly);

  std::vector<Held> held_;
};

class RateLimitRegistry {
 public:
  // `backend` is where keyed references without one of their own live; none: memory.
  explicit RateLimitRegistry(std::shared_ptr<Backend> backend = nullptr, RegistryOptions options = {});
  ~RateLimitRegistry();
  RateLimitRegistry(const RateLimitRegistry&) = delete;
  RateLimitRegistry& operator=(const RateLimitRegistry&) = delete;

  // The same definition under the same name again changes nothing; another one throws InvalidArgument.
  void add(const Limiter& limiter);
  void add(const ConcurrencyReservation& reservation);

  // Throw NotFound.
  Limiter get_rate_limit(std::string_view name) const;
  ConcurrencyReservation get_reservation(std::string_view name) const;

  State peek(std::string_view name) const;
  std::map<std::string, State> peek_all() const;
  void reset(std::string_view name);

  // Throws InvalidArgument if only a reservation has this name.
  ScopedAcquire acquire(std::string_view name, double cost = 1);

  // All of it or nothing, each rate limit at a cost of 1. The payload is validated and all keys are made first. On a denial, on any
  // exception and if `stop` is requested, what was taken is given back in reverse order.
  // Throws ReservationUnavailable (retry_after: the longest of all that refuse, 5 s where nothing says how long), PayloadValidationError,
  // NotFound, InvalidArgument, BackendError; Cancelled if it was stopped.
  AcquiredResources acquire_for_actor(const ActorLimits& actor, std::string_view job_id, std::string_view worker_id,
                                      const Payload& payload = {}, std::stop_token stop = {});

  // At most this many jobs of the queue at once; 0 lifts the cap.
  void set_queue_max_concurrent(std::string_view queue, int max_concurrent, Duration lease);

  // Forgets keys that nobody has acquired for that long, if that changes nothing: a bucket in memory that is not full stays, and so does a
  // reservation in memory with slots held. Answers how many. Call it every half a minute.
  std::size_t evict_idle_keyed_rate_limits(Duration idle_for);
  std::size_t evict_idle_keyed_reservations(Duration idle_for);

  std::size_t keyed_rate_limits() const;
  std::size_t keyed_reservations() const;

  // Forgets everything.
  void clear();

 private:
  struct Inside;
  std::unique_ptr<Inside> inside_;
};

using Registry = RateLimitRegistry;

}  // namespace taskq
