// Runs the shared stream through one limit: the library's own decisions, and the curve of its state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "stream.hpp"
#include "taskq_ratelimit/decide.hpp"
#include "taskq_ratelimit/log.hpp"

namespace pictures {

namespace rl = taskq::ratelimit;

// The entries of a log, as log.hpp asks for them.
struct Entries {
  std::vector<rl::log::Entry> all;
  rl::log::Entry reaching(std::int64_t unit) const {
    return *std::lower_bound(all.begin(), all.end(), unit,
                             [](const rl::log::Entry& e, std::int64_t u) { return e.upto < u; });
  }
};

// One limit and its state, created at time 0.
class Bucket {
 public:
  explicit Bucket(const rl::Limit& limit) : limit_(limit), state_(is_log() ? rl::log::fresh(limit, 0) : rl::fresh(limit, 0)) {}

  // A call of cost 1.
  bool call(Micros now) {
    const std::int64_t one = rl::units(1.0, limit_.scale);
    const rl::Outcome out =
        is_log() ? rl::log::decide(limit_, state_, now, one, entries_) : rl::decide(limit_, state_, now, one);
    if (!out.decision.allowed) return false;
    state_ = out.next;
    if (is_log()) entries_.all.push_back({state_.used, one, state_.at});
    return true;
  }

  // What the picture shows: tokens left, or what is used of the limit; 0..full().
  std::int64_t level(Micros now) const {
    const rl::State s = at(now);
    switch (limit_.kind) {
      case rl::Kind::token_bucket: return rl::meter::remaining(limit_, s);
      case rl::Kind::sliding_window_counter: return fading(now) + s.used * rl::two_counter::window_ticks(limit_);
      case rl::Kind::sliding_window_log: return rl::log::live(s);
      default: return s.used;
    }
  }

  // The part of level() that the last window still weighs. REQUIRES: a sliding window of style counter.
  std::int64_t fading(Micros now) const {
    const rl::State s = at(now);
    return rl::two_counter::faded(limit_, s.previous, (s.at - s.start) / limit_.tick);
  }

  std::int64_t full() const {
    switch (limit_.algorithm()) {
      case rl::Algorithm::meter: return rl::meter::full(limit_);
      case rl::Algorithm::two_counter: return limit_.capacity * rl::two_counter::window_ticks(limit_);
      default: return limit_.capacity;
    }
  }

 private:
  bool is_log() const { return limit_.algorithm() == rl::Algorithm::log; }
  rl::State at(Micros now) const {
    return is_log() ? rl::log::advance(limit_, state_, now, entries_) : rl::advance(limit_, state_, now);
  }

  rl::Limit limit_;
  rl::State state_;
  Entries entries_;
};

struct Call {
  Micros at;
  bool allowed;
};

struct Point {
  Micros at;
  std::int64_t level;
};

using Curve = std::vector<Point>;

struct Trace {
  std::vector<Call> calls;
  Curve level;
  Curve fading;  // empty unless the style is counter
  std::int64_t full = 0;
};

// Adds a point; the one before goes if it lies on the straight line, which is decided exactly.
inline void add(Curve& curve, Point p) {
  const std::size_t n = curve.size();
  if (n >= 2 && curve[n - 2].at < curve[n - 1].at && curve[n - 1].at < p.at) {
    const Point a = curve[n - 2], b = curve[n - 1];
    const rl::Wide left = rl::Wide{b.level - a.level} * (p.at - a.at);
    if (left == rl::Wide{p.level - a.level} * (b.at - a.at)) curve.pop_back();
  }
  curve.push_back(p);
}

inline Trace simulate(const rl::Limit& limit) {
  Bucket bucket(limit);
  Trace trace{.calls = {}, .level = {}, .fading = {}, .full = bucket.full()};
  const bool fades = limit.algorithm() == rl::Algorithm::two_counter;
  const auto look = [&](Micros t) {
    add(trace.level, {t, bucket.level(t)});
    if (fades) add(trace.fading, {t, bucket.fading(t)});
  };
  const std::vector<Micros> at = arrivals();
  std::size_t next = 0;
  for (Micros t = 0; t < kEnd; t += kStep) {
    if (t > 0) look(t - 1);  // so that a jump at t is drawn as a jump
    look(t);
    for (; next < at.size() && at[next] == t; ++next) {
      trace.calls.push_back({t, bucket.call(t)});
      look(t);
    }
  }
  look(kEnd - 1);
  return trace;
}

inline int admitted(const Trace& trace) {
  return static_cast<int>(std::count_if(trace.calls.begin(), trace.calls.end(), [](const Call& c) { return c.allowed; }));
}

// The half-open window [from, from + kWindow) with the most admitted calls; the last of them if there are several.
struct Peak {
  Micros from = 0;
  int calls = 0;
};

inline Peak busiest_window(const Trace& trace) {
  Peak peak;
  for (const Call& first : trace.calls) {
    if (!first.allowed) continue;
    const auto inside = [&](const Call& c) { return c.allowed && c.at >= first.at && c.at - first.at < kWindow; };
    const auto calls = static_cast<int>(std::count_if(trace.calls.begin(), trace.calls.end(), inside));
    if (calls >= peak.calls) peak = {first.at, calls};
  }
  return peak;
}

}  // namespace pictures
