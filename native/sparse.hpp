// The same statistics for CSR rows, with 32- or 64-bit indices. Sparse data is not shifted: most of it is zero.
#pragma once

#include <cstddef>
#include <cstdint>

#include "logistic.hpp"

namespace epicycle {

template <class T, class I>
struct Csr {
    const T *data;
    const I *indices, *indptr;
    std::size_t rows, cols;
};

// M += sum_i w_i z_i z_i' with z = (x, y - shift_y, 1); M is d x d, d = p + k + 1, zero on entry.
template <class T, class I>
void moments(const Csr<T, I> &X, const Dense<double> &Y, const double *weight, const double *shift_y, double *M) {
    const std::size_t p = X.cols, k = Y.cols, d = p + k + 1;
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

// Loss and gradient (zero on entry) and the second derivative in b; with H also the Hessian in (w, b), (p + 1) x (p +
// 1), zero on entry.
template <class T, class I>
double logistic(const Csr<T, I> &X, const double *y, const double *weight, const double *w, double b, double *g,
                double &curvature, double *H) {
    const std::size_t p = X.cols;
    double z[ROWS], r[ROWS], h[ROWS], loss = 0.0;
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        for (std::size_t i = 0; i < n; ++i) {
            double sum = b;
            for (I a = X.indptr[i0 + i]; a < X.indptr[i0 + i + 1]; ++a)
                sum += static_cast<double>(X.data[a]) * w[X.indices[a]];
            z[i] = sum;
        }
        loss += logistic_rows(z, y + i0, weight ? weight + i0 : nullptr, n, r, h);
        for (std::size_t i = 0; i < n; ++i) {
            g[p] += r[i];
            curvature += h[i];
            for (I a = X.indptr[i0 + i]; a < X.indptr[i0 + i + 1]; ++a) {
                const double xa = static_cast<double>(X.data[a]);
                g[X.indices[a]] += r[i] * xa;
                if (!H) continue;
                double *row = H + static_cast<std::size_t>(X.indices[a]) * (p + 1);
                const double hx = h[i] * xa;
                for (I c = X.indptr[i0 + i]; c < X.indptr[i0 + i + 1]; ++c)
                    row[X.indices[c]] += hx * static_cast<double>(X.data[c]);
                row[p] += hx;
            }
            if (H) H[(p + 1) * (p + 1) - 1] += h[i];
        }
    }
    if (H)
        for (std::size_t j = 0; j < p; ++j) H[p * (p + 1) + j] = H[j * (p + 1) + p];
    return loss;
}

// Every index inside the matrix and every row pointer in order: checked before a kernel follows them.
template <class T, class I>
bool well_formed(const Csr<T, I> &X, std::size_t nnz) {
    if (X.indptr[0] < 0 || static_cast<std::size_t>(X.indptr[X.rows]) > nnz) return false;
    for (std::size_t i = 0; i < X.rows; ++i)
        if (X.indptr[i] > X.indptr[i + 1]) return false;
    for (I a = X.indptr[0]; a < X.indptr[X.rows]; ++a)
        if (X.indices[a] < 0 || static_cast<std::size_t>(X.indices[a]) >= X.cols) return false;
    return true;
}

}  // namespace epicycle
