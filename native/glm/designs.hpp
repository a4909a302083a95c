// Passes of generalized linear models over designs made of dense columns, sparse columns, and codes of categories.
//
// Codes are never made indicator columns: the Gram matrix of two columns of codes is a table of (weighted) counts of
// pairs, that of codes and dense columns holds sums of the dense rows by level. Coefficients are ordered (dense, levels
// of the first column of codes, of the second, ..., intercept).
#pragma once

#include <algorithm>
#include <vector>

#include "core/sparse.hpp"
#include "glm/families.hpp"

namespace epicycle {

// Columns of codes 0 .. levels-1 stored as floating numbers. Code k of column c has coefficient first[c] + k - skip[c];
// a skipped code (the level that others are compared with) and a code outside the range have none.
template <class T>
struct Codes {
    Dense<T> values;
    const std::int64_t *first, *levels, *skip;

    std::int64_t coefficient(std::size_t i, std::size_t c) const {
        const double code = static_cast<double>(values(i, c));
        if (!(code >= static_cast<double>(skip[c]) && code < static_cast<double>(levels[c]))) return -1;
        return first[c] + static_cast<std::int64_t>(code) - skip[c];
    }
};

// Coefficients of n rows, column after column of codes.
template <class T>
void look_up(const Codes<T> &codes, std::size_t i0, std::size_t n, std::int64_t *at) {
    for (std::size_t c = 0; c < codes.values.cols; ++c)
        for (std::size_t i = 0; i < n; ++i) at[c * ROWS + i] = codes.coefficient(i0 + i, c);
}

// Sums of gradient g (d entries) and, where H is given, of the lower triangle of the Hessian (d x d), both zero on
// entry; d counts dense columns, levels and the intercept. With a metric (d entries) the longest row is measured too.
template <class T, class Rows>
GlmTotals glm_sums(const Dense<T> &X, const Codes<T> &codes, const Rows &rows, const double *shift, const double *coef,
                   double b, const double *metric, std::size_t d, double *g, double *H) {
    constexpr double tiny = 1e-100;  // as in logistic_hessian: keeps r / sqrt(h) finite
    const std::size_t p = X.cols, k = codes.values.cols;
    double z[ROWS], r[ROWS], h[ROWS];
    std::vector<std::int64_t> at(k * ROWS);
    GlmTotals totals;
    SyrkWorkspace *ws = H ? &SyrkWorkspace::of_thread(p + 2) : nullptr;
    const double zero = 0.0, one = 1.0;
    const std::size_t step =
        H ? ROWS : std::max<std::size_t>(8, std::min(ROWS, (std::size_t{1} << 15) / std::max<std::size_t>(p, 1)));
    for (std::size_t i0 = 0; i0 < X.rows; i0 += step) {
        const std::size_t n = std::min(step, X.rows - i0);
        if (k) look_up(codes, i0, n, at.data());
        if (Rows::uses_predictor) {
            margins(X, i0, n, shift, coef, b, z);
            for (std::size_t c = 0; c < k; ++c)
                for (std::size_t i = 0; i < n; ++i)
                    if (at[c * ROWS + i] >= 0) z[i] += coef[at[c * ROWS + i]];
        }
        rows(i0, n, z, r, h, totals);
        if (metric) {
            lengths(X, i0, n, shift, metric, z);
            for (std::size_t c = 0; c < k; ++c)
                for (std::size_t i = 0; i < n; ++i)
                    if (at[c * ROWS + i] >= 0) z[i] += metric[at[c * ROWS + i]];
            for (std::size_t i = 0; i < n; ++i)
                if (h[i] > 0.0) totals.reach = std::max(totals.reach, z[i] + metric[d - 1]);
        }
        for (std::size_t c = 0; c < k; ++c)
            for (std::size_t i = 0; i < n; ++i)
                if (at[c * ROWS + i] >= 0) g[at[c * ROWS + i]] += r[i];
        if (!H) {
            add_gradient(X, i0, n, shift, r, g);
            for (std::size_t i = 0; i < n; ++i) g[d - 1] += r[i];
            continue;
        }
        double root[ROWS];
        for (std::size_t i = 0; i < n; ++i) root[i] = std::sqrt(std::max(h[i], tiny));
        pack(X, i0, n, shift, root, *ws, 0);
        pack(Dense<double>{&one, n, 1, 0, 0}, 0, n, &zero, root, *ws, p);
        double *last = ws->column(p + 1);
        for (std::size_t i = 0; i < n; ++i) last[i * PANEL] = r[i] / root[i];
        ws->accumulate(n);
        for (std::size_t c = 0; c < k; ++c)
            for (std::size_t i = 0; i < n; ++i) {
                const std::int64_t j = at[c * ROWS + i];
                if (j < 0) continue;
                double *row = H + static_cast<std::size_t>(j) * d;
                for (std::size_t q = 0; q < p; q += PANEL) {
                    const double *x = ws->column(q) + i * PANEL;
                    const std::size_t width = std::min(PANEL, p - q);
                    for (std::size_t m = 0; m < width; ++m) row[q + m] += root[i] * x[m];
                }
                for (std::size_t f = 0; f < c; ++f)
                    if (at[f * ROWS + i] >= 0) row[at[f * ROWS + i]] += h[i];
                row[j] += h[i];
                H[(d - 1) * d + static_cast<std::size_t>(j)] += h[i];
            }
    }
    if (H) {
        const std::size_t ldc = panels(p + 2) * PANEL;
        for (std::size_t i = 0; i <= p; ++i) {
            const std::size_t row = i == p ? d - 1 : i;
            g[row] += ws->c[(p + 1) * ldc + i];
            for (std::size_t j = 0; j <= i; ++j) H[row * d + (j == p ? d - 1 : j)] += ws->c[i * ldc + j];
        }
    }
    return totals;
}

// The same for sparse columns.
template <class T, class I, class Rows>
GlmTotals glm_sums(const Csr<T, I> &X, const Rows &rows, const double *coef, double b, const double *metric, double *g,
                   double *H) {
    const std::size_t p = X.cols, d = p + 1;
    double z[ROWS], r[ROWS], h[ROWS];
    GlmTotals totals;
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        if (Rows::uses_predictor)
            for (std::size_t i = 0; i < n; ++i) {
                double sum = b;
                for (I a = X.indptr[i0 + i]; a < X.indptr[i0 + i + 1]; ++a)
                    sum += static_cast<double>(X.data[a]) * coef[X.indices[a]];
                z[i] = sum;
            }
        rows(i0, n, z, r, h, totals);
        for (std::size_t i = 0; i < n; ++i) {
            g[p] += r[i];
            const I from = X.indptr[i0 + i], to = X.indptr[i0 + i + 1];
            if (metric && h[i] > 0.0) {
                double length = metric[p];
                for (I a = from; a < to; ++a) {
                    const double v = static_cast<double>(X.data[a]);
                    length += metric[X.indices[a]] * v * v;
                }
                totals.reach = std::max(totals.reach, length);
            }
            for (I a = from; a < to; ++a) {
                const double xa = static_cast<double>(X.data[a]);
                g[X.indices[a]] += r[i] * xa;
                if (!H) continue;
                const double hx = h[i] * xa;
                double *row = H + static_cast<std::size_t>(X.indices[a]) * d;
                // Columns of a row may stand in any order: the lower triangle is taken by comparison.
                for (I c = from; c < to; ++c)
                    if (X.indices[c] <= X.indices[a]) row[X.indices[c]] += hx * static_cast<double>(X.data[c]);
                H[p * d + static_cast<std::size_t>(X.indices[a])] += hx;
            }
            if (H) H[d * d - 1] += h[i];
        }
    }
    return totals;
}

}  // namespace epicycle
