// A piece of work that is kept or undone as a whole, inside the caller's transaction.
#pragma once

#include "pg.hpp"

namespace taskq::pg {

// Runs body() in a subtransaction: kept if it returns true, undone otherwise. An error undoes it and goes on: whoever catches it knows
// nothing of the subtransaction. What body allocates stays.
template <class Body>
bool in_subtransaction(Body body) {
  MemoryContext context = CurrentMemoryContext;
  ResourceOwner owner = CurrentResourceOwner;
  volatile bool keep = false;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(context);
  PG_TRY();
  {
    keep = body();
  }
  PG_CATCH();
  {
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    RollbackAndReleaseCurrentSubTransaction();
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
    ReThrowError(error);
  }
  PG_END_TRY();
  if (keep) {
    ReleaseCurrentSubTransaction();
  } else {
    RollbackAndReleaseCurrentSubTransaction();
  }
  MemoryContextSwitchTo(context);
  CurrentResourceOwner = owner;
  return keep;
}

}  // namespace taskq::pg
