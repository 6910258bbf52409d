// Golden sequences of the limiter that seed 2 describes, with the answers that exact arithmetic gives. Where its own
// doubles were wrong (sequences df*), ours must be right. Its `headers` and `manager` sections are not for the core.
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>

#include "bucket.hpp"

namespace taskq::ratelimit::test {

using nlohmann::json;

namespace {

// A number as a fraction; the vectors write 12, "7/2" or "0.0625".
struct Fraction {
  Wide n = 0;
  Wide d = 1;
};

Fraction fraction(const json& value) {
  if (value.is_number_integer()) return {value.get<std::int64_t>(), 1};
  const std::string text = value.get<std::string>();
  if (const auto slash = text.find('/'); slash != std::string::npos) {
    return {std::stoll(text.substr(0, slash)), std::stoll(text.substr(slash + 1))};
  }
  const auto dot = text.find('.');
  if (dot == std::string::npos) return {std::stoll(text), 1};
  const std::string decimals = text.substr(dot + 1);
  return {std::stoll(text.substr(0, dot) + decimals), power_of_ten(static_cast<int>(decimals.size()))};
}

// Seconds as microseconds, rounded up.
Micros micros_up(const json& seconds) {
  const Fraction f = fraction(seconds);
  return static_cast<Micros>((f.n * kMicrosPerSecond + f.d - 1) / f.d);
}

Micros window_of(const json& params) { return std::llround(params["window"].get<double>() * 1e6); }

Definition definition_of(const std::string& algorithm, const json& params) {
  if (algorithm == "token_bucket")
    return make_bucket(Kind::token_bucket, params["capacity"].get<double>(), params["rate"].get<double>());
  if (algorithm == "leaky_bucket")
    return make_bucket(Kind::leaky_bucket, params["capacity"].get<double>(), params["rate"].get<double>());
  const auto limit = params["limit"].get<std::int64_t>();
  if (algorithm == "fixed_window") return make_fixed_window(limit, window_of(params));
  const bool log = algorithm == "sliding_log";
  return make_sliding_window(log ? Kind::sliding_window_log : Kind::sliding_window_counter, limit, window_of(params));
}

bool waits_as_exact(Micros retry, bool allowed, const json& exact) {
  if (allowed) return retry == 0;
  const Fraction seconds = fraction(exact);
  const Wide ours = Wide{retry} * seconds.d, theirs = seconds.n * kMicrosPerSecond;
  return retry > 0 && ours >= theirs && ours <= theirs + seconds.d;
}

void check_answer(const Answer& a, const json& exact) {
  CHECK(a.ok == exact["allowed"].get<bool>());
  CHECK(std::floor(a.rem) == exact["remaining"].get<double>());
  CHECK(waits_as_exact(a.retry, a.ok, exact["retry_after"]));
  CHECK(a.reset == micros_up(exact["reset_after"]));
}

bool grains_are(const Limit& limit, std::int64_t grains, const json& exact) {
  const Fraction f = fraction(exact);
  return Wide{grains} * f.d == f.n * limit.d * power_of_ten(limit.scale);
}

void check_log(Bucket& bucket, Micros now, const json& exact) {
  MemoryEntries& entries = bucket.log().entries();
  const State s = log::advance(bucket.limit(), bucket.state(), now, entries);
  std::vector<Micros> units;
  for (const auto& stored : entries.all()) {
    if (stored.entry.upto > s.previous)
      units.insert(units.end(), static_cast<std::size_t>(stored.entry.cost), stored.entry.at);
  }
  std::vector<Micros> expected;
  for (const json& at : exact) expected.push_back(micros_up(at));
  CHECK(units == expected);
}

void check_state(Bucket& bucket, Micros now, const json& exact) {
  const Limit& limit = bucket.limit();
  if (limit.algorithm() == Algorithm::log) return check_log(bucket, now, exact["log"]);
  const State s = advance(limit, bucket.state(), now);
  if (exact.contains("tokens")) CHECK(grains_are(limit, meter::full(limit) - s.used, exact["tokens"]));
  if (exact.contains("water")) CHECK(grains_are(limit, s.used, exact["water"]));
  if (exact.contains("count")) CHECK(s.used == exact["count"].get<std::int64_t>());
  if (exact.contains("curr")) CHECK(s.used == exact["curr"].get<std::int64_t>());
  if (exact.contains("prev")) CHECK(s.previous == exact["prev"].get<std::int64_t>());
  if (exact.contains("window_start")) CHECK(s.start == micros_up(exact["window_start"]));
}

void replay_step(Bucket& bucket, Micros now, const json& step) {
  const std::string op = step["op"];
  const double cost = step.value("cost", 1.0);
  if (op == "allow") check_answer(bucket.acquire(now, cost), step["exact"]);
  if (op == "peek") check_answer(bucket.preview(now, cost), step["exact"]);
  if (op == "remaining") CHECK(std::floor(bucket.peek(now).rem) == step["exact"].get<double>());
  if (op == "reset_after") CHECK(bucket.peek(now).reset == micros_up(step["exact"]));
  if (op == "refund") bucket.refund(now, cost);
  if (op == "reset") bucket = Bucket(bucket.limit(), now);
  check_state(bucket, now, step["state_after"]);
}

json vectors() {
  std::ifstream file(TEST_VECTORS_DIR "/limitra-vectors.json");
  REQUIRE(file.good());
  return json::parse(file);
}

// Limits above 2^52, which no double can count exactly: ours refuses the definition, as exact arithmetic there would
// not be the same in every backend.
const std::set<std::string> kBeyondOurRange = {"df09", "df10", "df11"};

}  // namespace

TEST_CASE("limitra's golden sequences give the exact answers") {
  const json all = vectors();
  const std::set<std::string> ops = {"allow", "peek", "remaining", "reset_after", "refund", "reset"};
  std::size_t sequences = 0, steps = 0, refused_steps = 0;
  for (const json& sequence : all["vectors"]) {
    const std::string id = sequence["id"];
    INFO(id << ": " << sequence["purpose"].get<std::string>());
    ++sequences;
    const Definition definition = definition_of(sequence["algorithm"], sequence["params"]);
    if (kBeyondOurRange.count(id) > 0) {
      CHECK(definition.error != DefinitionError::none);
      refused_steps += sequence["steps"].size();
      continue;
    }
    const Micros start = micros_up(sequence["clock_start"]);
    Bucket bucket(checked(definition), start);
    for (const json& step : sequence["steps"]) {
      INFO("step " << ++steps << ": " << step.dump());
      REQUIRE(ops.count(step["op"]) == 1);
      replay_step(bucket, start + micros_up(step["t"]), step);
    }
  }
  CHECK(sequences == 58);
  CHECK(steps == 298);
  CHECK(steps + refused_steps == 306);
}

namespace {

bool out_of_range(const json& error) { return error["raises"].get<std::string>() == "ValueError"; }

std::optional<double> number(const std::string& text) {
  if (text == "nan") return std::nan("");
  if (text == "inf") return HUGE_VAL;
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == 0 && !text.empty() ? std::optional(value) : std::nullopt;
}

// "TokenBucket(rate=0,capacity=10)" as a definition; none if it cannot be said with numbers, or not with our types.
std::optional<Definition> defined_by(const std::string& call) {
  char kind[32], first_name[32], first_text[32], second_name[32], second_text[32], end = 0;
  const int parts = std::sscanf(call.c_str(), "%31[A-Za-z](%31[a-z]=%31[^,],%31[a-z]=%31[^)]%c", kind, first_name,
                                first_text, second_name, second_text, &end);
  if (parts != 6 || !call.ends_with(')')) return std::nullopt;
  const auto first = number(first_text), second = number(second_text);
  if (!first || !second) return std::nullopt;
  const std::string name = kind;
  if (name == "TokenBucket") return make_bucket(Kind::token_bucket, *second, *first);
  if (name == "LeakyBucket") return make_bucket(Kind::leaky_bucket, *second, *first);
  if (!std::isfinite(*second)) return std::nullopt;
  const auto limit = std::llround(*first);
  const Micros window = std::llround(*second * 1e6);
  if (name == "FixedWindow") return make_fixed_window(limit, window);
  return make_sliding_window(name == "SlidingLog" ? Kind::sliding_window_log : Kind::sliding_window_counter, limit,
                             window);
}

// The cost in "TokenBucket(1,5).allow(0)".
std::optional<double> cost_in(const std::string& call) {
  for (const std::string verb : {".allow(", ".peek(", ".refund("}) {
    const auto found = call.find(verb);
    if (found != std::string::npos)
      return number(call.substr(found + verb.size(), call.size() - found - verb.size() - 1));
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("limitra's refused definitions are refused") {
  int checked_here = 0;
  const json errors = vectors()["errors"];
  for (const json& error : errors) {
    const std::string call = error["call"];
    const auto definition = defined_by(call);
    // A fractional capacity is a type error there; our buckets count in fractions.
    if (!definition || !out_of_range(error)) continue;
    INFO(call);
    // A rate of 0 is the one thing that ours knows and limitra does not: a quota that never refills.
    const bool quota = call == "TokenBucket(rate=0,capacity=10)";
    CHECK((definition->error == DefinitionError::none) == quota);
    if (quota) CHECK(definition->limit.never_refills());
    ++checked_here;
  }
  CHECK(checked_here == 8);
}

TEST_CASE("limitra's refused costs are refused") {
  const Limit bucket = TB(5, 1);
  int checked_here = 0;
  const json errors = vectors()["errors"];
  for (const json& error : errors) {
    const std::string call = error["call"];
    const auto cost = cost_in(call);
    if (!out_of_range(error) || !cost) continue;
    INFO(call);
    CHECK(cost_units(bucket, *cost) == 0);
    ++checked_here;
  }
  CHECK(checked_here == 6);
  CHECK(cost_units(bucket, 5) > 0);
}

}  // namespace taskq::ratelimit::test
