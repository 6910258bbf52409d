#include "queue_caps.hpp"

#include "args.hpp"
#include "clock.hpp"
#include "errors.hpp"
#include "owner.hpp"
#include "relations.hpp"
#include "reservation_define.hpp"

#include "pg.hpp"

namespace taskq::pg {

namespace {

constexpr int max_queue_bytes = max_name_bytes - static_cast<int>(cap_prefix.size());

Datum text_datum(std::string_view text) {
  return PointerGetDatum(cstring_to_text_with_len(text.data(), static_cast<int>(text.size())));
}

// One at a time sets the cap of a queue, until its transaction ends, as in define.cpp.
void lock_queue(std::string_view queue) {
  const uint32 hash = hash_bytes(reinterpret_cast<const unsigned char*>(queue.data()), static_cast<int>(queue.size()));
  LockDatabaseObject(relations().queues, hash, 0, ExclusiveLock);
}

}  // namespace

void check_queue(std::string_view queue) {
  check_name(queue);
  check_not_reserved(queue);
  if (queue.size() <= max_queue_bytes) return;
  raise_invalid("name of a queue is too long", psprintf("It has %d bytes.", static_cast<int>(queue.size())),
                psprintf("It has %d bytes at most.", max_queue_bytes));
}

std::string_view cap_name(std::string_view queue) {
  const char* name = psprintf("%s%.*s", cap_prefix.data(), static_cast<int>(queue.size()), queue.data());
  return {name, cap_prefix.size() + queue.size()};
}

void check_is_no_cap(std::string_view reservation) {
  if (!reservation.starts_with(cap_prefix)) return;
  raise_invalid("the cap of a queue cannot be dropped as a reservation", psprintf("The name is \"%s\".", shown(reservation)),
                "Lift the cap: taskq.set_queue_max_concurrent(queue, NULL).");
}

bool set_queue_cap(std::string_view queue, int32 max_concurrent, const Interval* lease) {
  lock_queue(queue);
  Oid types[] = {TEXTOID, INT4OID, INTERVALOID, TIMESTAMPTZOID};
  Datum values[] = {text_datum(queue), Int32GetDatum(max_concurrent), PointerGetDatum(lease), TimestampTzGetDatum(clock_now())};
  const char nulls[] = {' ', max_concurrent == 0 ? 'n' : ' ', lease == nullptr ? 'n' : ' ', ' '};
  return run_as_owner("INSERT INTO taskq.queues AS q (name, max_concurrent, lease, updated_at) "
                      "VALUES ($1, $2, coalesce($3, interval '1 minute'), $4) "
                      "ON CONFLICT (name) DO UPDATE SET max_concurrent = $2, lease = coalesce($3, q.lease), updated_at = $4 "
                      "WHERE (q.max_concurrent, q.lease) IS DISTINCT FROM ($2, coalesce($3, q.lease))",
                      4, types, values, nulls) > 0;
}

void enforce_cap(std::string_view queue, int32 max_concurrent, ratelimit::Micros lease) {
  WantedReservation wanted;
  wanted.name = cap_name(queue);
  wanted.slots = max_concurrent;
  wanted.lease = lease;
  wanted.replace = true;
  define_reservation(wanted);
}

void lift_cap(std::string_view queue) {
  const std::string_view name = cap_name(queue);
  if (find_reservation(name) != nullptr) drop_reservation(name);
}

void lift_all_caps() {
  const OwnerRun run = begin_as_owner();
  Oid types[] = {TEXTOID};
  Datum values[] = {text_datum(cap_prefix)};
  execute("SELECT name FROM taskq.reservations WHERE starts_with(name, $1) ORDER BY name", 1, types, values, nullptr);
  const SPITupleTable* rows = SPI_tuptable;
  const uint64 count = SPI_processed;
  for (uint64 i = 0; i < count; ++i) {
    bool null;
    drop_reservation(as_string(SPI_getbinval(rows->vals[i], rows->tupdesc, 1, &null)));
  }
  end_as_owner(run);
}

}  // namespace taskq::pg
