// One pass of Huber's regression with a scale: residuals r = y - b - (x - shift)'w are inliers while |r| <= limit.
//
// Out come the weighted second moments of (x - shift, 1, r) over the inliers, the sum of sign(r) (x - shift, 1) over
// the outliers, the outliers' weight, their sum of |r|, and their number: all that the objective, its gradient and its
// Hessian need. And the largest |r| of an inlier.
#pragma once

#include "linear/quantile_regression.hpp"

namespace epicycle {

struct HuberTotals {
    double weight = 0.0, outlier_weight = 0.0, outlier_sum = 0.0, outliers = 0.0, largest_inlier = 0.0;
};

// Turns z = b + (x - shift)'w into residuals r; scale = sqrt(weight) for inliers and 0 for outliers, sign = +-weight
// for outliers and 0 for inliers.
inline void huber_rows(const double *z, const double *y, const double *weight, std::size_t n, double limit, double *r,
                       double *scale, double *sign, HuberTotals &totals) {
    for (std::size_t i = 0; i < n; ++i) {
        const double v = weight ? weight[i] : 1.0;
        r[i] = y[i] - z[i];
        totals.weight += v;
        if (std::fabs(r[i]) <= limit) {
            scale[i] = std::sqrt(v), sign[i] = 0.0;
            if (v > 0.0) totals.largest_inlier = std::max(totals.largest_inlier, std::fabs(r[i]));
            continue;
        }
        scale[i] = 0.0, sign[i] = r[i] > 0.0 ? v : -v;
        totals.outlier_weight += v;
        totals.outlier_sum += v * std::fabs(r[i]);
        if (v > 0.0) totals.outliers += 1.0;
    }
}

// M: (p + 2) x (p + 2), of (x - shift, 1, r) over the inliers; o: p + 1 entries, zero on entry.
template <class T>
HuberTotals huber_sums(const Dense<T> &X, const double *y, const double *weight, const double *shift, const double *w,
                       double b, double limit, double *M, double *o) {
    const std::size_t p = X.cols, d = p + 2;
    SyrkWorkspace &ws = SyrkWorkspace::of_thread(d);
    HuberTotals totals;
    double z[ROWS], r[ROWS], scale[ROWS], sign[ROWS];
    const double zero = 0.0, one = 1.0;
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        margins(X, i0, n, shift, w, b, z);
        const double outside = totals.outliers;
        huber_rows(z, y + i0, weight ? weight + i0 : nullptr, n, limit, r, scale, sign, totals);
        pack(X, i0, n, shift, scale, ws, 0);
        pack(Dense<double>{&one, n, 1, 0, 0}, 0, n, &zero, scale, ws, p);
        pack(Dense<double>{r, n, 1, 1, 1}, 0, n, &zero, scale, ws, p + 1);
        ws.accumulate(n);
        if (totals.outliers == outside) continue;
        add_gradient(X, i0, n, shift, sign, o);
        for (std::size_t i = 0; i < n; ++i) o[p] += sign[i];
    }
    ws.symmetric(M);
    return totals;
}

// The same for sparse rows, which are not shifted; M is zero on entry.
template <class T, class I>
HuberTotals huber_sums(const Csr<T, I> &X, const double *y, const double *weight, const double *, const double *w,
                       double b, double limit, double *M, double *o) {
    const std::size_t p = X.cols, d = p + 2;
    HuberTotals totals;
    for (std::size_t i = 0; i < X.rows; ++i) {
        double z = b, r, scale, sign;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) z += static_cast<double>(X.data[a]) * w[X.indices[a]];
        huber_rows(&z, y + i, weight ? weight + i : nullptr, 1, limit, &r, &scale, &sign, totals);
        const double v = scale * scale;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) {
            const std::size_t j = static_cast<std::size_t>(X.indices[a]);
            const double xa = static_cast<double>(X.data[a]);
            o[j] += sign * xa;
            if (v == 0.0) continue;
            for (I e = X.indptr[i]; e < X.indptr[i + 1]; ++e)
                M[j * d + X.indices[e]] += v * xa * static_cast<double>(X.data[e]);
            M[j * d + p] += v * xa;
            M[j * d + p + 1] += v * xa * r;
        }
        o[p] += sign;
        M[p * d + p] += v;
        M[p * d + p + 1] += v * r;
        M[(p + 1) * d + p + 1] += v * r * r;
    }
    for (std::size_t i = p; i < d; ++i)
        for (std::size_t j = 0; j < i; ++j) M[i * d + j] = M[j * d + i];
    return totals;
}

}  // namespace epicycle
