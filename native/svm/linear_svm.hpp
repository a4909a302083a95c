// Linear support vector machines, the loss of a row and the sums of a pass.
//
// With the score z = b + w'x a row has the violation
//
//     v = 1 - y z          (classification, y = -1 or 1)         v = |z - y| - epsilon          (regression)
//
// and the loss c max(v, 0) or c max(v, 0)^2. For the former a pass also gives the smooth function that is v^2 / (2
// width) for 0 < v < width and v - width / 2 beyond: its slopes are feasible dual variables, a = c clip(v / width, 0,
// 1), and what they lose against the loss itself is the slack, the sum of (c - a) v over 0 < v < width.
#pragma once

#include <cstdint>

#include "core/losses.hpp"
#include "core/sparse.hpp"
#include "linear/logistic.hpp"

namespace epicycle {

struct MarginTotals {
    double loss = 0.0, smooth = 0.0, slack = 0.0, violating = 0.0, curved = 0.0;
};

// From scores to slopes and curvatures of the smooth function, c among them; adds to the totals.
inline void margin_rows(const MarginLoss &loss, const double *z, const double *y, const double *c, std::size_t n,
                        double *slope, double *curvature, MarginTotals &t) {
    for (std::size_t i = 0; i < n; ++i) {
        double sign;
        const double v = loss.violation(z[i], y[i], sign), ci = c ? c[i] : 1.0;
        slope[i] = curvature[i] = 0.0;
        if (!(v > 0.0) || ci == 0.0) continue;
        t.violating += 1.0;
        if (loss.squared) {
            t.loss += ci * v * v;
            slope[i] = 2.0 * ci * v * sign;
            curvature[i] = 2.0 * ci;
            t.curved += 1.0;
            continue;
        }
        t.loss += ci * v;
        if (v < loss.width) {
            const double share = v / loss.width;
            t.smooth += 0.5 * ci * v * share;
            t.slack += ci * v * (1.0 - share);
            slope[i] = ci * share * sign;
            curvature[i] = ci / loss.width;
            t.curved += 1.0;
        } else {
            t.smooth += ci * (v - 0.5 * loss.width);
            slope[i] = ci * sign;
        }
    }
}

// One row times `scale` into slot i of the packed block.
template <class T>
EPICYCLE_INLINE void pack_row_body(const Dense<T> &X, std::size_t row, double scale, PackedRows &ws, std::size_t i) {
    const T *x = X.row(row);
    if (X.col_stride != 1) {
        for (std::size_t j = 0; j < X.cols; ++j)
            ws.column(j)[i * PANEL] = scale * static_cast<double>(x[static_cast<std::int64_t>(j) * X.col_stride]);
        return;
    }
    std::size_t j = 0;
    for (; j + PANEL <= X.cols; j += PANEL) {
        double *out = ws.column(j) + i * PANEL;
        for (std::size_t k = 0; k < PANEL; ++k) out[k] = scale * static_cast<double>(x[j + k]);
    }
    for (; j < X.cols; ++j) ws.column(j)[i * PANEL] = scale * static_cast<double>(x[j]);
}

// g += sum_i r_i x_i over the rows with r_i != 0.
template <class T>
EPICYCLE_INLINE void some_gradient_body(const Dense<T> &X, std::size_t i0, std::size_t n, const double *r, double *g) {
    if (X.col_stride == 1) {
        for (std::size_t i = 0; i < n; ++i) {
            if (r[i] == 0.0) continue;
            const T *x = X.row(i0 + i);
            for (std::size_t j = 0; j < X.cols; ++j) g[j] += r[i] * static_cast<double>(x[j]);
        }
        return;
    }
    for (std::size_t j = 0; j < X.cols; ++j) {
        const T *x = X.col(j) + static_cast<std::int64_t>(i0) * X.row_stride;
        double sum = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            sum += r[i] * static_cast<double>(x[static_cast<std::int64_t>(i) * X.row_stride]);
        g[j] += sum;
    }
}

#define EPICYCLE_PER_TYPE(T)                                                                                         \
    EPICYCLE_CLONES inline void pack_row(const Dense<T> &X, std::size_t row, double scale, PackedRows &ws,           \
                                         std::size_t i) {                                                            \
        pack_row_body(X, row, scale, ws, i);                                                                         \
    }                                                                                                                \
    EPICYCLE_CLONES inline void add_some_gradient(const Dense<T> &X, std::size_t i0, std::size_t n, const double *r, \
                                                  double *g) {                                                       \
        some_gradient_body(X, i0, n, r, g);                                                                          \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

// g: p + 1 entries in (w, b), and as many for the rows with a curvature alone; zero on entry. H: (p + 1) x (p +
// 1).
template <class T>
MarginTotals margin_sums(const Dense<T> &X, const double *y, const double *c, const double *w, double b,
                         const MarginLoss &loss, double *g, double *H) {
    const std::size_t p = X.cols, d = p + 1;
    const std::vector<double> origin(p, 0.0);
    SyrkWorkspace &ws = SyrkWorkspace::of_thread(d);
    MarginTotals totals;
    double z[ROWS], r[ROWS], h[ROWS];
    std::size_t filled = 0;
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        margins(X, i0, n, origin.data(), w, b, z);
        margin_rows(loss, z, y + i0, c ? c + i0 : nullptr, n, r, h, totals);
        add_some_gradient(X, i0, n, r, g);
        for (std::size_t i = 0; i < n; ++i) g[p] += r[i];
        for (std::size_t i = 0; i < n; ++i)
            if (h[i] == 0.0) r[i] = 0.0;
        add_some_gradient(X, i0, n, r, g + d);
        for (std::size_t i = 0; i < n; ++i) g[d + p] += r[i];
        for (std::size_t i = 0; i < n; ++i) {
            if (h[i] == 0.0) continue;
            const double scale = std::sqrt(h[i]);
            pack_row(X, i0 + i, scale, ws, filled);
            ws.column(p)[filled * PANEL] = scale;
            if (++filled == ROWS) {
                ws.accumulate(ROWS);
                filled = 0;
            }
        }
    }
    if (filled > 0) ws.accumulate(filled);
    ws.symmetric(H);
    return totals;
}

// The same for sparse rows; H is zero on entry.
template <class T, class I>
MarginTotals margin_sums(const Csr<T, I> &X, const double *y, const double *c, const double *w, double b,
                         const MarginLoss &loss, double *g, double *H) {
    const std::size_t p = X.cols, d = p + 1;
    MarginTotals totals;
    for (std::size_t i = 0; i < X.rows; ++i) {
        double z = b, r, h;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) z += static_cast<double>(X.data[a]) * w[X.indices[a]];
        margin_rows(loss, &z, y + i, c ? c + i : nullptr, 1, &r, &h, totals);
        if (r == 0.0 && h == 0.0) continue;
        g[p] += r;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) g[X.indices[a]] += r * static_cast<double>(X.data[a]);
        if (h == 0.0) continue;
        g[d + p] += r;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) g[d + X.indices[a]] += r * static_cast<double>(X.data[a]);
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) {
            double *row = H + static_cast<std::size_t>(X.indices[a]) * d;
            const double ha = h * static_cast<double>(X.data[a]);
            for (I e = X.indptr[i]; e < X.indptr[i + 1]; ++e) row[X.indices[e]] += ha * static_cast<double>(X.data[e]);
            row[p] += ha;
        }
        H[p * d + p] += h;
    }
    for (std::size_t j = 0; j < p; ++j) H[p * d + j] = H[j * d + p];
    return totals;
}

}  // namespace epicycle
