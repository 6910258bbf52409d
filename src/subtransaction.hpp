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

// Where a subtransaction began: what is current there is current again after it.
struct SubtransactionStart {
  MemoryContext context = CurrentMemoryContext;
  ResourceOwner owner = CurrentResourceOwner;

  void restore() const {
    MemoryContextSwitchTo(context);
    CurrentResourceOwner = owner;
  }

  // In PG_CATCH: undoes the subtransaction, also where the error is to go on, as whoever catches it knows nothing of it. Answers the error.
  ErrorData* undo_after_error() const {
    MemoryContextSwitchTo(context);
    ErrorData* error = CopyErrorData();
    FlushErrorState();
    RollbackAndReleaseCurrentSubTransaction();
    restore();
    return error;
  }
};

// Runs body() in a subtransaction: kept if it returns true, undone otherwise. An error undoes it and goes on. What body allocates stays.
template <class Body>
bool in_subtransaction(Body body) {
  const SubtransactionStart start;
  volatile bool keep = false;
  BeginInternalSubTransaction(nullptr);
  MemoryContextSwitchTo(start.context);
  PG_TRY();
  {
    keep = body();
  }
  PG_CATCH();
  {
    ReThrowError(start.undo_after_error());
  }
  PG_END_TRY();
  if (keep) {
    ReleaseCurrentSubTransaction();
  } else {
    RollbackAndReleaseCurrentSubTransaction();
  }
  start.restore();
  return keep;
}

}  // namespace taskq::pg
