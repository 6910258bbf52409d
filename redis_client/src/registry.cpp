#include "taskq/registry.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "taskq/detail/acquired.hpp"
#include "taskq/detail/keys_in_use.hpp"
#include "taskq/errors.hpp"
#include "taskq/limiter_manager.hpp"
#include "taskq/memory_backend.hpp"

namespace taskq {

namespace {

Duration backoff(Micros retry_after) noexcept {
  return retry_after == ratelimit::kNever ? kDefaultReservationBackoff : Duration{retry_after};
}

}  // namespace

namespace detail {

void check_derived_key(std::string_view key) {
  const auto fits = [](char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == ':' || c == '.';
  };
  if (key.empty() || key.size() > 255) throw InvalidArgument("a key made from a payload has 1 to 255 characters");
  if (!std::all_of(key.begin(), key.end(), fits)) {
    throw InvalidArgument("a key made from a payload may have A-Z a-z 0-9 _ - : . only");
  }
}

}  // namespace detail

struct RateLimitRegistry::Inside {
  std::shared_ptr<Backend> backend;
  RegistryOptions options;
  mutable std::mutex mutex;
  std::map<std::string, Limiter, std::less<>> limits;
  std::map<std::string, ConcurrencyReservation, std::less<>> reservations;
  // What keyed references were seen, by base name: two of one name have to be the same.
  std::map<std::string, LimiterManager, std::less<>> keyed_limits;
  std::map<std::string, ConcurrencyReservation, std::less<>> keyed_reservations;
  detail::KeysInUse limit_keys;
  detail::KeysInUse reservation_keys;

  Micros now() const { return backend->clock().now(); }

  auto forget_limit() {
    return [this](const detail::KeysInUse::Key& k) {
      const auto found = keyed_limits.find(k.base);
      return found == keyed_limits.end() || found->second.forget(k.key);
    };
  }

  auto forget_reservation() {
    return [this](const detail::KeysInUse::Key& k) {
      const auto found = keyed_reservations.find(k.base);
      return found == keyed_reservations.end() || found->second.backend()->forget_slots(found->second.definition(), k.key);
    };
  }

  // REQUIRES: mutex is held. The manager of a keyed reference.
  LimiterManager& manager_of(const AnyKeyedRateLimitRef& ref) {
    const auto found = keyed_limits.find(ref.definition->name);
    if (found == keyed_limits.end()) {
      const Limiter limiter(*ref.definition, ref.backend ? ref.backend : backend);
      return keyed_limits.emplace(ref.definition->name, LimiterManager(limiter)).first->second;
    }
    if (!found->second.definition().same_as(*ref.definition)) {
      throw InvalidArgument("keyed limit \"" + ref.definition->name + "\" is there already, with another definition");
    }
    return found->second;
  }

  ConcurrencyReservation& pool_of(const AnyKeyedReservationRef& ref) {
    const auto found = keyed_reservations.find(ref.definition->name);
    if (found == keyed_reservations.end()) {
      ConcurrencyReservation pool(*ref.definition, ref.backend ? ref.backend : backend);
      return keyed_reservations.emplace(ref.definition->name, std::move(pool)).first->second;
    }
    if (found->second.definition() != *ref.definition) {
      throw InvalidArgument("keyed reservation \"" + ref.definition->name + "\" is there already, with another definition");
    }
    return found->second;
  }

  AcquiredResources::Held wanted(const std::variant<std::string, AnyKeyedReservationRef>& entry, const std::string& key) {
    if (const auto* name = std::get_if<std::string>(&entry)) return wanted_slot(*name);
    const auto& ref = std::get<AnyKeyedReservationRef>(entry);
    ConcurrencyReservation& pool = pool_of(ref);
    if (!reservation_keys.use({ref.definition->name, key, 0}, options.max_keyed_reservations, now(),
                              options.keyed_idle.count(), forget_reservation())) {
      throw ReservationUnavailable(ref.definition->name, kDefaultReservationBackoff);
    }
    return {.backend = pool.backend(), .limit = nullptr, .reservation = ref.definition, .key = key, .answer = {}, .slot = {}};
  }

  AcquiredResources::Held wanted(const std::variant<std::string, AnyKeyedRateLimitRef>& entry, const std::string& key) {
    if (const auto* name = std::get_if<std::string>(&entry)) {
      const auto found = limits.find(*name);
      if (found == limits.end()) throw NotFound("there is no rate limit \"" + *name + "\"");
      return checked(limit_of(found->second.backend(), found->second.shared_definition(), {}));
    }
    const auto& ref = std::get<AnyKeyedRateLimitRef>(entry);
    LimiterManager& manager = manager_of(ref);
    if (!limit_keys.use({ref.definition->name, key, 0}, options.max_keyed_rate_limits, now(), options.keyed_idle.count(),
                        forget_limit())) {
      throw ReservationUnavailable(ref.definition->name, kDefaultReservationBackoff);
    }
    return checked(limit_of(manager.backend(), manager.shared_definition(), key));
  }

  AcquiredResources::Held wanted_slot(const std::string& name) {
    const auto found = reservations.find(name);
    if (found == reservations.end()) throw NotFound("there is no reservation \"" + name + "\"");
    return {.backend = found->second.backend(),
            .limit = nullptr,
            .reservation = std::make_shared<const ReservationDefinition>(found->second.definition()),
            .key = {},
            .answer = {},
            .slot = {}};
  }

  static AcquiredResources::Held limit_of(std::shared_ptr<Backend> on, std::shared_ptr<const LimitDefinition> limit, std::string key) {
    return {.backend = std::move(on), .limit = std::move(limit), .reservation = nullptr, .key = std::move(key), .answer = {}, .slot = {}};
  }

  static AcquiredResources::Held checked(AcquiredResources::Held held) {
    if (held.limit->one == 0) throw InvalidArgument("limit \"" + held.limit->name + "\" can never admit a cost of 1");
    return held;
  }
};

RateLimitRegistry::RateLimitRegistry(std::shared_ptr<Backend> backend, RegistryOptions options) : inside_(std::make_unique<Inside>()) {
  inside_->backend = backend ? std::move(backend) : std::make_shared<MemoryBackend>();
  inside_->options = options;
}

RateLimitRegistry::~RateLimitRegistry() = default;

void RateLimitRegistry::add(const Limiter& limiter) {
  const std::lock_guard lock(inside_->mutex);
  const auto [found, added] = inside_->limits.try_emplace(limiter.name(), limiter);
  const bool same_store = found->second.backend()->store() == limiter.backend()->store();
  if (!same_store || !found->second.definition().same_as(limiter.definition())) throw InvalidArgument("limit \"" + limiter.name() + "\" is there already, with another definition");
}

void RateLimitRegistry::add(const ConcurrencyReservation& reservation) {
  check_name(reservation.name());
  const std::lock_guard lock(inside_->mutex);
  const auto [found, added] = inside_->reservations.try_emplace(reservation.name(), reservation);
  if (found->second.definition() != reservation.definition()) {
    throw InvalidArgument("reservation \"" + reservation.name() + "\" is there already, with another definition");
  }
}

Limiter RateLimitRegistry::get_rate_limit(std::string_view name) const {
  const std::lock_guard lock(inside_->mutex);
  const auto found = inside_->limits.find(name);
  if (found == inside_->limits.end()) throw NotFound("there is no rate limit \"" + std::string(name) + "\"");
  return found->second;
}

ConcurrencyReservation RateLimitRegistry::get_reservation(std::string_view name) const {
  const std::lock_guard lock(inside_->mutex);
  const auto found = inside_->reservations.find(name);
  if (found == inside_->reservations.end()) throw NotFound("there is no reservation \"" + std::string(name) + "\"");
  return found->second;
}

State RateLimitRegistry::peek(std::string_view name) const { return get_rate_limit(name).peek(); }

std::map<std::string, State> RateLimitRegistry::peek_all() const {
  std::unique_lock lock(inside_->mutex);
  const auto limits = inside_->limits;
  lock.unlock();
  std::map<std::string, State> states;
  for (const auto& [name, limiter] : limits) states.emplace(name, limiter.peek());
  return states;
}

void RateLimitRegistry::reset(std::string_view name) { get_rate_limit(name).reset(); }

ScopedAcquire RateLimitRegistry::acquire(std::string_view name, double cost) {
  {
    const std::lock_guard lock(inside_->mutex);
    if (inside_->limits.count(name) == 0 && inside_->reservations.count(name) > 0) {
      throw InvalidArgument("\"" + std::string(name) + "\" is a reservation: acquire() takes from rate limits");
    }
  }
  Limiter limiter = get_rate_limit(name);
  const Decision decision = limiter.acquire(cost);
  return {std::move(limiter), decision};
}

namespace {

using Held = AcquiredResources::Held;

// Takes the items of one backend in one call; false, and who refused, if they are not all to be had.
struct Refusal {
  std::string name;
  Micros retry_after = 0;
};

std::optional<Refusal> take_run(std::span<Held> run, std::string_view job_id, std::string_view worker_id) {
  std::vector<Request> requests(run.size());
  std::vector<SlotRequest> slots(run.size());
  std::vector<GroupItem> items(run.size());
  for (std::size_t i = 0; i < run.size(); ++i) {
    if (run[i].limit) items[i].limit = &(requests[i] = run[i].request());
    else items[i].slot = &(slots[i] = run[i].slot_request(job_id, worker_id));
  }
  const GroupAnswer group = run.front().backend->acquire_all(items);
  if (!group.allowed) return Refusal{run[static_cast<std::size_t>(group.refused_by)].name(), group.retry_after};
  std::size_t limit = 0, slot = 0;
  for (Held& held : run) {
    if (held.limit) held.answer = group.limits.at(limit++);
    else held.slot = group.slots.at(slot++);
  }
  return std::nullopt;
}

void check_stop(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled("stopped while acquiring");
}

}  // namespace

AcquiredResources RateLimitRegistry::acquire_for_actor(const ActorLimits& actor, std::string_view job_id, std::string_view worker_id,
                                                       const Payload& payload, std::stop_token stop) {
  // Before anything is taken: what the payload cannot answer takes nothing.
  const auto keys_of = [&payload](const auto& entries) {
    std::vector<std::string> keys;
    for (const auto& entry : entries) {
      const bool keyed = entry.index() == 1;
      keys.push_back(keyed ? std::get<1>(entry).key(payload) : std::string{});
      if (keyed) detail::check_derived_key(keys.back());
    }
    return keys;
  };
  const std::vector<std::string> slot_keys = keys_of(actor.reservations), limit_keys = keys_of(actor.rate_limits);
  std::vector<Held> wanted;
  {
    const std::lock_guard lock(inside_->mutex);
    const std::string cap = "taskq:global:queue:" + actor.queue;
    if (!actor.queue.empty() && inside_->reservations.count(cap) > 0) wanted.push_back(inside_->wanted_slot(cap));
    for (std::size_t i = 0; i < slot_keys.size(); ++i) wanted.push_back(inside_->wanted(actor.reservations[i], slot_keys[i]));
    for (std::size_t i = 0; i < limit_keys.size(); ++i) wanted.push_back(inside_->wanted(actor.rate_limits[i], limit_keys[i]));
  }
  // Runs of one backend are one call each; what earlier runs took is rolled back by its owner.
  AcquiredResources acquired;
  try {
    for (std::size_t from = 0; from < wanted.size();) {
      check_stop(stop);
      std::size_t to = from + 1;
      while (to < wanted.size() && wanted[to].backend == wanted[from].backend) ++to;
      const auto refusal = take_run(std::span(wanted).subspan(from, to - from), job_id, worker_id);
      if (refusal) throw ReservationUnavailable(refusal->name, backoff(refusal->retry_after));
      acquired.append(std::span(wanted).subspan(from, to - from));
      from = to;
    }
    check_stop(stop);
  } catch (...) {
    acquired.give_back(true, true);
    throw;
  }
  return acquired;
}

void RateLimitRegistry::set_queue_max_concurrent(std::string_view queue, int max_concurrent, Duration lease) {
  std::string name = "taskq:global:queue:" + std::string(queue);
  check_name(queue);
  const std::lock_guard lock(inside_->mutex);
  if (max_concurrent == 0) {
    inside_->reservations.erase(name);
    return;
  }
  const ConcurrencyReservation cap(define_reservation(name, max_concurrent, lease, true), inside_->backend);
  inside_->reservations.insert_or_assign(std::move(name), cap);
  sync_slots(std::span(&cap, 1));
}

std::size_t RateLimitRegistry::evict_idle_keyed_rate_limits(Duration idle_for) {
  const std::lock_guard lock(inside_->mutex);
  return inside_->limit_keys.evict(inside_->now(), idle_for.count(), inside_->forget_limit());
}

std::size_t RateLimitRegistry::evict_idle_keyed_reservations(Duration idle_for) {
  const std::lock_guard lock(inside_->mutex);
  return inside_->reservation_keys.evict(inside_->now(), idle_for.count(), inside_->forget_reservation());
}

std::size_t RateLimitRegistry::keyed_rate_limits() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->limit_keys.size();
}

std::size_t RateLimitRegistry::keyed_reservations() const {
  const std::lock_guard lock(inside_->mutex);
  return inside_->reservation_keys.size();
}

void RateLimitRegistry::clear() {
  const std::lock_guard lock(inside_->mutex);
  inside_->limits.clear();
  inside_->reservations.clear();
  inside_->keyed_limits.clear();
  inside_->keyed_reservations.clear();
  inside_->limit_keys.clear();
  inside_->reservation_keys.clear();
}

}  // namespace taskq
