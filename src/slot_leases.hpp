// All leases of one worker, found without an index: an index on the worker would have to change with every acquire.
#pragma once

#include <string_view>

#include "pg.hpp"

namespace taskq::pg {

struct WorkersLease {
  int32 reservation_id;
  int32 slot_index;
  int64 fence;
  TimestampTz lease_expires_at;
  std::string_view key;
};

struct WorkersLeases {
  WorkersLease* list;
  int count;
};

// Those that live, and those that have ended but were not taken by others; by reservation, key and number. Reads the whole table, all
// versions of all rows: so no row can slip through by being replaced meanwhile, and no predicate lock is taken.
WorkersLeases leases_of(const pg_uuid_t& worker);

}  // namespace taskq::pg
