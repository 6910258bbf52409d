// What a user defines once: the name of a limit and its numbers, checked. Also the options that each class of limiter takes.
// Thread-safety: plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "taskq/clock.hpp"
#include "taskq_ratelimit/definition.hpp"

namespace taskq {

using ratelimit::Kind;

// A bucket starts full, holds at most `capacity` and refills continuously. 0 never refills: a fixed quota.
struct BucketOptions {
  double capacity = 0;           // > 0
  double refill_per_second = 0;  // >= 0; or, exactly:
  double refill_amount = 0;      // this much
  Duration refill_period{0};     // every so long; 0: refill_per_second counts
  std::optional<Duration> ttl{};   // how long Redis keeps the state of an idle bucket; default: see the backend
  bool shadow = false;           // decides and counts, but lets everybody through
};

// At most `max_requests` in every window.
struct WindowOptions {
  std::int64_t max_requests = 0;        // >= 1
  Duration window{0};                   // > 0
  std::optional<TimePoint> anchor{};      // an instant at which a window starts (not for styles log and gcra); default: first use
  std::optional<Duration> ttl{};
  bool shadow = false;
};

enum class SlidingStyle : std::uint8_t { log, gcra, counter };

// A limit under its name, in the integers of the core.
struct LimitDefinition {
  std::string name;
  ratelimit::Limit limit;
  double quota = 0;             // capacity or max_requests, as the user wrote it
  double rate = 0;              // per second; 0 for windows
  double grains_per_unit = 1;   // what `remaining` is divided by
  std::int64_t one = 0;         // a cost of 1 in units; 0 if the limit can never admit it
  std::optional<Duration> ttl{};
  bool shadow = false;

  // The same as to all that matters for decisions.
  bool same_as(const LimitDefinition& other) const noexcept;
};

// Each throws InvalidArgument that names the value and the rule it breaks.
LimitDefinition define_bucket(std::string name, Kind kind, const BucketOptions& options);
LimitDefinition define_window(std::string name, Kind kind, const WindowOptions& options);

// A name is 1..255 bytes without control characters, and does not begin with "taskq:". A key is 1..1024 bytes without NUL.
void check_name(std::string_view name);
void check_key(std::string_view key);

// `cost` in units of the limit. Throws InvalidArgument if it is not finite, not > 0, too small for a unit, or more than the limit could
// ever admit (`bounded`), or not whole where the limit counts in whole numbers.
std::int64_t cost_units(const LimitDefinition& definition, double cost, bool bounded = true);

}  // namespace taskq
