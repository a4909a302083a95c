// Functions of Dirichlet parameters x > 0, branch-free so that loops over them vectorise. All shift x by 8, where the
// asymptotic series of Stirling have an error below 1e-14; beyond LARGE nothing is shifted.
//
// With u = x (x + 7):  (x + 1)(x + 6) = u + 6,  (x + 2)(x + 5) = u + 10,  (x + 3)(x + 4) = u + 12.
#pragma once

#include <cstdint>
#include <cstring>

#include "core/simd.hpp"

namespace epicycle {

constexpr double LARGE_SHAPE = 1e6;

// log(x) for normal x > 0: x = 2^e m with m in [0.7, 1.4), and 2 atanh((m - 1) / (m + 1)) as a series.
EPICYCLE_INLINE double log_positive(double x) {
    constexpr double ln2_hi = 6.93147180369123816490e-01, ln2_lo = 1.90821492927058770002e-10;
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const std::uint64_t moved = bits - 0x3fe6a09e667f3bcdULL;  // sqrt(1/2) becomes zero
    // The exponent as a double without an integer conversion, which baseline and AVX2 lack: 2^52 + 2^51 is added first.
    const std::uint64_t exponent = (moved >> 52) ^ 0x4338000000000000ULL;
    double shifted;
    std::memcpy(&shifted, &exponent, sizeof shifted);
    double e = shifted - 6755399441055744.0;
    e = e > 2048.0 ? e - 4096.0 : e;  // the field holds 12 bits in two's complement
    const std::uint64_t fraction = (moved & 0x000fffffffffffffULL) + 0x3fe6a09e667f3bcdULL;
    double m;
    std::memcpy(&m, &fraction, sizeof m);
    const double f = m - 1.0, s = f / (2.0 + f), z = s * s;
    double a = 1.0 / 21.0;
    a = a * z + 1.0 / 19.0;
    a = a * z + 1.0 / 17.0;
    a = a * z + 1.0 / 15.0;
    a = a * z + 1.0 / 13.0;
    a = a * z + 1.0 / 11.0;
    a = a * z + 1.0 / 9.0;
    a = a * z + 1.0 / 7.0;
    a = a * z + 1.0 / 5.0;
    a = a * z + 1.0 / 3.0;
    a = a * z;
    return e * ln2_hi + (2.0 * s + (2.0 * s * a + e * ln2_lo));
}

// log(y) - digamma(y) for y >= 8.
EPICYCLE_INLINE double digamma_series(double y) {
    const double r = 1.0 / y, q = r * r;
    double a = 1.0 / 12.0;
    a = a * q - 691.0 / 32760.0;
    a = a * q + 1.0 / 132.0;
    a = a * q - 1.0 / 240.0;
    a = a * q + 1.0 / 252.0;
    a = a * q - 1.0 / 120.0;
    a = a * q + 1.0 / 12.0;
    return 0.5 * r + q * a;
}

// digamma(x + 8) - digamma(x) = sum of 1 / (x + i) for i < 8.
EPICYCLE_INLINE double eight_reciprocals(double x) {
    const double u = x * (x + 7.0), b = u + 6.0, c = u + 10.0, d = u + 12.0;
    const double bc = b * c, ud = u * d;
    return (2.0 * x + 7.0) * (bc * (u + d) + ud * (b + c)) / (bc * ud);
}

EPICYCLE_INLINE double digamma(double x) {
    const bool large = x > LARGE_SHAPE;
    const double small = large ? 1.0 : x, y = large ? x : x + 8.0;
    return log_positive(y) - digamma_series(y) - (large ? 0.0 : eight_reciprocals(small));
}

// exp(digamma(x)) = y exp(-series - reciprocals): no logarithm. Zero where it is below 2^-1022.
EPICYCLE_INLINE double exp_digamma(double x) {
    const bool large = x > LARGE_SHAPE;
    const double small = large ? 1.0 : x, y = large ? x : x + 8.0;
    return y * exp_nonpositive(-digamma_series(y) - (large ? 0.0 : eight_reciprocals(small)));
}

// log Gamma(x) + (prior - x) digamma(x): a parameter's part of the negative divergence from a Dirichlet prior.
EPICYCLE_INLINE double divergence_term(double x, double prior) {
    const bool large = x > LARGE_SHAPE;
    const double small = large ? 1.0 : x, y = large ? x : x + 8.0;
    const double log_y = log_positive(y), r = 1.0 / y, q = r * r;
    double a = -691.0 / 360360.0;
    a = a * q + 1.0 / 1188.0;
    a = a * q - 1.0 / 1680.0;
    a = a * q + 1.0 / 1260.0;
    a = a * q - 1.0 / 360.0;
    a = a * q + 1.0 / 12.0;
    const double u = small * (small + 7.0);
    const double product = large ? 1.0 : u * (u + 6.0) * (u + 10.0) * (u + 12.0);
    const double log_gamma = (y - 0.5) * log_y - y + 0.91893853320467274178 + r * a - log_positive(product);
    const double psi = log_y - digamma_series(y) - (large ? 0.0 : eight_reciprocals(small));
    return log_gamma + (prior - x) * psi;
}

}  // namespace epicycle
