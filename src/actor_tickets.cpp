#include "actor_tickets.hpp"

#include "clock.hpp"
#include "owner.hpp"
#include "relations.hpp"
#include "slot_lock.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Limit;
using ratelimit::Micros;

namespace {

constexpr uint32 lock_count = 16;  // few, so that a transaction that draws many tickets needs few locks
constexpr long nap = 200;          // microseconds

LOCKTAG tag_of(uint32 lock) {
  LOCKTAG tag;
  SET_LOCKTAG_OBJECT(tag, MyDatabaseId, relations().tickets, lock, 0);
  return tag;
}

bool lock_tickets(uint32 lock) {
  const LOCKTAG tag = tag_of(lock);
  const TimestampTz started = GetCurrentTimestamp();
  while (LockAcquire(&tag, ExclusiveLock, false, true) == LOCKACQUIRE_NOT_AVAIL) {
    CHECK_FOR_INTERRUPTS();
    if (has_waited_enough(started)) return false;
    pg_usleep(nap);
  }
  return true;
}

bool is_slot(const GroupRequest& r) { return r.kind == ResourceKind::reservation; }

int32 number_of(const GroupRequest& r) { return is_slot(r) ? r.reservation.reservation_id : r.call.definition.limit_id; }

// Only what refuses because it has nothing to give now.
bool hands_out(const GroupRequest& r) {
  if (is_slot(r)) return r.slot.reason == SlotReason::full;
  return r.answer.reason == Reason::limited || r.answer.reason == Reason::paused;
}

Micros rounded_up(ratelimit::UnsignedWide amount, int64 by) {
  const ratelimit::UnsignedWide divisor = static_cast<ratelimit::UnsignedWide>(by), quotient = (amount + divisor - 1) / divisor;
  return quotient < 1 ? 1 : quotient > ratelimit::kMaxProduct ? ratelimit::kMaxProduct : static_cast<Micros>(quotient);
}

// How long the resource needs to have as much to give again, on average.
Micros pace_of(const GroupRequest& r) {
  using Wide = ratelimit::UnsignedWide;
  if (is_slot(r)) return rounded_up(static_cast<Wide>(r.reservation.lease) * static_cast<Wide>(r.sharing), r.reservation.slots);
  const Limit& limit = r.call.definition.limit;
  if (limit.never_refills()) return default_backoff;
  const auto cost = static_cast<Wide>(r.call.cost);
  if (limit.algorithm() == ratelimit::Algorithm::meter) return rounded_up(cost * static_cast<Wide>(limit.d), limit.n);
  return rounded_up(cost * static_cast<Wide>(limit.window), limit.capacity);
}

TimestampTz natural_instant(const GroupRequest& r) {
  const bool is_exact = !is_slot(r) && r.retry_after() != ratelimit::kNever;
  return ratelimit::saturating_add(is_exact ? r.answer.decision.decided_at : clock_now(), wait_of(r));
}

Datum text_datum(std::string_view text) {
  return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

Datum interval_datum(Micros micros) {
  auto* interval = static_cast<Interval*>(palloc0(sizeof(Interval)));
  interval->time = micros;
  return IntervalPGetDatum(interval);
}

// The end of time keeps a row from running out of the range of its type, whatever the pace.
constexpr const char* drawing =
    "INSERT INTO taskq.actor_tickets AS t (kind, resource_id, key, next_at) VALUES ($1, $2, $3, $4 + $5) "
    "ON CONFLICT (kind, resource_id, key) DO UPDATE SET next_at = least(greatest(t.next_at, $4), '9999-01-01 00:00+00') + $5 "
    "RETURNING next_at - $5";

// REQUIRES: the lock of the resource is held.
TimestampTz draw(const GroupRequest& r) {
  const OwnerRun run = begin_as_owner();
  Oid types[] = {TEXTOID, INT4OID, TEXTOID, TIMESTAMPTZOID, INTERVALOID};
  Datum values[] = {CStringGetTextDatum(resource_kind_text(r.kind)), Int32GetDatum(number_of(r)), text_datum(r.key),
                    TimestampTzGetDatum(natural_instant(r)), interval_datum(pace_of(r))};
  execute(drawing, 5, types, values, nullptr);
  bool null;
  const TimestampTz at = DatumGetTimestampTz(SPI_getbinval(SPI_tuptable->vals[0], SPI_tuptable->tupdesc, 1, &null));
  end_as_owner(run);
  return at;
}

uint32 lock_of(const GroupRequest& r) {
  const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char*>(r.key.data()), static_cast<int>(r.key.size()));
  return (hash ^ static_cast<uint32>(number_of(r)) ^ (is_slot(r) ? lock_count / 2 : 0)) % lock_count;
}

// Bit i: lock i is needed for some resource.
uint32 locks_of(const GroupRequest* requests, int count) {
  uint32 locks = 0;
  for (int i = 0; i < count; ++i) {
    const GroupRequest& r = requests[i];
    if (r.first == &r && !r.allowed() && hands_out(r)) locks |= 1U << lock_of(r);
  }
  return locks;
}

// In one order for all. False if one cannot be had.
bool lock_all(uint32 locks) {
  for (uint32 lock = 0; lock < lock_count; ++lock) {
    if ((locks & (1U << lock)) != 0 && !lock_tickets(lock)) return false;
  }
  return true;
}

void unlock_below(uint32 end) {
  for (uint32 lock = 0; lock < end; ++lock) {
    const LOCKTAG tag = tag_of(lock);
    LockRelease(&tag, ExclusiveLock, false);
  }
}

}  // namespace

bool draw_tickets(const GroupRequest* requests, int count, TimestampTz& at) {
  const uint32 locks = locks_of(requests, count);
  if (locks == 0 || !lock_all(locks)) return false;
  at = DT_NOBEGIN;
  for (int i = 0; i < count; ++i) {
    const GroupRequest& r = requests[i];
    if (r.first != &r || r.allowed()) continue;
    at = ratelimit::larger(at, hands_out(r) ? draw(r) : natural_instant(r));
  }
  return true;
}

int64 sweep_tickets(TimestampTz now, int64 most) {
  for (uint32 lock = 0; lock < lock_count; ++lock) {
    const LOCKTAG tag = tag_of(lock);
    if (LockAcquire(&tag, ExclusiveLock, false, true) != LOCKACQUIRE_NOT_AVAIL) continue;
    unlock_below(lock);
    return 0;
  }
  Oid types[] = {TIMESTAMPTZOID, INT8OID};
  Datum values[] = {TimestampTzGetDatum(now), Int64GetDatum(most)};
  return static_cast<int64>(execute("DELETE FROM taskq.actor_tickets WHERE ctid = ANY (ARRAY(SELECT ctid FROM taskq.actor_tickets "
                                    "WHERE next_at <= $1 LIMIT $2))", 2, types, values, nullptr));
}

}  // namespace taskq::pg
