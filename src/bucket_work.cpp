#include "bucket_work.hpp"

#include "taskq_ratelimit/change.hpp"
#include "uuid.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Algorithm;
using ratelimit::Inherit;
using ratelimit::Limit;
using ratelimit::Micros;
using ratelimit::State;
namespace log = ratelimit::log;

namespace {

constexpr int batch = 64;

State advanced_under(const Limit& limit, const State& state, Micros now, Entries& entries) {
  return limit.algorithm() == Algorithm::log ? log::advance(limit, state, now, entries) : ratelimit::advance(limit, state, now);
}

// A log whose `used` units were all taken at `at`, as one entry under a new bucket_id.
void start_log(Work& work, Micros at, int64 used) {
  work.row.bucket_id = 0;
  work.row.state = log::fresh(work.limit(), at);
  if (used == 0) return;
  work.row.state = log::with_entry(work.row.state, used);
  work.entries.all_at = at;
  plan_add(work, used);
}

// The same log under another definition: its entries stay, as far as the mode of inheritance lets them.
void carry_log_over(Work& work, const FormerDefinition& former, const Limit& next, Micros at) {
  State& state = work.row.state;
  state = log::advance(former.limit, state, at, work.entries);
  if (former.inherit == Inherit::consumed) return;
  const int64 wanted = ratelimit::used_after_change(former.limit, log::live(state), next, former.inherit);
  if (wanted <= log::live(state)) {
    plan_drop_newest(work, log::live(state) - wanted);
    return;
  }
  const int64 more = wanted - log::live(state);
  state = log::with_entry(state, more);
  plan_add(work, more);
}

// One step from a former definition to the one after it.
void carry_over(Work& work, const FormerDefinition& former, const Limit& next) {
  const Micros at = ratelimit::larger(former.ended_at, work.row.state.at);
  const bool from_log = former.limit.algorithm() == Algorithm::log, to_log = next.algorithm() == Algorithm::log;
  if (from_log && to_log) return carry_log_over(work, former, next, at);
  if (!from_log && !to_log) {
    work.row.state = ratelimit::change(former.limit, work.row.state, next, former.inherit, at);
    return;
  }
  const State before = advanced_under(former.limit, work.row.state, at, work.entries);
  const int64 used = from_log ? log::live(before) : ratelimit::used_now(former.limit, before);
  const int64 kept = ratelimit::used_after_change(former.limit, used, next, former.inherit);
  if (to_log) return start_log(work, at, kept);
  work.row.bucket_id = 0;  // what is left of the entries is swept
  work.row.state = ratelimit::with_used(next, at, kept);
}

// Where the newest entry is after the one that ended at `upto` is gone.
Micros time_of_last(Work& work, int64 upto) { return work.entries.reaching(upto).at; }

void shift_later(Work& work, int64 after, int64 by) {
  StoredEntry list[batch];
  for (int64 from = after;;) {
    CHECK_FOR_INTERRUPTS();
    const int count = list_entries(*work.entries.table, work.row.bucket_id, from, INT64CONST(0x7fffffffffffffff), list, batch);
    for (int i = 0; i < count; ++i) {
      log::Entry moved = list[i].entry;
      moved.upto -= by;
      change_entry(*work.entries.table, work.row.bucket_id, list[i], moved);
    }
    if (count < batch) return;
    from = list[count - 1].entry.upto;
  }
}

void take_from_target(Work& work) {
  const StoredEntry& target = work.plan.target;
  if (work.plan.take_from_target >= target.entry.cost) {
    delete_entry(*work.entries.table, target);
    CommandCounterIncrement();
  } else {
    log::Entry smaller = target.entry;
    smaller.upto -= work.plan.take_from_target;
    smaller.cost -= work.plan.take_from_target;
    change_entry(*work.entries.table, work.row.bucket_id, target, smaller);
  }
  shift_later(work, target.entry.upto, work.plan.take_from_target);
}

void drop_newer(Work& work, int64 keep_upto) {
  StoredEntry list[batch];
  for (int count = batch; count == batch;) {
    CHECK_FOR_INTERRUPTS();
    count = list_entries(*work.entries.table, work.row.bucket_id, keep_upto, INT64CONST(0x7fffffffffffffff), list, batch);
    for (int i = 0; i < count; ++i) {
      log::Entry kept = list[i].entry;
      const int64 begins_after = kept.upto - kept.cost;
      delete_entry(*work.entries.table, list[i]);
      if (begins_after >= keep_upto) continue;
      kept.upto = keep_upto;
      kept.cost = keep_upto - begins_after;
      add_entry(*work.entries.table, work.row.bucket_id, kept, list[i].request_id);
    }
    CommandCounterIncrement();
  }
}

void pull_back(Work& work) {
  StoredEntry last;
  int64 unit = work.row.state.used;
  while (unit > work.row.state.previous &&
         find_entry(*work.entries.table, work.row.bucket_id, unit, BackwardScanDirection, last) && last.entry.at > work.now) {
    CHECK_FOR_INTERRUPTS();
    log::Entry moved = last.entry;
    moved.at = work.now;
    change_entry(*work.entries.table, work.row.bucket_id, last, moved);
    unit = last.entry.upto - last.entry.cost;
  }
}

}  // namespace

State advanced(Work& work) { return advanced_under(work.limit(), work.row.state, work.now, work.entries); }

bool bring_up_to_date(Work& work) {
  if (work.row.version == work.definition.version) return false;
  while (work.row.version < work.definition.version) {
    const FormerDefinition former = former_definition(work.row.limit_id, work.row.version);
    ++work.row.version;
    const bool last = work.row.version == work.definition.version;
    carry_over(work, former, last ? work.limit() : former_definition(work.row.limit_id, work.row.version).limit);
  }
  return true;
}

void plan_trim(Work& work) {
  const State& state = work.row.state;
  if (state.tail >= state.previous || work.row.bucket_id == 0) return;
  work.plan.doomed_count = list_entries(*work.entries.table, work.row.bucket_id, state.tail, state.previous, work.plan.doomed, 4);
  work.row.state.tail = work.plan.doomed_count == 0 ? state.previous : work.plan.doomed[work.plan.doomed_count - 1].entry.upto;
}

int64 plan_take(Work& work, const pg_uuid_t& request_id, int64 units) {
  State& state = work.row.state;
  StoredEntry& target = work.plan.target;
  for (int64 unit = state.used; unit > state.previous; unit = target.entry.upto - target.entry.cost) {
    CHECK_FOR_INTERRUPTS();
    if (!find_entry(*work.entries.table, work.row.bucket_id, unit, BackwardScanDirection, target)) return 0;
    if (same_uuid(target.request_id, request_id)) break;
  }
  const log::Entry& entry = target.entry;
  if (log::live(state) == 0 || entry.upto <= state.previous || !same_uuid(target.request_id, request_id)) return 0;
  const int64 taken = ratelimit::smaller(units, entry.cost);
  const bool whole = taken == entry.cost, oldest = entry.upto - entry.cost == state.previous, newest = entry.upto == state.used;
  if (whole && oldest && !newest) state.start = work.entries.reaching(entry.upto + 1).at;
  if (whole && newest && !oldest) state.newest = time_of_last(work, entry.upto - entry.cost);
  state.used -= taken;
  work.plan.take_from_target = taken;
  return taken;
}

int64 plan_drop_newest(Work& work, int64 units) {
  State& state = work.row.state;
  const int64 dropped = ratelimit::smaller(units, log::live(state));
  if (dropped == 0) return 0;
  state.used -= dropped;
  if (log::live(state) > 0) state.newest = time_of_last(work, state.used);
  work.plan.keep_upto = state.used;
  return dropped;
}

void plan_add(Work& work, int64 cost) {
  work.plan.add = true;
  work.plan.added = {.upto = work.row.state.used, .cost = cost, .at = work.row.state.at};
  work.plan.added_id = new_uuid(work.row.state.at);
}

void carry_out(Work& work) {
  EntryPlan& plan = work.plan;
  if (plan.pull_back) pull_back(work);
  if (plan.keep_upto >= 0) drop_newer(work, plan.keep_upto);
  if (plan.take_from_target > 0) take_from_target(work);
  if (plan.add) add_entry(*work.entries.table, work.row.bucket_id, plan.added, plan.added_id);
  for (int i = 0; i < plan.doomed_count; ++i) delete_entry(*work.entries.table, plan.doomed[i]);
}

}  // namespace taskq::pg
