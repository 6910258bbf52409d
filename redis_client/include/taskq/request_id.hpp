// A UUIDv7 that names one entry of a sliding log: time first, then randomness. Two processes never make the same, a forked child
// included. Thread-safety: next() may be called from any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "taskq_ratelimit/micros.hpp"

namespace taskq {

struct RequestId {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  constexpr bool operator==(const RequestId&) const noexcept = default;
  constexpr explicit operator bool() const noexcept { return (high | low) != 0; }

  // As a UUID in its usual spelling.
  std::string to_string() const;

  static RequestId next(ratelimit::Micros now) noexcept;
};

}  // namespace taskq
