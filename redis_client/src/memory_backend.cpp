#include "taskq/memory_backend.hpp"

#include <map>
#include <mutex>
#include <utility>

#include "taskq/detail/key_table.hpp"
#include "taskq/detail/memory_bucket.hpp"
#include "taskq/detail/slot_pool.hpp"
#include "taskq/detail/wait.hpp"
#include "taskq/errors.hpp"

namespace taskq {

struct MemoryBackend::Limits {
  // What is known under one name. The bucket of a limit without keys, or the buckets of its keys.
  struct Named {
    LimitDefinition definition;
    std::shared_ptr<detail::MemoryBucket> bucket;
    std::shared_ptr<detail::KeyTable> keys;
  };

  std::mutex mutex;
  std::map<std::string, Named, std::less<>> by_name;

  // REQUIRES: mutex is held.
  Named& named(const LimitDefinition& limit) {
    const auto found = by_name.find(limit.name);
    if (found == by_name.end()) return by_name.emplace(limit.name, Named{limit, nullptr, nullptr}).first->second;
    if (found->second.definition.same_as(limit)) return found->second;
    throw InvalidArgument("limit \"" + limit.name + "\" is there already, with another definition");
  }
};

struct MemoryBackend::Slots {
  std::mutex mutex;
  std::map<std::pair<std::string, std::string>, detail::SlotPool> pools;  // by name and key
  std::int64_t fence = 0;
};

MemoryBackend::MemoryBackend(std::shared_ptr<const Clock> clock)
    : clock_(clock ? std::move(clock) : default_clock()), limits_(std::make_unique<Limits>()), slots_(std::make_unique<Slots>()) {}

MemoryBackend::~MemoryBackend() = default;

std::shared_ptr<detail::MemoryBucket> MemoryBackend::direct(const LimitDefinition& limit) {
  const std::lock_guard lock(limits_->mutex);
  Limits::Named& named = limits_->named(limit);
  if (!named.bucket) named.bucket = std::make_shared<detail::MemoryBucket>(limit, *clock_);
  return named.bucket;
}

std::shared_ptr<detail::KeyTable> MemoryBackend::direct_keys(const LimitDefinition& limit, std::size_t max_keys) {
  const std::lock_guard lock(limits_->mutex);
  Limits::Named& named = limits_->named(limit);
  if (!named.keys) named.keys = std::make_shared<detail::KeyTable>(limit, *clock_, max_keys);
  return named.keys;
}

Answer MemoryBackend::run(const Request& request) {
  if (request.key.empty()) return direct(*request.limit)->run(request);
  return direct_keys(*request.limit, 0)->run(request);
}

SlotAnswer MemoryBackend::run_slot(const SlotRequest& request) {
  const std::lock_guard lock(slots_->mutex);
  detail::SlotPool& pool = slots_->pools[{request.reservation->name, std::string(request.key)}];
  return pool.run(request, clock_->now(), slots_->fence);
}

// Looks before it takes, so that a refusal writes nothing. What others take in between is found by taking.
GroupAnswer MemoryBackend::acquire_all(std::span<const GroupItem> items) {
  GroupAnswer refusal;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const Micros wait = detail::wait_for(*this, items[i]);
    if (wait > 0 && refusal.refused_by < 0) refusal.refused_by = static_cast<int>(i);
    refusal.retry_after = ratelimit::larger(refusal.retry_after, wait);
  }
  return refusal.refused_by < 0 ? Backend::acquire_all(items) : refusal;
}

bool MemoryBackend::forget_slots(const ReservationDefinition& reservation, std::string_view key) {
  const std::lock_guard lock(slots_->mutex);
  const auto found = slots_->pools.find({reservation.name, std::string(key)});
  if (found == slots_->pools.end()) return true;
  if (!found->second.is_free(clock_->now())) return false;
  slots_->pools.erase(found);
  return true;
}

}  // namespace taskq
