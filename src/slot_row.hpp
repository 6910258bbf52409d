// A row of taskq.reservation_slots as it lies on the page: all columns before the key are fixed-width and never null, so the
// row can be read and patched in place. The column order in the SQL script is this order; a test compares them.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

#include "pg.hpp"

namespace taskq::pg {

struct SlotRow {
  int32 reservation_id;
  int32 slot_index;
  int64 fence;                   // of the newest lease; 0 if there never was one
  TimestampTz acquired_at;       // of the newest lease; -infinity if there never was one
  TimestampTz renewed_at;        // when its lease was written: when it began, or was last renewed
  TimestampTz lease_expires_at;  // free from then on; -infinity: released, or never held
  pg_uuid_t job_id;              // all zeros: none
  pg_uuid_t worker_id;           // all zeros: none
  bool surplus;                  // above the number of slots: never handed out, deleted when free
};

constexpr int slot_columns = 10;
constexpr std::size_t slot_fixed_bytes = offsetof(SlotRow, surplus) + sizeof(bool);

static_assert(offsetof(SlotRow, lease_expires_at) == 32 && offsetof(SlotRow, worker_id) == 56 && slot_fixed_bytes == 73);

inline SlotRow slot_row(HeapTuple tuple) {
  SlotRow row{};
  std::memcpy(&row, GETSTRUCT(tuple), slot_fixed_bytes);
  return row;
}

inline void patch_slot(HeapTuple tuple, const SlotRow& row) { std::memcpy(GETSTRUCT(tuple), &row, slot_fixed_bytes); }

// A short key follows at once; a long one, whose header is aligned, after zeros.
inline std::string_view slot_key(HeapTuple tuple) {
  const char* fixed = reinterpret_cast<const char*>(GETSTRUCT(tuple));
  const char* key = fixed + slot_fixed_bytes;
  if (*key == 0) key = fixed + INTALIGN(slot_fixed_bytes);
  return {VARDATA_ANY(key), static_cast<std::size_t>(VARSIZE_ANY_EXHDR(key))};
}

}  // namespace taskq::pg
