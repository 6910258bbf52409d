// A definition changes: what becomes of what was used.
//
// `consumed`      what was used stays used (default)
// `as_is`         what was left stays left, clamped at the new capacity
// `proportional`  the same share is left
// `additive`      a larger capacity adds the difference to what was left; a smaller one clamps it
// `reset`         starts full
// Amounts that do not divide evenly are rounded against the caller: a change never gives a unit away.
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "taskq_ratelimit/decide.hpp"
#include "taskq_ratelimit/limit.hpp"
#include "taskq_ratelimit/rational.hpp"
#include "taskq_ratelimit/state.hpp"

namespace taskq::ratelimit {

enum class Inherit : std::uint8_t { consumed, as_is, proportional, additive, reset };

// How much of the new capacity is used after the change, in new grains, 0..capacity. `used` is in old grains and may be above
// the old capacity (then all of it is used).
constexpr std::int64_t used_after_change(const Limit& old_limit, std::int64_t used, const Limit& new_limit, Inherit inherit) noexcept {
  if (inherit == Inherit::reset) return 0;
  const Wide old_full = Wide{old_limit.capacity} * old_limit.d;
  const Wide new_full = Wide{new_limit.capacity} * new_limit.d;
  const Wide used_old = used > old_full ? old_full : Wide{used};
  // One old grain is (new grains per user unit) / (old grains per user unit) new grains.
  const Wide num = Wide{new_limit.d} * power_of_ten(new_limit.scale), den = Wide{old_limit.d} * power_of_ten(old_limit.scale);
  const Wide g = gcd(num, den);
  const auto converted_up = [&](Wide grains) { return (grains * (num / g) + den / g - 1) / (den / g); };
  const auto converted_down = [&](Wide grains) { return grains * (num / g) / (den / g); };
  Wide result = 0;
  switch (inherit) {
    case Inherit::consumed: result = converted_up(used_old); break;
    case Inherit::as_is: result = new_full - converted_down(old_full - used_old); break;
    case Inherit::proportional: result = (used_old * new_full + old_full - 1) / old_full; break;
    default: {
      const bool grows = new_full * den >= old_full * num;
      result = grows ? converted_up(used_old) : new_full - converted_down(old_full - used_old);
    }
  }
  return static_cast<std::int64_t>(result < 0 ? 0 : result > new_full ? new_full : result);
}

// Grains in use at `state.at`. REQUIRES: the state is advanced; not the log (its used units are log::live).
constexpr std::int64_t used_now(const Limit& limit, const State& state) noexcept {
  switch (limit.algorithm()) {
    case Algorithm::meter: return state.used;
    case Algorithm::fixed_window: return state.used;
    default: return limit.capacity - two_counter::remaining(limit, state);
  }
}

// A bucket of which `used` grains are in use at `now`. REQUIRES: not the log.
constexpr State with_used(const Limit& limit, Micros now, std::int64_t used) noexcept {
  State state = fresh(limit, now);
  // Windows count whole units; a grain of theirs is a unit.
  state.used = used;
  return state;
}

// The state under the new definition at the instant of the change. REQUIRES: neither limit is a log.
constexpr State change(const Limit& old_limit, const State& state, const Limit& new_limit, Inherit inherit, Micros now) noexcept {
  State before = advance(old_limit, state, now);
  if (inherit == Inherit::reset) return fresh(new_limit, before.at);
  const std::int64_t used = used_after_change(old_limit, used_now(old_limit, before), new_limit, inherit);
  const bool same_windows = new_limit.algorithm() == old_limit.algorithm() && new_limit.window == old_limit.window &&
                            new_limit.anchored == old_limit.anchored && new_limit.anchor == old_limit.anchor &&
                            new_limit.algorithm() != Algorithm::meter;
  if (!same_windows) {
    State after = with_used(new_limit, before.at, used);
    // What a quota that never refills has taken is still owed, whenever that was: earlier decisions can be refunded.
    const bool quota = old_limit.never_refills() && new_limit.never_refills() && inherit == Inherit::consumed;
    if (quota) after.newest = before.newest;
    return after;
  }
  if (new_limit.algorithm() == Algorithm::two_counter && inherit == Inherit::consumed) {
    before.previous = smaller(before.previous, new_limit.capacity);
    before.used = smaller(before.used, new_limit.capacity);
    return before;
  }
  before.previous = 0;
  before.used = used;
  return before;
}

static_assert(used_after_change({.capacity = 10, .d = 1}, 7, {.capacity = 20, .d = 1}, Inherit::consumed) == 7);
static_assert(used_after_change({.capacity = 10, .d = 1}, 7, {.capacity = 20, .d = 1}, Inherit::as_is) == 17);
static_assert(used_after_change({.capacity = 10, .d = 1}, 7, {.capacity = 20, .d = 1}, Inherit::proportional) == 14);
static_assert(used_after_change({.capacity = 10, .d = 1}, 7, {.capacity = 5, .d = 1}, Inherit::additive) == 2);

}  // namespace taskq::ratelimit
