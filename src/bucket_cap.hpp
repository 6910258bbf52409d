// The cap on the keys of a limit (key_cap.hpp), where a bucket is about to be made.
#pragma once

#include "call.hpp"

#include "pg.hpp"

namespace taskq::pg {

enum class CapUse : uint8 { make, look };

// True if the call's key may have a bucket. At the cap, `make` deletes a full bucket for it; `look` only says whether there is
// one.
// REQUIRES: the key has no bucket.
bool has_room_for_bucket(const Call& call, CapUse use);

}  // namespace taskq::pg
