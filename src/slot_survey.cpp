#include "slot_survey.hpp"

#include "clock.hpp"
#include "slot_clock.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

struct Surveyor {
  Survey& survey;
  int32 ends_room = 64;
  int32 last_counted = -1;
};

void count_lease(Surveyor& s, TimestampTz end) {
  if (s.survey.held == s.ends_room) {
    s.ends_room *= 2;
    s.survey.ends = static_cast<TimestampTz*>(repalloc_huge(s.survey.ends, sizeof(TimestampTz) * static_cast<Size>(s.ends_room)));
  }
  s.survey.ends[s.survey.held++] = end;
}

SeenSlot look_at(const FoundRow& found, const SlotRow& row, TimestampTz now) {
  if (!found.exists) return {.held = true, .fence = 0, .writer = found.version.other};
  if (row.lease_expires_at > now) return {.held = true, .fence = row.fence, .writer = HeapTupleHeaderGetRawXmin(found.row->t_data)};
  // A surplus slot whose lease has ended is nobody's and will be nobody's, whoever is deleting it.
  if (found.version.kind == VersionKind::busy && !row.surplus) return {.held = true, .fence = 0, .writer = found.version.other};
  return {};
}

bool is_being_deleted(const FoundRow& found) {
  HeapTupleHeader tuple = found.row->t_data;
  return found.version.kind == VersionKind::busy && !HEAP_XMAX_IS_LOCKED_ONLY(tuple->t_infomask) &&
         ItemPointerEquals(&tuple->t_ctid, &found.row->t_self);
}

void note(Surveyor& s, const FoundRow& found) {
  const SlotRow row = slot_row(found.row);
  // An arriving row may have been met before the version that exists: the latter counts. Rows come in order of their numbers.
  if (row.slot_index == s.last_counted) return;
  // A slot that will be there when a larger number is in force.
  if (!found.exists && row.slot_index >= s.survey.slots) return;
  const TimestampTz now = clock_now();
  const SeenSlot seen = look_at(found, row, now);
  if (found.exists) s.last_counted = row.slot_index;
  if (found.exists && row.surplus) ++s.survey.surplus;
  if (seen.fence != 0) {
    count_lease(s, anchored(row, now).lease_expires_at);
    s.survey.ahead = s.survey.ahead || is_ahead(row, now);
  } else if (seen.held) {
    ++s.survey.taking;
    if (is_being_deleted(found)) s.survey.deleter = found.version.other;
  }
  if (row.slot_index < s.survey.slots && !row.surplus) s.survey.seen[row.slot_index] = seen;
}

int earlier(const void* left, const void* right) {
  const TimestampTz a = *static_cast<const TimestampTz*>(left), b = *static_cast<const TimestampTz*>(right);
  return a < b ? -1 : a > b;
}

}  // namespace

Survey survey_slots(OpenTable& slots, const Reservation& reservation, std::string_view key) {
  Survey survey{.slots = slots_under(reservation, key)};
  Surveyor surveyor{.survey = survey};
  survey.seen = static_cast<SeenSlot*>(palloc0(sizeof(SeenSlot) * static_cast<Size>(survey.slots + 1)));
  survey.ends = static_cast<TimestampTz*>(palloc(sizeof(TimestampTz) * static_cast<Size>(surveyor.ends_room)));
  const SlotScan scan = begin_slot_scan(slots, {reservation.reservation_id, key});
  FoundRow found;
  while (next_slot(scan, slots, ForwardScanDirection, found)) {
    note(surveyor, found);
    heap_freetuple(found.row);
    CHECK_FOR_INTERRUPTS();
  }
  end_slot_scan(scan);
  return survey;
}

void free_survey(const Survey& survey) {
  pfree(survey.seen);
  pfree(survey.ends);
}

TimestampTz end_of_excess(const Survey& survey, int32 most, TimestampTz if_none) {
  if (most < 0) most = 0;
  if (survey.held <= most) return if_none;
  pg_qsort(survey.ends, static_cast<size_t>(survey.held), sizeof(TimestampTz), earlier);
  return survey.ends[survey.held - most - 1];
}

int32 held_between(const Survey& first, const Survey& second) {
  if (first.slots != second.slots) return 0;
  int32 held = 0;
  for (int32 i = 0; i < first.slots; ++i) {
    const SeenSlot &before = first.seen[i], &after = second.seen[i];
    const bool same = before.fence != 0 ? before.fence == after.fence : before.writer == after.writer;
    held += before.held && after.held && same;
  }
  return held;
}

}  // namespace taskq::pg
