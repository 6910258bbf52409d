#include "bucket_ops.hpp"

#include <cmath>

#include "bucket_cap.hpp"
#include "bucket_round.hpp"
#include "settings.hpp"

#include "pg.hpp"

namespace taskq::pg {

using ratelimit::Algorithm;
using ratelimit::Decision;
using ratelimit::Limit;
using ratelimit::Micros;
using ratelimit::Outcome;
using ratelimit::State;
using ratelimit::Taken;
namespace log = ratelimit::log;

namespace {

bool clock_was_set_back(const Work& work) { return ratelimit::clock_was_set_back(work.row.state.at, work.now); }

void report_clock_step(const Work& work) {
  ereport(LOG, (errmsg("rate limit \"%s\": the clock was set back by %lld ms, the bucket goes on from the new time",
                       work.definition.name, static_cast<long long>((work.row.state.at - work.now) / 1000))));
}

TimestampTz pause_end(const Work& work) {
  return ratelimit::larger(work.definition.paused_until, work.row.paused_until);
}

Outcome outcome_of(Work& work, int64 cost, Micros max_wait) {
  const Limit& limit = work.limit();
  if (work.is_log()) return log::decide(limit, work.row.state, work.now, cost, work.entries);
  if (limit.algorithm() == Algorithm::meter) return ratelimit::meter::reserve(limit, work.row.state, work.now, cost, max_wait);
  return ratelimit::decide(limit, work.row.state, work.now, cost);
}

// `wait` is what the limit itself asks for: it may take longer than the pause.
Decision paused_decision(const Decision& decision, TimestampTz until, Micros now, Micros wait) {
  Decision denied = decision;
  denied.allowed = false;
  denied.delay = 0;
  denied.retry_after = until == DT_NOEND ? ratelimit::kNever : ratelimit::larger(until - now, wait);
  return denied;
}

Decision let_through(const Decision& decision) {
  Decision allowed = decision;
  allowed.allowed = true;
  allowed.retry_after = 0;
  return allowed;
}

Decision describe(Work& work, const State& state) {
  if (work.is_log()) return log::describe(work.limit(), state, true, 0);
  return ratelimit::peek(work.limit(), state, state.at, 1);
}

// What acquire answers, and the state it leaves behind.
struct Verdict {
  Answer answer;
  State next;
  bool takes;  // the bucket has to be written
};

// `bites` is false for a limit in shadow, which lets everybody through.
Verdict judge(Work& work, int64 cost, Micros max_wait, bool bites) {
  const Outcome outcome = outcome_of(work, cost, max_wait);
  Verdict v{.answer = {.decision = outcome.decision}, .next = outcome.next, .takes = outcome.decision.allowed};
  v.answer.paused_until = pause_end(work);
  v.answer.used_at = work.existed ? work.row.state.at : DT_NOBEGIN;
  v.answer.reason = outcome.decision.allowed ? Reason::ok : Reason::limited;
  if (v.answer.paused_until > outcome.decision.decided_at) {
    v.next = advanced(work);
    v.takes = false;
    v.answer.reason = Reason::paused;
    v.answer.decision = paused_decision(describe(work, v.next), v.answer.paused_until, work.now, outcome.decision.retry_after);
  }
  if (!v.answer.decision.allowed && !bites) {
    v.answer.reason = Reason::shadow;
    v.answer.decision = let_through(v.answer.decision);
  }
  return v;
}

constexpr Micros pause_at_cap = 1'000'000;  // no promise: somebody else's bucket has to become full

// The key has no bucket, and may not have one.
void refuse_key(Verdict& v, bool bites) {
  ratelimit::Decision& decision = v.answer.decision;
  v.takes = false;
  v.answer.reason = bites ? Reason::too_many_keys : Reason::shadow;
  decision.allowed = !bites;
  decision.remaining = decision.delay = 0;
  decision.retry_after = bites ? pause_at_cap : 0;
  decision.reset_after = pause_at_cap;
}

// The same as judge, for a call that is to take.
Verdict judge_taking(Work& work, const Call& call, Micros max_wait, CapUse use) {
  const bool bites = !call.definition.shadow;
  Verdict v = judge(work, call.cost, max_wait, bites);
  if (v.takes && !work.existed && !has_room_for_bucket(call, use)) refuse_key(v, bites);
  return v;
}

Step keep(Work& work, const Verdict& verdict, int64 cost) {
  const bool stepped = clock_was_set_back(work);
  if (!verdict.takes && !stepped) return Step::nothing;
  if (stepped) report_clock_step(work);
  work.plan.pull_back = stepped && work.is_log();
  work.row.state = verdict.next;
  if (work.is_log()) {
    if (verdict.takes) plan_add(work, cost);
    plan_trim(work);
  }
  return Step::write;
}

// Nobody could say for sure within the time: denied, nothing taken. The rest describes the newest committed state.
Answer timed_out(Call& call) {
  Answer answer = peek_bucket(call);
  answer.reason = Reason::lock_timeout;
  answer.decision.allowed = false;
  answer.decision.delay = 0;
  answer.decision.retry_after = ratelimit::larger(Micros{lock_timeout} * 1000, 1);
  return answer;
}

Answer with_id(const Answer& answer, const Work& work) {
  Answer result = answer;
  result.has_request_id = work.plan.add;
  result.request_id = work.plan.added_id;
  return result;
}

// The state from which something is given back, at now.
void take_up(Work& work) {
  if (clock_was_set_back(work)) report_clock_step(work);
  work.plan.pull_back = work.is_log() && clock_was_set_back(work);
  work.row.state = advanced(work);
}

Step changed_if(const Work& work, double given_back) {
  return given_back == 0 && !work.plan.pull_back ? Step::nothing : Step::write;
}

// Grains that `next` has in use less than `before`.
int64 freed(const State& before, const State& next) { return before.used - next.used + before.previous - next.previous; }

Taken taken_of(const Call& call, const ShownDecision& shown) {
  const Limit& limit = call.definition.limit;
  const double grains = shown.remaining * static_cast<double>(limit.d) * static_cast<double>(ratelimit::power_of_ten(limit.scale));
  const double full = static_cast<double>(limit.capacity) * static_cast<double>(limit.d);
  return {.cost = checked_units(limit, call.definition.name, shown.cost, CostRule::gives),
          .decided_at = shown.decided_at,
          .delay = shown.delay,
          .remaining = grains >= full ? limit.capacity * limit.d : static_cast<int64>(std::rint(grains)),
          .reset_after = shown.reset_after};
}

// A refund comes after its decision, be it by a microsecond: so no two decisions of a bucket look alike.
void come_after(Work& work, const Taken& taken) {
  if (ratelimit::clock_was_set_back(taken.decided_at, work.now)) return;
  work.now = ratelimit::larger(work.now, taken.decided_at + 1);
}

int64 settle_state(Work& work, const Taken& taken, int64 actual) {
  const State before = work.row.state;
  work.row.state = ratelimit::settle(work.limit(), before, work.now, taken, actual);
  return freed(before, work.row.state);
}

// Debits, and plans the entry for what was debited.
Decision charge_log(Work& work, int64 cost) {
  const int64 before = work.row.state.used;
  const Outcome outcome = log::charge(work.limit(), work.row.state, work.now, cost, work.entries);
  work.row.state = outcome.next;
  if (outcome.next.used > before) plan_add(work, outcome.next.used - before);
  return outcome.decision;
}

Decision charge_state(Work& work, int64 cost) {
  const Outcome outcome = ratelimit::charge(work.limit(), work.row.state, work.now, cost);
  work.row.state = outcome.next;
  return outcome.decision;
}

int64 settle_log(Work& work, const Taken& taken, const pg_uuid_t& request_id, int64 actual) {
  if (actual <= taken.cost) return plan_take(work, request_id, taken.cost - actual);
  charge_log(work, actual - taken.cost);
  return -work.plan.added.cost;
}

void make_fresh(Work& work) {
  State& state = work.row.state;
  if (!work.is_log()) {
    state = ratelimit::fresh(work.limit(), work.now);
    return;
  }
  // Its entries have left, as far as the state is concerned; they are deleted bit by bit.
  state.at = state.start = state.newest = work.now;
  state.previous = state.used;
}

// Full, not paused, in nobody's hands and not used since `before`.
bool is_idle(const Call& call, Tables& tables, const FoundBucket& found, TimestampTz before) {
  if (!found.exists || found.version.kind != VersionKind::live) return false;
  Work work = begin_work(call, tables, found);
  if (is_stale(call, work) || work.row.state.at > before || pause_end(work) > work.now) return false;
  bring_up_to_date(work);
  return describe(work, advanced(work)).reset_after == 0 && is_consistent(tables, work, found);
}

}  // namespace

Answer acquire_bucket(Call& call, Micros max_wait) {
  Answer answer;
  const Result result = change_bucket(call, IfMissing::create, [&](Work& work) {
    const Verdict verdict = judge_taking(work, call, max_wait, CapUse::make);
    const Step step = keep(work, verdict, call.cost);
    answer = with_id(verdict.answer, work);
    return step;
  });
  return result == Result::timed_out ? timed_out(call) : answer;
}

Answer preview_bucket(Call& call) {
  Answer answer;
  read_bucket(call, [&](Work& work) { answer = judge_taking(work, call, 0, CapUse::look).answer; });
  return answer;
}

Answer peek_bucket(Call& call) {
  Answer answer;
  read_bucket(call, [&](Work& work) {
    const Limit& limit = call.definition.limit;
    answer = judge(work, ratelimit::smaller(ratelimit::power_of_ten(limit.scale), limit.capacity), 0, true).answer;
    const Decision asked = answer.decision;
    answer.decision = describe(work, advanced(work));
    answer.decision.allowed = asked.allowed;
    answer.decision.retry_after = asked.retry_after;
  });
  return answer;
}

Answer charge_bucket(Call& call) {
  Answer answer;
  change_bucket_or_raise(call, IfMissing::create, [&](Work& work) {
    take_up(work);
    const Decision decision = work.is_log() ? charge_log(work, call.cost) : charge_state(work, call.cost);
    answer = with_id({.decision = decision}, work);
    return Step::write;
  });
  return answer;
}

double refund_bucket(Call& call) {
  double given_back = 0;
  change_bucket_or_raise(call, IfMissing::leave, [&](Work& work) {
    take_up(work);
    const State before = work.row.state;
    if (!work.is_log()) work.row.state = ratelimit::refund(work.limit(), before, work.now, call.cost);
    const int64 grains = work.is_log() ? plan_drop_newest(work, call.cost) : freed(before, work.row.state);
    given_back = ratelimit::to_amount(work.limit(), grains);
    return changed_if(work, given_back);
  });
  return given_back;
}

void hold_bucket(Call& call) {
  change_bucket_or_raise(call, IfMissing::leave, [](Work&) { return Step::write; });
}

double settle_bucket(Call& call, const ShownDecision& shown) {
  double given_back = 0;
  change_bucket_or_raise(call, IfMissing::leave, [&](Work& work) {
    const Taken taken = taken_of(call, shown);
    come_after(work, taken);
    take_up(work);
    const int64 grains = work.is_log() ? settle_log(work, taken, shown.request_id, call.cost) : settle_state(work, taken, call.cost);
    given_back = ratelimit::to_amount(work.limit(), grains);
    return changed_if(work, given_back);
  });
  return given_back;
}

void create_if_missing(Call& call) {
  change_bucket_or_raise(call, IfMissing::create, [](Work& work) { return work.existed ? Step::nothing : Step::write; });
}

bool reset_bucket(Call& call) {
  bool existed = false;
  change_bucket_or_raise(call, IfMissing::leave, [&](Work& work) {
    existed = true;
    make_fresh(work);
    return Step::write;
  });
  return existed;
}

void pause_bucket(Call& call, TimestampTz until) {
  const IfMissing if_missing = until == DT_NOBEGIN ? IfMissing::leave : IfMissing::create;
  change_bucket_or_raise(call, if_missing, [&](Work& work) {
    work.row.paused_until = until;
    return Step::write;
  });
}

bool evict_bucket(Call& call, TimestampTz before) {
  bool evicted = false;
  Tables tables = open_tables(call.definition, RowExclusiveLock);
  const FoundBucket found = find_bucket(tables.buckets, {call.definition.limit_id, call.key}, true);
  if (is_idle(call, tables, found, before)) evicted = delete_bucket(tables.buckets, found.row);
  close_tables(tables);
  return evicted;
}

bool is_idle_bucket(Call& call, TimestampTz before) {
  Tables tables = open_tables(call.definition, AccessShareLock);
  const bool idle = is_idle(call, tables, find_bucket(tables.buckets, {call.definition.limit_id, call.key}, false), before);
  close_tables(tables);
  return idle;
}

int64 trim_bucket(Call& call, int64 most) {
  int64 trimmed = 0;
  Tables tables = open_tables(call.definition, RowExclusiveLock);
  while (trimmed < most) {
    CHECK_FOR_INTERRUPTS();
    const FoundBucket found = find_bucket(tables.buckets, {call.definition.limit_id, call.key}, true);
    if (!found.exists || found.version.kind != VersionKind::live) break;
    Work work = begin_work(call, tables, found);
    if (work.row.version != call.definition.version || !work.is_log() || clock_was_set_back(work)) break;
    const Micros used_at = work.row.state.at;
    work.row.state = advanced(work);
    work.row.state.at = used_at;  // cleaning is no use of the bucket
    plan_trim(work);
    if (work.plan.doomed_count == 0 || !is_consistent(tables, work, found) || !write_work(tables, work, found)) break;
    trimmed += work.plan.doomed_count;
  }
  close_tables(tables);
  return trimmed;
}

}  // namespace taskq::pg
