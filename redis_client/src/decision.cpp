#include "taskq/decision.hpp"

#include "taskq_ratelimit/http_headers.hpp"

namespace taskq {

std::string_view to_string(Reason reason) noexcept {
  switch (reason) {
    case Reason::ok: return "ok";
    case Reason::limited: return "limited";
    case Reason::paused: return "paused";
    case Reason::shadow: return "shadow";
    case Reason::lock_timeout: return "lock_timeout";
    case Reason::too_many_keys: return "too_many_keys";
    case Reason::unavailable: return "unavailable";
  }
  return "";
}

std::string_view to_string(Store store) noexcept {
  switch (store) {
    case Store::memory: return "memory";
    case Store::redis: return "redis";
    case Store::postgres: return "postgres";
  }
  return "";
}

double Decision::cost() const noexcept {
  return static_cast<double>(cost_) / static_cast<double>(ratelimit::power_of_ten(definition_->limit.scale));
}

State make_state(const LimitDefinition& definition, std::string_view key, const Answer& answer) {
  const ratelimit::Decision& d = answer.decision;
  State s{.name = definition.name,
          .key = std::string(key),
          .store = answer.store,
          .kind = definition.limit.kind,
          .is_exhausted = !d.allowed,
          .remaining = static_cast<double>(d.remaining) / definition.grains_per_unit,
          .quota = definition.quota,
          .retry_after = as_duration(d.retry_after),
          .reset_after = as_duration(d.reset_after),
          .paused_until = std::nullopt,
          .window = std::nullopt,
          .refill_per_second = std::nullopt};
  if (answer.paused_until > d.decided_at) s.paused_until = TimePoint{Duration{answer.paused_until}};
  if (definition.limit.window > 0) s.window = Duration{definition.limit.window};
  else s.refill_per_second = definition.rate;
  return s;
}

namespace {

// The window of a policy; a bucket's is the time of a full refill.
Micros policy_window(const ratelimit::Limit& limit) noexcept {
  if (limit.window > 0) return limit.window;
  return limit.n == 0 ? 0 : ratelimit::ceil_div(limit.capacity * limit.d, limit.n);
}

// Time until one more whole unit can be had, where the decision tells.
Micros more_after(const ratelimit::Limit& limit, const ratelimit::Decision& d) noexcept {
  if (limit.kind == Kind::fixed_window) return d.reset_after;
  if (limit.algorithm() != ratelimit::Algorithm::meter || limit.n == 0 || d.remaining >= limit.capacity * limit.d) return 0;
  const std::int64_t unit = limit.d * ratelimit::power_of_ten(limit.scale);
  return ratelimit::ceil_div(unit - d.remaining % unit, limit.n);
}

}  // namespace

Headers http_headers(const Decision& decision) {
  const ratelimit::Decision& d = decision.answer().decision;
  Headers headers;
  ratelimit::http_headers({.name = decision.name(),
                           .allowed = d.allowed,
                           .quota = decision.quota(),
                           .remaining = decision.remaining(),
                           .retry_after = d.retry_after,
                           .reset_after = d.reset_after,
                           .decided_at = d.decided_at,
                           .window = policy_window(decision.definition().limit),
                           .more_after = more_after(decision.definition().limit, d)},
                          [&](std::string_view field, std::string_view value) { headers.emplace_back(field, value); });
  return headers;
}

}  // namespace taskq
