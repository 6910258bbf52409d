// Registering actors, and references to limits and reservations whose key comes from the payload.
#pragma once

#include "actors.hpp"

#include "pg.hpp"

namespace taskq::pg {

// The text that stands in a list of names for "this one, under the key that the path finds". No name that a user may register
// begins like it.
Datum keyed_reference(std::string_view name, Datum path);

// What such a list means. Appends to `actor`. Raises 22004 for NULLs, 22023 for malformed ones and for reserved names.
void read_references(Actor& actor, ResourceKind kind, ArrayType* references);

// Registers it. True if anything was written, false if the same definition was there already. Raises 42704 for names of limits or
// reservations that do not exist, 22023 for a key missing or too much, 42710 if there is another definition and `replace` is not set.
bool define_actor(const Actor& wanted, bool replace);

void drop_actor(std::string_view name);

}  // namespace taskq::pg
