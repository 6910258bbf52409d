// Index entries beyond the primary key's.
//
// The tables are made with one index each. There are more while REINDEX CONCURRENTLY builds a successor for it, and where an
// administrator has added one: whoever leaves a row out of an index that is being kept, has lost the row once it is used.
#pragma once

#include "relations.hpp"

#include "pg.hpp"

namespace taskq::pg {

// Enters a new row, or a replaced one that is not heap-only, into all other indexes. REQUIRES: it is in the primary key.
void add_to_other_indexes(const OpenTable& open, HeapTuple tuple);

}  // namespace taskq::pg
