#include "count_decision.hpp"

#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

Counter counter_of(Reason reason) {
  switch (reason) {
    case Reason::ok: return Counter::allowed;
    case Reason::limited: return Counter::limited;
    case Reason::paused: return Counter::paused;
    case Reason::shadow: return Counter::shadow;
    case Reason::too_many_keys: return Counter::too_many_keys;
    default: return Counter::timed_out;
  }
}

Counter counter_of(SlotReason reason) {
  switch (reason) {
    case SlotReason::ok: return Counter::allowed;
    case SlotReason::full: return Counter::full;
    case SlotReason::too_many_keys: return Counter::too_many_keys;
    default: return Counter::timed_out;
  }
}

}  // namespace

void count_limit(int32 limit_id, Reason reason) {
  count({.database = MyDatabaseId, .table = relations_last_seen().limits, .id = limit_id}, counter_of(reason));
}

void count_slot(int32 reservation_id, SlotReason reason) {
  count({.database = MyDatabaseId, .table = relations_last_seen().reservations, .id = reservation_id}, counter_of(reason));
}

const GroupAnswer& counted(const GroupRequest* requests, int count, const GroupAnswer& answer) {
  for (int i = 0; i < count; ++i) {
    const GroupRequest& r = requests[i];
    if ((r.allowed() && !answer.allowed) || (r.kind == ResourceKind::reservation && r.slot.reason == SlotReason::no_reservation)) continue;
    if (r.kind == ResourceKind::rate_limit) counted(r.call, r.answer);
    else counted(r.reservation, r.slot);
  }
  return answer;
}

}  // namespace taskq::pg
