// Normal densities with independent columns, and the moments of rows weighted by states. Rows have few columns, so that
// states lie side by side in the lanes of a register. Missing entries are NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t LANES = 8;

// A table (K, p) in tiles (tile, column, lane), with `fill` in the lanes beyond K.
inline std::vector<double> in_lanes(const double *x, std::size_t k, std::size_t p, double fill) {
    const std::size_t tiles = (k + LANES - 1) / LANES;
    std::vector<double> out(tiles * p * LANES, fill);
    for (std::size_t c = 0; c < k; ++c)
        for (std::size_t j = 0; j < p; ++j) out[(c / LANES * p + j) * LANES + c % LANES] = x[c * p + j];
    return out;
}

struct DiagonalNormals {
    std::size_t k, p, tiles;
    std::vector<double> mean, variance, precision, log_norm, total;

    DiagonalNormals(const double *m, const double *v, std::size_t k, std::size_t p)
        : k(k), p(p), tiles((k + LANES - 1) / LANES), mean(in_lanes(m, k, p, 0.0)), variance(in_lanes(v, k, p, 1.0)),
          precision(variance), log_norm(variance), total(tiles * LANES) {
        constexpr double log_2pi = 1.8378770664093454836;
        for (double &q : precision) q = 1.0 / q;
        for (double &l : log_norm) l = std::log(l) + log_2pi;
        for (std::size_t t = 0; t < tiles; ++t)
            for (std::size_t j = 0; j < p; ++j)
                for (std::size_t l = 0; l < LANES; ++l) total[t * LANES + l] += log_norm[(t * p + j) * LANES + l];
    }
};

// out(i, c) = log N(x_i; m_c, v_c) over the entries that are there.
EPICYCLE_CLONES inline void diagonal_scores(const DiagonalNormals &normals, const double *X, std::size_t n,
                                            double *out) {
    const std::size_t p = normals.p, k = normals.k;
    for (std::size_t tile = 0; tile < normals.tiles; ++tile) {
        const double *mean = normals.mean.data() + tile * p * LANES;
        const double *precision = normals.precision.data() + tile * p * LANES;
        const double *log_norm = normals.log_norm.data() + tile * p * LANES;
        const std::size_t used = std::min(LANES, k - tile * LANES);
        for (std::size_t i = 0; i < n; ++i) {
            double sum[LANES];
            for (std::size_t l = 0; l < LANES; ++l) sum[l] = normals.total[tile * LANES + l];
            for (std::size_t j = 0; j < p; ++j) {
                const double x = X[i * p + j];
                const double *m = mean + j * LANES, *q = precision + j * LANES;
                if (x != x) {
                    for (std::size_t l = 0; l < LANES; ++l) sum[l] -= log_norm[j * LANES + l];
                    continue;
                }
                for (std::size_t l = 0; l < LANES; ++l) {
                    const double d = x - m[l];
                    sum[l] += d * d * q[l];
                }
            }
            double *row = out + i * k + tile * LANES;
            for (std::size_t l = 0; l < used; ++l) row[l] = -0.5 * sum[l];
        }
    }
}

// Sums over rows of r(i, c) (x - m_c) and of its squares, (K, p) each; an entry that is not there has its mean and its
// variance.
EPICYCLE_CLONES inline void diagonal_moments(const DiagonalNormals &normals, const double *X, const double *R,
                                             std::size_t n, double *first, double *second) {
    const std::size_t p = normals.p, k = normals.k;
    std::vector<double> held(2 * p * LANES);
    for (std::size_t tile = 0; tile < normals.tiles; ++tile) {
        const double *mean = normals.mean.data() + tile * p * LANES;
        const double *variance = normals.variance.data() + tile * p * LANES;
        const std::size_t used = std::min(LANES, k - tile * LANES);
        std::fill(held.begin(), held.end(), 0.0);
        double *one = held.data(), *two = one + p * LANES;
        for (std::size_t i = 0; i < n; ++i) {
            double r[LANES] = {};
            for (std::size_t l = 0; l < used; ++l) r[l] = R[i * k + tile * LANES + l];
            for (std::size_t j = 0; j < p; ++j) {
                const double x = X[i * p + j];
                const double *m = mean + j * LANES;
                double *a = one + j * LANES, *b = two + j * LANES;
                if (x != x) {
                    for (std::size_t l = 0; l < LANES; ++l) b[l] += r[l] * variance[j * LANES + l];
                    continue;
                }
                for (std::size_t l = 0; l < LANES; ++l) {
                    const double d = x - m[l], w = r[l] * d;
                    a[l] += w;
                    b[l] += w * d;
                }
            }
        }
        for (std::size_t l = 0; l < used; ++l)
            for (std::size_t j = 0; j < p; ++j) {
                first[(tile * LANES + l) * p + j] = one[j * LANES + l];
                second[(tile * LANES + l) * p + j] = two[j * LANES + l];
            }
    }
}

}  // namespace epicycle
