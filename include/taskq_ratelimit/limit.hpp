// A limit: what a user defines once, in the form the algorithms work with.
//
// Six names, four algorithms. Token bucket, leaky bucket (as a meter) and GCRA are the same arithmetic; they differ in
// what a view shows. Build one with the make_ functions of definition.hpp; they check the ranges given here.
#pragma once

#include <cstdint>

#include "taskq_ratelimit/amount.hpp"
#include "taskq_ratelimit/micros.hpp"

namespace taskq::ratelimit {

enum class Algorithm : std::uint8_t { meter, fixed_window, two_counter, log };

enum class Kind : std::uint8_t {
  token_bucket,
  leaky_bucket,
  sliding_window_log,
  sliding_window_gcra,
  sliding_window_counter,
  fixed_window
};

constexpr Algorithm algorithm_of(Kind kind) noexcept {
  switch (kind) {
    case Kind::fixed_window: return Algorithm::fixed_window;
    case Kind::sliding_window_counter: return Algorithm::two_counter;
    case Kind::sliding_window_log: return Algorithm::log;
    default: return Algorithm::meter;
  }
}

struct Limit {
  Kind kind = Kind::token_bucket;
  int scale = 0;              // amounts are in units of 10^-scale, 0..6; 0 for all windows
  std::int64_t capacity = 0;  // units; bucket capacity or requests per window; 1..2^52
  std::int64_t n = 0;         // meter: refill n/d units per microsecond, lowest terms; 0/1 never refills
  std::int64_t d = 1;         // meter: capacity * d <= 2^52
  Micros window = 0;          // windows: > 0
  Micros tick = 1;            // two_counter: resolution of elapsed time
  Micros anchor = 0;          // fixed_window, two_counter: an instant at which a window starts, if `anchored`
  bool anchored = false;      // otherwise windows start where the bucket was created

  constexpr Algorithm algorithm() const noexcept { return algorithm_of(kind); }
  // The largest cost that could ever be admitted, in units.
  constexpr std::int64_t most() const noexcept { return capacity; }
  constexpr bool never_refills() const noexcept { return algorithm() == Algorithm::meter && n == 0; }
  constexpr bool operator==(const Limit&) const noexcept = default;
};

// One grain is 1/d of a unit: the resolution in which `remaining` is exact.
constexpr double to_amount(const Limit& limit, std::int64_t grains) noexcept {
  return static_cast<double>(grains) / (static_cast<double>(limit.d) * static_cast<double>(power_of_ten(limit.scale)));
}

}  // namespace taskq::ratelimit
