// Looking for free slots without taking them.
#include "clock.hpp"
#include "errors.hpp"
#include "slot_clock.hpp"
#include "slot_deletion.hpp"
#include "slot_hint.hpp"
#include "slot_ops.hpp"
#include "slot_survey.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr int32 most_probes = 16;  // of single slots, before all are looked at
constexpr ratelimit::Micros pause_after_timeout = 1000;

bool is_free(OpenTable& slots, SlotName name, int32 index) {
  const FoundRow found = find_slot(slots, name, index, false);
  if (!found.exists) return found.version.kind != VersionKind::arriving;
  const SlotRow row = slot_row(found.row);
  return found.version.kind == VersionKind::live && !row.surplus && row.lease_expires_at <= clock_now();
}

// Looks at single slots: first the one that this backend gave back last.
bool sees_free_slot(OpenTable& slots, const Reservation& reservation, std::string_view key) {
  const SlotName name{reservation.reservation_id, key};
  if (has_surplus(slots, name)) return false;  // then free ones may not be had
  const int32 count = slots_under(reservation, key), hint = hinted_slot(reservation.reservation_id);
  const auto last = static_cast<uint64>(count - 1);
  const int32 first = hint >= 0 && hint < count ? hint : static_cast<int32>(pg_prng_uint64_range(&pg_global_prng_state, 0, last));
  for (int32 i = 0; i < most_probes && i < count; ++i) {
    if (is_free(slots, name, (first + i) % count)) return true;
  }
  return false;
}

// How many could be taken: while there is surplus, all leases count against the number of slots.
int32 free_slots(const Survey& survey) {
  if (survey.surplus > 0) return survey.slots - survey.held - survey.taking;
  int32 count = 0;
  for (int32 i = 0; i < survey.slots; ++i) count += !survey.seen[i].held;
  return count;
}

SlotAnswer full(const Survey& survey, const Reservation& reservation, int32 count) {
  const TimestampTz now = clock_now();
  const TimestampTz end = end_of_excess(survey, survey.slots - count - survey.taking, now + reservation.lease);
  return {.allowed = false, .reason = SlotReason::full, .retry_after = end <= now ? 1 : end - now, .ahead = survey.ahead};
}

// Two looks, as rule (4) of slot_store.hpp has it. False if they do not tell.
bool survey_twice(OpenTable& slots, const Reservation& reservation, std::string_view key, int32 count, DeletionWait& deletion,
                  SlotAnswer& answer) {
  const Survey first = survey_slots(slots, reservation, key);
  const bool free = free_slots(first) >= count;
  if (free) answer = {.allowed = true, .reason = SlotReason::ok};
  bool told = free;
  if (!free) {
    const Survey second = survey_slots(slots, reservation, key);
    const bool by_count = first.surplus > 0 && second.surplus > 0 && free_slots(second) < count;
    told = (by_count || held_between(first, second) > second.slots - count) &&
           !waits_for_deletion(second.deleter, ratelimit::kNever, deletion);
    if (told) answer = full(second, reservation, count);
    free_survey(second);
  }
  free_survey(first);
  return told;
}

}  // namespace

bool look_up_reservation(std::string_view name, Missing missing, Reservation& reservation) {
  const Reservation* found = find_reservation(name);
  if (found == nullptr && missing == Missing::raises) raise_unknown_reservation(name);
  if (found != nullptr) reservation = *found;
  return found != nullptr;
}

SlotAnswer look_for_slots(std::string_view name, std::string_view key, int32 count, Missing missing) {
  SlotAnswer answer{.allowed = true, .reason = SlotReason::ok};
  constexpr SlotAnswer unlimited{.allowed = true, .reason = SlotReason::no_reservation};
  Reservation reservation;
  if (!look_up_reservation(name, missing, reservation)) return unlimited;
  OpenTable slots = open_slots(AccessShareLock);
  check_key(reservation, key);
  const bool seen = count == 1 && sees_free_slot(slots, reservation, key);
  DeletionWait deletion;
  while (!seen && !survey_twice(slots, reservation, key, count, deletion, answer)) {
    CHECK_FOR_INTERRUPTS();
    if (deletion.timed_out) {
      answer = {.allowed = false, .reason = SlotReason::timed_out, .retry_after = pause_after_timeout};
      break;
    }
    if (!look_up_reservation(name, missing, reservation)) {  // it may have changed
      answer = unlimited;
      break;
    }
    check_key(reservation, key);
  }
  close_table(slots);
  return answer;
}

void anchor_slots(const Reservation& reservation, std::string_view key) {
  OpenTable slots = open_slots(RowExclusiveLock);
  anchor_leases(slots, reservation, key);
  close_table(slots);
}

}  // namespace taskq::pg
