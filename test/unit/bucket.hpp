// A bucket on a manual clock, whatever its algorithm, in the units of a user: it stores what the core says is to be
// stored, as an engine would. Single-threaded.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>

#include "memory_entries.hpp"
#include "taskq_ratelimit/change.hpp"
#include "taskq_ratelimit/decide.hpp"
#include "taskq_ratelimit/definition.hpp"

namespace taskq::ratelimit::test {

inline namespace literals {

constexpr Micros operator""_s(unsigned long long seconds) { return static_cast<Micros>(seconds) * kMicrosPerSecond; }
constexpr Micros operator""_s(long double seconds) { return static_cast<Micros>(seconds * 1e6L + 0.5L); }
constexpr Micros operator""_days(unsigned long long days) { return static_cast<Micros>(days) * 86'400'000'000; }

}  // namespace literals

inline Limit checked(const Definition& definition) {
  REQUIRE(definition.error == DefinitionError::none);
  return definition.limit;
}

inline Limit TB(double capacity, double rate) { return checked(make_bucket(Kind::token_bucket, capacity, rate)); }
inline Limit LB(double capacity, double rate) { return checked(make_bucket(Kind::leaky_bucket, capacity, rate)); }
inline Limit FW(std::int64_t limit, Micros window) { return checked(make_fixed_window(limit, window)); }
inline Limit sliding(Kind kind, std::int64_t limit, Micros window) {
  return checked(make_sliding_window(kind, limit, window));
}
inline Limit SWL(std::int64_t limit, Micros window) { return sliding(Kind::sliding_window_log, limit, window); }
inline Limit SWC(std::int64_t limit, Micros window) { return sliding(Kind::sliding_window_counter, limit, window); }
inline Limit GCRA(std::int64_t limit, Micros window) { return sliding(Kind::sliding_window_gcra, limit, window); }

// The check that every engine makes before it decides; 0 if the cost is refused.
inline std::int64_t cost_units(const Limit& limit, double cost) {
  const bool windows = limit.algorithm() != Algorithm::meter || limit.kind == Kind::sliding_window_gcra;
  if (windows && !is_whole(cost)) return 0;
  const std::int64_t u = units(cost, limit.scale);
  return u >= 1 && u <= limit.most() ? u : 0;
}

struct Answer {
  bool ok = false;
  double rem = 0;
  Micros retry = 0;
  Micros reset = 0;
  Taken taken;
  std::uint64_t id = 0;  // of a log's entry
};

class Bucket {
 public:
  explicit Bucket(const Limit& limit, Micros now = 0) : log_(limit, now) {
    if (!is_log()) state_ = fresh(limit, now);
  }

  Answer acquire(Micros now, double cost = 1) {
    const std::int64_t u = cost_units(limit(), cost);
    REQUIRE(u > 0);
    if (is_log()) {
      const Decision d = log_.acquire(now, u);
      return answer(d, u, d.allowed ? log_.last_id() : 0);
    }
    const Outcome outcome = decide(limit(), state_, now, u);
    // A state that the clock was set back from is stored even if the call is denied: else nobody's wait would ever
    // begin.
    if (outcome.decision.allowed || clock_was_set_back(state_.at, now)) state_ = outcome.next;
    return answer(outcome.decision, u);
  }

  Answer preview(Micros now, double cost = 1) {
    const std::int64_t u = cost_units(limit(), cost);
    REQUIRE(u > 0);
    return answer(is_log() ? log_.preview(now, u) : decide(limit(), state_, now, u).decision, u);
  }

  // What is there now; `ok` and `retry` are for a cost of 1 (or of all there can be, if that is less).
  Answer peek(Micros now) {
    const std::int64_t u = smaller(limit().most(), power_of_ten(limit().scale));
    if (!is_log()) return answer(ratelimit::peek(limit(), state_, now, u), u);
    Decision d = log_.look(now);
    const Decision one = log_.preview(now, u);
    d.allowed = one.allowed, d.retry_after = one.retry_after;
    return answer(d, u);
  }

  Answer charge(Micros now, double cost) {
    const std::int64_t u = units(cost, limit().scale);
    if (is_log()) {
      const Decision d = log_.charge(now, u);
      return answer(d, u, log_.last_id());
    }
    const Outcome outcome = ratelimit::charge(limit(), state_, now, u);
    state_ = outcome.next;
    return answer(outcome.decision, u);
  }

  void refund(Micros now, double cost) {
    const std::int64_t u = units(cost, limit().scale);
    if (is_log()) return log_.refund_newest(now, u);
    state_ = ratelimit::refund(limit(), state_, now, u);
  }

  void give_back(Micros now, const Answer& a) {
    if (is_log()) return log_.refund_entry(now, a.id);
    state_ = ratelimit::give_back(limit(), state_, now, a.taken);
  }

  void settle(Micros now, const Answer& a, double actual) {
    state_ = ratelimit::settle(limit(), state_, now, a.taken, units(actual, limit().scale));
  }

  // Another definition under the same name.
  void replace(Micros now, const Limit& other, Inherit inherit = Inherit::consumed) {
    if (!is_log()) state_ = change(limit(), state_, other, inherit, now);
    log_.replace(other);
  }

  const Limit& limit() const { return log_.limit(); }
  const State& state() const { return is_log() ? log_.state() : state_; }
  LogBucket& log() { return log_; }

 private:
  bool is_log() const { return limit().algorithm() == Algorithm::log; }

  Answer answer(const Decision& d, std::int64_t u, std::uint64_t id = 0) const {
    return {d.allowed,
            to_amount(limit(), d.remaining),
            d.retry_after,
            d.reset_after,
            {u, d.decided_at, d.delay, d.remaining, d.reset_after},
            id};
  }

  LogBucket log_;
  State state_;
};

}  // namespace taskq::ratelimit::test
