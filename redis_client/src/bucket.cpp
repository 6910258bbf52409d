#include "taskq/detail/bucket.hpp"

#include <algorithm>

namespace taskq::detail {

using ratelimit::Algorithm;
using ratelimit::Limit;
using ratelimit::Outcome;
using ratelimit::State;
using ratelimit::Taken;
namespace log = ratelimit::log;

namespace {

constexpr bool is_log(const Limit& limit) noexcept { return limit.algorithm() == Algorithm::log; }

Answer answer_of(const ratelimit::Decision& decision) noexcept {
  return {.decision = decision, .reason = decision.allowed ? Reason::ok : Reason::limited, .id = {}};
}

}  // namespace

Bucket::Bucket(const Limit& limit, Micros now) {
  state = is_log(limit) ? log::fresh(limit, now) : ratelimit::fresh(limit, now);
  if (is_log(limit)) entries_ = std::make_unique<LogEntries>();
}

Answer Bucket::run(const LimitDefinition& definition, const Request& request, Micros now) {
  const Limit& limit = definition.limit;
  switch (request.op) {
    case Op::acquire:
    case Op::reserve: return judge(definition, request, now, true);
    case Op::preview: return judge(definition, request, now, false);
    case Op::peek: return peek(limit, request.cost, now);
    case Op::charge: return charge(limit, request.cost, now);
    case Op::refund: return refund(limit, request.cost, now);
    case Op::give_back: return settle(limit, request, 0, now);
    case Op::settle: return settle(limit, request, request.cost, now);
    case Op::reset: reset(limit, now); break;
    case Op::pause: paused_until_ = request.until > now ? request.until : kNotPaused; break;
  }
  return peek(limit, 1, now);
}

bool Bucket::is_fresh(const Limit& limit, Micros now) const {
  return !is_paused(now) && described(limit, now).reset_after == 0;
}

Outcome Bucket::outcome(const Limit& limit, Micros now, std::int64_t cost, Micros max_wait) const {
  if (is_log(limit)) return log::decide(limit, state, now, cost, *entries_);
  if (limit.algorithm() == Algorithm::meter) return ratelimit::meter::reserve(limit, state, now, cost, max_wait);
  return ratelimit::decide(limit, state, now, cost);
}

State Bucket::advanced(const Limit& limit, Micros now) const {
  return is_log(limit) ? log::advance(limit, state, now, *entries_) : ratelimit::advance(limit, state, now);
}

ratelimit::Decision Bucket::described(const Limit& limit, Micros now) const {
  const State at_now = advanced(limit, now);
  return is_log(limit) ? log::describe(limit, at_now, true, 0) : ratelimit::peek(limit, at_now, at_now.at, 1);
}

// The state from which something is given back or debited, at now.
void Bucket::take_up(const Limit& limit, Micros now) {
  if (entries_ && ratelimit::clock_was_set_back(state.at, now)) entries_->move_future_to(now);
  state = advanced(limit, now);
}

void Bucket::add_entry(std::int64_t cost, RequestId id) {
  if (state.previous == state.used - cost) entries_->clear();
  entries_->drop_left(state.previous);
  entries_->add({state.used, cost, state.at}, id);
}

// A denial leaves the state as it is, unless it is the first to see that the clock was set back.
Answer Bucket::judge(const LimitDefinition& definition, const Request& request, Micros now, bool take) {
  const Limit& limit = definition.limit;
  const Outcome o = outcome(limit, now, request.cost, request.op == Op::reserve ? request.max_wait : 0);
  Answer answer = answer_of(o.decision);
  const bool paused = is_paused(o.decision.decided_at);
  if (paused) {
    answer.decision = described(limit, now);
    answer.decision.allowed = false;
    answer.decision.retry_after =
        paused_until_ == ratelimit::kNever ? ratelimit::kNever : ratelimit::larger(paused_until_ - now, o.decision.retry_after);
    answer.reason = Reason::paused;
  }
  if (take && ratelimit::clock_was_set_back(state.at, now)) take_up(limit, now);
  if (take && answer.decision.allowed) {
    state = o.next;
    if (entries_) {
      answer.id = RequestId::next(now);
      add_entry(request.cost, answer.id);
    }
  }
  cast_shadow(definition, answer);
  return answer;
}

Answer Bucket::peek(const Limit& limit, std::int64_t cost, Micros now) const {
  const ratelimit::Decision asked = outcome(limit, now, cost, 0).decision;
  Answer answer = answer_of(described(limit, now));
  answer.decision.allowed = asked.allowed;
  answer.decision.retry_after = asked.retry_after;
  answer.reason = asked.allowed ? Reason::ok : Reason::limited;
  if (!is_paused(answer.decision.decided_at)) return answer;
  answer.paused_until = paused_until_;
  answer.reason = Reason::paused;
  answer.decision.allowed = false;
  answer.decision.retry_after =
      paused_until_ == ratelimit::kNever ? ratelimit::kNever : ratelimit::larger(paused_until_ - now, asked.retry_after);
  return answer;
}

Answer Bucket::charge(const Limit& limit, std::int64_t cost, Micros now) {
  take_up(limit, now);
  const std::int64_t before = state.used;
  const Outcome o = is_log(limit) ? log::charge(limit, state, now, cost, *entries_) : ratelimit::charge(limit, state, now, cost);
  state = o.next;
  Answer answer = answer_of(o.decision);
  if (entries_ && state.used > before) {
    answer.id = RequestId::next(now);
    add_entry(state.used - before, answer.id);
  }
  return answer;
}

// A log's state after entries have lost units.
void Bucket::after_taking_entries(std::int64_t units) {
  state.used -= units;
  if (units == 0 || log::live(state) == 0) return;
  state.start = entries_->oldest_at(state.previous);
  state.newest = entries_->newest_at();
}

// What is given back comes after all that was decided before, be it by a microsecond: so no two decisions of a bucket look alike.
Micros Bucket::after_all(Micros decided_at, Micros now) const noexcept {
  const Micros newest = ratelimit::larger(state.at, decided_at);
  return ratelimit::clock_was_set_back(newest, now) ? now : ratelimit::larger(now, newest + 1);
}

Answer Bucket::refund(const Limit& limit, std::int64_t cost, Micros now) {
  now = after_all(state.at, now);
  take_up(limit, now);
  const State before = state;
  if (entries_) {
    after_taking_entries(entries_->take_newest(cost, state.previous));
  } else {
    state = ratelimit::refund(limit, state, now, cost);
  }
  Answer answer = answer_of(described(limit, now));
  answer.given_back = before.used - state.used + before.previous - state.previous;
  return answer;
}

// Notes that this decision was taken back; false if it has been before.
bool Bucket::note_once(const Limit& limit, const Taken& taken, Micros now) {
  std::erase_if(given_back_, [now](const GivenBack& g) { return g.useless_at <= now; });
  const bool known = std::any_of(given_back_.begin(), given_back_.end(), [&](const GivenBack& g) {
    return g.decided_at == taken.decided_at && g.remaining == taken.remaining;
  });
  if (known) return false;
  const Micros life = limit.window > 0 ? limit.window * 2 : ratelimit::meter::time_to_pay(limit, limit.capacity * limit.d);
  given_back_.push_back({taken.decided_at, taken.remaining, ratelimit::saturating_add(taken.decided_at + taken.delay, life)});
  return true;
}

std::int64_t Bucket::settle_log(const Limit& limit, const Request& request, std::int64_t actual) {
  if (actual > request.taken.cost) {
    const std::int64_t before = state.used;
    charge(limit, actual - request.taken.cost, state.at);
    return before - state.used;
  }
  const std::int64_t taken = entries_->take_from(request.id, request.taken.cost - actual, state.previous);
  after_taking_entries(taken);
  return taken;
}

Answer Bucket::settle(const Limit& limit, const Request& request, std::int64_t actual, Micros now) {
  now = after_all(request.taken.decided_at, now);
  if (!note_once(limit, request.taken, now)) return answer_of(described(limit, now));
  take_up(limit, now);
  const State before = state;
  std::int64_t given_back = 0;
  if (entries_) {
    given_back = settle_log(limit, request, actual);
  } else {
    state = ratelimit::settle(limit, state, now, request.taken, actual);
    given_back = before.used - state.used + before.previous - state.previous;
  }
  Answer answer = answer_of(described(limit, now));
  answer.given_back = given_back;
  return answer;
}

void Bucket::reset(const Limit& limit, Micros now) {
  state = is_log(limit) ? log::fresh(limit, now) : ratelimit::fresh(limit, now);
  if (entries_) entries_->clear();
  given_back_.clear();
}

}  // namespace taskq::detail
