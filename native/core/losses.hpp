// The losses of single rows, l(z, y) with its derivatives in z, for every kernel that needs them.
//
// Kernels share a formula where that leaves every bit of their results as it is. The logistic loss stands here in three
// forms for that reason, each exact where its kernel needs it: of proportions y (GLM), of labels 0 and 1 with the
// gradient in single precision (boosting), and of labels -1 and 1 a row at a time (online). A fourth, of whole blocks
// of margins, is the inner loop of linear/logistic.hpp.
#pragma once

#include <cmath>

#include "core/simd.hpp"

namespace epicycle {

// The numbers that the loss objects of Python know as `native`. The first nine are those of boosting.
enum class LossId : int {
    squared,
    absolute,
    huber,
    quantile,
    poisson,
    gamma,
    tweedie,
    logistic,
    softmax,
    negative_binomial,
    hinge,
    perceptron,
    modified_huber,
    squared_hinge,
    epsilon_insensitive,
    squared_epsilon_insensitive
};

// exp(x) for any x, by its reciprocal above zero; inf beyond about 708.
EPICYCLE_INLINE double exp_any(double x) {
    const double t = exp_nonpositive(-std::fabs(x));
    return x > 0.0 ? 1.0 / t : t;
}

// l, dl/dz and d2l/dz2 of a row, and the expectation of the last over y (Fisher) where there is a family.
struct LossRow {
    double value, slope, curvature, expected;
};

// ------------------------------------------------------------------------------------------------- smooth losses

EPICYCLE_INLINE LossRow squared_row(double z, double y, double, double) {
    const double r = z - y;
    return {0.5 * r * r, r, 1.0, 1.0};
}

// y is a proportion; logit link.
EPICYCLE_INLINE LossRow binomial_row(double z, double y, double, double) {
    const double t = exp_nonpositive(-std::fabs(z)), u = 1.0 / (1.0 + t), h = t * u * u;
    // With the smaller of p and 1 - p, so that nothing cancels where y is 0 or 1.
    const double small = t * u;
    const double r = z >= 0.0 ? (1.0 - y) - small : small - y;
    const double linear = z >= 0.0 ? (1.0 - y) * z : -y * z;
    return {linear + log1p_unit(t), r, h, h};
}

EPICYCLE_INLINE LossRow poisson_row(double z, double y, double, double) {
    const double mu = exp_any(z);
    return {mu - y * z, mu - y, mu, mu};
}

EPICYCLE_INLINE LossRow gamma_row(double z, double y, double, double) {
    const double ratio = y * exp_any(-z);
    return {ratio + z, 1.0 - ratio, ratio, 1.0};
}

// 1 < power < 2, log link; a = power - 1, b = 2 - power.
EPICYCLE_INLINE LossRow tweedie_row(double z, double y, double a, double b) {
    const double down = y * exp_any(-a * z), up = exp_any(b * z);
    return {down / a + up / b, up - down, a * down + b * up, up};
}

// Variance mu + a mu^2, log link; b = log(a). With q = z + log(a), log(1 + a mu) = log(1 + e^q).
EPICYCLE_INLINE LossRow negative_binomial_row(double z, double y, double a, double b) {
    const double q = z + b, t = exp_nonpositive(-std::fabs(q)), u = 1.0 / (1.0 + t);
    const double s = q >= 0.0 ? u : t * u, rest = q >= 0.0 ? t * u : u;  // sigma(q) and sigma(-q)
    const double size = y + 1.0 / a;
    return {size * ((q >= 0.0 ? q : 0.0) + log1p_unit(t)) - y * z, s / a - y * rest, size * s * rest, s / a};
}

// y is 0 or 1.
EPICYCLE_INLINE LossRow label_row(double z, double y) {
    const double e = exp_nonpositive(z < 0 ? z : -z), inverse = 1.0 / (1.0 + e);
    const double value = log1p_unit(e) + (z > 0 ? z : 0.0) - y * z;
    return {value, (z >= 0 ? inverse : e * inverse) - y, e * inverse * inverse, 0.0};
}

// ------------------------------------------------------------------------------------------------- regression

// factor = 2 and tau = 1/2 make it the absolute loss. It has no curvature: 1 makes a tree one of least squares.
EPICYCLE_INLINE LossRow quantile_row(double z, double y, double tau, double factor) {
    const double r = y - z, slope = r > 0 ? tau : r < 0 ? tau - 1.0 : 0.0;
    return {factor * slope * r, -factor * slope, 1.0, 1.0};
}

// Curvature 1 everywhere, which bounds the true one, so that a step never goes beyond the minimum.
EPICYCLE_INLINE LossRow huber_row(double z, double y, double delta) {
    const double r = z - y, a = r < 0 ? -r : r;
    return {a <= delta ? r * r / 2 : delta * (a - delta / 2), a <= delta ? r : (r < 0 ? -delta : delta), 1.0, 1.0};
}

// ------------------------------------------------------------------------------------------------- a row at a time

// Losses that plain_loss knows.
constexpr bool known_plainly(LossId loss) {
    return loss == LossId::squared || loss == LossId::huber || loss == LossId::logistic ||
           (loss >= LossId::hinge && loss <= LossId::squared_epsilon_insensitive);
}

// l(z, y) and its derivative in z; y is -1 or 1 for the losses of classification.
EPICYCLE_INLINE double plain_loss(LossId loss, double epsilon, double z, double y, double &slope) {
    switch (loss) {
        case LossId::hinge:
        case LossId::perceptron: {
            const double short_of = (loss == LossId::hinge ? 1.0 : 0.0) - y * z;
            slope = short_of >= 0.0 ? -y : 0.0;
            return short_of > 0.0 ? short_of : 0.0;
        }
        case LossId::logistic: {
            const double m = y * z, e = std::exp(-std::fabs(m));
            slope = -y * (m > 0.0 ? e : 1.0) / (1.0 + e);
            return (m > 0.0 ? 0.0 : -m) + std::log(1.0 + e);
        }
        case LossId::modified_huber: {
            const double m = y * z;
            if (m >= 1.0) return slope = 0.0;
            slope = m >= -1.0 ? -2.0 * (1.0 - m) * y : -4.0 * y;
            return m >= -1.0 ? (1.0 - m) * (1.0 - m) : -4.0 * m;
        }
        case LossId::squared_hinge: {
            const double short_of = 1.0 - y * z;
            slope = short_of > 0.0 ? -2.0 * y * short_of : 0.0;
            return short_of > 0.0 ? short_of * short_of : 0.0;
        }
        case LossId::squared:
            slope = z - y;
            return 0.5 * slope * slope;
        case LossId::huber: {
            const double r = z - y, size = std::fabs(r);
            slope = size <= epsilon ? r : std::copysign(epsilon, r);
            return size <= epsilon ? 0.5 * r * r : epsilon * size - 0.5 * epsilon * epsilon;
        }
        case LossId::epsilon_insensitive: {
            const double r = z - y, over = std::fabs(r) - epsilon;
            slope = over > 0.0 ? std::copysign(1.0, r) : 0.0;
            return over > 0.0 ? over : 0.0;
        }
        default: {
            const double r = z - y, over = std::fabs(r) - epsilon;
            slope = over > 0.0 ? std::copysign(2.0 * over, r) : 0.0;
            return over > 0.0 ? over * over : 0.0;
        }
    }
}

// ------------------------------------------------------------------------------------------------- margins

// (v)_+ or (v)_+^2 of the violation v = 1 - y z, or |z - y| - epsilon for regression. Of the first the corner can be
// rounded, over this width.
struct MarginLoss {
    bool regression, squared;
    double epsilon, width;

    // v, and in sign the sign of dv/dz.
    EPICYCLE_INLINE double violation(double z, double y, double &sign) const {
        if (regression) {
            const double r = z - y;
            sign = r < 0.0 ? -1.0 : 1.0;
            return std::fabs(r) - epsilon;
        }
        sign = -y;
        return 1.0 - y * z;
    }
};

}  // namespace epicycle
