// One bucket of any algorithm: what each operation does to it, by the rules of the core. Not thread-safe: whoever stores it locks it.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "taskq/backend.hpp"
#include "taskq/detail/log_entries.hpp"
#include "taskq_ratelimit/decide.hpp"

namespace taskq::detail {

inline constexpr Micros kNotPaused = std::numeric_limits<Micros>::min();

class Bucket {
 public:
  Bucket(const ratelimit::Limit& limit, Micros now);

  // Does what the request says, and answers.
  Answer run(const LimitDefinition& definition, const Request& request, Micros now);

  bool is_paused(Micros now) const noexcept { return paused_until_ > now; }
  Micros paused_until() const noexcept { return paused_until_; }
  void pause(Micros until) noexcept { paused_until_ = until; }

  // Forgetting it would change nothing: full, not paused.
  bool is_fresh(const ratelimit::Limit& limit, Micros now) const;

  // The part that a hot pair keeps elsewhere between two slow operations.
  ratelimit::State state;

 private:
  // A decision that was given back: not a second time.
  struct GivenBack {
    Micros decided_at;
    std::int64_t remaining;
    Micros useless_at;  // from then on a refund would give back nothing anyway
  };

  ratelimit::Outcome outcome(const ratelimit::Limit& limit, Micros now, std::int64_t cost, Micros max_wait) const;
  ratelimit::State advanced(const ratelimit::Limit& limit, Micros now) const;
  ratelimit::Decision described(const ratelimit::Limit& limit, Micros now) const;
  Micros after_all(Micros decided_at, Micros now) const noexcept;
  void take_up(const ratelimit::Limit& limit, Micros now);
  Answer judge(const LimitDefinition& definition, const Request& request, Micros now, bool take);
  Answer peek(const ratelimit::Limit& limit, std::int64_t cost, Micros now) const;
  Answer charge(const ratelimit::Limit& limit, std::int64_t cost, Micros now);
  Answer refund(const ratelimit::Limit& limit, std::int64_t cost, Micros now);
  Answer settle(const ratelimit::Limit& limit, const Request& request, std::int64_t actual, Micros now);
  std::int64_t settle_log(const ratelimit::Limit& limit, const Request& request, std::int64_t actual);
  void reset(const ratelimit::Limit& limit, Micros now);
  bool note_once(const ratelimit::Limit& limit, const ratelimit::Taken& taken, Micros now);
  void add_entry(std::int64_t cost, RequestId id);
  void after_taking_entries(std::int64_t units);

  Micros paused_until_ = kNotPaused;
  std::unique_ptr<LogEntries> entries_;  // style log only
  std::vector<GivenBack> given_back_;
};

// Lets the denied through if the limit is in shadow.
inline void cast_shadow(const LimitDefinition& definition, Answer& answer) noexcept {
  if (answer.decision.allowed || !definition.shadow) return;
  answer.reason = Reason::shadow;
  answer.decision.allowed = true;
  answer.decision.retry_after = 0;
}

}  // namespace taskq::detail
