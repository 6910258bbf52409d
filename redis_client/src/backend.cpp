#include "taskq/backend.hpp"

#include "taskq/detail/wait.hpp"
#include "taskq/errors.hpp"

namespace taskq {

ReservationDefinition define_reservation(std::string name, int slots, Duration lease, bool reserved_prefix) {
  if (!reserved_prefix) check_name(name);
  if (slots < 1) throw InvalidArgument("reservation \"" + name + "\": slots must be at least 1 (" + std::to_string(slots) + ")");
  if (lease.count() < 1) {
    throw InvalidArgument("reservation \"" + name + "\": the lease must be greater than 0 (" + std::to_string(lease.count()) + " us)");
  }
  return {.name = std::move(name), .slots = slots, .lease = lease.count()};
}

const Clock& Backend::clock() const noexcept {
  static const std::shared_ptr<const Clock> clock = default_clock();
  return *clock;
}

std::shared_ptr<detail::MemoryBucket> Backend::direct(const LimitDefinition&) { return nullptr; }

std::shared_ptr<detail::KeyTable> Backend::direct_keys(const LimitDefinition&, std::size_t) { return nullptr; }

bool Backend::forget_slots(const ReservationDefinition&, std::string_view) { return true; }

std::vector<Answer> Backend::run_many(std::span<const Request> requests) {
  std::vector<Answer> answers;
  answers.reserve(requests.size());
  for (const Request& request : requests) answers.push_back(run(request));
  return answers;
}

namespace detail {

Micros wait_for(Backend& backend, const GroupItem& item) {
  if (item.slot != nullptr) {
    SlotRequest look = *item.slot;
    look.op = SlotOp::peek;
    return backend.run_slot(look).retry_after;
  }
  Request look = *item.limit;
  look.op = Op::preview;
  return backend.run(look).decision.retry_after;
}

}  // namespace detail

namespace {

// What has been taken of a group so far. Gives it back in reverse order, whatever ends the walk, unless it was kept.
class Taking {
 public:
  Taking(Backend& backend, GroupAnswer& group) noexcept : backend_(backend), group_(group) {}
  Taking(const Taking&) = delete;
  Taking& operator=(const Taking&) = delete;
  ~Taking() {
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) give_back(*undo);
  }

  bool take(const GroupItem& item) {
    undo_.reserve(undo_.size() + 1);
    if (item.slot != nullptr) return take_slot(*item.slot);
    const Answer answer = backend_.run(*item.limit);
    group_.limits.push_back(answer);
    if (!answer.decision.allowed) return false;
    undo_.push_back({.limit = item.limit, .slot = {}, .answer = answer});
    return true;
  }

  void keep() noexcept { undo_.clear(); }

 private:
  struct Undo {
    const Request* limit = nullptr;
    SlotRequest slot;
    Answer answer;
  };

  bool take_slot(SlotRequest slot) {
    const SlotAnswer answer = backend_.run_slot(slot);
    group_.slots.push_back(answer);
    if (!answer.done) return false;
    slot.op = SlotOp::release;
    slot.slot_index = answer.slot_index;
    slot.fence = answer.fence;
    undo_.push_back({.limit = nullptr, .slot = slot, .answer = {}});
    return true;
  }

  // What cannot be given back now comes back with time: the bucket refills, the lease ends.
  void give_back(const Undo& undo) noexcept {
    try {
      if (undo.limit == nullptr) {
        backend_.run_slot(undo.slot);
      } else if (undo.answer.reason == Reason::ok) {
        Request request = detail::giving_back(*undo.limit->limit, undo.answer, undo.limit->cost);
        request.key = undo.limit->key;
        backend_.run(request);
      }
    } catch (...) {
    }
  }

  Backend& backend_;
  GroupAnswer& group_;
  std::vector<Undo> undo_;
};

Micros last_wait(const GroupItem& item, const GroupAnswer& group) {
  return item.slot != nullptr ? group.slots.back().retry_after : group.limits.back().decision.retry_after;
}

}  // namespace

GroupAnswer Backend::acquire_all(std::span<const GroupItem> items) {
  GroupAnswer group;
  Taking taking(*this, group);
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (taking.take(items[i])) continue;
    group.refused_by = static_cast<int>(i);
    group.retry_after = last_wait(items[i], group);
    for (const GroupItem& later : items.subspan(i + 1)) {
      group.retry_after = ratelimit::larger(group.retry_after, detail::wait_for(*this, later));
    }
    return group;
  }
  group.allowed = true;
  taking.keep();
  return group;
}

}  // namespace taskq
