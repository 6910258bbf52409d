// The golden sequences of test/vectors, replayed through the client's own classes on every backend whose clock a test can drive.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "subject.hpp"
#include "taskq/errors.hpp"
#include "taskq/fixed_window.hpp"
#include "taskq/leaky_bucket.hpp"
#include "taskq/sliding_window.hpp"
#include "taskq/token_bucket.hpp"

namespace taskq::test {

using nlohmann::json;

namespace {

struct Fraction {
  ratelimit::Wide n = 0;
  ratelimit::Wide d = 1;
};

// The vectors write 12, "7/2" or "0.0625".
Fraction fraction(const json& value) {
  if (value.is_number_integer()) return {value.get<std::int64_t>(), 1};
  const std::string text = value.get<std::string>();
  if (const auto slash = text.find('/'); slash != std::string::npos) {
    return {std::stoll(text.substr(0, slash)), std::stoll(text.substr(slash + 1))};
  }
  const auto dot = text.find('.');
  if (dot == std::string::npos) return {std::stoll(text), 1};
  const std::string decimals = text.substr(dot + 1);
  return {std::stoll(text.substr(0, dot) + decimals), ratelimit::power_of_ten(static_cast<int>(decimals.size()))};
}

Micros micros_up(const json& seconds) {
  const Fraction f = fraction(seconds);
  return static_cast<Micros>((f.n * ratelimit::kMicrosPerSecond + f.d - 1) / f.d);
}

Limiter limiter_of(const std::string& algorithm, const json& p, std::shared_ptr<Backend> backend) {
  if (algorithm == "token_bucket" || algorithm == "leaky_bucket") {
    const BucketOptions options{.capacity = p["capacity"].get<double>(), .refill_per_second = p["rate"].get<double>()};
    if (algorithm == "token_bucket") return TokenBucket("vector", options, std::move(backend));
    return LeakyBucket("vector", options, std::move(backend));
  }
  const WindowOptions options{.max_requests = p["limit"].get<std::int64_t>(),
                              .window = Duration{std::llround(p["window"].get<double>() * 1e6)}};
  if (algorithm == "fixed_window") return FixedWindow("vector", options, std::move(backend));
  return SlidingWindow("vector", options, algorithm == "sliding_log" ? SlidingStyle::log : SlidingStyle::counter, std::move(backend));
}

void check_answer(const Decision& d, const json& exact) {
  CHECK(d.allowed() == exact["allowed"].get<bool>());
  CHECK(std::floor(d.remaining()) == exact["remaining"].get<double>());
  CHECK(d.reset_after()->count() == micros_up(exact["reset_after"]));
  const Micros retry = d.retry_after()->count();
  const Micros least = d.allowed() ? 0 : micros_up(exact["retry_after"]);
  CHECK((retry == least || (!d.allowed() && retry == ratelimit::larger(1, least))));
}

void replay_step(Limiter& limiter, const json& step) {
  const std::string op = step["op"];
  const double cost = step.value("cost", 1.0);
  if (op == "allow") check_answer(limiter.acquire(cost), step["exact"]);
  if (op == "peek") check_answer(limiter.preview(cost), step["exact"]);
  if (op == "remaining") CHECK(std::floor(limiter.remaining()) == step["exact"].get<double>());
  if (op == "reset_after") CHECK(limiter.reset_after()->count() == micros_up(step["exact"]));
  if (op == "refund") limiter.refund(cost);
  if (op == "reset") limiter.reset();
}

json vectors() {
  std::ifstream file(TEST_VECTORS_DIR "/limitra-vectors.json");
  REQUIRE(file.good());
  return json::parse(file);
}

// Limits above 2^52 are refused: no double counts them exactly.
const std::set<std::string> kBeyondOurRange = {"df09", "df10", "df11"};

}  // namespace

TEST_CASE("limitra's golden sequences give the exact answers on every backend") {
  const json all = vectors();
  int steps = 0;
  on_every_backend([&](Subject& first) {
    for (const json& sequence : all["vectors"]) {
      Subject s = first.again();
      const std::string id = sequence["id"];
      INFO(id << ": " << sequence["purpose"].get<std::string>());
      const Micros start = micros_up(sequence["clock_start"]);
      s.clock->set(TimePoint{Duration{start}});
      if (kBeyondOurRange.count(id) > 0) {
        CHECK_THROWS_AS(limiter_of(sequence["algorithm"], sequence["params"], s.backend), InvalidArgument);
        continue;
      }
      Limiter limiter = limiter_of(sequence["algorithm"], sequence["params"], s.backend);
      for (const json& step : sequence["steps"]) {
        INFO("step " << ++steps << ": " << step.dump());
        s.clock->set(TimePoint{Duration{start + micros_up(step["t"])}});
        replay_step(limiter, step);
      }
    }
  });
  CHECK(steps >= 298);
}

}  // namespace taskq::test
