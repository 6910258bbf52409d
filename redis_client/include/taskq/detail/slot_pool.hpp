// The slots of one reservation and key in memory. Never more leases live than there are slots, also right after the number was lowered; a
// lease that has ended is free at once. Not thread-safe.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "taskq/backend.hpp"

namespace taskq::detail {

class SlotPool {
 public:
  // `fence` is the number of the last lease of the backend.
  SlotAnswer run(const SlotRequest& request, Micros now, std::int64_t& fence);

  bool is_free(Micros now);

 private:
  struct Slot {
    std::string job_id;
    std::string worker_id;
    std::int64_t fence = 0;
    Micros expires_at = 0;
    bool held = false;
  };

  SlotAnswer acquire(const SlotRequest& request, Micros now, std::int64_t& fence);
  SlotAnswer release(const SlotRequest& request);
  SlotAnswer renew(const SlotRequest& request, Micros now);
  SlotAnswer peek(Micros now) const;
  SlotAnswer resize(int slots);
  Slot* held_by(const SlotRequest& request);
  void free(int index);
  void end_leases(Micros now);
  Micros wait_for_room(Micros now) const;

  int wanted_ = 0;
  std::vector<Slot> slots_;
  std::set<int> free_;                        // below wanted_
  std::set<std::pair<Micros, int>> leases_;   // ends, and whose
};

}  // namespace taskq::detail
