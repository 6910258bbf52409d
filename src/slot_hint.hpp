// Which slot this backend gave back last: it is probably still free, and nobody else begins there.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// -1 if it was another reservation's, or none.
int32 hinted_slot(int32 reservation_id);

void remember_slot(int32 reservation_id, int32 index);

}  // namespace taskq::pg
