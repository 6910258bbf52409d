// Giving back what a group took.
#pragma once

#include "group_handle.hpp"

#include "pg.hpp"

namespace taskq::pg {

struct Released {
  int32 slots = 0;     // leases ended
  int32 lost = 0;      // slots that were no longer held under that fence, or whose reservation is gone
  int32 refunded = 0;  // rate limits that got something back
};

// Ends the leases and, if asked, gives back to the rate limits what is still owed; each thing once. In one order for all sessions, slots
// first, as acquire_group takes them. Raises 55P03 as free_slot and settle_once do; then nothing is given back.
Released release_group(const Handle& handle, bool refund);

}  // namespace taskq::pg
