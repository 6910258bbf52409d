// What the four algorithms mean, said a second time: in exact fractions, from the description of each and not from its
// code. Slow and simple. Single-threaded.
//
// Every model answers for one bucket: acquire(now, cost), charge(now, cost), refund(now, cost). Each leaves the model
// changed, also by a denial; `acquired` below keeps a denied model as it was. Time is what the caller's clock says; a
// model follows the rules for clocks: up to a second behind is jitter (nothing moves), more is a step (everything is
// re-anchored, nothing credited).
#pragma once

#include <algorithm>
#include <boost/multiprecision/cpp_int.hpp>
#include <deque>
#include <map>
#include <optional>

#include "taskq_ratelimit/limit.hpp"

namespace taskq::ratelimit::model {

using Integer = boost::multiprecision::cpp_int;
using Fraction = boost::multiprecision::cpp_rational;

struct Answer {
  bool allowed = false;
  Fraction remaining;            // units
  std::optional<Integer> retry;  // microseconds; none: never
  std::optional<Integer> reset;
  Integer time;
  Integer delay = 0;
};

inline Integer ceiling(const Fraction& x) {
  const Integer n = numerator(x), d = denominator(x);
  return n >= 0 ? Integer((n + d - 1) / d) : Integer(-(-n / d));
}

inline Integer floored(const Fraction& x) { return -ceiling(-x); }

// The clock of a bucket.
class Clock {
 public:
  explicit Clock(Integer now) : time_(std::move(now)) {}
  // True if it was set back.
  bool meet(const Integer& now) {
    stepped_ = time_ - now > 1'000'000;
    lag_ = stepped_ || now > time_ ? Integer(0) : Integer(time_ - now);
    if (stepped_ || now > time_) time_ = now;
    return stepped_;
  }
  bool stepped() const { return stepped_; }
  const Integer& time() const { return time_; }
  const Integer& lag() const { return lag_; }  // how far the last caller was behind

 private:
  Integer time_, lag_ = 0;
  bool stepped_ = false;
};

// A denial changes nothing, unless it is the first to see that the clock was set back.
template <class Model, class Call>
Answer acquired(Model& model, Call call) {
  Model next = model;
  const Answer a = call(next);
  if (a.allowed || next.clock().stepped()) model = next;
  return a;
}

// Tokens that drip into a bucket.
class Tokens {
 public:
  const Clock& clock() const { return clock_; }
  Tokens(const Limit& limit, Integer now)
      : capacity_(limit.capacity),
        rate_(limit.n, limit.d),
        whole_(limit.kind == Kind::sliding_window_gcra),
        tokens_(capacity_),
        clock_(std::move(now)) {}

  Answer acquire(const Integer& now, const Integer& cost) { return reserve(now, cost, 0); }
  // Takes tokens that are not there yet, if they will be within `max_wait`.
  Answer reserve(const Integer& now, const Integer& cost, const Integer& max_wait) {
    meet(now);
    std::optional<Integer> wait = until(Fraction(cost));
    const bool allowed = wait && *wait <= max_wait;
    if (allowed) tokens_ -= cost;
    Answer a = answer(allowed, Integer(0));
    if (allowed) a.delay = *wait;
    if (!allowed) a.retry = wait ? std::optional<Integer>(*wait - max_wait + clock_.lag()) : std::nullopt;
    return a;
  }
  Answer charge(const Integer& now, const Integer& cost) {
    meet(now);
    tokens_ -= cost;
    return answer(true, Integer(0));
  }
  void refund(const Integer& now, const Integer& cost) {
    meet(now);
    tokens_ = std::min<Fraction>(capacity_, tokens_ + cost);
  }

 private:
  void meet(const Integer& now) {
    const Integer before = clock_.time();
    if (!clock_.meet(now)) tokens_ = std::min<Fraction>(capacity_, tokens_ + rate_ * Fraction(clock_.time() - before));
  }

  std::optional<Integer> until(const Fraction& wanted) const {
    if (tokens_ >= wanted) return Integer(0);
    if (rate_ == 0) return std::nullopt;
    return ceiling((wanted - tokens_) / rate_);
  }

  Answer answer(bool allowed, std::optional<Integer> wait) const {
    const Fraction left = std::max<Fraction>(0, tokens_);
    return {allowed, whole_ ? Fraction(floored(left)) : left, wait, until(capacity_), clock_.time()};
  }

  Fraction capacity_, rate_;
  bool whole_;
  Fraction tokens_;
  Clock clock_;
};

// What was spent in each window, by the window's number. The windows' phase never moves.
class Windows {
 public:
  Windows(const Limit& limit, Integer now)
      : window_(limit.window), phase_(limit.anchored ? Integer(limit.anchor) : now), clock_(std::move(now)) {}

  const Clock& clock() const { return clock_; }
  const Integer& time() const { return clock_.time(); }
  const Integer& lag() const { return clock_.lag(); }
  Integer number() const { return number_at(clock_.time()); }
  Integer number_at(const Integer& t) const { return floored(Fraction(t - phase_, window_)); }
  Integer elapsed_at(const Integer& t) const { return t - phase_ - number_at(t) * window_; }
  Integer end() const { return phase_ + (number() + 1) * window_; }
  Integer spent(const Integer& number) const {
    const auto found = spent_.find(number);
    return found == spent_.end() ? Integer(0) : found->second;
  }
  void spend(const Integer& cost) { spent_[number()] += cost; }
  void set_spent(const Integer& number, Integer value) { spent_[number] = std::move(value); }

  // If the clock is set back, this window's count and the last one's move along.
  void meet(const Integer& now) {
    const Integer was = number(), current = spent(was), previous = spent(was - 1);
    if (!clock_.meet(now)) return;
    spent_.clear();
    spent_[number()] = current;
    spent_[number() - 1] = previous;
  }

 private:
  Integer window_, phase_;
  Clock clock_;
  std::map<Integer, Integer> spent_;
};

class FixedWindow {
 public:
  const Clock& clock() const { return windows_.clock(); }
  FixedWindow(const Limit& limit, Integer now) : limit_(limit.capacity), windows_(limit, std::move(now)) {}

  Answer acquire(const Integer& now, const Integer& cost) {
    windows_.meet(now);
    const bool allowed = windows_.spent(windows_.number()) + cost <= limit_;
    if (allowed) windows_.spend(cost);
    return answer(allowed);
  }
  Answer charge(const Integer& now, const Integer& cost) {
    windows_.meet(now);
    const Integer number = windows_.number(), most = Integer(1) << 52;
    windows_.set_spent(number, std::min<Integer>(most, windows_.spent(number) + cost));
    return answer(true);
  }
  void refund(const Integer& now, const Integer& cost) {
    windows_.meet(now);
    windows_.set_spent(windows_.number(), std::max<Integer>(0, windows_.spent(windows_.number()) - cost));
  }

 private:
  Answer answer(bool allowed) const {
    const Integer to_end = windows_.end() - windows_.time(), spent = windows_.spent(windows_.number());
    return {allowed, Fraction(std::max<Integer>(0, limit_ - spent)),
            allowed ? Integer(0) : Integer(to_end + windows_.lag()), spent == 0 ? Integer(0) : to_end, windows_.time()};
  }

  Integer limit_;
  Windows windows_;
};

class TwoCounter {
 public:
  const Clock& clock() const { return windows_.clock(); }
  TwoCounter(const Limit& limit, Integer now)
      : limit_(limit.capacity), window_(limit.window), tick_(limit.tick), windows_(limit, std::move(now)) {}

  Answer acquire(const Integer& now, const Integer& cost) {
    windows_.meet(now);
    const bool allowed = weight_at(windows_.time()) + cost <= limit_;
    const Integer wait = allowed ? Integer(0) : Integer(earliest(cost) - windows_.time() + windows_.lag());
    if (allowed) windows_.spend(cost);
    return answer(allowed, wait);
  }
  Answer charge(const Integer& now, const Integer& cost) {
    windows_.meet(now);
    windows_.set_spent(windows_.number(), std::min<Integer>(limit_, windows_.spent(windows_.number()) + cost));
    return answer(true, 0);
  }
  void refund(const Integer& now, const Integer& cost) {
    windows_.meet(now);
    const Integer n = windows_.number(), current = windows_.spent(n), rest = std::max<Integer>(0, cost - current);
    windows_.set_spent(n, std::max<Integer>(0, current - cost));
    windows_.set_spent(n - 1, std::max<Integer>(0, windows_.spent(n - 1) - rest));
  }

 private:
  Fraction weight_at(const Integer& t) const {
    const Integer n = windows_.number_at(t), ticks = (window_ + tick_ - 1) / tick_;
    return Fraction(windows_.spent(n - 1) * (ticks - windows_.elapsed_at(t) / tick_), ticks) + windows_.spent(n);
  }

  // The weight only falls while nobody spends, so that the first instant at which a call fits can be found by halving.
  Integer earliest(const Integer& cost) const {
    Integer no = windows_.time(), yes = windows_.time() + 2 * window_;
    while (yes - no > 1) {
      const Integer middle = (no + yes) / 2;
      (weight_at(middle) + cost <= limit_ ? yes : no) = middle;
    }
    return yes;
  }

  Answer answer(bool allowed, const Integer& wait) const {
    const Integer n = windows_.number(), to_end = windows_.end() - windows_.time();
    const Integer reset = windows_.spent(n) > 0 ? to_end + window_ : windows_.spent(n - 1) > 0 ? to_end : Integer(0);
    const Integer left = limit_ - ceiling(weight_at(windows_.time()));
    return {allowed, Fraction(std::max<Integer>(0, left)), wait, reset, windows_.time()};
  }

  Integer limit_, window_, tick_;
  Windows windows_;
};

// Every unit with its own time.
class Log {
 public:
  const Clock& clock() const { return clock_; }
  Log(const Limit& limit, Integer now) : limit_(limit.capacity), window_(limit.window), clock_(std::move(now)) {}

  Answer acquire(const Integer& now, const Integer& cost) {
    meet(now);
    const bool allowed = Integer(units_.size()) + cost <= limit_;
    const Integer wait = allowed ? Integer(0) : Integer(units_[index(cost)] + window_ - clock_.time() + clock_.lag());
    if (allowed) units_.insert(units_.end(), cost.convert_to<std::size_t>(), clock_.time());
    return answer(allowed, wait);
  }
  Answer charge(const Integer& now, const Integer& cost) {
    meet(now);
    units_.insert(units_.end(), cost.convert_to<std::size_t>(), clock_.time());
    return answer(true, 0);
  }
  // Drops the newest units.
  void refund(const Integer& now, const Integer& cost) {
    meet(now);
    for (Integer i = 0; i < cost && !units_.empty(); ++i) units_.pop_back();
  }

 private:
  // Of the unit that must leave for `cost` to fit.
  std::size_t index(const Integer& cost) const {
    return Integer(units_.size() + cost - limit_ - 1).convert_to<std::size_t>();
  }

  void meet(const Integer& now) {
    if (clock_.meet(now)) {
      for (Integer& at : units_) at = std::min(at, clock_.time());
    }
    while (!units_.empty() && clock_.time() - units_.front() >= window_) units_.pop_front();
  }

  Answer answer(bool allowed, const Integer& wait) const {
    const Integer used = units_.size();
    return {allowed, Fraction(std::max<Integer>(0, limit_ - used)), wait,
            units_.empty() ? Integer(0) : Integer(units_.back() + window_ - clock_.time()), clock_.time()};
  }

  Integer limit_, window_;
  std::deque<Integer> units_;
  Clock clock_;
};

}  // namespace taskq::ratelimit::model
