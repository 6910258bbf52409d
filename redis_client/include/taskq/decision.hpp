// What a limiter answers, and what it looks like now.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "taskq/clock.hpp"
#include "taskq/definition.hpp"
#include "taskq/request_id.hpp"
#include "taskq_ratelimit/decision.hpp"

namespace taskq {

enum class Reason : std::uint8_t { ok, limited, paused, shadow, lock_timeout, too_many_keys, unavailable };
enum class Store : std::uint8_t { memory, redis, postgres };

std::string_view to_string(Reason reason) noexcept;
std::string_view to_string(Store store) noexcept;

// What a backend answers, in the integers of the core.
struct Answer {
  ratelimit::Decision decision;
  Reason reason = Reason::ok;
  Store store = Store::memory;
  RequestId id;                  // names the entry of a sliding log
  std::int64_t given_back = 0;   // refund, settle: units that were given back; negative: debited
  Micros paused_until = 0;       // peek: the end of a pause that is in force, else 0
};

// "Waiting can never help" has no duration.
inline std::optional<Duration> as_duration(Micros micros) noexcept {
  return micros == ratelimit::kNever ? std::nullopt : std::optional(Duration{micros});
}

// Trivially copyable: making one allocates nothing. name() views the name of the limiter, so it lives as long as any copy of the
// limiter does. Thread-safety: a plain value.
class Decision {
 public:
  Decision(const LimitDefinition& definition, const Answer& answer, std::int64_t cost) noexcept
      : answer_(answer), cost_(cost), grains_per_unit_(definition.grains_per_unit), definition_(&definition) {}

  // The same, the answer being made in place: a copy of what was just written would be half of what a denial costs.
  template <class Make>
    requires std::is_invocable_r_v<Answer, Make>
  Decision(const LimitDefinition& definition, std::int64_t cost, Make&& make)
      : answer_(make()), cost_(cost), grains_per_unit_(definition.grains_per_unit), definition_(&definition) {}

  bool allowed() const noexcept { return answer_.decision.allowed; }
  explicit operator bool() const noexcept { return allowed(); }

  // What is left after the call; fractional for buckets, whole for windows.
  double remaining() const noexcept { return static_cast<double>(answer_.decision.remaining) / grains_per_unit_; }

  // 0 if allowed; else the shortest wait after which the call gets in if nobody else calls; none if waiting can never help.
  std::optional<Duration> retry_after() const noexcept { return as_duration(answer_.decision.retry_after); }

  // Time until all is there again; 0 when full, none if never.
  std::optional<Duration> reset_after() const noexcept { return as_duration(answer_.decision.reset_after); }

  // reserve: how long the caller has to wait before it may go.
  Duration delay() const noexcept { return Duration{answer_.decision.delay}; }

  // The time the decision worked with.
  TimePoint decided_at() const noexcept { return TimePoint{Duration{answer_.decision.decided_at}}; }

  Reason reason() const noexcept { return answer_.reason; }
  Store store() const noexcept { return answer_.store; }  // who decided; a refund goes there
  std::optional<RequestId> request_id() const noexcept { return answer_.id ? std::optional(answer_.id) : std::nullopt; }
  std::string_view name() const noexcept { return definition_->name; }
  double quota() const noexcept { return definition_->quota; }
  double cost() const noexcept;

  const Answer& answer() const noexcept { return answer_; }
  std::int64_t cost_units() const noexcept { return cost_; }
  const LimitDefinition& definition() const noexcept { return *definition_; }

 private:
  Answer answer_;
  std::int64_t cost_;
  double grains_per_unit_;
  const LimitDefinition* definition_;
};

// A snapshot; nothing is spent. is_exhausted: a cost of 1 would be denied now.
struct State {
  std::string name;
  std::string key;
  Store store = Store::memory;
  Kind kind = Kind::token_bucket;
  bool is_exhausted = false;
  double remaining = 0;  // tokens or requests
  double quota = 0;      // capacity or max_requests
  std::optional<Duration> retry_after;  // for a cost of 1; 0 if there is room
  std::optional<Duration> reset_after;
  std::optional<TimePoint> paused_until;
  std::optional<Duration> window;            // windows only
  std::optional<double> refill_per_second;   // buckets only
};

State make_state(const LimitDefinition& definition, std::string_view key, const Answer& answer);

// The response fields for a decision: RateLimit-Policy and RateLimit of the IETF draft, RateLimit-Limit, -Remaining and -Reset, the older
// X-RateLimit-*, and Retry-After on a denial. A field that cannot be written correctly is left out.
using Headers = std::vector<std::pair<std::string, std::string>>;
Headers http_headers(const Decision& decision);

}  // namespace taskq
