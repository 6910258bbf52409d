// Waiting for one limit, whatever its backend: by a place in the queue of time where the limit has one, else by trying again.
#pragma once

#include <stop_token>

#include "taskq/backend.hpp"
#include "taskq/decision.hpp"

namespace taskq::detail {

// Pauses and full tables may end before their time: look again after this long.
inline constexpr Micros kLongestNap = 1'000'000;

// What can be given back: what was taken.
inline bool took(const Decision& decision) noexcept { return decision.allowed() && decision.reason() == Reason::ok; }

inline ratelimit::Taken taken_by(const Answer& answer, std::int64_t cost) noexcept {
  const ratelimit::Decision& d = answer.decision;
  return {.cost = cost, .decided_at = d.decided_at, .delay = d.delay, .remaining = d.remaining, .reset_after = d.reset_after};
}

inline Request asking(const LimitDefinition& limit, std::int64_t cost, Micros left) noexcept {
  const bool queues = limit.limit.algorithm() == ratelimit::Algorithm::meter;
  return {.op = queues ? Op::reserve : Op::acquire, .limit = &limit, .cost = cost, .max_wait = queues ? left : 0};
}

inline Request giving_back(const LimitDefinition& limit, const Answer& answer, std::int64_t cost) noexcept {
  return {.op = Op::give_back, .limit = &limit, .cost = 0, .taken = taken_by(answer, cost), .id = answer.id};
}

// A time that somebody is ready to wait. Throws InvalidArgument if it is negative.
Micros checked_wait(const LimitDefinition& limit, Duration wait);

// Throws InvalidArgument unless there is a queue of time.
void check_reservable(const LimitDefinition& limit);

// How long until this one of several would be given, as it is now; 0: now. Nothing is taken.
Micros wait_for(Backend& backend, const GroupItem& item);

// How long to sleep before the next attempt; kNever: do not try again.
inline Micros nap(const Answer& answer, Micros left) noexcept {
  const Micros retry = answer.decision.retry_after;
  if (left == 0) return ratelimit::kNever;
  const bool may_end_early = answer.reason == Reason::paused || answer.reason == Reason::too_many_keys;
  if (may_end_early) return ratelimit::smaller(ratelimit::smaller(retry, kLongestNap), left);
  return retry > left ? ratelimit::kNever : retry;
}

// After an allowed answer the caller may go: its place in time has come. If it is stopped while it waits for that, the place is given back.
template <class Run>
Decision wait(const Backend& backend, const LimitDefinition& limit, std::int64_t cost, Micros timeout, const std::stop_token& stop,
              Run&& run) {
  const Clock& clock = backend.clock();
  const Micros until = ratelimit::saturating_add(clock.now(), timeout);
  for (;;) {
    const Micros left = timeout == ratelimit::kNever ? timeout : ratelimit::larger(0, until - clock.now());
    const Request request = asking(limit, cost, left);
    Answer answer = run(request);
    if (answer.decision.allowed) {
      const Micros delay = answer.decision.delay;
      if (delay == 0 || clock.sleep(Duration{delay}, stop)) return {limit, answer, cost};
      run(giving_back(limit, answer, cost));
      answer.decision.allowed = false;
      answer.reason = Reason::limited;
      answer.decision.retry_after = delay;
      return {limit, answer, cost};
    }
    // reserve answers when it would have found a place within max_wait; whoever stops waiting wants to know when it could go.
    Micros& retry_after = answer.decision.retry_after;
    if (answer.reason == Reason::limited) retry_after = ratelimit::saturating_add(retry_after, request.max_wait);
    const Micros sleep = nap(answer, left);
    if (sleep == ratelimit::kNever || !clock.sleep(Duration{sleep}, stop)) return {limit, answer, cost};
  }
}

}  // namespace taskq::detail
