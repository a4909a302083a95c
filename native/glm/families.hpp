// Rows of generalized linear models: what a row adds to the loss, its gradient and its curvature in eta.
//
// The loss of a row is half its unit deviance up to a term of y alone. For every family and link that is known here, a
// row gives loss, r = dloss/deta, the curvature h = d2loss/deta2 (observed), and its expectation e over y (Fisher).
#pragma once

#include "core/losses.hpp"
#include "linear/logistic.hpp"

namespace epicycle {

#define EPICYCLE_GLM_ROWS(NAME)                                                                                  \
    EPICYCLE_CLONES inline void NAME##_rows(const double *z, const double *y, std::size_t n, double a, double b, \
                                            double *loss, double *r, double *h, double *e) {                     \
        for (std::size_t i = 0; i < n; ++i) {                                                                    \
            const LossRow row = NAME##_row(z[i], y[i], a, b);                                                    \
            loss[i] = row.value;                                                                                 \
            r[i] = row.slope;                                                                                    \
            h[i] = row.curvature;                                                                                \
            e[i] = row.expected;                                                                                 \
        }                                                                                                        \
    }
EPICYCLE_GLM_ROWS(squared)
EPICYCLE_GLM_ROWS(binomial)
EPICYCLE_GLM_ROWS(poisson)
EPICYCLE_GLM_ROWS(gamma)
EPICYCLE_GLM_ROWS(tweedie)
EPICYCLE_GLM_ROWS(negative_binomial)
#undef EPICYCLE_GLM_ROWS

// What a pass adds up besides gradient and Hessian: the loss, Pearson's statistic r^2 / e, and two numbers that tell
// how far rows can move: the least curvature of a row of positive weight, and the largest squared length of a row, its
// columns scaled by a given metric.
struct GlmTotals {
    double loss = 0.0, pearson = 0.0, least = INFINITY, reach = 0.0;
};

// Squared lengths sum_j metric_j (x_ij - shift_j)^2 of rows i0 .. i0+n.
template <class T>
EPICYCLE_INLINE void lengths_body(const Dense<T> &X, std::size_t i0, std::size_t n, const double *shift,
                                  const double *metric, double *out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = 0.0;
    if (X.col_stride == 1) {
        for (std::size_t i = 0; i < n; ++i) {
            const T *x = X.row(i0 + i);
            double part[8] = {}, rest = 0.0;
            std::size_t j = 0;
            for (; j + 8 <= X.cols; j += 8)
                for (std::size_t k = 0; k < 8; ++k) {
                    const double v = static_cast<double>(x[j + k]) - shift[j + k];
                    part[k] += metric[j + k] * v * v;
                }
            for (; j < X.cols; ++j) {
                const double v = static_cast<double>(x[j]) - shift[j];
                rest += metric[j] * v * v;
            }
            for (std::size_t k = 0; k < 8; ++k) rest += part[k];
            out[i] = rest;
        }
        return;
    }
    for (std::size_t j = 0; j < X.cols; ++j) {
        const T *x = X.col(j) + static_cast<std::int64_t>(i0) * X.row_stride;
        for (std::size_t i = 0; i < n; ++i) {
            const double v = static_cast<double>(x[static_cast<std::int64_t>(i) * X.row_stride]) - shift[j];
            out[i] += metric[j] * v * v;
        }
    }
}
EPICYCLE_CLONES inline void lengths(const Dense<double> &X, std::size_t i0, std::size_t n, const double *shift,
                                    const double *metric, double *out) {
    lengths_body(X, i0, n, shift, metric, out);
}
EPICYCLE_CLONES inline void lengths(const Dense<float> &X, std::size_t i0, std::size_t n, const double *shift,
                                    const double *metric, double *out) {
    lengths_body(X, i0, n, shift, metric, out);
}

using FamilyLoop = void (*)(const double *, const double *, std::size_t, double, double, double *, double *, double *,
                            double *);

// The loop over rows of a family, null where it is not known here.
inline FamilyLoop family_rows(LossId kind) {
    switch (kind) {
        case LossId::squared:
            return squared_rows;
        case LossId::logistic:
            return binomial_rows;
        case LossId::poisson:
            return poisson_rows;
        case LossId::gamma:
            return gamma_rows;
        case LossId::tweedie:
            return tweedie_rows;
        case LossId::negative_binomial:
            return negative_binomial_rows;
        default:
            return nullptr;
    }
}

struct FamilyRows {
    LossId kind;
    double a, b;
    bool expected;
    const double *y, *weight, *offset;

    static constexpr bool uses_predictor = true;

    // From eta without its offset to weighted residuals r and curvatures h of rows i0 .. i0+n.
    void operator()(std::size_t i0, std::size_t n, double *z, double *r, double *h, GlmTotals &totals) const {
        double loss[ROWS], e[ROWS];
        if (offset)
            for (std::size_t i = 0; i < n; ++i) z[i] += offset[i0 + i];
        family_rows(kind)(z, y + i0, n, a, b, loss, r, h, e);
        for (std::size_t i = 0; i < n; ++i) {
            const double w = weight ? weight[i0 + i] : 1.0;
            if (w == 0.0) {  // the row does not exist, whatever it holds
                r[i] = h[i] = 0.0;
                continue;
            }
            totals.loss += w * loss[i];
            if (e[i] > 0.0) totals.pearson += w * r[i] * r[i] / e[i];
            r[i] *= w;
            h[i] = w * (expected ? e[i] : h[i]);
            if (h[i] < totals.least) totals.least = h[i];
        }
    }
};

// Rows whose weighted residuals and curvatures (none below zero) were computed elsewhere.
struct GivenTerms {
    const double *given_r, *given_h;

    static constexpr bool uses_predictor = false;

    void operator()(std::size_t i0, std::size_t n, double *, double *r, double *h, GlmTotals &) const {
        for (std::size_t i = 0; i < n; ++i) r[i] = given_r[i0 + i], h[i] = given_h ? given_h[i0 + i] : 0.0;
    }
};

}  // namespace epicycle
