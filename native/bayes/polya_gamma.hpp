// Draws of the Polya-gamma distribution PG(1, c), and the Gibbs sampler of logistic regression that they make possible.
//
// PG(1, c) is J / 4 with J of the density sum_n (-1)^n a_n(x) cosh(z) exp(-z^2 x / 2), z = |c| / 2. Two series for a_n,
// left and right of t, are so good that the first term is nearly the density: a proposal from it (an inverse Gaussian
// on the left, an exponential on the right) is accepted or rejected as soon as the alternating partial sums decide
// (Polson, Scott and Windle, JASA 108, 2013). The draws are exact.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "bayes/dense_vectors.hpp"
#include "bayes/random.hpp"

namespace epicycle {

namespace polya {

constexpr double pi = 3.14159265358979323846;
constexpr double t = 0.64;  // where the two series meet

// log Phi(x); an asymptotic series where Phi is about to underflow, good to 1e-10 there.
inline double log_ndtr(double x) {
    if (x > -20.0) return std::log(0.5 * std::erfc(-x * 0.70710678118654752440));
    const double q = 1.0 / (x * x);
    const double series = 1.0 - q * (1.0 - q * (3.0 - q * (15.0 - q * 105.0)));
    return -0.5 * x * x - std::log(-x * 2.50662827463100050242) + std::log(series);
}

inline double rate(double z) { return pi * pi / 8.0 + z * z / 2.0; }

// The share of the proposal's mass right of t.
inline double right_share(double z) {
    const double K = rate(z), root = std::sqrt(1.0 / t), base = std::log(K) + K * t;
    const double left =
        std::exp(base - z + log_ndtr(root * (t * z - 1.0))) + std::exp(base + z + log_ndtr(-root * (t * z + 1.0)));
    return 1.0 / (1.0 + 4.0 / pi * left);
}

// Inverse Gaussian of the mean 1 / z and shape 1, below t.
inline double left_proposal(double z, Random &random) {
    while (true) {
        double x;
        if (z < 1.0 / t) {  // the mean is right of t: propose from the tail of a chi-square distribution
            const double a = random.exponential(), b = random.exponential();
            if (a * a > 2.0 * b / t) continue;
            x = t / ((1.0 + t * a) * (1.0 + t * a));
            if (random.uniform() <= std::exp(-z * z * x / 2.0)) return x;
            continue;
        }
        const double mean = 1.0 / z, y = random.normal(), s = mean * y * y;  // Michael, Schucany and Haas (1976)
        x = mean / (1.0 + 0.5 * s + std::sqrt(s + 0.25 * s * s));            // the smaller root, without cancellation
        if (random.uniform() > mean / (mean + x)) x = mean * mean / x;
        if (x < t) return x;
    }
}

inline double term(int n, double x) {
    const double half = n + 0.5;
    if (x > t) return pi * half * std::exp(-half * half * pi * pi * x / 2.0);
    const double base = 2.0 / (pi * x);
    return pi * half * base * std::sqrt(base) * std::exp(-2.0 * half * half / x);
}

// Whether the alternating series, whose partial sums enclose the density, is above a uniform height.
inline bool accepted(double x, Random &random) {
    double total = term(0, x);
    const double height = random.uniform() * total;
    for (int n = 1;; ++n) {
        if (n % 2) {  // a lower bound: what lies below it is accepted
            total -= term(n, x);
            if (height <= total) return true;
        } else {  // an upper bound: what lies above it is rejected
            total += term(n, x);
            if (height > total) return false;
        }
    }
}

inline double draw(double c, Random &random) {
    const double z = std::fabs(c) / 2.0;
    // Far out the distribution is its mean but for a thousandth; what is no number would never be accepted.
    if (!(z < 1e6)) return std::isnan(z) ? 0.0 : 0.25 / z;
    const double right = right_share(z);
    while (true) {
        const double x = random.uniform() < right ? t + random.exponential() / rate(z) : left_proposal(z, random);
        if (accepted(x, random)) return x / 4.0;
    }
}

}  // namespace polya

// w ~ N(0, 1 / q_j), labels with logistic probabilities; kappa = X'(y - 1/2) with all repetitions. Row i stands for
// repeats[i] equal rows. Takes turns: omega_i ~ PG(1, x_i'w), then w ~ N(S kappa, S), S^-1 = X'diag(omega) X + diag(q).
class LogisticGibbs {
public:
    LogisticGibbs(const double *X, const double *kappa, const std::int64_t *repeats, const double *precision,
                  std::size_t n, std::size_t p)
        : X(X), kappa(kappa), repeats(repeats), precision(precision), n(n), p(p), S(p * p), scale(p) {}

    // w is the draw before it, and becomes the next.
    void step(double *w, Random &random) {
        std::fill(S.begin(), S.end(), 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            const double *x = X + i * p, c = dot(x, w, p);
            double omega = 0.0;
            for (std::int64_t k = 0; k < repeats[i]; ++k) omega += polya::draw(c, random);
            add_square(S.data(), omega, x, p);
        }
        for (std::size_t j = 0; j < p; ++j) {
            S[j * p + j] += precision[j];
            scale[j] = 1.0 / std::sqrt(S[j * p + j]);
        }
        factorize();
        // S^-1 = D L'^-1 L^-1 D with the scales D:  w = D L'^-1 (L^-1 D kappa + e),  e ~ N(0, I).
        for (std::size_t j = 0; j < p; ++j) w[j] = (kappa[j] * scale[j] - dot(&S[j * p], w, j)) / S[j * p + j];
        for (std::size_t j = 0; j < p; ++j) w[j] += random.normal();
        for (std::size_t j = p; j-- > 0;) {
            w[j] /= S[j * p + j];
            add_scaled(w, -w[j], &S[j * p], j);
        }
        for (std::size_t j = 0; j < p; ++j) w[j] *= scale[j];
    }

private:
    const double *X, *kappa;
    const std::int64_t *repeats;
    const double *precision;
    std::size_t n, p;
    Vec S, scale;

    // The lower triangle of S += a x x'.
    EPICYCLE_CLONES static void add_square(double *S, double a, const double *x, std::size_t p) {
        for (std::size_t j = 0; j < p; ++j) {
            const double b = a * x[j];
            for (std::size_t k = 0; k <= j; ++k) S[j * p + k] += b * x[k];
        }
    }

    // The lower Cholesky factor of S with a unit diagonal, in place. Columns that are dependent but for the prior,
    // which is below the rounding of S, have a pivot of that rounding.
    void factorize() {
        const double least = static_cast<double>(p) * std::numeric_limits<double>::epsilon();
        for (std::size_t j = 0; j < p; ++j)
            for (std::size_t k = 0; k <= j; ++k) S[j * p + k] *= scale[j] * scale[k];
        for (std::size_t j = 0; j < p; ++j) {
            const double root = std::sqrt(std::max(S[j * p + j] - dot(&S[j * p], &S[j * p], j), least));
            S[j * p + j] = root;
            for (std::size_t i = j + 1; i < p; ++i) S[i * p + j] = (S[i * p + j] - dot(&S[i * p], &S[j * p], j)) / root;
        }
    }
};

}  // namespace epicycle
