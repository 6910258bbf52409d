// Counts what the SQL functions have answered, if statistics are kept (stats_table.hpp). To be called once per decision, by whoever gives
// the answer: what is taken on the way there and undone is not counted. A decision stays counted when its transaction is rolled back.
#pragma once

#include "bucket_ops.hpp"
#include "group.hpp"
#include "slot_ops.hpp"
#include "stats_table.hpp"

#include "pg.hpp"

namespace taskq::pg {

void count_limit(int32 limit_id, Reason reason);
void count_slot(int32 reservation_id, SlotReason reason);

inline const Answer& counted(const Call& call, const Answer& answer) {
  if (stats_table != nullptr) count_limit(call.definition.limit_id, answer.reason);
  return answer;
}

inline const SlotAnswer& counted(const SlotAnswer& answer) {
  if (stats_table != nullptr) count_slot(answer.reservation_id, answer.reason);
  return answer;
}

inline const SlotAnswer& counted(const Reservation& reservation, const SlotAnswer& answer) {
  if (stats_table != nullptr) count_slot(reservation.reservation_id, answer.reason);
  return answer;
}

// In a refused group nothing was taken: those who refused are counted as denied, the others not at all. A cap that was lifted is not counted.
const GroupAnswer& counted(const GroupRequest* requests, int count, const GroupAnswer& answer);

}  // namespace taskq::pg
