// The row types that functions return.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// The row type a function returns, kept for the session: finding it out takes longer than a decision. A type that changed
// has changed its relation, so it is forgotten with all else that is cached.
struct KnownType {
  Oid type;
  uint64 generation;
  TupleDesc columns;
};

// The columns of the row type that the function returns; `known` belongs to that type, which must have `natts` columns.
TupleDesc row_type(FunctionCallInfo fcinfo, KnownType& known, int natts);

}  // namespace taskq::pg
