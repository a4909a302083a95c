// Normal components of a mixture: log densities, the shares of the components in every row, and sums over rows.
//
//   l_ik = c_k - |W_k (x_i - m_k)|^2 / 2,   r_ik = w_i exp(l_ik) / sum_a exp(l_ia),
//   sums over i of r_ik, r_ik (x_i - m_k) and r_ik (x_i - m_k)(x_i - m_k)'.
//
// One pass: a block of rows is read once and stays in the cache for all components. Differences from the mean of each
// component keep the sums exact where components are narrow and far apart.
#pragma once

#include <cmath>
#include <vector>

#include "core/dense.hpp"
#include "core/syrk.hpp"

namespace epicycle {

// Factors W: lower triangles (p x p) one after the other, a single one where `shared`, or rows of p numbers where
// `diagonal`.
struct NormalComponents {
    std::size_t k, p;
    const double *constants, *means, *factors;
    bool diagonal, shared;

    const double *mean(std::size_t a) const { return means + a * p; }
    const double *factor(std::size_t a) const { return factors + (shared ? 0 : a * (diagonal ? p : p * p)); }
};

// A block of at most ROWS rows, column after column (ROWS apart) and row after row (padded to whole panels).
struct RowBlock {
    std::size_t p, width;
    std::vector<double, CacheAligned<double>> columns, rows;

    explicit RowBlock(std::size_t p) : p(p), width(panels(p) * PANEL), columns(p * ROWS), rows(width * ROWS) {}

    template <class T>
    void read(const Dense<T> &X, std::size_t i0, std::size_t n) {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < p; ++j) rows[i * width + j] = static_cast<double>(X(i0 + i, j));
        for (std::size_t j = 0; j < p; ++j) {
            for (std::size_t i = 0; i < n; ++i) columns[j * ROWS + i] = rows[i * width + j];
            for (std::size_t i = n; i < ROWS; ++i) columns[j * ROWS + i] = 0.0;
        }
    }
};

// out_i = constant - |W (x_i - m)|^2 / 2 for a block. Four vectors of L rows at a time; two rows of W share each load.
template <class V, int L>
EPICYCLE_INLINE void log_density_body(const double *x, std::size_t p, const double *mean, const double *W,
                                      bool diagonal, double constant, double *d, double *out) {
    constexpr int M = 4;
    constexpr std::size_t STEP = M * L;
    for (std::size_t at = 0; at < ROWS; at += STEP) {
        V q[M] = {};
        for (std::size_t j = 0; j < p; ++j)
            for (int m = 0; m < M; ++m) {
                V v;
                __builtin_memcpy(&v, x + j * ROWS + at + m * L, sizeof(V));
                v -= mean[j];
                if (diagonal) {
                    v *= W[j];
                    q[m] += v * v;
                } else {
                    __builtin_memcpy(d + j * STEP + m * L, &v, sizeof(V));
                }
            }
        for (std::size_t i = 0; !diagonal && i < p; i += 2) {
            const bool two = i + 1 < p;
            const double *upper = W + i * p, *lower = two ? upper + p : upper;
            V y[M] = {}, z[M] = {}, v[M];
            for (std::size_t j = 0; j <= i; ++j)
                for (int m = 0; m < M; ++m) {
                    __builtin_memcpy(&v[m], d + j * STEP + m * L, sizeof(V));
                    y[m] += upper[j] * v[m];
                    z[m] += lower[j] * v[m];
                }
            for (int m = 0; m < M; ++m) q[m] += y[m] * y[m];
            if (!two) break;
            for (int m = 0; m < M; ++m) {
                __builtin_memcpy(&v[m], d + (i + 1) * STEP + m * L, sizeof(V));
                z[m] += lower[i + 1] * v[m];
                q[m] += z[m] * z[m];
            }
        }
        for (int m = 0; m < M; ++m) {
            const V value = constant - 0.5 * q[m];
            __builtin_memcpy(out + at + m * L, &value, sizeof(V));
        }
    }
}

EPICYCLE_V4 inline void log_density_v4(const double *x, std::size_t p, const double *mean, const double *W,
                                       bool diagonal, double constant, double *d, double *out) {
    log_density_body<v8d, 8>(x, p, mean, W, diagonal, constant, d, out);
}
EPICYCLE_V3 inline void log_density_v3(const double *x, std::size_t p, const double *mean, const double *W,
                                       bool diagonal, double constant, double *d, double *out) {
    log_density_body<v4d, 4>(x, p, mean, W, diagonal, constant, d, out);
}
inline void log_density_plain(const double *x, std::size_t p, const double *mean, const double *W, bool diagonal,
                              double constant, double *d, double *out) {
    log_density_body<v2d, 2>(x, p, mean, W, diagonal, constant, d, out);
}

// joint[a * ROWS + i] = l_ia; d has room for 32 p numbers.
inline void log_joint(const RowBlock &block, const NormalComponents &c, double *d, double *joint) {
    const auto function = isa() == Isa::avx512 ? log_density_v4
                          : isa() == Isa::avx2 ? log_density_v3
                                               : log_density_plain;
    for (std::size_t a = 0; a < c.k; ++a)
        function(block.columns.data(), c.p, c.mean(a), c.factor(a), c.diagonal, c.constants[a], d, joint + a * ROWS);
}

// Turns l into shares r that add up to one, and gives the log of their sum before.
EPICYCLE_CLONES inline void shares(std::size_t k, double *joint, double *total) {
    double most[ROWS], sum[ROWS];
    for (std::size_t i = 0; i < ROWS; ++i) most[i] = -1e300, sum[i] = 0.0;  // -inf - -inf is no number
    for (std::size_t a = 0; a < k; ++a)
        for (std::size_t i = 0; i < ROWS; ++i) most[i] = joint[a * ROWS + i] > most[i] ? joint[a * ROWS + i] : most[i];
    for (std::size_t a = 0; a < k; ++a)
        for (std::size_t i = 0; i < ROWS; ++i) {
            const double e = exp_nonpositive(joint[a * ROWS + i] - most[i]);
            joint[a * ROWS + i] = e;
            sum[i] += e;
        }
    for (std::size_t i = 0; i < ROWS; ++i) total[i] = most[i] + std::log(sum[i]);
    for (std::size_t a = 0; a < k; ++a)
        for (std::size_t i = 0; i < ROWS; ++i) joint[a * ROWS + i] /= sum[i] > 0.0 ? sum[i] : 1.0;
}

// Packs sqrt(r_i) (x_i - m) of n rows in panels, and adds up r (x - m) and, where asked for, r (x - m)^2.
EPICYCLE_CLONES inline void pack_component(const RowBlock &block, const std::uint16_t *kept, std::size_t n,
                                           const double *root, const double *mean, double *packed, double *sums,
                                           double *squares) {
    for (std::size_t q = 0; q < block.width / PANEL; ++q) {
        double centre[PANEL], sum[PANEL] = {}, square[PANEL] = {};
        for (std::size_t j = 0; j < PANEL; ++j) centre[j] = q * PANEL + j < block.p ? mean[q * PANEL + j] : 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double *x = block.rows.data() + kept[i] * block.width + q * PANEL, s = root[i];
            double *out = packed + (q * ROWS + i) * PANEL;
            for (std::size_t j = 0; j < PANEL; ++j) {
                const double v = s * (x[j] - centre[j]);
                out[j] = v;
                sum[j] += s * v;
                square[j] += v * v;
            }
        }
        for (std::size_t j = 0; j < PANEL && q * PANEL + j < block.p; ++j) {
            sums[q * PANEL + j] += sum[j];
            if (squares) squares[q * PANEL + j] += square[j];
        }
    }
}

// Shares below this change no sum by more than rounding.
constexpr double LEAST_SHARE = 1e-32;

// Sums over rows. scatter: k matrices p x p, one in all where `pooled`, or k x p squares where the components are
// diagonal. All are added to.
template <class T>
double normal_sums(const Dense<T> &X, const double *weight, const NormalComponents &c, bool pooled, double *counts,
                   double *sums, double *scatter) {
    const std::size_t p = c.p, width = panels(p) * PANEL, matrices = c.diagonal ? 0 : pooled ? 1 : c.k;
    RowBlock block(p);
    PackedRows ws(p);
    std::vector<double, CacheAligned<double>> joint(c.k * ROWS), d(32 * p), products(matrices * width * width);
    double total[ROWS], root[ROWS], value = 0.0;
    std::uint16_t kept[ROWS];
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        block.read(X, i0, n);
        log_joint(block, c, d.data(), joint.data());
        shares(c.k, joint.data(), total);
        double part = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double w = weight ? weight[i0 + i] : 1.0;
            if (w > 0.0) part += w * total[i];  // a row without weight may lie where every density is 0
        }
        value += part;
        for (std::size_t a = 0; a < c.k; ++a) {
            std::size_t m = 0;
            double count = 0.0;
            for (std::size_t i = 0; i < n; ++i) {
                const double share = joint[a * ROWS + i], r = share * (weight ? weight[i0 + i] : 1.0);
                count += r;
                if (share < LEAST_SHARE || r == 0.0) continue;
                root[m] = std::sqrt(r);
                kept[m++] = static_cast<std::uint16_t>(i);
            }
            counts[a] += count;
            if (m == 0) continue;
            pack_component(block, kept, m, root, c.mean(a), ws.packed.data(), sums + a * p,
                           c.diagonal ? scatter + a * p : nullptr);
            if (!c.diagonal) syrk(ws.packed.data(), m, p, products.data() + (pooled ? 0 : a * width * width));
        }
    }
    for (std::size_t a = 0; a < matrices; ++a)
        for (std::size_t i = 0; i < p; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                const double v = products[a * width * width + i * width + j];
                scatter[a * p * p + i * p + j] = scatter[a * p * p + j * p + i] = v;
            }
    return value;
}

// out: n x k, l_ik.
template <class T>
void normal_log_joint(const Dense<T> &X, const NormalComponents &c, double *out) {
    RowBlock block(c.p);
    std::vector<double, CacheAligned<double>> joint(c.k * ROWS), d(32 * c.p);
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) {
        const std::size_t n = std::min(ROWS, X.rows - i0);
        block.read(X, i0, n);
        log_joint(block, c, d.data(), joint.data());
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t a = 0; a < c.k; ++a) out[(i0 + i) * c.k + a] = joint[a * ROWS + i];
    }
}

}  // namespace epicycle
