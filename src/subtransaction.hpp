// A piece of work that is kept or undone as a whole, inside the caller's transaction.
#pragma once

#include "taskq_ratelimit/micros.hpp"

#include "pg.hpp"

namespace taskq::pg {

// Whoever waits so long for a row, having others in hand, undoes its subtransaction and starts over a little later, so that nobody waits for
// those meanwhile; so many times, then it waits on as everybody does, and the server looks for deadlocks.
inline constexpr ratelimit::Micros undo_after = 500'000;  // less than the least deadlock_timeout in use
inline constexpr int most_undone = 3;
inline constexpr long pause_after_undoing = 20'000;       // microseconds: whoever waits for us goes first

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
