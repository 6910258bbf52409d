// The protocol of bucket_store.hpp as a loop: find the bucket, read the clock, decide, replace; wait or start over where needed.
//
// What is decided is up to the caller: change_bucket(call, if_missing, decide) calls decide(work) once per round. It changes work.row and
// work.plan and says whether to write. read_bucket(call, look) shows the present state and changes nothing.
#pragma once

#include "bucket_work.hpp"
#include "call.hpp"
#include "row_wait.hpp"
#include "settings.hpp"

#include "pg.hpp"

namespace taskq::pg {

enum class Step : uint8 { nothing, write };
enum class IfMissing : uint8 { create, leave };
enum class Result : uint8 { nothing, written, timed_out };

// Both tables, open for the length of one operation.
struct Tables {
  OpenTable buckets;
  OpenTable entries;
  bool has_entries;
};

Tables open_tables(const Definition& definition, LOCKMODE mode);
void close_tables(const Tables& tables);

// Everything for one round, except that a former definition may still have to be carried over.
Work begin_work(const Call& call, Tables& tables, const FoundBucket& found);

// Replaces the version found, or inserts the bucket, and carries the plan for the entries out. False if somebody else was faster.
bool write_work(Tables& tables, Work& work, const FoundBucket& found);

// True if what was read of the entries belongs to the state that was read.
bool is_consistent(Tables& tables, const Work& work, const FoundBucket& found);

// The bucket's state belongs to a newer definition than the call was resolved with.
bool is_stale(const Call& call, const Work& work);

// The definition has changed or is gone. Asked, with the table locked, before a bucket is born: nobody but its definition tells of it.
bool is_outdated(const Call& call);

// Resolves the call anew and opens what it needs now.
void renew(Call& call, Tables& tables, LOCKMODE mode);

// The same, unless no definition has changed anywhere since the call was resolved.
void renew_if_due(Call& call, Tables& tables, LOCKMODE mode);

[[noreturn]] void raise_in_use(const Call& call);

enum class Attempt : uint8 { done, again, wait };

// One decision, and writing it.
template <class Decide>
Attempt attempt(Tables& tables, Work& work, const FoundBucket& found, Decide& decide, Result& result) {
  const bool busy = found.version.kind == VersionKind::busy;
  if (work.row.version != work.definition.version) {
    // What carries over from a former definition is written first, and decided upon in the next round.
    if (!busy && bring_up_to_date(work)) write_work(tables, work, found);
    return busy ? Attempt::wait : Attempt::again;
  }
  const Step step = decide(work);
  if (!is_consistent(tables, work, found)) return Attempt::again;
  result = step == Step::nothing ? Result::nothing : Result::written;
  if (step == Step::nothing) return Attempt::done;
  if (busy) return Attempt::wait;
  return write_work(tables, work, found) ? Attempt::done : Attempt::again;
}

template <class Decide>
Attempt one_round(Call& call, Tables& tables, IfMissing if_missing, Decide& decide, Patience& patience, Result& result) {
  const FoundBucket found = find_bucket(tables.buckets, {call.definition.limit_id, call.key}, true);
  const bool arriving = found.version.kind == VersionKind::arriving;
  if (!found.exists && !arriving && if_missing == IfMissing::leave) return Attempt::done;
  Attempt outcome = Attempt::wait;
  if (!arriving) {
    Work work = begin_work(call, tables, found);
    if (is_stale(call, work) || (!found.exists && is_outdated(call))) return renew(call, tables, RowExclusiveLock), Attempt::again;
    outcome = attempt(tables, work, found, decide, result);
  }
  if (outcome != Attempt::wait) return outcome;
  ItemPointer place = found.row == nullptr ? nullptr : &found.row->t_self;
  if (wait_for_other(patience, found.version, tables.buckets.table, place)) {
    renew_if_due(call, tables, RowExclusiveLock);  // whoever was waited for may have changed the definition, too
    return Attempt::again;
  }
  result = Result::timed_out;
  return Attempt::done;
}

// Runs `decide` until its result holds. Raises the caller's own lock time-out; ours is a result.
template <class Decide>
Result change_bucket(Call& call, IfMissing if_missing, Decide decide) {
  Tables tables = open_tables(call.definition, RowExclusiveLock);
  Patience patience{.limit = call.patience};
  Result result = Result::nothing;
  while (one_round(call, tables, if_missing, decide, patience, result) != Attempt::done) CHECK_FOR_INTERRUPTS();
  close_tables(tables);
  return result;
}

// The same where the caller has no use for a denial.
template <class Decide>
void change_bucket_or_raise(Call& call, IfMissing if_missing, Decide decide) {
  if (change_bucket(call, if_missing, decide) != Result::timed_out) return;
  raise_in_use(call);
}

// Runs `look` on the present state without changing anything.
template <class Look>
void read_bucket(Call& call, Look look) {
  Tables tables = open_tables(call.definition, AccessShareLock);
  for (bool done = false; !done;) {
    CHECK_FOR_INTERRUPTS();
    const FoundBucket found = find_bucket(tables.buckets, {call.definition.limit_id, call.key}, false);
    Work work = begin_work(call, tables, found);
    if (is_stale(call, work)) {
      renew(call, tables, AccessShareLock);
      continue;
    }
    bring_up_to_date(work);
    look(work);
    done = is_consistent(tables, work, found);
  }
  close_tables(tables);
}

}  // namespace taskq::pg
