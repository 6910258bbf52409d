// Exact reading of a decimal number of seconds, without going through a double.
#pragma once

#include "taskq_ratelimit/micros.hpp"

namespace taskq::pg {

// Reads "[-]digits[.digits]" with at most 12 digits before and 6 after the point; false if `text` is anything else.
constexpr bool parse_seconds(const char* text, ratelimit::Micros& result) noexcept {
  const bool negative = *text == '-';
  if (negative) ++text;
  ratelimit::Micros value = 0;
  int digits = 0, decimals = 0;
  for (; *text >= '0' && *text <= '9'; ++text, ++digits) value = value * 10 + (*text - '0');
  if (digits == 0 || digits > 12) return false;
  if (*text == '.') {
    for (++text; *text >= '0' && *text <= '9' && decimals < 6; ++text, ++decimals) value = value * 10 + (*text - '0');
    if (decimals == 0) return false;
  }
  if (*text != '\0') return false;
  for (; decimals < 6; ++decimals) value *= 10;
  result = negative ? -value : value;
  return true;
}

static_assert([] {
  ratelimit::Micros t = 0;
  return parse_seconds("1700000000.25", t) && t == 1'700'000'000'250'000 && !parse_seconds("1e3", t) && !parse_seconds("", t);
}());

}  // namespace taskq::pg
