#include "reservation_define.hpp"

#include "clock.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "relations.hpp"
#include "row_wait.hpp"
#include "settings.hpp"
#include "slot_lock.hpp"
#include "slot_store.hpp"
#include "subtransaction.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Micros;

namespace {

// One definer of a name at a time, until its transaction ends, as in define.cpp.
void lock_name(std::string_view name) {
  const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()));
  LockDatabaseObject(relations().reservations, hash, 0, ExclusiveLock);
}

void lock_to_change(const Reservation& reservation, Micros patience = ratelimit::kNever) {
  if (!lock_reservation(reservation.reservation_id, ExclusiveLock, patience)) raise_reservation_in_use(reservation.name);
}

// A slot whose row has to change.
struct Misfit {
  std::string_view key;
  int32 index;
};

struct Misfits {
  Misfit* list;
  int count;
  int room;
};

void add(Misfits& misfits, std::string_view key, int32 index) {
  if (misfits.count > 0 && misfits.list[misfits.count - 1].index == index && misfits.list[misfits.count - 1].key == key) return;
  if (misfits.count == misfits.room) {
    misfits.room *= 2;
    misfits.list = static_cast<Misfit*>(repalloc_huge(misfits.list, sizeof(Misfit) * static_cast<Size>(misfits.room)));
  }
  misfits.list[misfits.count++] = {{pnstrdup(key.data(), key.size()), key.size()}, index};
}

bool is_wanted(const Reservation& reservation, std::string_view key, int32 index) { return index < slots_under(reservation, key); }

Misfits find_misfits(OpenTable& slots, const Reservation& reservation) {
  Misfits misfits{.list = static_cast<Misfit*>(palloc(sizeof(Misfit) * 64)), .count = 0, .room = 64};
  const SlotScan scan = begin_reservation_scan(slots, reservation.reservation_id);
  FoundRow found;
  while (next_slot(scan, slots, ForwardScanDirection, found)) {
    CHECK_FOR_INTERRUPTS();
    const SlotRow row = slot_row(found.row);
    const std::string_view key = slot_key(found.row);
    if (!is_wanted(reservation, key, row.slot_index) || (found.exists && row.surplus)) add(misfits, key, row.slot_index);
    heap_freetuple(found.row);
  }
  end_slot_scan(scan);
  return misfits;
}

enum class Held : uint8 { keep, drop };

// Changes one live version as the definition wants it. False if somebody else was faster.
bool fit(OpenTable& slots, bool wanted, const FoundRow& found, Held held, SyncCounts& counts) {
  SlotRow row = slot_row(found.row);
  const bool lives = row.lease_expires_at > clock_now() && held == Held::keep;
  if (!wanted && !lives) {
    const bool deleted = delete_slot(slots, found);
    counts.deleted += deleted;
    return deleted;
  }
  if (row.surplus == wanted) {
    row.surplus = !wanted;
    if (!replace_slot(slots, found, row)) return false;
  }
  counts.skipped_held += !wanted;
  return true;
}

// False if the time is up.
bool fit_misfit(OpenTable& slots, const Reservation& reservation, const Misfit& misfit, Held held, Patience& patience, SyncCounts& counts) {
  for (;;) {
    CHECK_FOR_INTERRUPTS();
    const FoundRow found = find_slot(slots, {reservation.reservation_id, misfit.key}, misfit.index, true);
    const VersionKind kind = found.version.kind;
    if (!found.exists && kind != VersionKind::arriving) return true;
    if (kind != VersionKind::live) {
      if (!wait_for_other(patience, found.version, slots.table, &found.row->t_self)) return false;
    } else if (fit(slots, is_wanted(reservation, misfit.key, misfit.index), found, held, counts)) {
      return true;
    }
  }
}

bool fit_all(OpenTable& slots, const Reservation& reservation, const Misfits& misfits, Held held, Micros longest, SyncCounts& counts) {
  Patience patience{.limit = longest};
  counts = {};
  for (int i = 0; i < misfits.count; ++i) {
    if (!fit_misfit(slots, reservation, misfits.list[i], held, patience, counts)) return false;
  }
  return true;
}

Micros time_left_since(TimestampTz started) {
  return lock_timeout == 0 ? ratelimit::kNever : Micros{lock_timeout} * 1000 - (GetCurrentTimestamp() - started);
}

// A transaction that has one slot in hand may want to release another, which was changed here, or the lock of the reservation: so both
// are let go of for a while, see undo_after. REQUIRES: that lock is held; it is in the end, and stays so until the transaction ends.
SyncCounts fit_slots(const Reservation& reservation, Held held) {
  OpenTable slots = open_slots(RowExclusiveLock);
  SyncCounts counts;
  const TimestampTz started = GetCurrentTimestamp();
  for (int undone = 0;; ++undone) {
    const Misfits misfits = find_misfits(slots, reservation);
    const Micros longest = ratelimit::smaller(time_left_since(started), undone < most_undone ? undo_after : ratelimit::kNever);
    if (misfits.count == 0) break;
    if (in_subtransaction([&] { return fit_all(slots, reservation, misfits, held, longest, counts); })) break;
    if (undone >= most_undone || time_left_since(started) <= 0) raise_reservation_in_use(reservation.name);
    unlock_reservation(reservation.reservation_id, ExclusiveLock);
    pg_usleep(pause_after_undoing);
    lock_to_change(reservation, time_left_since(started));
  }
  close_table(slots);
  return counts;
}

int64 insert_missing(const Reservation& reservation) {
  if (reservation.keyed) return 0;
  Oid types[] = {INT4OID, INT4OID};
  Datum values[] = {Int32GetDatum(reservation.reservation_id), Int32GetDatum(reservation.slots)};
  return static_cast<int64>(run_as_owner(
      "INSERT INTO taskq.reservation_slots (reservation_id, slot_index, key) SELECT $1, i, '' FROM generate_series(0, $2 - 1) AS i "
      "WHERE NOT EXISTS (SELECT FROM taskq.reservation_slots AS s WHERE s.reservation_id = $1 AND s.key = '' AND s.slot_index = i) "
      "ON CONFLICT DO NOTHING", 2, types, values, nullptr));
}

SyncCounts bring_in_line(const Reservation& reservation) {
  SyncCounts counts = fit_slots(reservation, Held::keep);
  counts.inserted = insert_missing(reservation);
  return counts;
}

Interval* lease_interval(Micros lease) {
  auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
  interval->time = lease;
  return interval;
}

// Our own have numbers of their own, below 0: they are not dumped but made anew when the table behind them is restored, maybe before others.
constexpr const char* insertion =
    "INSERT INTO taskq.reservations (reservation_id, name, slots, lease, lease_us, keyed, changed_at, max_keys) "
    "VALUES (CASE WHEN starts_with($1, 'taskq:') THEN -nextval('taskq.queue_cap_id') ELSE nextval('taskq.reservation_id') END, "
    "$1, $2, $3, $4, $5, $6, $7)";
constexpr const char* change =
    "UPDATE taskq.reservations SET slots = $2, lease = $3, lease_us = $4, keyed = $5, changed_at = $6, max_keys = $7, "
    "version = version + 1 WHERE name = $1";

void write(const char* statement, const WantedReservation& wanted) {
  Oid types[] = {TEXTOID, INT4OID, INTERVALOID, INT8OID, BOOLOID, TIMESTAMPTZOID, INT4OID};
  Datum values[] = {PointerGetDatum(cstring_to_text_with_len(wanted.name.data(), static_cast<int>(wanted.name.size()))),
                    Int32GetDatum(wanted.slots), IntervalPGetDatum(lease_interval(wanted.lease)), Int64GetDatum(wanted.lease),
                    BoolGetDatum(wanted.keyed), TimestampTzGetDatum(clock_now()), Int32GetDatum(wanted.max_keys)};
  const char nulls[] = {' ', ' ', ' ', ' ', ' ', ' ', wanted.max_keys == 0 ? 'n' : ' '};
  run_as_owner(statement, 7, types, values, nulls);
}

bool is_same(const WantedReservation& wanted, const Reservation& present) {
  return wanted.slots == present.slots && wanted.lease == present.lease && wanted.keyed == present.keyed &&
         wanted.max_keys == present.max_keys;
}

// Of what is asked for or registered.
template <class Definition>
const char* definition_text(const Definition& d) {
  const char* most = d.max_keys == 0 ? "" : psprintf(", at most %d keys", d.max_keys);
  return psprintf("%d slots, lease of %s seconds%s%s", d.slots, number_text(static_cast<double>(d.lease) / 1e6), d.keyed ? ", keyed" : "", most);
}

[[noreturn]] void raise_other_definition(const WantedReservation& wanted, const Reservation& present) {
  ereport(ERROR, (errcode(ERRCODE_DUPLICATE_OBJECT), errmsg("reservation \"%s\" is registered with another definition", present.name),
                  errdetail("Registered: %s. Asked for: %s.", definition_text(present), definition_text(wanted)),
                  errhint("Register it with replace => true to change it; leases that live are kept.")));
}

}  // namespace

bool define_reservation(const WantedReservation& wanted) {
  const Reservation* present = find_reservation(wanted.name);
  if (present != nullptr && is_same(wanted, *present)) return false;
  lock_name(wanted.name);
  present = find_reservation(wanted.name);
  if (present == nullptr) {
    write(insertion, wanted);
  } else {
    if (is_same(wanted, *present)) return false;
    if (!wanted.replace) raise_other_definition(wanted, *present);
    lock_to_change(Reservation{*present});
    write(change, wanted);
  }
  bring_in_line(needed_reservation(wanted.name));
  return true;
}

SyncCounts sync_reservation(std::string_view name) {
  lock_name(name);
  const Reservation reservation = needed_reservation(name);
  lock_to_change(reservation);
  return bring_in_line(reservation);
}

void drop_reservation(std::string_view name) {
  lock_name(name);
  Reservation reservation = needed_reservation(name);
  lock_to_change(reservation);
  Oid types[] = {INT4OID};
  Datum values[] = {Int32GetDatum(reservation.reservation_id)};
  run_as_owner("DELETE FROM taskq.reservations WHERE reservation_id = $1", 1, types, values, nullptr);
  reservation.slots = 0;
  fit_slots(reservation, Held::drop);
}

}  // namespace taskq::pg
