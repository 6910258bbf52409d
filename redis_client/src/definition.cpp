#include "taskq/definition.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "taskq/errors.hpp"

namespace taskq {

using ratelimit::DefinitionError;
using ratelimit::Limit;

namespace {

std::string number(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.17g", x);
  double back = 0;
  for (int digits = 6; digits < 17; ++digits) {
    char shorter[32];
    std::snprintf(shorter, sizeof shorter, "%.*g", digits, x);
    if (std::sscanf(shorter, "%lf", &back) == 1 && back == x) return shorter;
  }
  return text;
}

std::string_view rule(DefinitionError error) noexcept {
  switch (error) {
    case DefinitionError::none: break;
    case DefinitionError::capacity_not_positive: return "capacity must be greater than 0 and finite";
    case DefinitionError::capacity_too_large: return "capacity is too large: at most 2^52 units";
    case DefinitionError::capacity_too_small: return "capacity is too small: less than a millionth";
    case DefinitionError::rate_negative: return "the refill rate must be 0 or more, and finite";
    case DefinitionError::rate_too_large: return "the refill rate is too large";
    case DefinitionError::rate_inexact: return "capacity and refill rate are too far apart to be counted exactly";
    case DefinitionError::refill_too_slow: return "refilling would take more than 142 years; use a rate of 0 for a quota that never refills";
    case DefinitionError::period_not_positive: return "the refill period must be greater than 0";
    case DefinitionError::period_too_long: return "the refill period is longer than 142 years";
    case DefinitionError::requests_not_positive: return "max_requests must be at least 1";
    case DefinitionError::requests_too_large: return "max_requests is too large for this window";
    case DefinitionError::window_not_positive: return "the window must be greater than 0";
    case DefinitionError::window_too_long: return "the window is longer than 142 years";
  }
  return "";
}

[[noreturn]] void refuse(const std::string& name, std::string_view why, const std::string& given) {
  throw InvalidArgument("limit \"" + name + "\": " + std::string(why) + " (" + given + ")");
}

// A cost of one in units; 0 where that is more than there can be, or less than a unit.
std::int64_t unit_cost(const Limit& limit) noexcept {
  const std::int64_t one = ratelimit::power_of_ten(limit.scale);
  return one <= limit.most() ? one : 0;
}

LimitDefinition finished(std::string name, const Limit& limit, double quota, double rate, std::optional<Duration> ttl, bool shadow) {
  if (ttl && ttl->count() < 1000) refuse(name, "ttl must be at least a millisecond", std::to_string(ttl->count()) + " us");
  const double grains = static_cast<double>(limit.d) * static_cast<double>(ratelimit::power_of_ten(limit.scale));
  return {.name = std::move(name), .limit = limit, .quota = quota, .rate = rate, .grains_per_unit = grains, .one = unit_cost(limit),
          .ttl = ttl, .shadow = shadow};
}

void check_name_bytes(std::string_view name) {
  if (name.empty()) throw InvalidArgument("a name must not be empty");
  if (name.size() > 255) throw InvalidArgument("a name has at most 255 bytes (this one has " + std::to_string(name.size()) + ")");
  const bool control = std::any_of(name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  if (control) throw InvalidArgument("a name must not have control characters");
}

}  // namespace

bool LimitDefinition::same_as(const LimitDefinition& other) const noexcept {
  return limit == other.limit && shadow == other.shadow && ttl == other.ttl;
}

void check_name(std::string_view name) {
  check_name_bytes(name);
  if (name.starts_with("taskq:")) throw InvalidArgument("names that begin with \"taskq:\" are reserved (" + std::string(name) + ")");
}

void check_key(std::string_view key) {
  if (key.empty()) throw InvalidArgument("a key must not be empty");
  if (key.size() > 1024) throw InvalidArgument("a key has at most 1024 bytes (this one has " + std::to_string(key.size()) + ")");
  if (key.find('\0') != std::string_view::npos) throw InvalidArgument("a key must not have a NUL byte");
}

LimitDefinition define_bucket(std::string name, Kind kind, const BucketOptions& o) {
  check_name(name);
  const bool exact = o.refill_period.count() != 0 || o.refill_amount != 0;
  if (exact && o.refill_per_second != 0) {
    refuse(name, "give the rate once: refill_per_second, or refill_amount and refill_period",
           "refill_per_second " + number(o.refill_per_second));
  }
  const auto made = exact ? ratelimit::make_bucket(kind, o.capacity, o.refill_amount, o.refill_period.count())
                          : ratelimit::make_bucket(kind, o.capacity, o.refill_per_second);
  if (made.error != DefinitionError::none) {
    const std::string rate = exact ? number(o.refill_amount) + " every " + std::to_string(o.refill_period.count()) + " us"
                                   : number(o.refill_per_second) + " a second";
    refuse(name, rule(made.error), "capacity " + number(o.capacity) + ", refill " + rate);
  }
  const double rate = exact ? o.refill_amount / static_cast<double>(o.refill_period.count()) * 1e6 : o.refill_per_second;
  return finished(std::move(name), made.limit, o.capacity, rate, o.ttl, o.shadow);
}

LimitDefinition define_window(std::string name, Kind kind, const WindowOptions& o) {
  check_name(name);
  const auto made = kind == Kind::fixed_window ? ratelimit::make_fixed_window(o.max_requests, o.window.count())
                                               : ratelimit::make_sliding_window(kind, o.max_requests, o.window.count());
  const std::string given = "max_requests " + std::to_string(o.max_requests) + ", window " + std::to_string(o.window.count()) + " us";
  if (made.error != DefinitionError::none) refuse(name, rule(made.error), given);
  Limit limit = made.limit;
  if (o.anchor) {
    const bool anchors = kind == Kind::fixed_window || kind == Kind::sliding_window_counter;
    if (!anchors) refuse(name, "only fixed windows and sliding windows of style counter have an anchor", given);
    limit = ratelimit::anchored_at(limit, o.anchor->time_since_epoch().count());
  }
  return finished(std::move(name), limit, static_cast<double>(o.max_requests), 0, o.ttl, o.shadow);
}

std::int64_t cost_units(const LimitDefinition& definition, double cost, bool bounded) {
  const Limit& limit = definition.limit;
  if (!ratelimit::is_finite(cost) || cost <= 0) refuse(definition.name, "a cost must be greater than 0 and finite", "cost " + number(cost));
  const bool whole = limit.algorithm() != ratelimit::Algorithm::meter || limit.kind == Kind::sliding_window_gcra;
  if (whole && !ratelimit::is_whole(cost)) refuse(definition.name, "windows take whole numbers only", "cost " + number(cost));
  const std::int64_t units = ratelimit::units(cost, limit.scale);
  if (units == 0) refuse(definition.name, "this cost is less than the smallest unit", "cost " + number(cost));
  if (bounded && (units < 0 || units > limit.most())) {
    refuse(definition.name, "this cost can never be admitted", "cost " + number(cost) + ", at most " + number(definition.quota));
  }
  return units < 0 ? ratelimit::kMaxProduct : units;
}

}  // namespace taskq
