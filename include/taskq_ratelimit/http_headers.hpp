// The HTTP response fields that tell a client about a decision.
//
// RateLimit and RateLimit-Policy follow the IETF draft draft-ietf-httpapi-ratelimit-headers (structured fields, RFC 9651: Lists of Strings with
// parameters, Integers of at most 15 digits). RateLimit-Limit, -Remaining and -Reset (seconds from the decision) are the spelling of its early
// versions; X-RateLimit-* is the older habit, its Reset a Unix time. Times are rounded up and amounts down: an obedient
// client is never early. A field that cannot be written correctly is left out. Nothing here reads a clock.
// Thread-safety: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "taskq_ratelimit/micros.hpp"

namespace taskq::ratelimit {

struct HeaderInput {
  std::string_view name;          // of the limit
  bool allowed = false;
  double quota = 0;
  double remaining = 0;
  Micros retry_after = 0;         // kNever: waiting does not help
  Micros reset_after = 0;         // kNever: never
  Micros decided_at = 0;          // since the Unix epoch
  Micros window = 0;              // of the policy; 0 leaves `w` out
  Micros more_after = 0;          // time until there is more to spend; 0 if not known
};

// A line of text of limited length; what does not fit marks it as too long.
struct HeaderText {
  char bytes[640];
  std::size_t size = 0;
  bool too_long = false;

  constexpr void put(char c) noexcept {
    if (size < sizeof bytes) bytes[size++] = c;
    else too_long = true;
  }
  constexpr void put(std::string_view text) noexcept {
    for (const char c : text) put(c);
  }
  constexpr void put(std::int64_t number) noexcept {
    char digits[20] = {};
    int count = 0;
    do digits[count++] = static_cast<char>('0' + number % 10);
    while ((number /= 10) > 0);
    while (count > 0) put(digits[--count]);
  }
  constexpr std::string_view view() const noexcept { return {bytes, size}; }
};

inline constexpr std::int64_t kMaxHeaderInteger = 999'999'999'999'999;

constexpr std::int64_t seconds_up(Micros micros) noexcept {
  return floor_div(micros, kMicrosPerSecond) + (micros % kMicrosPerSecond != 0 ? 1 : 0);
}

constexpr std::int64_t whole_down(double amount) noexcept {
  return amount <= 0 ? 0 : amount < 1e15 ? static_cast<std::int64_t>(amount) : kMaxHeaderInteger + 1;  // NaN: left out
}

// A structured-field String. False if the text is not printable ASCII.
constexpr bool put_string(HeaderText& text, std::string_view value) noexcept {
  text.put('"');
  for (const char c : value) {
    if (c < 0x20 || c > 0x7e) return false;
    if (c == '"' || c == '\\') text.put('\\');
    text.put(c);
  }
  text.put('"');
  return true;
}

namespace detail {

constexpr void put_parameter(HeaderText& text, std::string_view name, std::int64_t value) noexcept {
  text.put(';');
  text.put(name);
  text.put('=');
  text.put(value);
}

template <class Emit>
constexpr void emit_number(Emit&& emit, std::string_view field, std::int64_t number) noexcept {
  if (number < 0 || number > kMaxHeaderInteger) return;
  HeaderText text{};
  text.put(number);
  emit(field, text.view());
}

template <class Emit>
constexpr void emit_policy(Emit&& emit, const HeaderInput& in) noexcept {
  HeaderText text{};
  const std::int64_t quota = whole_down(in.quota);
  if (!put_string(text, in.name) || quota > kMaxHeaderInteger) return;
  put_parameter(text, "q", quota);
  if (in.window > 0) put_parameter(text, "w", seconds_up(in.window));
  if (!text.too_long) emit("RateLimit-Policy", text.view());
}

template <class Emit>
constexpr void emit_rate_limit(Emit&& emit, const HeaderInput& in) noexcept {
  HeaderText text{};
  const std::int64_t remaining = whole_down(in.remaining);
  const Micros more = in.allowed ? in.more_after : in.retry_after;
  if (!put_string(text, in.name) || remaining > kMaxHeaderInteger) return;
  put_parameter(text, "r", remaining);
  if (more > 0 && more != kNever) put_parameter(text, "t", seconds_up(more));
  if (!text.too_long) emit("RateLimit", text.view());
}

}  // namespace detail

// Calls emit(field, value) for every field, in a fixed order.
template <class Emit>
constexpr void http_headers(const HeaderInput& in, Emit&& emit) noexcept {
  const bool resets = in.reset_after != kNever;
  detail::emit_policy(emit, in);
  detail::emit_rate_limit(emit, in);
  detail::emit_number(emit, "RateLimit-Limit", whole_down(in.quota));
  detail::emit_number(emit, "RateLimit-Remaining", whole_down(in.remaining));
  if (resets) detail::emit_number(emit, "RateLimit-Reset", seconds_up(in.reset_after));
  detail::emit_number(emit, "X-RateLimit-Limit", whole_down(in.quota));
  detail::emit_number(emit, "X-RateLimit-Remaining", whole_down(in.remaining));
  if (resets) detail::emit_number(emit, "X-RateLimit-Reset", seconds_up(saturating_add(in.decided_at, in.reset_after)));
  if (!in.allowed && in.retry_after != kNever) detail::emit_number(emit, "Retry-After", seconds_up(in.retry_after));
}

static_assert(seconds_up(1) == 1 && seconds_up(2'000'000) == 2 && whole_down(2.99) == 2);

}  // namespace taskq::ratelimit
