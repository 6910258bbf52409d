// One thing that acquire_for_actor took, or is to take: what it needs to be given back.
#pragma once

#include <memory>
#include <string>

#include "taskq/detail/wait.hpp"
#include "taskq/registry.hpp"

namespace taskq {

struct AcquiredResources::Held {
  std::shared_ptr<Backend> backend;
  std::shared_ptr<const LimitDefinition> limit;              // one of the two
  std::shared_ptr<const ReservationDefinition> reservation;
  std::string key;
  Answer answer;
  SlotAnswer slot;

  const std::string& name() const noexcept { return limit ? limit->name : reservation->name; }

  Request request() const noexcept { return {.op = Op::acquire, .limit = limit.get(), .key = key, .cost = limit->one}; }

  SlotRequest slot_request(std::string_view job_id, std::string_view worker_id) const noexcept {
    return {.op = SlotOp::acquire, .reservation = reservation.get(), .key = key, .job_id = job_id, .worker_id = worker_id};
  }

  void give_back(bool cost) const {
    if (reservation) {
      SlotRequest release = slot_request({}, {});
      release.op = SlotOp::release;
      release.slot_index = slot.slot_index;
      release.fence = slot.fence;
      backend->run_slot(release);
    } else if (cost && answer.reason == Reason::ok) {
      Request request = detail::giving_back(*limit, answer, limit->one);
      request.key = key;
      backend->run(request);
    }
  }
};

}  // namespace taskq
