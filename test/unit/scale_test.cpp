// From floats to exact integers: fractions, scales and ticks.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "bucket.hpp"
#include "random.hpp"

namespace taskq::ratelimit::test {

namespace {

double quotient(std::int64_t n, std::int64_t d) { return static_cast<double>(n) / static_cast<double>(d); }

// Is n/d within half a unit in the last place of x, without rounding anything? With x = m * 2^e, e < 0, both products
// are close to m * d, which fits.
bool rounds_to(Rational r, double x) {
  const Binary b = take_apart(x);
  const Wide m = Wide{b.mantissa};
  if (b.exponent >= 0) return r.n == m << b.exponent && r.d == 1;
  const Wide off = (r.n << -b.exponent) - m * r.d;
  const bool gap_is_halved = off < 0 && b.mantissa == std::uint64_t{1} << 52;
  const Wide twice = (off < 0 ? -off : off) * (gap_is_halved ? 4 : 2);
  return m % 2 == 0 ? twice <= r.d : twice < r.d;
}

bool same(Rational r, Wide n, Wide d) { return r.n == n && r.d == d; }

// The definition of simplest, without a tree: the first denominator that has a fraction which rounds to x.
bool has_simpler(double x, Rational found) {
  for (std::int64_t d = 1; d < found.d; ++d) {
    const double near = std::nearbyint(x * static_cast<double>(d));
    for (const double n : {near - 1, near, near + 1}) {
      if (n >= 0 && n / static_cast<double>(d) == x) return true;
    }
  }
  return false;
}

Rational brute_best_below(std::int64_t n, std::int64_t d, std::int64_t max_d) {
  Rational best{0, 1};
  for (std::int64_t q = 1; q <= max_d; ++q) {
    const std::int64_t p = n * q / d;
    if (Wide{p} * best.d > best.n * q) best = {p, q};
  }
  return best;
}

}  // namespace

TEST_CASE("every row of scale.tsv") {
  std::ifstream file(TEST_VECTORS_DIR "/scale.tsv");
  REQUIRE(file.good());
  std::string line;
  std::getline(file, line);
  int rows = 0;
  for (; std::getline(file, line); ++rows) {
    INFO(line);
    std::istringstream fields(line);
    double capacity = 0, rate = 0;
    std::string k;
    std::int64_t n = 0, d = 0;
    fields >> capacity >> rate >> k >> n >> d;
    const Definition made = make_bucket(Kind::token_bucket, capacity, rate);
    if (k.starts_with("refuse")) {
      CHECK(made.error != DefinitionError::none);
      CHECK((made.error == DefinitionError::refill_too_slow) == (line.find("full refill") != std::string::npos));
      continue;
    }
    REQUIRE(made.error == DefinitionError::none);
    CHECK(made.limit.scale == std::stoi(k));
    CHECK(made.limit.n == n);
    CHECK(made.limit.d == d);
    CHECK(to_amount(made.limit, meter::full(made.limit)) == capacity);
  }
  CHECK(rows == 31);
}

TEST_CASE("ticks are the finest power of ten that fits") {
  CHECK(choose_tick(10'000, 3600_s) == 1);
  CHECK(choose_tick(10'000, 30_days) == 10);
  CHECK(choose_tick(1, kMaxProduct) == 1);
  CHECK(choose_tick(2, kMaxProduct) == 10);
  CHECK(choose_tick(kMaxProduct, 1) == 1);
  CHECK(choose_tick(kMaxProduct, 10) == 10);
  CHECK(choose_tick(kMaxProduct, 60_s) == 0);
  CHECK(choose_tick(kMaxProduct + 1, 1) == 0);
}

TEST_CASE("a tick is chosen by the same rule everywhere") {
  Random random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t limit = random.spread(1, kMaxProduct);
    const Micros window = random.spread(1, kMaxProduct);
    const Micros tick = choose_tick(limit, window);
    INFO(limit << " per " << window << " us: tick " << tick);
    const auto fits = [&](Micros t) { return Wide{limit} * ((window + t - 1) / t) <= kMaxProduct; };
    if (tick > 0) CHECK(fits(tick));
    for (Micros finer = 1; finer <= window && (tick == 0 || finer < tick); finer *= 10) CHECK_FALSE(fits(finer));
  }
}

TEST_CASE("a double that is a small fraction comes back as that fraction") {
  Random random(2);
  for (int i = 0; i < 50'000; ++i) {
    const Rational r = reduced(random.spread(1, 1'000'000), random.spread(1, 1'000'000));
    const auto n = static_cast<std::int64_t>(r.n), d = static_cast<std::int64_t>(r.d);
    const Rational found = simplest_rational(quotient(n, d));
    INFO(n << "/" << d);
    REQUIRE(same(found, r.n, r.d));
  }
}

TEST_CASE("the simplest fraction always rounds back") {
  Random random(3);
  for (int i = 0; i < 50'000; ++i) {
    const double mantissa = 1.0 + static_cast<double>(random.between(0, (std::int64_t{1} << 52) - 1)) * 0x1p-52;
    const double x = std::ldexp(random.one_in(10) ? 1.0 : mantissa, static_cast<int>(random.between(-60, 61)));
    INFO(x);
    const Rational r = simplest_rational(x);
    REQUIRE(r.exists());
    REQUIRE(rounds_to(r, x));
    REQUIRE(gcd(r.n, r.d) == 1);
  }
}

TEST_CASE("whole numbers beyond 2^53 stay themselves") {
  for (const double x : {0x1p52, 0x1p53, 0x1p53 + 2, 0x1p53 + 6, 0x1p54 - 2, 0x1p54 + 4, 0x1p62}) {
    INFO(x);
    CHECK(same(simplest_rational(x), static_cast<Wide>(x), 1));
  }
}

TEST_CASE("no simpler fraction rounds to the same double") {
  Random random(4);
  for (int i = 0; i < 300; ++i) {
    const double x = static_cast<double>(random.between(1, 1'000'000'000)) * 1e-7;
    const Rational r = simplest_rational(x);
    INFO(x);
    if (r.d < 20'000) CHECK_FALSE(has_simpler(x, r));
  }
  CHECK(same(simplest_rational(3.141592653589793), 245'850'922, 78'256'779));
}

TEST_CASE("doubles that are no rate give no fraction") {
  for (const double x : {-1.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 0x1p63, 5e-324, 0x1p-61})
    CHECK_FALSE(simplest_rational(x).exists());
  CHECK(same(simplest_rational(0.0), 0, 1));
  CHECK(rounds_to(simplest_rational(0x1p-60), 0x1p-60));
}

TEST_CASE("best_below agrees with brute force") {
  Random random(5);
  for (int i = 0; i < 20'000; ++i) {
    const Rational r = reduced(random.spread(0, 5'000), random.between(1, 3'000));
    const std::int64_t max_d = random.spread(1, 400);
    const auto n = static_cast<std::int64_t>(r.n), d = static_cast<std::int64_t>(r.d);
    INFO(n << "/" << d << " with denominators up to " << max_d);
    const Rational found = best_below(r, max_d), expected = brute_best_below(n, d, max_d);
    REQUIRE(found.n * expected.d == expected.n * found.d);
    REQUIRE(found.d <= max_d);
    REQUIRE(gcd(found.n, found.d) == 1);
  }
}

TEST_CASE("a scaled rate is never above the rate and never far below it") {
  Random random(6);
  int accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const double capacity = static_cast<double>(random.spread(1, 1'000'000'000'000)) /
                            static_cast<double>(power_of_ten(static_cast<int>(random.between(0, 6))));
    const double rate =
        static_cast<double>(random.spread(1, 1'000'000'000'000)) / static_cast<double>(random.spread(1, 10'000'000));
    const Rational asked = simplest_rational(rate);
    const MeterScale s = choose_scale(capacity, asked);
    INFO(capacity << " at " << rate << " per second");
    if (s.error != ScaleError::none) continue;
    ++accepted;
    CHECK(Wide{s.capacity} * s.d <= kMaxProduct);
    CHECK(static_cast<double>(s.capacity) / static_cast<double>(power_of_ten(s.scale)) == capacity);
    const Rational exact = detail::per_micro(asked, s.scale);
    CHECK(Wide{s.n} * exact.d <= exact.n * s.d);
    CHECK(detail::relative_error(exact, {s.n, s.d}) <= 1e-5L);
  }
  CHECK(accepted > 10'000);
}

TEST_CASE("amounts are rounded to the nearest unit, halves away from zero") {
  CHECK(units(0.5, 0) == 1);
  CHECK(units(1.5, 0) == 2);
  CHECK(units(0.49999999999999994, 0) == 0);
  CHECK(units(2.675, 2) == 267);    // the double is a little below
  CHECK(units(0.0000005, 6) == 0);  // so is this one
  CHECK(units(0.00000050000001, 6) == 1);
  CHECK(units(5e-324, 6) == 0);
  CHECK(units(4503599627370496.0, 0) == kMaxProduct);
  CHECK(units(4503599627370497.0, 0) == -1);
  CHECK(units(4503599627.370496, 6) == kMaxProduct);
  for (const double x : {-1.0, std::nan(""), HUGE_VAL, -HUGE_VAL, 1e300}) CHECK(units(x, 6) == -1);
}

TEST_CASE("six decimals are read exactly as they are written") {
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    const std::int64_t millionths = random.spread(1, kMaxProduct);
    const double written = std::stod(std::to_string(millionths / 1'000'000) + "." +
                                     std::to_string(1'000'000 + millionths % 1'000'000).substr(1));
    REQUIRE(units(written, 6) == millionths);
  }
}

}  // namespace taskq::ratelimit::test
