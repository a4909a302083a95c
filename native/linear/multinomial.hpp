// One fused pass of softmax regression over a block of rows, labels y in 0 .. K-1.
//
// With z_i = b + W (x_i - shift) and p_i = softmax(z_i): loss sum_i w_i (log sum_k e^{z_ik} - z_{i y_i}), gradient
// sum_i w_i (p_i - e_{y_i}) (x_i - shift, 1)'. Classes lie in vector lanes, padded to a multiple of PANEL; rows are
// copied once into a buffer that stays in the cache for both products, so X is read from memory once.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/sparse.hpp"

namespace epicycle {

// C (m x PANEL, leading dimension ldc) += A B for A(h, k) = a[h * ah + k * ak], h < m, k < n, and B of n rows of stride
// ldb.
template <class V, int L, int HEIGHT>
EPICYCLE_INLINE void panel_product(const double *a, std::size_t ah, std::size_t ak, std::size_t m, const double *b,
                                   std::size_t ldb, std::size_t n, double *c, std::size_t ldc) {
    std::size_t h = 0;
    for (; h + HEIGHT <= m; h += HEIGHT) tile<V, L, HEIGHT, PANEL>(a + h * ah, ah, ak, b, ldb, n, c + h * ldc, ldc);
    for (; h < m; ++h) tile<V, L, 1, PANEL>(a + h * ah, ah, ak, b, ldb, n, c + h * ldc, ldc);
}

EPICYCLE_V4 inline void panel_product_v4(const double *a, std::size_t ah, std::size_t ak, std::size_t m,
                                         const double *b, std::size_t ldb, std::size_t n, double *c, std::size_t ldc) {
    panel_product<v8d, 8, 8>(a, ah, ak, m, b, ldb, n, c, ldc);
}
EPICYCLE_V3 inline void panel_product_v3(const double *a, std::size_t ah, std::size_t ak, std::size_t m,
                                         const double *b, std::size_t ldb, std::size_t n, double *c, std::size_t ldc) {
    panel_product<v4d, 4, 2>(a, ah, ak, m, b, ldb, n, c, ldc);
}
inline void multiply_panel(const double *a, std::size_t ah, std::size_t ak, std::size_t m, const double *b,
                           std::size_t ldb, std::size_t n, double *c, std::size_t ldc) {
    switch (isa()) {
        case Isa::avx512:
            return panel_product_v4(a, ah, ak, m, b, ldb, n, c, ldc);
        case Isa::avx2:
            return panel_product_v3(a, ah, ak, m, b, ldb, n, c, ldc);
        default:
            return panel_product<v2d, 2, 1>(a, ah, ak, m, b, ldb, n, c, ldc);
    }
}

// Turns margins z (n x lanes, the padding at -inf) into probabilities; returns the weighted loss.
EPICYCLE_CLONES inline double softmax_rows(double *z, const std::int64_t *y, const double *weight, std::size_t n,
                                           std::size_t lanes) {
    double loss = 0.0;
    for (std::size_t i = 0; i < n; ++i, z += lanes) {
        double top[PANEL], total[PANEL] = {};
        for (std::size_t k = 0; k < PANEL; ++k) top[k] = z[k];
        for (std::size_t q = PANEL; q < lanes; q += PANEL)
            for (std::size_t k = 0; k < PANEL; ++k) top[k] = top[k] < z[q + k] ? z[q + k] : top[k];
        double largest = top[0];
        for (std::size_t k = 1; k < PANEL; ++k) largest = largest < top[k] ? top[k] : largest;
        const double own = z[y[i]];
        for (std::size_t q = 0; q < lanes; q += PANEL)
            for (std::size_t k = 0; k < PANEL; ++k) {
                z[q + k] = exp_nonpositive(z[q + k] - largest);
                total[k] += z[q + k];
            }
        double sum = 0.0;
        for (std::size_t k = 0; k < PANEL; ++k) sum += total[k];
        const double scale = 1.0 / sum;
        for (std::size_t k = 0; k < lanes; ++k) z[k] *= scale;
        loss += (weight ? weight[i] : 1.0) * (std::log(sum) - (own - largest));
    }
    return loss;
}

// params: K x (p + 1), row-major, the intercept last. g: likewise, zero on entry. in_b: K x K second derivatives in b,
// zero on entry, or null. Labels were checked to lie in 0 .. K-1.
template <class T>
double multinomial_gradient(const Dense<T> &X, const std::int64_t *y, const double *weight, const double *shift,
                            const double *params, std::size_t K, double *g, double *in_b) {
    using Buffer = std::vector<double, CacheAligned<double>>;
    const std::size_t p = X.cols, lanes = panels(K) * PANEL;
    // As many rows as fit half of a second-level cache, at least one tile's height.
    const std::size_t step =
        std::max<std::size_t>(8, std::min<std::size_t>(ROWS, (std::size_t{1} << 16) / (p + 1)) / 8 * 8);
    PackedRows rows(p);
    Buffer W(p * lanes), G(p * lanes), z(step * lanes), b(lanes, -std::numeric_limits<double>::infinity());
    const std::vector<double> ones(step, 1.0);
    for (std::size_t k = 0; k < K; ++k) {
        for (std::size_t j = 0; j < p; ++j) W[j * lanes + k] = params[k * (p + 1) + j];
        b[k] = params[k * (p + 1) + p];
    }
    double loss = 0.0;
    for (std::size_t i0 = 0; i0 < X.rows; i0 += step) {
        const std::size_t n = std::min(step, X.rows - i0);
        pack(X, i0, n, shift, ones.data(), rows, 0);
        for (std::size_t i = 0; i < n; ++i) std::copy(b.begin(), b.end(), z.data() + i * lanes);
        for (std::size_t j = 0; j < p; j += PANEL)
            for (std::size_t q = 0; q < lanes; q += PANEL)
                multiply_panel(rows.column(j), PANEL, 1, n, W.data() + j * lanes + q, lanes, std::min(PANEL, p - j),
                               z.data() + q, lanes);
        loss += softmax_rows(z.data(), y + i0, weight ? weight + i0 : nullptr, n, lanes);
        for (std::size_t i = 0; i < n; ++i) {
            double *r = z.data() + i * lanes;
            const double w = weight ? weight[i0 + i] : 1.0;
            if (in_b)
                for (std::size_t k = 0; k < K; ++k) {
                    const double wp = w * r[k];
                    in_b[k * K + k] += wp;
                    for (std::size_t m = 0; m < K; ++m) in_b[k * K + m] -= wp * r[m];
                }
            r[y[i0 + i]] -= 1.0;
            if (weight)
                for (std::size_t k = 0; k < K; ++k) r[k] *= w;
            for (std::size_t k = 0; k < K; ++k) g[k * (p + 1) + p] += r[k];
        }
        for (std::size_t j = 0; j < p; j += PANEL)
            for (std::size_t q = 0; q < lanes; q += PANEL)
                multiply_panel(rows.column(j), 1, PANEL, std::min(PANEL, p - j), z.data() + q, lanes, n,
                               G.data() + j * lanes + q, lanes);
    }
    for (std::size_t k = 0; k < K; ++k)
        for (std::size_t j = 0; j < p; ++j) g[k * (p + 1) + j] = G[j * lanes + k];
    return loss;
}

// sum_i w_i (diag(p_i) - p_i p_i') (x) (x_i, 1)(x_i, 1)' for CSR rows and class probabilities P (n x K, row-major); H
// is (K (p + 1))^2, zero on entry. Only stored entries are touched.
template <class T, class I>
void multinomial_curvature(const Csr<T, I> &X, const double *weight, const double *P, std::size_t K, double *H) {
    const std::size_t d = X.cols + 1, size = K * d;
    std::vector<std::size_t> at;
    std::vector<double> value;
    for (std::size_t i = 0; i < X.rows; ++i) {
        at.assign(1, X.cols), value.assign(1, 1.0);
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) {
            at.push_back(static_cast<std::size_t>(X.indices[a]));
            value.push_back(static_cast<double>(X.data[a]));
        }
        const double *p = P + i * K, w = weight ? weight[i] : 1.0;
        for (std::size_t k = 0; k < K; ++k)
            for (std::size_t m = 0; m <= k; ++m) {
                const double h = w * p[k] * ((k == m ? 1.0 : 0.0) - p[m]);
                for (std::size_t a = 0; a < at.size(); ++a) {
                    double *row = H + (k * d + at[a]) * size + m * d;
                    const double hx = h * value[a];
                    for (std::size_t c = 0; c < at.size(); ++c) row[at[c]] += hx * value[c];
                }
            }
    }
    for (std::size_t k = 0; k < K; ++k)
        for (std::size_t m = 0; m < k; ++m)
            for (std::size_t a = 0; a < d; ++a)
                for (std::size_t c = 0; c < d; ++c)
                    H[(m * d + c) * size + k * d + a] = H[(k * d + a) * size + m * d + c];
}

}  // namespace epicycle
