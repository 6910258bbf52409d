// Caps on the jobs of queues. The truth is the table taskq.queues; its triggers keep one reservation per capped queue in line with it,
// so that a cap is in force as soon as its row is: changed through a function, by a statement of the user's, or restored from a dump.
#pragma once

#include <string_view>

#include "definitions.hpp"
#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

constexpr std::string_view cap_prefix = "taskq:global:queue:";

// Raises 22023 unless the queue may have that name.
void check_queue(std::string_view queue);

// The reservation that caps it: taskq:global:queue:<queue>. REQUIRES: check_queue(queue).
std::string_view cap_name(std::string_view queue);

// Raises 22023 if it is the name of such a reservation: it comes and goes with the row of its queue.
void check_is_no_cap(std::string_view reservation);

// What set_queue_max_concurrent() writes. 0: no cap. A lease of nullptr: as it is, or one minute. True if anything changed.
bool set_queue_cap(std::string_view queue, int32 max_concurrent, const Interval* lease);

// Called by the triggers.
void enforce_cap(std::string_view queue, int32 max_concurrent, ratelimit::Micros lease);
void lift_cap(std::string_view queue);  // forgets its leases; none: nothing to do
void lift_all_caps();

}  // namespace taskq::pg
