// Normal densities with independent columns, and the moments of rows weighted by states. Rows have few columns, so that
// states lie side by side in the lanes of a register. Missing entries are NaN.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t STATES_ABREAST = 8;

// A table (K, p) in tiles (tile, column, lane), with `fill` in the lanes beyond K.
inline std::vector<double> in_lanes(const double *x, std::size_t k, std::size_t p, double fill) {
    const std::size_t tiles = (k + STATES_ABREAST - 1) / STATES_ABREAST;
    std::vector<double> out(tiles * p * STATES_ABREAST, fill);
    for (std::size_t c = 0; c < k; ++c)
        for (std::size_t j = 0; j < p; ++j)
            out[(c / STATES_ABREAST * p + j) * STATES_ABREAST + c % STATES_ABREAST] = x[c * p + j];
    return out;
}

struct DiagonalNormals {
    std::size_t k, p, tiles;
    std::vector<double> mean, variance, precision, log_norm, total;

    DiagonalNormals(const double *m, const double *v, std::size_t k, std::size_t p)
        : k(k), p(p), tiles((k + STATES_ABREAST - 1) / STATES_ABREAST), mean(in_lanes(m, k, p, 0.0)),
          variance(in_lanes(v, k, p, 1.0)), precision(variance), log_norm(variance), total(tiles * STATES_ABREAST) {
        constexpr double log_2pi = 1.8378770664093454836;
        for (double &q : precision) q = 1.0 / q;
        for (double &l : log_norm) l = std::log(l) + log_2pi;
        for (std::size_t t = 0; t < tiles; ++t)
            for (std::size_t j = 0; j < p; ++j)
                for (std::size_t l = 0; l < STATES_ABREAST; ++l)
                    total[t * STATES_ABREAST + l] += log_norm[(t * p + j) * STATES_ABREAST + l];
    }
};

// out(i, c) = log N(x_i; m_c, v_c) over the entries that are there.
EPICYCLE_CLONES inline void diagonal_scores(const DiagonalNormals &normals, const double *X, std::size_t n,
                                            double *out) {
    const std::size_t p = normals.p, k = normals.k;
    for (std::size_t tile = 0; tile < normals.tiles; ++tile) {
        const double *mean = normals.mean.data() + tile * p * STATES_ABREAST;
        const double *precision = normals.precision.data() + tile * p * STATES_ABREAST;
        const double *log_norm = normals.log_norm.data() + tile * p * STATES_ABREAST;
        const std::size_t used = std::min(STATES_ABREAST, k - tile * STATES_ABREAST);
        for (std::size_t i = 0; i < n; ++i) {
            const double *x = X + i * p;
            bool whole = true;
            for (std::size_t j = 0; j < p; ++j) whole &= x[j] == x[j];
            double sum[STATES_ABREAST];
            for (std::size_t l = 0; l < STATES_ABREAST; ++l)
                sum[l] = whole ? normals.total[tile * STATES_ABREAST + l] : 0.0;
            for (std::size_t j = 0; j < p; ++j) {
                if (!whole && x[j] != x[j]) continue;
                const double *m = mean + j * STATES_ABREAST, *q = precision + j * STATES_ABREAST;
                for (std::size_t l = 0; l < STATES_ABREAST; ++l) {
                    const double d = x[j] - m[l];
                    sum[l] += d * d * q[l];
                }
                if (!whole)
                    for (std::size_t l = 0; l < STATES_ABREAST; ++l) sum[l] += log_norm[j * STATES_ABREAST + l];
            }
            double *row = out + i * k + tile * STATES_ABREAST;
            if (used == STATES_ABREAST)
                for (std::size_t l = 0; l < STATES_ABREAST; ++l) row[l] = -0.5 * sum[l];
            else
                for (std::size_t l = 0; l < used; ++l) row[l] = -0.5 * sum[l];
        }
    }
}

// Sums over rows of r(i, c), (K,), of r(i, c) (x - m_c) and of its squares, (K, p) each; an entry that is not there has
// its mean and its variance.
EPICYCLE_CLONES inline void diagonal_moments(const DiagonalNormals &normals, const double *X, const double *R,
                                             std::size_t n, double *weight, double *first, double *second) {
    const std::size_t p = normals.p, k = normals.k;
    std::vector<double> held(2 * p * STATES_ABREAST);
    for (std::size_t tile = 0; tile < normals.tiles; ++tile) {
        const double *mean = normals.mean.data() + tile * p * STATES_ABREAST;
        const double *variance = normals.variance.data() + tile * p * STATES_ABREAST;
        const std::size_t used = std::min(STATES_ABREAST, k - tile * STATES_ABREAST);
        std::fill(held.begin(), held.end(), 0.0);
        double *one = held.data(), *two = one + p * STATES_ABREAST, sums[STATES_ABREAST] = {};
        for (std::size_t i = 0; i < n; ++i) {
            double r[STATES_ABREAST] = {};
            const double *given = R + i * k + tile * STATES_ABREAST;
            if (used == STATES_ABREAST)
                for (std::size_t l = 0; l < STATES_ABREAST; ++l) r[l] = given[l];
            else
                for (std::size_t l = 0; l < used; ++l) r[l] = given[l];
            for (std::size_t l = 0; l < STATES_ABREAST; ++l) sums[l] += r[l];
            for (std::size_t j = 0; j < p; ++j) {
                const double x = X[i * p + j];
                const double *m = mean + j * STATES_ABREAST;
                double *a = one + j * STATES_ABREAST, *b = two + j * STATES_ABREAST;
                if (x != x) {
                    for (std::size_t l = 0; l < STATES_ABREAST; ++l) b[l] += r[l] * variance[j * STATES_ABREAST + l];
                    continue;
                }
                for (std::size_t l = 0; l < STATES_ABREAST; ++l) {
                    const double d = x - m[l], w = r[l] * d;
                    a[l] += w;
                    b[l] += w * d;
                }
            }
        }
        for (std::size_t l = 0; l < used; ++l) weight[tile * STATES_ABREAST + l] = sums[l];
        for (std::size_t l = 0; l < used; ++l)
            for (std::size_t j = 0; j < p; ++j) {
                first[(tile * STATES_ABREAST + l) * p + j] = one[j * STATES_ABREAST + l];
                second[(tile * STATES_ABREAST + l) * p + j] = two[j * STATES_ABREAST + l];
            }
    }
}

}  // namespace epicycle
