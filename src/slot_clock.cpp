#include "slot_clock.hpp"

#include "clock.hpp"

#include "pg.hpp"

namespace taskq::pg {

void anchor_leases(OpenTable& slots, const Reservation& reservation, std::string_view key) {
  const SlotScan scan = begin_slot_scan(slots, {reservation.reservation_id, key});
  FoundRow found;
  int64 count = 0, step = 0;
  while (next_slot(scan, slots, ForwardScanDirection, found)) {
    const SlotRow row = slot_row(found.row);
    const TimestampTz now = clock_now();
    const bool ours = found.exists && found.version.kind == VersionKind::live;
    if (ours && is_ahead(row, now) && replace_slot(slots, found, anchored(row, now))) {
      ++count;
      step = ratelimit::larger(step, row.renewed_at - now);
    }
    heap_freetuple(found.row);
    CHECK_FOR_INTERRUPTS();
  }
  end_slot_scan(scan);
  if (count == 0) return;
  ereport(LOG, (errmsg("reservation \"%s\": the clock was set back by %lld ms, %lld leases go on from the new time",
                       reservation.name, static_cast<long long>(step / 1000), static_cast<long long>(count))));
}

}  // namespace taskq::pg
