#include "taskq/detail/acquired.hpp"

#include <exception>
#include <utility>

namespace taskq {

AcquiredResources::AcquiredResources() noexcept = default;
AcquiredResources::AcquiredResources(std::vector<Held> held) noexcept : held_(std::move(held)) {}
AcquiredResources::AcquiredResources(AcquiredResources&&) noexcept = default;

AcquiredResources& AcquiredResources::operator=(AcquiredResources&& other) noexcept {
  if (this != &other) {
    give_back(false, true);
    held_ = std::move(other.held_);
    other.held_.clear();
  }
  return *this;
}

AcquiredResources::~AcquiredResources() { give_back(false, true); }

std::size_t AcquiredResources::size() const noexcept { return held_.size(); }

void AcquiredResources::append(std::span<const Held> held) { held_.insert(held_.end(), held.begin(), held.end()); }

void AcquiredResources::release() { give_back(false, false); }
void AcquiredResources::roll_back() { give_back(true, false); }

void AcquiredResources::give_back(bool costs, bool quietly) {
  std::exception_ptr first;
  for (auto held = held_.rbegin(); held != held_.rend(); ++held) {
    try {
      held->give_back(costs);
    } catch (...) {
      if (!first) first = std::current_exception();
    }
  }
  held_.clear();
  if (first && !quietly) std::rethrow_exception(first);
}

std::vector<Slot> AcquiredResources::slots() const {
  std::vector<Slot> slots;
  for (const Held& held : held_) {
    if (held.reservation) slots.push_back({held.slot.slot_index, held.slot.fence, TimePoint{Duration{held.slot.expires_at}}});
  }
  return slots;
}

ScopedAcquire::~ScopedAcquire() {
  if (!refunds_) return;
  try {
    limiter_.refund(decision_);
  } catch (...) {
    // What is not given back now comes back with time.
  }
}

}  // namespace taskq
