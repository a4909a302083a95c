// The second moments of z = (x - shift_x, y - shift_y, 1), weighted: M = sum_i w_i z_i z_i'.
//
// M holds everything that least squares needs: X'WX, X'WY, Y'WY, the sums and the total weight. Subtracting a constant
// near the mean first keeps it exact for data far from the origin.
#pragma once

#include <cmath>

#include "core/dense.hpp"
#include "core/sparse.hpp"
#include "core/syrk.hpp"

namespace epicycle {

// Writes scale_i * (x_ij - shift_j) for rows i0 .. i0+n and all columns of X into columns at .. of the packed block.
template <class T>
EPICYCLE_INLINE void pack_body(const Dense<T> &X, std::size_t i0, std::size_t n, const double *shift,
                               const double *scale, PackedRows &ws, std::size_t at) {
    if (X.col_stride == 1) {
        // Row-major: a row is read from end to end, so that memory is streamed; its runs go to one panel each.
        for (std::size_t i = 0; i < n; ++i) {
            const T *x = X.row(i0 + i);
            const double s = scale[i];
            std::size_t j = 0;
            if (at % PANEL == 0)
                for (; j + PANEL <= X.cols; j += PANEL) {
                    double *out = ws.column(at + j) + i * PANEL;
                    for (std::size_t k = 0; k < PANEL; ++k) out[k] = s * (static_cast<double>(x[j + k]) - shift[j + k]);
                }
            for (; j < X.cols; ++j) ws.column(at + j)[i * PANEL] = s * (static_cast<double>(x[j]) - shift[j]);
        }
        return;
    }
    for (std::size_t j = 0; j < X.cols; ++j) {
        double *out = ws.column(at + j);
        const T *x = X.col(j) + static_cast<std::int64_t>(i0) * X.row_stride;
        const double c = shift[j];
        for (std::size_t i = 0; i < n; ++i)
            out[i * PANEL] = scale[i] * (static_cast<double>(x[static_cast<std::int64_t>(i) * X.row_stride]) - c);
    }
}

EPICYCLE_CLONES inline void pack(const Dense<double> &X, std::size_t i0, std::size_t n, const double *shift,
                                 const double *scale, PackedRows &ws, std::size_t at) {
    pack_body(X, i0, n, shift, scale, ws, at);
}
EPICYCLE_CLONES inline void pack(const Dense<float> &X, std::size_t i0, std::size_t n, const double *shift,
                                 const double *scale, PackedRows &ws, std::size_t at) {
    pack_body(X, i0, n, shift, scale, ws, at);
}

// out: d x d with d = p + k + 1. weight may be null (ones).
template <class T>
void moments(const Dense<T> &X, const Dense<double> &Y, const double *weight, const double *shift, double *out) {
    const std::size_t d = X.cols + Y.cols + 1;
    SyrkWorkspace &ws = SyrkWorkspace::of_thread(d);
    const double zero = 0.0;
    double scale[ROWS];
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        for (std::size_t i = 0; i < n; ++i) scale[i] = weight ? std::sqrt(weight[i0 + i]) : 1.0;
        pack(X, i0, n, shift, scale, ws, 0);
        pack(Y, i0, n, shift + X.cols, scale, ws, X.cols);
        const double one = 1.0;
        pack(Dense<double>{&one, n, 1, 0, 0}, 0, n, &zero, scale, ws, d - 1);
        ws.accumulate(n);
    }
    ws.symmetric(out);
}

// The same for CSR rows, which are not shifted: z = (x, y - shift_y, 1). M is zero on entry.
template <class T, class I>
void moments(const Csr<T, I> &X, const Dense<double> &Y, const double *weight, const double *shift, double *M) {
    const std::size_t p = X.cols, k = Y.cols, d = p + k + 1;
    const double *shift_y = shift + p;
    for (std::size_t i = 0; i < X.rows; ++i) {
        const double w = weight ? weight[i] : 1.0;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) {
            double *row = M + static_cast<std::size_t>(X.indices[a]) * d;
            const double xa = w * static_cast<double>(X.data[a]);
            for (I c = X.indptr[i]; c < X.indptr[i + 1]; ++c) row[X.indices[c]] += xa * static_cast<double>(X.data[c]);
            for (std::size_t t = 0; t < k; ++t) row[p + t] += xa * (Y(i, t) - shift_y[t]);
            row[d - 1] += xa;
        }
        for (std::size_t t = 0; t < k; ++t) {
            const double yt = w * (Y(i, t) - shift_y[t]);
            for (std::size_t u = 0; u < k; ++u) M[(p + t) * d + p + u] += yt * (Y(i, u) - shift_y[u]);
            M[(p + t) * d + d - 1] += yt;
        }
        M[d * d - 1] += w;
    }
    for (std::size_t i = p; i < d; ++i)
        for (std::size_t j = 0; j < i; ++j) M[i * d + j] = M[j * d + i];
}

}  // namespace epicycle
