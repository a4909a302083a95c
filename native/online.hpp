// Learning row by row: stochastic (sub)gradient steps on
//
//     F(w, b) = mean_i l(b + w'x_i, y_i) + alpha ((1 - rho)/2 |w|^2 + rho |w|_1)
//
// for K linear models at once (one against the rest) that share their rows, steps and penalty. One step of size eta on
// a row x with z = w'x + b and g = dl/dz is
//
//     w <- (1 - eta alpha (1 - rho)) w - eta g x,     then |w| shrinks by eta alpha rho, to zero at most,     b <- b -
//     eta g.
//
// A row costs what its stored entries cost. w = s v, so that the L2 penalty is a change of the number s; the L1 penalty
// is owed by every column together (u) and paid by a column when a row next shows it (q is what it has paid; Tsuruoka,
// Tsujii and Ananiadou 2009, here in the units of v, so that it is exact with the L2 penalty too); the running sum of w
// is S v - a + base. Nothing depends on how the rows are cut into calls.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "dense.hpp"
#include "simd.hpp"
#include "sparse.hpp"

namespace epicycle {

enum class OnlineLoss : int {
    hinge,
    perceptron,
    log_loss,
    modified_huber,
    squared_hinge,
    squared_error,
    huber,
    epsilon_insensitive,
    squared_epsilon_insensitive
};
enum class Schedule : int { optimal, constant, power, adaptive, inverse, offset };

struct OnlineRule {
    OnlineLoss loss;
    double epsilon;
    Schedule schedule;
    double eta0, exponent, offset;
    double alpha;         // of the schedule "optimal"
    double l2, l1;        // alpha (1 - rho) and alpha rho
    double intercept;     // length of b's steps relative to those of w; 0 without b
    double average_from;  // steps before the mean of w begins; 0 for none
};

// Places in the vector of numbers that a learner carries along.
enum OnlineNumber : int { STEP, SCALE, OWED, SUM, COUNT, ETA, CAPPED, FIRST, ONLINE_NUMBERS };

struct OnlineState {
    double *v, *b, *number;
    double *a, *base, *b_sum;  // of the mean; null without
    double *q;                 // of the L1 penalty; null without
    std::size_t p, K;
};

// l(z, y) and its derivative in z; y is -1 or 1 for the losses of classification.
EPICYCLE_INLINE double online_loss(const OnlineRule &rule, double z, double y, double &slope) {
    switch (rule.loss) {
        case OnlineLoss::hinge:
        case OnlineLoss::perceptron: {
            const double short_of = (rule.loss == OnlineLoss::hinge ? 1.0 : 0.0) - y * z;
            slope = short_of >= 0.0 ? -y : 0.0;
            return short_of > 0.0 ? short_of : 0.0;
        }
        case OnlineLoss::log_loss: {
            const double m = y * z, e = std::exp(-std::fabs(m));
            slope = -y * (m > 0.0 ? e : 1.0) / (1.0 + e);
            return (m > 0.0 ? 0.0 : -m) + std::log(1.0 + e);
        }
        case OnlineLoss::modified_huber: {
            const double m = y * z;
            if (m >= 1.0) return slope = 0.0;
            slope = m >= -1.0 ? -2.0 * (1.0 - m) * y : -4.0 * y;
            return m >= -1.0 ? (1.0 - m) * (1.0 - m) : -4.0 * m;
        }
        case OnlineLoss::squared_hinge: {
            const double short_of = 1.0 - y * z;
            slope = short_of > 0.0 ? -2.0 * y * short_of : 0.0;
            return short_of > 0.0 ? short_of * short_of : 0.0;
        }
        case OnlineLoss::squared_error:
            slope = z - y;
            return 0.5 * slope * slope;
        case OnlineLoss::huber: {
            const double r = z - y, size = std::fabs(r);
            slope = size <= rule.epsilon ? r : std::copysign(rule.epsilon, r);
            return size <= rule.epsilon ? 0.5 * r * r : rule.epsilon * size - 0.5 * rule.epsilon * rule.epsilon;
        }
        case OnlineLoss::epsilon_insensitive: {
            const double r = z - y, over = std::fabs(r) - rule.epsilon;
            slope = over > 0.0 ? std::copysign(1.0, r) : 0.0;
            return over > 0.0 ? over : 0.0;
        }
        default: {
            const double r = z - y, over = std::fabs(r) - rule.epsilon;
            slope = over > 0.0 ? std::copysign(2.0 * over, r) : 0.0;
            return over > 0.0 ? over * over : 0.0;
        }
    }
}

// The curvature of losses whose derivative has no bound: a step longer than 1 / (curvature |x|^2) would go past the
// row's own minimum, and many such steps diverge. 0 for the others.
inline double unbounded_curvature(OnlineLoss loss) {
    if (loss == OnlineLoss::squared_error) return 1.0;
    return loss == OnlineLoss::squared_hinge || loss == OnlineLoss::squared_epsilon_insensitive ? 2.0 : 0.0;
}

inline double online_eta(const OnlineRule &rule, const double *number) {
    const double t = number[STEP];
    switch (rule.schedule) {
        case Schedule::optimal:
            return 1.0 / (rule.alpha * (number[FIRST] + t - 1.0));
        case Schedule::power:  // the two roots that are the defaults are cheaper than a power
            if (rule.exponent == 0.5) return rule.eta0 / std::sqrt(t);
            if (rule.exponent == 0.25) return rule.eta0 / std::sqrt(std::sqrt(t));
            return rule.eta0 / std::pow(t, rule.exponent);
        case Schedule::inverse:
            return rule.eta0 / t;
        case Schedule::offset:
            return rule.eta0 / (rule.offset + t);
        case Schedule::adaptive:
            return number[ETA];
        default:
            return rule.eta0;
    }
}

// ---------------------------------------------------------------------------------------------------- rows

// sum_j x_j v_j with 16 fixed partial sums: the order of addition does not depend on the instruction set.
template <class T>
EPICYCLE_INLINE double online_dot_body(const T *x, const double *v, std::size_t n) {
    constexpr std::size_t W = 16;
    double part[W] = {};
    std::size_t j = 0;
    for (; j + W <= n; j += W)
        for (std::size_t k = 0; k < W; ++k) part[k] += static_cast<double>(x[j + k]) * v[j + k];
    double rest = 0.0;
    for (; j < n; ++j) rest += static_cast<double>(x[j]) * v[j];
    for (std::size_t width = W / 2; width > 0; width /= 2)
        for (std::size_t k = 0; k < width; ++k) part[k] += part[k + width];
    return part[0] + rest;
}
#define EPICYCLE_PER_TYPE(T)                                                                                        \
    EPICYCLE_CLONES inline double online_dot(const T *x, const double *v, std::size_t n) {                          \
        return online_dot_body(x, v, n);                                                                            \
    }                                                                                                               \
    EPICYCLE_CLONES inline void online_add(const T *x, double g, double *v, std::size_t n) {                        \
        for (std::size_t j = 0; j < n; ++j) v[j] += g * static_cast<double>(x[j]);                                  \
    }                                                                                                               \
    EPICYCLE_CLONES inline void online_dots(const T *x, const double *v, std::size_t n, std::size_t K, double *z) { \
        for (std::size_t j = 0; j < n; ++j)                                                                         \
            for (std::size_t k = 0; k < K; ++k) z[k] += static_cast<double>(x[j]) * v[j * K + k];                   \
    }                                                                                                               \
    EPICYCLE_CLONES inline void online_adds(const T *x, const double *g, double *v, std::size_t n, std::size_t K) { \
        for (std::size_t j = 0; j < n; ++j)                                                                         \
            for (std::size_t k = 0; k < K; ++k) v[j * K + k] += g[k] * static_cast<double>(x[j]);                   \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

template <class T>
struct OnlineDense {
    Dense<T> X;
    std::vector<T> buffer;  // of a row whose elements are apart in memory
    const T *x = nullptr;

    explicit OnlineDense(const Dense<T> &X) : X(X), buffer(X.col_stride == 1 ? 0 : X.cols) {}
    std::size_t rows() const { return X.rows; }
    std::size_t cols() const { return X.cols; }
    std::size_t cost() const { return X.cols; }
    void select(std::size_t i) {
        x = X.row(i);
        if (X.col_stride == 1) return;
        for (std::size_t j = 0; j < X.cols; ++j) buffer[j] = X(i, j);
        x = buffer.data();
    }
    void prefetch(const std::int64_t *, std::size_t, std::size_t) const {}
    double dot(const double *v) const { return online_dot(x, v, X.cols); }
    void dots(const double *v, std::size_t K, double *z) const { online_dots(x, v, X.cols, K, z); }
    void add(double g, double *v) const { online_add(x, g, v, X.cols); }
    void adds(const double *g, double *v, std::size_t K) const { online_adds(x, g, v, X.cols, K); }
    template <class F>
    void each(F f) const {
        for (std::size_t j = 0; j < X.cols; ++j) f(j, static_cast<double>(x[j]));
    }
};

// Whether the entries of a row can be followed: columns inside, numbers finite. One look while the row is in the cache.
template <class T, class I>
EPICYCLE_INLINE bool row_is_sound_body(const T *x, const I *at, std::size_t n, std::size_t p) {
    using U = std::conditional_t<sizeof(I) == 4, std::uint32_t, std::uint64_t>;
    U top = 0;  // a negative index is a large one
    for (std::size_t k = 0; k < n; ++k) top = std::max(top, static_cast<U>(at[k]));
    double part[8] = {};  // x - x is 0 for finite x and nan otherwise
    std::size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (std::size_t c = 0; c < 8; ++c) part[c] += static_cast<double>(x[k + c] - x[k + c]);
    for (; k < n; ++k) part[0] += static_cast<double>(x[k] - x[k]);
    for (std::size_t c = 1; c < 8; ++c) part[0] += part[c];
    return part[0] == 0.0 && (n == 0 || static_cast<std::uint64_t>(top) < p);
}
#define EPICYCLE_PER_TYPE(T, I)                                                                       \
    EPICYCLE_CLONES inline bool row_is_sound(const T *x, const I *at, std::size_t n, std::size_t p) { \
        return row_is_sound_body(x, at, n, p);                                                        \
    }
EPICYCLE_PER_TYPE(double, std::int32_t)
EPICYCLE_PER_TYPE(double, std::int64_t)
EPICYCLE_PER_TYPE(float, std::int32_t)
EPICYCLE_PER_TYPE(float, std::int64_t)
#undef EPICYCLE_PER_TYPE

template <class T, class I>
struct OnlineSparse {
    Csr<T, I> X;
    std::size_t stored;  // entries in all
    const T *x = nullptr;
    const I *at = nullptr;
    std::size_t n = 0;

    OnlineSparse(const Csr<T, I> &X, std::size_t stored) : X(X), stored(stored) {}
    std::size_t rows() const { return X.rows; }
    std::size_t cols() const { return X.cols; }
    std::size_t cost() const { return stored / std::max<std::size_t>(X.rows, 1) + 1; }
    void select(std::size_t i) {
        const I first = X.indptr[i], last = X.indptr[i + 1];
        if (first < 0 || last < first || static_cast<std::size_t>(last) > stored)
            throw std::invalid_argument("expected a well-formed CSR matrix: row pointers in order");
        x = X.data + first;
        at = X.indices + first;
        n = static_cast<std::size_t>(last - first);
        if (!row_is_sound(x, at, n, X.cols))
            throw std::invalid_argument("expected a well-formed CSR matrix: columns inside it, finite entries");
    }
    // In a shuffled order the next rows are anywhere: their pointers, then their entries, are asked for ahead.
    void prefetch(const std::int64_t *order, std::size_t i, std::size_t end) const {
        if (i + 8 < end) __builtin_prefetch(X.indptr + order[i + 8]);
        if (i + 3 < end) {
            const I first = X.indptr[order[i + 3]], last = X.indptr[order[i + 3] + 1];
            if (first < 0 || last < first || static_cast<std::size_t>(last) > stored) return;  // select will say so
            for (I k = first; k < last; k += static_cast<I>(64 / sizeof(T))) __builtin_prefetch(X.data + k);
            for (I k = first; k < last; k += static_cast<I>(64 / sizeof(I))) __builtin_prefetch(X.indices + k);
        }
    }
    double dot(const double *v) const {
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        std::size_t k = 0;
        for (; k + 4 <= n; k += 4) {
            s0 += static_cast<double>(x[k]) * v[at[k]];
            s1 += static_cast<double>(x[k + 1]) * v[at[k + 1]];
            s2 += static_cast<double>(x[k + 2]) * v[at[k + 2]];
            s3 += static_cast<double>(x[k + 3]) * v[at[k + 3]];
        }
        for (; k < n; ++k) s0 += static_cast<double>(x[k]) * v[at[k]];
        return (s0 + s1) + (s2 + s3);
    }
    void dots(const double *v, std::size_t K, double *z) const {
        for (std::size_t c = 0; c < n; ++c) {
            const double xc = static_cast<double>(x[c]), *row = v + static_cast<std::size_t>(at[c]) * K;
            for (std::size_t k = 0; k < K; ++k) z[k] += xc * row[k];
        }
    }
    void add(double g, double *v) const {
        for (std::size_t k = 0; k < n; ++k) v[at[k]] += g * static_cast<double>(x[k]);
    }
    void adds(const double *g, double *v, std::size_t K) const {
        for (std::size_t c = 0; c < n; ++c) {
            const double xc = static_cast<double>(x[c]);
            double *row = v + static_cast<std::size_t>(at[c]) * K;
            for (std::size_t k = 0; k < K; ++k) row[k] += g[k] * xc;
        }
    }
    template <class F>
    void each(F f) const {
        for (std::size_t k = 0; k < n; ++k) f(static_cast<std::size_t>(at[k]), static_cast<double>(x[k]));
    }
};

template <class Rows>
double online_square(const Rows &rows) {
    double sum = 0.0;
    rows.each([&](std::size_t, double x) { sum += x * x; });
    return sum;
}

// ---------------------------------------------------------------------------------------------------- steps

// v takes over the scale, before s v would lose digits.
inline void online_fold(OnlineState &state) {
    const double s = state.number[SCALE];
    const std::size_t size = state.p * state.K;
    if (state.a) {
        for (std::size_t j = 0; j < size; ++j) state.base[j] += state.number[SUM] * state.v[j] - state.a[j];
        std::fill(state.a, state.a + size, 0.0);
        state.number[SUM] = 0.0;
    }
    for (std::size_t j = 0; j < size; ++j) state.v[j] *= s;
    if (state.q)
        for (std::size_t j = 0; j < size; ++j) state.q[j] *= s;
    state.number[OWED] *= s;
    state.number[SCALE] = 1.0;
}

// What v becomes when it has paid the penalty that is due.
inline double online_paid(double v, double owed, double paid) {
    if (v > 0.0) return std::max(0.0, v - (owed + paid));
    return v < 0.0 ? std::min(0.0, v + (owed - paid)) : v;
}

// Presentations from .. to of the rows: number i shows row order[i] (or i) and counts as fraction[i] (or 1) of a row.
// `positive` names the code of y that is +1 for each model; null for regression. Adds to the mistakes of each model,
// and fraction * dl/dz to dual (rows x K) where it is given. Returns the sum of the losses before each step; stops at a
// score that is not finite, and says so with nan.
template <bool One, class Rows>
double online_learn(Rows &rows, const OnlineRule &rule, OnlineState &state, const double *y, const double *positive,
                    const std::int64_t *order, const double *fraction, std::size_t from, std::size_t to, double *dual,
                    double *scores, double *mistakes, double *z) {
    const std::size_t K = One ? 1 : state.K;
    double *number = state.number, *g = z + K, losses = 0.0;
    const double curvature = unbounded_curvature(rule.loss);
    const bool plain = !state.a && !state.q;
    for (std::size_t i = from; i < to; ++i) {
        const std::size_t row = order ? static_cast<std::size_t>(order[i]) : i;
        if (order) rows.prefetch(order, i, to);
        rows.select(row);
        const double f = fraction ? fraction[i] : 1.0;
        if (state.q)
            rows.each([&](std::size_t j, double) {
                for (std::size_t k = j * K; k < (j + 1) * K; ++k) {
                    const double paid = online_paid(state.v[k], number[OWED], state.q[k]), d = paid - state.v[k];
                    state.q[k] += d;
                    if (state.a) state.a[k] += number[SUM] * d;
                    state.v[k] = paid;
                }
            });
        if constexpr (One) {
            z[0] = rows.dot(state.v);
        } else {
            std::fill(z, z + K, 0.0);
            rows.dots(state.v, K, z);
        }
        const double eta = online_eta(rule, number) * f;
        double step = eta;
        if (curvature > 0.0) {
            const double longest = 1.0 / (curvature * (online_square(rows) + rule.intercept));
            if (step > longest) {
                step = longest;
                number[CAPPED] += 1.0;
            }
        }
        const double before = number[SCALE];
        if (rule.l2 > 0.0) {
            number[SCALE] *= std::max(0.0, 1.0 - eta * rule.l2);
            if (number[SCALE] < 1e-9) online_fold(state);
        }
        bool moves = false;
        for (std::size_t k = 0; k < K; ++k) {
            const double score = before * z[k] + state.b[k];
            if (!std::isfinite(score)) return std::numeric_limits<double>::quiet_NaN();
            const double target = !positive ? y[row] : y[row] == positive[k] ? 1.0 : -1.0;
            double slope;
            losses += f * online_loss(rule, score, target, slope);
            if (positive && score * target <= 0.0) mistakes[k] += f;
            if (dual) dual[row * K + k] += f * slope;
            if (scores) scores[i * K + k] = score;
            const double update = -step * slope;
            state.b[k] += rule.intercept * update;
            g[k] = update / number[SCALE];
            moves |= update != 0.0;
        }
        if (moves && plain) {
            if constexpr (One)
                rows.add(g[0], state.v);
            else
                rows.adds(g, state.v, K);
        } else if (moves) {
            rows.each([&](std::size_t j, double x) {
                for (std::size_t k = 0; k < K; ++k) {
                    const double d = g[k] * x;
                    if (state.a) state.a[j * K + k] += number[SUM] * d;
                    state.v[j * K + k] += d;
                }
            });
        }
        if (rule.l1 > 0.0) number[OWED] += eta * rule.l1 / number[SCALE];
        if (state.a && number[STEP] >= rule.average_from) {
            number[SUM] += f * number[SCALE];
            number[COUNT] += f;
            for (std::size_t k = 0; k < K; ++k) state.b_sum[k] += f * state.b[k];
        }
        number[STEP] += f;
    }
    return losses;
}

// ---------------------------------------------------------------------------------------------------- other passes

// A number for each row from its non-zero entries alone, the same for dense and sparse rows; equal rows get equal ones.
template <class Rows>
void row_hashes(Rows &rows, std::uint64_t *out) {
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        rows.select(i);
        std::uint64_t sum = 0;
        rows.each([&](std::size_t j, double x) {
            if (x == 0.0) return;
            std::uint64_t h;
            std::memcpy(&h, &x, sizeof h);
            h ^= (static_cast<std::uint64_t>(j) + 1) * 0x9e3779b97f4a7c15ull;
            h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdull;
            h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ull;
            sum += h ^ (h >> 33);  // a sum: the order of the entries plays no part
        });
        out[i] = sum;
    }
}

// One pass of coordinate ascent on the dual of  min |w|^2 / 2  subject to  s_i (w, b)'(x_i, 1) >= 1 : each weight
// a_i >= 0 takes its best value, the others fixed, and w = sum_i a_i s_i (x_i, 1) follows. w has p + 1 entries.
template <class Rows>
void margin_pass(Rows &rows, const double *sign, const double *square, bool intercept, double *a, double *w) {
    const std::size_t p = rows.cols();
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        if (sign[i] == 0.0 || !(square[i] > 0.0)) continue;
        rows.select(i);
        const double score = rows.dot(w) + (intercept ? w[p] : 0.0);
        const double best = std::max(0.0, a[i] + (1.0 - sign[i] * score) / square[i]), d = (best - a[i]) * sign[i];
        if (d == 0.0) continue;
        rows.add(d, w);
        if (intercept) w[p] += d;
        a[i] = best;
    }
}

}  // namespace epicycle
