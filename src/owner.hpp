// Statements on the extension's own tables, outside the hot path: run with the rights of the tables' owner, because callers have
// none on them, and with a search_path on which nothing of a caller's can be found.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// Between begin_as_owner() and end_as_owner() SPI is connected, and statements run as the owner. If a statement raises, the
// transaction's abort undoes all of it.
struct OwnerRun {
  Oid caller;
  int security;
  int settings;
};
OwnerRun begin_as_owner();
void end_as_owner(const OwnerRun& run);

// Runs one statement with parameters; `nulls` as SPI wants it, or nullptr for none. Returns the number of rows processed.
// REQUIRES: as owner.
uint64 execute(const char* statement, int count, Oid* types, Datum* values, const char* nulls);

// One statement on its own.
uint64 run_as_owner(const char* statement, int count, Oid* types, Datum* values, const char* nulls);

}  // namespace taskq::pg
