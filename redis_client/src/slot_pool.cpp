#include "taskq/detail/slot_pool.hpp"

#include <algorithm>
#include <iterator>

namespace taskq::detail {

SlotAnswer SlotPool::run(const SlotRequest& request, Micros now, std::int64_t& fence) {
  end_leases(now);
  if (request.op == SlotOp::sync) return resize(request.reservation->slots);
  if (wanted_ == 0) resize(request.reservation->slots);
  switch (request.op) {
    case SlotOp::acquire: return acquire(request, now, fence);
    case SlotOp::release: return release(request);
    case SlotOp::renew: return renew(request, now);
    default: return peek(now);
  }
}

bool SlotPool::is_free(Micros now) {
  end_leases(now);
  return leases_.empty();
}

// A lease is the half-open time [start, end).
void SlotPool::end_leases(Micros now) {
  while (!leases_.empty() && leases_.begin()->first <= now) free(leases_.begin()->second);
}

void SlotPool::free(int index) {
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  leases_.erase({slot.expires_at, index});
  slot = Slot{};
  if (index < wanted_) free_.insert(index);
}

// When one more could get in: the end of the lease that must end first for that.
Micros SlotPool::wait_for_room(Micros now) const {
  const auto live = static_cast<std::ptrdiff_t>(leases_.size());
  if (live < wanted_) return 0;
  return std::next(leases_.begin(), live - wanted_)->first - now;
}

SlotAnswer SlotPool::acquire(const SlotRequest& request, Micros now, std::int64_t& fence) {
  SlotAnswer answer;
  answer.held = static_cast<int>(leases_.size());
  answer.retry_after = wait_for_room(now);
  if (answer.held >= wanted_) return answer;
  const int index = *free_.begin();
  free_.erase(free_.begin());
  Slot& slot = slots_[static_cast<std::size_t>(index)];
  const Micros end = ratelimit::saturating_add(now, request.reservation->lease);
  slot = {std::string(request.job_id), std::string(request.worker_id), ++fence, end, true};
  leases_.insert({end, index});
  return {.done = true, .slot_index = index, .fence = slot.fence, .expires_at = end, .held = answer.held + 1};
}

// The slot, if it is held by this worker and with this fence, as far as these are given.
SlotPool::Slot* SlotPool::held_by(const SlotRequest& request) {
  if (request.slot_index < 0 || static_cast<std::size_t>(request.slot_index) >= slots_.size()) return nullptr;
  Slot& slot = slots_[static_cast<std::size_t>(request.slot_index)];
  const bool given = request.fence != 0 || !request.worker_id.empty();
  const bool same_worker = request.worker_id.empty() || request.worker_id == slot.worker_id;
  const bool same_fence = request.fence == 0 || request.fence == slot.fence;
  return slot.held && given && same_worker && same_fence ? &slot : nullptr;
}

SlotAnswer SlotPool::release(const SlotRequest& request) {
  if (held_by(request) == nullptr) return {};
  free(request.slot_index);
  return {.done = true, .slot_index = request.slot_index};
}

SlotAnswer SlotPool::renew(const SlotRequest& request, Micros now) {
  Slot* slot = held_by(request);
  if (slot == nullptr) return {};
  leases_.erase({slot->expires_at, request.slot_index});
  slot->expires_at = ratelimit::saturating_add(now, request.reservation->lease);
  leases_.insert({slot->expires_at, request.slot_index});
  return {.done = true, .slot_index = request.slot_index, .fence = slot->fence, .expires_at = slot->expires_at};
}

SlotAnswer SlotPool::peek(Micros now) const {
  return {.expires_at = leases_.empty() ? 0 : leases_.begin()->first,
          .retry_after = wait_for_room(now),
          .held = static_cast<int>(leases_.size())};
}

// Slots above the wanted number go as soon as they are free.
SlotAnswer SlotPool::resize(int slots) {
  SlotAnswer answer;
  const int before = wanted_;
  wanted_ = slots;
  if (slots_.size() < static_cast<std::size_t>(slots)) slots_.resize(static_cast<std::size_t>(slots));
  for (int i = before; i < slots; ++i) {
    if (slots_[static_cast<std::size_t>(i)].held) continue;
    free_.insert(i);
    ++answer.inserted;
  }
  for (int i = slots; i < before; ++i) free_.erase(i) == 1 ? ++answer.deleted : ++answer.skipped_held;
  answer.held = static_cast<int>(leases_.size());
  return answer;
}

}  // namespace taskq::detail
