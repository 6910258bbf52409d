#include "taskq/memory_backend.hpp"

#include <utility>

#include "taskq/detail/memory_bucket.hpp"
#include "taskq/errors.hpp"

namespace taskq {

// What is known under one name.
struct MemoryBackend::Limits {
  struct Named {
    LimitDefinition definition;
    std::shared_ptr<detail::MemoryBucket> bucket;
  };

  std::mutex mutex;
  std::map<std::string, Named, std::less<>> by_name;
};

MemoryBackend::MemoryBackend(std::shared_ptr<const Clock> clock)
    : clock_(clock ? std::move(clock) : default_clock()), limits_(std::make_unique<Limits>()) {}

MemoryBackend::~MemoryBackend() = default;

std::shared_ptr<detail::MemoryBucket> MemoryBackend::direct(const std::shared_ptr<const LimitDefinition>& limit) {
  const std::lock_guard lock(limits_->mutex);
  auto [found, added] = limits_->by_name.try_emplace(limit->name, Limits::Named{*limit, nullptr});
  Limits::Named& named = found->second;
  if (!named.definition.same_as(*limit)) {
    throw InvalidArgument("limit \"" + limit->name + "\" is there already, with another definition");
  }
  if (!named.bucket) named.bucket = std::make_shared<detail::MemoryBucket>(*limit, *clock_);
  return named.bucket;
}

Answer MemoryBackend::run(const Request& request) {
  return direct(std::make_shared<const LimitDefinition>(*request.limit))->run(request);
}

SlotAnswer MemoryBackend::run_slot(const SlotRequest&) { return {}; }

}  // namespace taskq
