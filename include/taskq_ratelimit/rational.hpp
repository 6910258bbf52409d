// Rates as exact fractions.
//
// simplest_rational(x): the fraction with the smallest denominator that rounds to the double x, so that 100/60.0 is 5/3.
// best_below(p/q, limit): the largest fraction not above p/q whose denominator is at most `limit`.
// Both walk the Stern-Brocot tree by continued fractions (Graham, Knuth, Patashnik, Concrete Mathematics, 4.5).
// Thread-safety: pure functions.
#pragma once

#include <cstdint>

#include "taskq_ratelimit/amount.hpp"
#include "taskq_ratelimit/micros.hpp"

namespace taskq::ratelimit {

// n/d in lowest terms, d > 0, n >= 0. {0, 0} stands for "no such fraction".
struct Rational {
  Wide n = 0;
  Wide d = 0;
  constexpr bool exists() const noexcept { return d > 0; }
};

constexpr Wide gcd(Wide a, Wide b) noexcept {
  while (b != 0) {
    const Wide r = a % b;
    a = b;
    b = r;
  }
  return a;
}

constexpr Rational reduced(Wide n, Wide d) noexcept {
  const Wide g = gcd(n, d);
  return g == 0 ? Rational{} : Rational{n / g, d / g};
}

// The simplest fraction in the closed interval [a/b, c/e]. REQUIRES: 0 <= a/b <= c/e, b > 0, e > 0.
constexpr Rational simplest_between(Wide a, Wide b, Wide c, Wide e) noexcept {
  Wide n0 = 0, d0 = 1, n1 = 1, d1 = 0;  // the last two convergents
  for (;;) {
    const Wide whole = a / b;
    const bool exact = a % b == 0;
    const bool end_reached = exact || whole < c / e;  // a whole number lies in what is left of the interval
    const Wide term = exact ? whole : whole + (end_reached ? 1 : 0);
    const Wide n = term * n1 + n0, d = term * d1 + d0;
    if (end_reached) return {n, d};
    n0 = n1, d0 = d1, n1 = n, d1 = d;
    const Wide next_b = a - whole * b, next_e = c - whole * e;
    if (next_e == 0) return {n1, d1};
    // The reciprocal of what is left: its ends change places.
    const Wide next_a = b, next_c = e;
    a = next_c, b = next_e, c = next_a, e = next_b;
  }
}

// The simplest fraction that rounds to x. None for x < 0, not finite, above 2^62, or (x > 0) below 2^-60.
constexpr Rational simplest_rational(double x) noexcept {
  if (!is_finite(x) || x < 0 || x > 0x1p62) return {};
  if (x == 0) return {0, 1};
  if (x < 0x1p-60) return {};
  const Binary b = take_apart(x);
  const Wide m = Wide{b.mantissa};
  const bool power_of_two = b.mantissa == (std::uint64_t{1} << 52);  // the gap below is half the gap above
  if (b.exponent >= 0) return {m << b.exponent, 1};
  // The rounding interval in quarters of the last place. Its ends belong to x only when the mantissa is even, but as
  // their denominator is larger than that of x itself, an end is never the simplest.
  const Wide low = m * 4 - (power_of_two ? 1 : 2), high = m * 4 + 2;
  const Wide q = Wide{1} << (2 - b.exponent);
  return simplest_between(low, q, high, q);
}

// The largest fraction p/q <= r with q <= max_d. REQUIRES: r exists, max_d >= 1.
constexpr Rational best_below(Rational r, Wide max_d) noexcept {
  if (r.d <= max_d) return r;
  // ln/ld <= r < hn/hd always, neighbours in the tree; the lower one is the answer when no step fits any more.
  Wide ln = r.n / r.d, ld = 1, hn = 1, hd = 0;
  for (;;) {
    // As many steps towards high as keep low <= r:  (ln + s*hn)/(ld + s*hd) <= r.
    const Wide below_gap = r.n * ld - ln * r.d;  // >= 0
    const Wide above_gap = hn * r.d - r.n * hd;  // > 0
    Wide up = below_gap / above_gap;
    if (hd > 0 && up > (max_d - ld) / hd) up = (max_d - ld) / hd;
    ln += up * hn, ld += up * hd;
    const Wide gap = r.n * ld - ln * r.d;
    if (gap == 0 || ld + hd > max_d) return {ln, ld};
    // As many steps of high towards low as keep high > r.
    Wide down = (hn * r.d - r.n * hd - 1) / gap;
    if (down > (max_d - hd) / ld) down = (max_d - hd) / ld;
    if (down == 0 && up == 0) return {ln, ld};
    hn += down * ln, hd += down * ld;
  }
}

static_assert(simplest_rational(100 / 60.0).n == 5 && simplest_rational(100 / 60.0).d == 3);
static_assert(simplest_rational(1 / 86400.0).n == 1 && simplest_rational(1 / 86400.0).d == 86400);
static_assert(simplest_rational(1 / 49.0).n == 1 && simplest_rational(1 / 49.0).d == 49);
static_assert(simplest_rational(0.1).n == 1 && simplest_rational(0.1).d == 10);
static_assert(best_below({311, 100}, 10).n == 31 && best_below({311, 100}, 10).d == 10);

}  // namespace taskq::ratelimit
