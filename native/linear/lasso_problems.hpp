// The penalty and the problems of coordinate_descent.hpp: how the residual r is held and c_j = x_j'r computed, from a
// Gram matrix, from dense or from sparse columns. The rows are weighted and centred.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/dense.hpp"
#include "core/simd.hpp"

namespace epicycle {

struct Penalty {
    const double *l1, *l2;  // one for each column
    bool positive;
};

inline double soft_threshold(double g, double l1, bool positive) {
    if (g > l1) return g - l1;
    return !positive && g < -l1 ? g + l1 : 0.0;
}

// The part of a correlation that the constraint of the dual problem bounds.
inline double magnitude(double c, bool positive) { return positive ? std::max(c, 0.0) : std::fabs(c); }

// The dual objective D(s r) = s <y, r> - s^2/2 |r|^2 - sum_j (s |c_j| - l1_j)_+^2 / (2 l2_j), built up column by column
// for two candidates of s: `tight` scales (r, -sqrt(l2) w), the residual of the problem with the ridge term written as
// further rows, into its constraints; `loose` scales only as far as columns without l2 ask for.
struct DualScale {
    double tight = 1.0, loose = 1.0;
    void column(double c, double w, double l1, double l2, bool positive) {
        const double m = magnitude(c, positive);
        if (l2 == 0.0) {
            if (m > l1) loose = std::min(loose, l1 / m);
        }
        const double t = magnitude(c - l2 * w, positive);
        if (t > l1) tight = std::min(tight, l1 / t);
    }
};

inline double dual_penalty(double s, double c, double l1, double l2, bool positive) {
    if (l2 == 0.0) return 0.0;
    const double excess = std::max(s * magnitude(c, positive) - l1, 0.0);
    return excess * excess / (2.0 * l2);
}

// X'X and q = X'r: r itself is not needed. Moves go along row j of the Gram matrix.
struct GramProblem {
    static constexpr bool walks_columns = false, has_newton = false;  // a column that stays at zero costs nothing
    const double *G;
    std::size_t ld, m;         // leading dimension, columns of which q is kept
    const std::int64_t *slot;  // row of G of each column
    const double *norm2;       // |x_j|^2, by column
    double *q;
    double yy;         // |y|^2
    const double *c0;  // X'y, by slot

    double correlation(std::size_t j) const { return q[slot[j]]; }
    void move(std::size_t j, double d);
    double half_square(const double *w, std::size_t k) const {
        double wc = 0.0;  // |r|^2 = |y|^2 - w'(X'y + X'r)
        for (std::size_t j = 0; j < k; ++j) wc += w[j] * (c0[slot[j]] + q[slot[j]]);
        return 0.5 * std::max(yy - wc, 0.0);
    }
    std::size_t state_size() const { return m; }
    double *state() { return q; }
    double shift() const { return 0.0; }
    void set_shift(double) {}
    std::size_t cost(std::size_t) const { return m; }
};

EPICYCLE_CLONES inline void subtract_multiple(double *q, const double *g, double d, std::size_t m) {
    for (std::size_t i = 0; i < m; ++i) q[i] -= d * g[i];
}
inline void GramProblem::move(std::size_t j, double d) { subtract_multiple(q, G + slot[j] * ld, d, m); }

// sum_i (x_i - mean) u_i with 32 fixed partial sums: the order of addition does not depend on the instruction set.
template <class T>
EPICYCLE_INLINE double centred_dot_body(const T *x, double mean, const double *u, std::size_t n) {
    constexpr std::size_t K = 32;
    double part[K] = {};
    std::size_t i = 0;
    for (; i + K <= n; i += K)
        for (std::size_t k = 0; k < K; ++k) part[k] += (static_cast<double>(x[i + k]) - mean) * u[i + k];
    double rest = 0.0;
    for (; i < n; ++i) rest += (static_cast<double>(x[i]) - mean) * u[i];
    for (std::size_t width = K / 2; width > 0; width /= 2)
        for (std::size_t k = 0; k < width; ++k) part[k] += part[k + width];
    return part[0] + rest;
}
// u_i -= d v_i (x_i - mean)
template <class T>
EPICYCLE_INLINE void centred_move_body(const T *x, double mean, double d, const double *v, double each, double *u,
                                       std::size_t n) {
    if (v)
        for (std::size_t i = 0; i < n; ++i) u[i] -= d * v[i] * (static_cast<double>(x[i]) - mean);
    else
        for (std::size_t i = 0; i < n; ++i) u[i] -= d * each * (static_cast<double>(x[i]) - mean);
}
#define EPICYCLE_PER_TYPE(T)                                                                                  \
    EPICYCLE_CLONES inline double centred_dot(const T *x, double mean, const double *u, std::size_t n) {      \
        return centred_dot_body(x, mean, u, n);                                                               \
    }                                                                                                         \
    EPICYCLE_CLONES inline void centred_move(const T *x, double mean, double d, const double *v, double each, \
                                             double *u, std::size_t n) {                                      \
        centred_move_body(x, mean, d, v, each, u, n);                                                         \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

// Columns of a column-major matrix where they are. The state is u = v r, with row weights v that sum to one.
template <class T>
struct DenseProblem {
    static constexpr bool walks_columns = true, has_newton = false;
    Dense<T> X;
    const std::int64_t *column;
    const double *mean, *norm2;
    const double *v;  // null: each row weighs 1/n
    double *u;

    double correlation(std::size_t j) const {
        return centred_dot(X.col(static_cast<std::size_t>(column[j])), mean[j], u, X.rows);
    }
    void move(std::size_t j, double d) {
        centred_move(X.col(static_cast<std::size_t>(column[j])), mean[j], d, v, 1.0 / static_cast<double>(X.rows), u,
                     X.rows);
    }
    double half_square(const double *, std::size_t) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < X.rows; ++i)
            if (!v)
                sum += u[i] * u[i] * static_cast<double>(X.rows);
            else if (v[i] > 0.0)
                sum += u[i] * u[i] / v[i];
        return 0.5 * sum;
    }
    std::size_t state_size() const { return X.rows; }
    double *state() { return u; }
    double shift() const { return 0.0; }
    void set_shift(double) {}
    std::size_t cost(std::size_t) const { return X.rows; }
};

// Sparse columns, gathered and multiplied by sqrt(v). The mean is subtracted without being stored: the state is
// R = sqrt(v) (r - delta) with one number delta, so that a move touches the stored entries and delta only, and
// x_j'r about the mean is  x_j'R + delta mean_j  because the weighted sum of r is zero.
struct SparseProblem {
    static constexpr bool walks_columns = true, has_newton = true;
    std::vector<double> value;
    std::vector<std::int32_t> row;
    std::vector<std::size_t> begin;
    const double *mean, *norm2;
    std::vector<double> R, root;  // root = sqrt(v)
    double delta = 0.0;

    // The stored entries of a column times those rows of u.
    double dot(std::size_t j, const double *u) const {
        double even = 0.0, odd = 0.0;
        std::size_t a = begin[j];
        const std::size_t end = begin[j + 1];
        for (; a + 2 <= end; a += 2) {
            even += value[a] * u[static_cast<std::size_t>(row[a])];
            odd += value[a + 1] * u[static_cast<std::size_t>(row[a + 1])];
        }
        if (a < end) even += value[a] * u[static_cast<std::size_t>(row[a])];
        return even + odd;
    }
    double correlation(std::size_t j) const { return dot(j, R.data()) + delta * mean[j]; }
    void move(std::size_t j, double d) {
        for (std::size_t a = begin[j]; a < begin[j + 1]; ++a) R[static_cast<std::size_t>(row[a])] -= d * value[a];
        delta += d * mean[j];
    }
    double half_square(const double *, std::size_t) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < R.size(); ++i) {
            const double r = R[i] + delta * root[i];
            sum += r * r;
        }
        return 0.5 * sum;
    }
    std::size_t state_size() const { return R.size(); }
    double *state() { return R.data(); }
    double shift() const { return delta; }
    void set_shift(double value_) { delta = value_; }
    std::size_t cost(std::size_t j) const { return begin[j + 1] - begin[j] + 4; }
};

}  // namespace epicycle
