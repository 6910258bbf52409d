// What the holder of a slot does: release and renew. And counting.
#include "clock.hpp"
#include "errors.hpp"
#include "row_wait.hpp"
#include "slot_hint.hpp"
#include "slot_ops.hpp"
#include "slot_survey.hpp"
#include "uuid.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constinit int32 released_reservation = 0, released_slot = -1;

bool holds(const SlotRow& row, const Holder& holder, TimestampTz now) {
  return row.lease_expires_at > now && (holder.worker == nullptr || same_uuid(row.worker_id, *holder.worker)) &&
         (!holder.has_fence || row.fence == holder.fence);
}

// Runs `change(slots, found, row, now)`, which says whether it replaced that version, on the slot if the holder holds it.
template <class Change>
bool change_held(const Reservation& reservation, std::string_view key, int32 index, const Holder& holder,
                 ratelimit::Micros longest, Change change) {
  OpenTable slots = open_slots(RowExclusiveLock);
  Patience patience{.limit = longest};
  bool held = false;
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    const FoundRow found = find_slot(slots, {reservation.reservation_id, key}, index, true);
    if (!found.exists) break;
    const TimestampTz now = clock_now();
    SlotRow row = slot_row(found.row);
    held = holds(row, holder, now);
    if (!held) break;
    if (found.version.kind == VersionKind::live) {
      if (change(slots, found, row, now)) break;
    } else if (!wait_for_other(patience, found.version, slots.table, &found.row->t_self)) {
      raise_reservation_in_use(reservation.name);
    }
  }
  close_table(slots);
  return held;
}

bool replace_with_free(OpenTable& slots, const FoundRow& found, SlotRow row) {
  if (row.surplus) return delete_slot(slots, found);
  row.lease_expires_at = DT_NOBEGIN;
  row.job_id = row.worker_id = pg_uuid_t{};
  return replace_slot(slots, found, row);
}

}  // namespace

int32 hinted_slot(int32 reservation_id) { return released_reservation == reservation_id ? released_slot : -1; }

void remember_slot(int32 reservation_id, int32 index) {
  released_reservation = reservation_id;
  released_slot = index;
}

bool free_slot(std::string_view name, std::string_view key, int32 index, const Holder& holder, ratelimit::Micros patience,
               Missing missing) {
  Reservation reservation;
  if (!look_up_reservation(name, missing, reservation)) return false;
  const bool freed = change_held(reservation, key, index, holder, patience,
                                 [](OpenTable& slots, const FoundRow& found, const SlotRow& row, TimestampTz) {
                                   return replace_with_free(slots, found, row);
                                 });
  if (freed) remember_slot(reservation.reservation_id, index);
  return freed;
}

bool extend_slot(std::string_view name, std::string_view key, int32 index, const Holder& holder, TimestampTz& end,
                 Missing missing) {
  Reservation reservation;
  if (!look_up_reservation(name, missing, reservation)) return false;
  return change_held(reservation, key, index, holder, ratelimit::kNever, [&](OpenTable& slots, const FoundRow& found, SlotRow row, TimestampTz now) {
    row.renewed_at = now;
    end = row.lease_expires_at = ratelimit::saturating_add(now, reservation.lease);
    return replace_slot(slots, found, row);
  });
}

SlotCounts count_slots(const Reservation& reservation, std::string_view key) {
  SlotCounts counts{.reservation = reservation};
  OpenTable slots = open_slots(AccessShareLock);
  const Survey survey = survey_slots(slots, counts.reservation, key);
  counts.held = survey.held;
  counts.first_end = end_of_excess(survey, survey.held > 0 ? survey.held - 1 : 0, DT_NOEND);
  close_table(slots);
  return counts;
}

}  // namespace taskq::pg
