// Contrast functions of independent component analysis: g(y) in place of y, with sums of the function and of g' over
// the rows of a block.
//
//   logcosh  log cosh(a y) / a          g = tanh(a y)
//   exp      -exp(-y^2 / 2)             g = y exp(-y^2 / 2)
//   cube     y^4 / 4                    g = y^3
//   logistic |y| + 2 log(1 + e^-|y|)    g = tanh(y / 2)            minus the log density of a logistic source
//   laplace  r = sqrt(y^2 + a^2)        g = y / r                  that of a Laplace source, rounded off at zero
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/simd.hpp"

namespace epicycle {

enum class Contrast : int { logcosh, exp, cube, logistic, laplace };

struct ContrastAt {
    double value, g, slope;
};

// tanh(x): odd polynomial where 1 - exp(-2 |x|) would cancel.
EPICYCLE_INLINE double tanh_of(double x, double e) {
    const double q = x * x;
    const double near = x * (1.0 + q * (-1.0 / 3.0 + q * (2.0 / 15.0 + q * (-17.0 / 315.0 + q * (62.0 / 2835.0)))));
    const double far = (1.0 - e) / (1.0 + e);
    return std::fabs(x) < 0.05 ? near : x < 0.0 ? -far : far;
}

template <Contrast KIND, bool VALUES>
EPICYCLE_INLINE ContrastAt contrast_at(double y, double a) {
    if constexpr (KIND == Contrast::logcosh) {
        const double x = a * y, e = exp_nonpositive(-2.0 * std::fabs(x)), t = tanh_of(x, e);
        const double value = VALUES ? (std::fabs(x) + log1p_unit(e) - 0.69314718055994530942) / a : 0.0;
        return {value, t, 4.0 * a * e / ((1.0 + e) * (1.0 + e))};
    } else if constexpr (KIND == Contrast::exp) {
        const double e = exp_nonpositive(-0.5 * y * y);
        return {-e, e == 0.0 ? 0.0 : y * e, e == 0.0 ? 0.0 : (1.0 - y * y) * e};
    } else if constexpr (KIND == Contrast::cube) {
        const double q = y * y;
        return {0.25 * q * q, y * q, 3.0 * q};
    } else if constexpr (KIND == Contrast::logistic) {
        const double e = exp_nonpositive(-std::fabs(y)), t = tanh_of(0.5 * y, e);
        return {VALUES ? std::fabs(y) + 2.0 * log1p_unit(e) : 0.0, t, 2.0 * e / ((1.0 + e) * (1.0 + e))};
    } else {
        const double far = std::fabs(y), r = far > 1e150 ? far : std::sqrt(y * y + a * a), s = a / r;
        return {r, y / r, s * s / r};
    }
}

constexpr std::size_t CONTRAST_ROWS = 256;

// One piece of at most CONTRAST_ROWS numbers: y becomes g, w g with weights; `slopes` and `values` are written.
#define EPICYCLE_CONTRAST(NAME, KIND)                                                                                \
    EPICYCLE_CLONES inline void NAME(double *y, const double *w, std::size_t n, double a, bool want, double *slopes, \
                                     double *values) {                                                               \
        if (want)                                                                                                    \
            for (std::size_t i = 0; i < n; ++i) {                                                                    \
                const ContrastAt at = contrast_at<KIND, true>(y[i], a);                                              \
                y[i] = at.g, slopes[i] = at.slope, values[i] = at.value;                                             \
            }                                                                                                        \
        else                                                                                                         \
            for (std::size_t i = 0; i < n; ++i) {                                                                    \
                const ContrastAt at = contrast_at<KIND, false>(y[i], a);                                             \
                y[i] = at.g, slopes[i] = at.slope, values[i] = 0.0;                                                  \
            }                                                                                                        \
        if (w)                                                                                                       \
            for (std::size_t i = 0; i < n; ++i) {                                                                    \
                y[i] = w[i] > 0.0 ? w[i] * y[i] : 0.0;                                                               \
                slopes[i] = w[i] > 0.0 ? w[i] * slopes[i] : 0.0;                                                     \
                values[i] = w[i] > 0.0 ? w[i] * values[i] : 0.0;                                                     \
            }                                                                                                        \
    }
EPICYCLE_CONTRAST(contrast_logcosh, Contrast::logcosh)
EPICYCLE_CONTRAST(contrast_exp, Contrast::exp)
EPICYCLE_CONTRAST(contrast_cube, Contrast::cube)
EPICYCLE_CONTRAST(contrast_logistic, Contrast::logistic)
EPICYCLE_CONTRAST(contrast_laplace, Contrast::laplace)
#undef EPICYCLE_CONTRAST

// The sum with eight partial sums: the same bits for every width of the registers.
EPICYCLE_CLONES inline double sum_of(const double *x, std::size_t n) {
    double part[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t c = 0; c < 8; ++c) part[c] += x[i + c];
    for (; i < n; ++i) part[0] += x[i];
    for (std::size_t width = 4; width > 0; width /= 2)
        for (std::size_t c = 0; c < width; ++c) part[c] += part[c + width];
    return part[0];
}

// Y: k signals of n numbers, one after the other. `slope_rows`, where given, keeps w g' in the layout of Y.
inline void contrast(double *Y, std::size_t k, std::size_t n, const double *weight, Contrast kind, double a, bool want,
                     double *slope_rows, double *values, double *slopes) {
    const auto function = kind == Contrast::logcosh    ? contrast_logcosh
                          : kind == Contrast::exp      ? contrast_exp
                          : kind == Contrast::cube     ? contrast_cube
                          : kind == Contrast::logistic ? contrast_logistic
                                                       : contrast_laplace;
    double slope[CONTRAST_ROWS], value[CONTRAST_ROWS];
    for (std::size_t j = 0; j < k; ++j)
        for (std::size_t i = 0; i < n; i += CONTRAST_ROWS) {
            const std::size_t m = std::min(CONTRAST_ROWS, n - i);
            double *kept = slope_rows ? slope_rows + j * n + i : slope;
            function(Y + j * n + i, weight ? weight + i : nullptr, m, a, want, kept, value);
            slopes[j] += sum_of(kept, m);
            values[j] += sum_of(value, m);
        }
}

}  // namespace epicycle
