// Taking a slot.
#include "clock.hpp"
#include "settings.hpp"
#include "slot_cap.hpp"
#include "slot_clock.hpp"
#include "slot_deletion.hpp"
#include "slot_hint.hpp"
#include "slot_lock.hpp"
#include "slot_ops.hpp"
#include "slot_survey.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

constexpr int32 most_probes = 16;  // of single slots, before all are looked at
constexpr Micros pause_after_timeout = 1000;
// Who changes the number of slots may be waiting for the slot that we have given back, while we wait for its lock.
constexpr Micros patience_with_slot = 100'000;
constexpr Micros pause_at_cap = 1'000'000;  // no promise: a key has to become free

// The reservation in which this backend last met surplus slots: there it counts at once.
constinit int32 counted_reservation = 0;

struct Taking {
  OpenTable slots;
  Reservation reservation;
  std::string_view key;
  const pg_uuid_t& job;
  const pg_uuid_t& worker;
  Micros patience;
  SlotAnswer answer;
  bool stopped = false;    // denied, and not because all slots are held
  DeletionWait deletion;
  int32 given_back = -1;   // a slot that this call has taken and given back: to others it is in hand until we commit

  SlotName name() const { return {reservation.reservation_id, key}; }
};

void occupy(const Taking& t, SlotRow& row, TimestampTz now) {
  row.fence = next_fence();
  row.acquired_at = row.renewed_at = now;
  row.lease_expires_at = ratelimit::saturating_add(now, t.reservation.lease);
  row.job_id = t.job;
  row.worker_id = t.worker;
}

void allow(Taking& t, const SlotRow& row) {
  t.answer = {.allowed = true, .reason = SlotReason::ok, .slot_index = row.slot_index, .fence = row.fence,
              .lease_expires_at = row.lease_expires_at};
}

void deny(Taking& t, SlotReason reason, Micros retry_after) {
  t.answer = {.allowed = false, .reason = reason, .retry_after = retry_after < 1 ? 1 : retry_after};
}

void stop(Taking& t, SlotReason reason, Micros retry_after) {
  deny(t, reason, retry_after);
  t.stopped = true;
}

// True if the number still means a slot. REQUIRES: the lock of the reservation is held.
bool is_in_force(const Taking& t, int32 index) {
  const Reservation* now = find_reservation(t.reservation.name);
  return now != nullptr && now->reservation_id == t.reservation.reservation_id && index < slots_under(*now, t.key);
}

bool insert_taken(Taking& t, int32 index) {
  SlotRow row{};
  row.reservation_id = t.reservation.reservation_id;
  row.slot_index = index;
  occupy(t, row, clock_now());
  if (!insert_slot(t.slots, t.key, row)) return false;
  allow(t, row);
  return true;
}

// A slot that was never used.
bool take_new(Taking& t, int32 index) {
  if (!lock_reservation(t.reservation.reservation_id, ShareLock, t.patience)) return stop(t, SlotReason::timed_out, pause_after_timeout), false;
  bool taken = false;
  if (is_in_force(t, index)) {
    if (has_room_for_slot(t.slots, t.reservation, t.key)) {
      taken = insert_taken(t, index);
    } else {
      stop(t, SlotReason::too_many_keys, pause_at_cap);
    }
  }
  unlock_reservation(t.reservation.reservation_id, ShareLock);
  return taken;
}

bool take(Taking& t, int32 index) {
  const FoundRow found = find_slot(t.slots, t.name(), index, true);
  if (!found.exists) return found.version.kind != VersionKind::arriving && take_new(t, index);
  if (found.version.kind != VersionKind::live) return false;
  SlotRow row = slot_row(found.row);
  const TimestampTz now = clock_now();
  if (row.surplus || row.lease_expires_at > now) return false;
  occupy(t, row, now);
  if (!replace_slot(t.slots, found, row)) return false;
  allow(t, row);
  return true;
}

int32 random_slot(int32 count) {
  return static_cast<int32>(pg_prng_uint64_range(&pg_global_prng_state, 0, static_cast<uint64>(count - 1)));
}

// Tries single slots: first the one that this backend gave back last, then others at random, or all if there are few.
bool probe(Taking& t) {
  const int32 count = slots_under(t.reservation, t.key);
  const int32 hint = t.given_back >= 0 ? t.given_back : hinted_slot(t.reservation.reservation_id);
  const int32 first = hint >= 0 && hint < count ? hint : random_slot(count);
  for (int32 i = 0; i < most_probes && i < count && !t.stopped; ++i) {
    if (take(t, count <= most_probes || i == 0 ? (first + i) % count : random_slot(count))) return true;
  }
  return false;
}

// Tries every slot that a look at all of them found free.
bool take_one_of(Taking& t, const Survey& survey, bool& any_free) {
  const bool again = t.given_back >= 0 && t.given_back < survey.slots;
  const int32 first = again ? t.given_back : random_slot(survey.slots);
  for (int32 i = 0; i < survey.slots && !t.stopped; ++i) {
    const int32 index = (first + i) % survey.slots;
    if (survey.seen[index].held) continue;
    any_free = true;
    if (take(t, index)) return true;
  }
  return false;
}

enum class Outcome : uint8 { taken, denied, again };

void deny_full(Taking& t, const Survey& survey, int32 most) {
  // A slot that is being taken will have its lease from about now.
  const TimestampTz now = clock_now();
  deny(t, SlotReason::full, end_of_excess(survey, most, now + t.reservation.lease) - now);
}

// "Full" is not for sure yet.
bool deletion_interferes(Taking& t, const Survey& seen) {
  const bool interferes = waits_for_deletion(seen.deleter, t.patience, t.deletion);
  if (t.deletion.timed_out) stop(t, SlotReason::timed_out, pause_after_timeout);
  return interferes;
}

// Rule (4), for slots that the first look saw held.
Outcome look_again(Taking& t, const Survey& first) {
  const Survey second = survey_slots(t.slots, t.reservation, t.key);
  const bool full = held_between(first, second) == second.slots && !deletion_interferes(t, second);
  if (full) deny_full(t, second, second.held > 0 ? second.held - 1 : 0);
  free_survey(second);
  return full ? Outcome::denied : Outcome::again;
}

Outcome look_at_all(Taking& t) {
  bool any_free = false;
  const Survey first = survey_slots(t.slots, t.reservation, t.key);
  Outcome outcome = Outcome::again;
  if (first.ahead) anchor_leases(t.slots, t.reservation, t.key);
  if (first.surplus > 0) {
    counted_reservation = t.reservation.reservation_id;
  } else if (take_one_of(t, first, any_free)) {
    outcome = Outcome::taken;
  } else if (!any_free) {
    outcome = look_again(t, first);
  }
  free_survey(first);
  return outcome;
}

// Deletes surplus slots whose leases have ended.
void drop_ended_surplus(Taking& t) {
  const SlotScan scan = begin_slot_scan(t.slots, t.name());
  FoundRow found;
  while (next_slot(scan, t.slots, BackwardScanDirection, found)) {
    if (!found.exists) continue;
    const SlotRow row = slot_row(found.row);
    if (!row.surplus) break;
    if (row.lease_expires_at <= clock_now() && found.version.kind == VersionKind::live) delete_slot(t.slots, found);
  }
  end_slot_scan(scan);
}

// Rule (5). REQUIRES: the lock of the reservation is held, and its definition is in force.
Outcome take_counted(Taking& t) {
  bool any_free = false;
  drop_ended_surplus(t);
  const Survey survey = survey_slots(t.slots, t.reservation, t.key);
  if (survey.ahead) anchor_leases(t.slots, t.reservation, t.key);
  if (survey.surplus == 0) counted_reservation = 0;
  if (survey.surplus == 0) return Outcome::again;
  const int32 in_use = survey.held + survey.taking;
  if (in_use >= survey.slots && deletion_interferes(t, survey)) return Outcome::again;
  if (in_use >= survey.slots) return deny_full(t, survey, survey.slots - 1 - survey.taking), Outcome::denied;
  return take_one_of(t, survey, any_free) ? Outcome::taken : Outcome::again;
}

Outcome count_and_take(Taking& t) {
  const int32 reservation_id = t.reservation.reservation_id;
  const Micros patience = t.given_back < 0 ? t.patience : ratelimit::smaller(t.patience, patience_with_slot);
  if (!lock_reservation(reservation_id, ExclusiveLock, patience)) return stop(t, SlotReason::timed_out, pause_after_timeout), Outcome::again;
  Outcome outcome = Outcome::again;
  const Reservation* now = find_reservation(t.reservation.name);
  if (now != nullptr && now->reservation_id == reservation_id) {
    t.reservation = *now;
    if (slots_under(t.reservation, t.key) > 0) outcome = take_counted(t);
  }
  unlock_reservation(reservation_id, ExclusiveLock);
  return outcome;
}

// Undoes what take() did.
void give_back(Taking& t) {
  const FoundRow found = find_slot(t.slots, t.name(), t.answer.slot_index, false);
  if (!found.exists) elog(ERROR, "slot %d vanished while it was taken", t.answer.slot_index);
  SlotRow row = slot_row(found.row);
  row.lease_expires_at = DT_NOBEGIN;
  row.job_id = row.worker_id = pg_uuid_t{};
  if (!replace_slot(t.slots, found, row)) elog(ERROR, "slot %d cannot be given back", t.answer.slot_index);
  t.given_back = t.answer.slot_index;
}

Outcome one_look(Taking& t) {
  if (counted_reservation == t.reservation.reservation_id) return count_and_take(t);
  Outcome outcome = probe(t) ? Outcome::taken : t.stopped ? Outcome::again : look_at_all(t);
  if (outcome == Outcome::taken && has_surplus(t.slots, t.name())) {
    give_back(t);
    counted_reservation = t.reservation.reservation_id;
    outcome = Outcome::again;
  }
  return outcome;
}

}  // namespace

const char* slot_reason_text(SlotReason reason) {
  switch (reason) {
    case SlotReason::ok: return "ok";
    case SlotReason::full: return "full";
    case SlotReason::too_many_keys: return "too_many_keys";
    case SlotReason::no_reservation: return "no_reservation";
    default: return "lock_timeout";
  }
}

SlotAnswer take_slot(std::string_view name, std::string_view key, const pg_uuid_t& job, const pg_uuid_t& worker,
                     Micros patience, Missing missing) {
  Taking t{.slots = {}, .reservation = {}, .key = key, .job = job, .worker = worker, .patience = patience, .answer = {}, .deletion = {}};
  relations();
  t.slots = open_slots(RowExclusiveLock);
  for (;;) {
    if (!look_up_reservation(name, missing, t.reservation)) {  // it may have changed
      t.answer = {.allowed = true, .reason = SlotReason::no_reservation};
      break;
    }
    check_key(t.reservation, key);
    if (one_look(t) != Outcome::again) break;
    CHECK_FOR_INTERRUPTS();
    if (t.stopped) break;
  }
  close_table(t.slots);
  t.answer.reservation_id = t.reservation.reservation_id;
  return t.answer;
}

}  // namespace taskq::pg
