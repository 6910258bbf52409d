#include "codec.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "taskq/detail/bucket.hpp"
#include "taskq/errors.hpp"
#include "taskq_ratelimit/decide.hpp"
#include "taskq_ratelimit/log.hpp"

namespace taskq::redis {

using ratelimit::Algorithm;
using ratelimit::kNever;
using ratelimit::Limit;
using ratelimit::State;

static_assert(std::endian::native == std::endian::little, "records are doubles in little-endian order");

namespace {

constexpr std::size_t record_size = 6 * sizeof(double);

std::string text(std::int64_t number) { return std::to_string(number); }

// Sixteen hexadecimal digits of the numbers of a limit (FNV-1a): other numbers, other bucket.
std::string fingerprint(const Limit& l) {
  const std::int64_t numbers[] = {static_cast<std::int64_t>(l.kind), l.scale, l.capacity, l.n, l.d, l.window, l.tick, l.anchored ? l.anchor : -1};
  std::uint64_t hash = 14695981039346656037U;
  for (const std::int64_t number : numbers) {
    for (int shift = 0; shift < 64; shift += 8) hash = (hash ^ ((static_cast<std::uint64_t>(number) >> shift) & 0xff)) * 1099511628211U;
  }
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(hash));
  return digits.data();
}

char letter_of(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::meter: return 'm';
    case Algorithm::fixed_window: return 'f';
    case Algorithm::two_counter: return 'c';
    default: return 'l';
  }
}

ratelimit::Decision described(const Limit& limit, const State& state, bool allowed, Micros retry_after, Micros delay) {
  switch (limit.algorithm()) {
    case Algorithm::meter: return ratelimit::meter::describe(limit, state, allowed, retry_after, delay);
    case Algorithm::fixed_window: return ratelimit::fixed_window::describe(limit, state, allowed);
    case Algorithm::two_counter: return ratelimit::two_counter::describe(limit, state, allowed, retry_after);
    default: return ratelimit::log::describe(limit, state, allowed, retry_after);
  }
}

State state_from(std::span<const Micros> n) {
  return {.at = n[0], .start = n[1], .used = n[2], .previous = n[3], .tail = n[4], .newest = n[5]};
}

}  // namespace

std::string escaped(std::string_view name) {
  std::string safe;
  for (const char c : name) {
    if (c == '{' || c == '}' || c == '%' || c == ':') {
      std::array<char, 4> code{};
      std::snprintf(code.data(), code.size(), "%%%02X", static_cast<unsigned>(static_cast<unsigned char>(c)));
      safe += code.data();
    } else {
      safe += c;
    }
  }
  return safe;
}

BucketKeys keys_of(std::string_view prefix, const LimitDefinition& limit, std::string_view key) {
  const std::string rest = ":{" + std::string(prefix) + ':' + escaped(limit.name) + "}:" + fingerprint(limit.limit) + ':' + std::string(key);
  return {.record = "b" + rest, .entries = "e" + rest, .marks = "m" + rest};
}

std::string mark_of(const BucketKeys& keys, const ratelimit::Taken& taken, RequestId id) {
  return keys.marks + ':' + text(taken.decided_at) + ':' + text(taken.remaining) + ':' + (id ? id.to_string() : "");
}

std::int64_t life_of(const LimitDefinition& definition, Duration quota_life) {
  const Limit& l = definition.limit;
  Micros life = 0;
  if (l.never_refills()) {
    life = quota_life.count();
  } else if (l.algorithm() == Algorithm::meter) {
    life = ratelimit::ceil_div(l.capacity * l.d, l.n);
  } else {
    life = l.algorithm() == Algorithm::two_counter ? 2 * l.window : l.window;
  }
  if (definition.ttl) life = l.never_refills() ? definition.ttl->count() : ratelimit::larger(life, definition.ttl->count());
  return life / 1000 + 60'000;  // a minute more, for what is told about it
}

std::vector<std::string> take_arguments(const Request& r, std::int64_t life, RequestId id) {
  const Limit& l = r.limit->limit;
  const std::string anchor = l.anchored ? text(l.anchor) : "";
  switch (l.algorithm()) {
    case Algorithm::meter:
      return {text(l.capacity * l.d), text(l.n), text(r.cost * l.d), text(r.op == Op::reserve ? ratelimit::smaller(r.max_wait, ratelimit::kMaxProduct) : 0), text(life)};
    case Algorithm::two_counter:
      return {text(l.capacity), text(l.window), text(r.cost), anchor, text(life), text(l.tick), text(ratelimit::two_counter::window_ticks(l))};
    case Algorithm::fixed_window: return {text(l.capacity), text(l.window), text(r.cost), anchor, text(life)};
    default: return {text(l.capacity), text(l.window), text(r.cost), r.op == Op::peek ? "peek" : "", text(life), id_text(id)};
  }
}

void append_for_several(std::vector<std::string>& words, const Request& request, std::int64_t life, RequestId id) {
  words.emplace_back(1, letter_of(request.limit->limit.algorithm()));
  std::vector<std::string> arguments = take_arguments(request, life, id);
  arguments.resize(7);
  words.insert(words.end(), arguments.begin(), arguments.end());
}

Answer take_answer(const Request& request, std::string_view reply, RequestId id) {
  const std::vector<Micros> n = numbers_of(reply, 10);
  const Limit& limit = request.limit->limit;
  if (n[0] < 0 || n[0] > 2) throw BackendError("redis: a script answered neither yes nor no");
  State state = state_from(std::span(n).subspan(3));
  Answer answer{.decision = {}, .reason = Reason::ok, .store = Store::redis, .id = {}};
  const bool allowed = n[0] == 1;
  if (n[0] == 2) {
    const Micros now = n[2], until = n[9];
    if (limit.algorithm() != Algorithm::log) state = ratelimit::advance(limit, state, now);
    answer.decision = described(limit, state, false, 0, 0);
    answer.decision.retry_after = until == kNever ? kNever : ratelimit::larger(until - now, n[1]);
    answer.reason = Reason::paused;
    answer.paused_until = until;
  } else {
    answer.decision = described(limit, state, allowed, n[1], n[2]);
    answer.decision.retry_after = n[1];
    if (!allowed) answer.reason = Reason::limited;
    if (allowed && limit.algorithm() == Algorithm::log) answer.id = id;
  }
  detail::cast_shadow(*request.limit, answer);
  return answer;
}

std::vector<Micros> numbers_of(std::string_view reply, std::size_t count) {
  if (reply.size() != count * sizeof(double)) throw BackendError("redis: a script answered " + text(static_cast<std::int64_t>(reply.size())) + " bytes where " + text(static_cast<std::int64_t>(count * sizeof(double))) + " were expected");
  std::vector<Micros> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    double value = 0;
    std::memcpy(&value, reply.data() + i * sizeof value, sizeof value);
    const bool whole = std::isinf(value) || (std::abs(value) <= 0x1p53 && value == std::trunc(value));
    if (!whole) throw BackendError("redis: a script answered a number that is not whole");
    numbers[i] = !std::isinf(value) ? static_cast<Micros>(value) : value > 0 ? kNever : std::numeric_limits<Micros>::min();
  }
  return numbers;
}

std::string to_text(const Record& record) {
  const State& s = record.state;
  std::string bytes;
  const auto put = [&bytes](Micros number) {
    const double value = number == kNever ? HUGE_VAL : static_cast<double>(number);
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (const Micros number : {s.at, s.start, s.used, s.previous, s.tail, s.newest}) put(number);
  if (record.paused_until != 0) put(record.paused_until);
  return bytes;
}

std::optional<Record> from_text(std::string_view bytes) {
  if (bytes.empty()) return std::nullopt;
  const std::size_t count = bytes.size() == record_size ? 6 : 7;
  const std::vector<Micros> n = numbers_of(bytes, count);
  return Record{.state = state_from(n), .paused_until = count == 7 ? n[6] : 0};
}

std::string_view text_of(const redisReply& reply) {
  if (reply.type != REDIS_REPLY_STRING) throw BackendError("redis: a script answered something else than a text");
  return {reply.str, reply.len};
}

std::string id_text(RequestId id) {
  std::string bytes(16, '\0');
  std::memcpy(bytes.data(), &id.high, 8);
  std::memcpy(bytes.data() + 8, &id.low, 8);
  return bytes;
}

}  // namespace taskq::redis
