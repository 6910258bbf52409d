// The key of a job: what a jsonpath finds in its payload.
#pragma once

#include "actors.hpp"

#include "pg.hpp"

namespace taskq::pg {

// One string, number or boolean, as text; equal numbers give equal keys. `payload` (jsonb) is nullptr if the caller gave none.
// Raises 22004 without a payload, 22035 if the path finds nothing, 22034 if several, 2203F if null, an object or an array, 22023 for
// a key that is empty or too long; and what the path itself raises, if it is strict.
std::string_view payload_key(const Actor& actor, const ActorResource& resource, const Jsonb* payload);

}  // namespace taskq::pg
