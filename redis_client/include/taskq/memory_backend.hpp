// Limits in the memory of this process: the default. State is lost when the backend goes, and not shared with other processes (a forked
// child has a copy of its own). Thread-safety: all functions, any thread.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "taskq/backend.hpp"

namespace taskq {

class MemoryBackend final : public Backend {
 public:
  explicit MemoryBackend(std::shared_ptr<const Clock> clock = default_clock());
  ~MemoryBackend() override;

  Store store() const noexcept override { return Store::memory; }
  const Clock& clock() const noexcept override { return *clock_; }
  Answer run(const Request& request) override;
  SlotAnswer run_slot(const SlotRequest& request) override;
  GroupAnswer acquire_all(std::span<const GroupItem> items) override;
  std::shared_ptr<detail::MemoryBucket> direct(const LimitDefinition& limit) override;
  std::shared_ptr<detail::KeyTable> direct_keys(const LimitDefinition& limit, std::size_t max_keys) override;
  bool forget_slots(const ReservationDefinition& reservation, std::string_view key) override;

 private:
  struct Limits;
  struct Slots;

  std::shared_ptr<const Clock> clock_;
  std::unique_ptr<Limits> limits_;
  std::unique_ptr<Slots> slots_;
};

}  // namespace taskq
