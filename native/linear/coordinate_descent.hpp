// Cyclic coordinate descent with Anderson extrapolation on
//
//     F(w) = 1/2 |y - Xw|^2 + sum_j l1_j |w_j| + 1/2 sum_j l2_j w_j^2          (w >= 0 where `positive`)
//
// over a few columns (a working set). With r = y - Xw and c_j = x_j'r the best w_j, all others fixed, is
//
//     S(c_j + |x_j|^2 w_j, l1_j) / (|x_j|^2 + l2_j),     S(g, l) = sign(g) max(|g| - l, 0).
//
// How r is held and c_j computed is the business of the `Problem`: from a Gram matrix, from dense or from sparse
// columns. The rows are weighted and centred; a Problem takes care of that too.
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

// ------------------------------------------------------------------------------------------------- problems

// X'X and q = X'r: r itself is not needed. Moves go along row j of the Gram matrix.
struct GramProblem {
    static constexpr bool walks_columns = false;  // a column that stays at zero costs nothing
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
    static constexpr bool walks_columns = true;
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
    static constexpr bool walks_columns = true;
    std::vector<double> value;
    std::vector<std::int32_t> row;
    std::vector<std::size_t> begin;
    const double *mean, *norm2;
    std::vector<double> R, root;  // root = sqrt(v)
    double delta = 0.0;

    double correlation(std::size_t j) const {
        double even = 0.0, odd = 0.0;
        std::size_t a = begin[j];
        const std::size_t end = begin[j + 1];
        for (; a + 2 <= end; a += 2) {
            even += value[a] * R[static_cast<std::size_t>(row[a])];
            odd += value[a + 1] * R[static_cast<std::size_t>(row[a + 1])];
        }
        if (a < end) even += value[a] * R[static_cast<std::size_t>(row[a])];
        return even + odd + delta * mean[j];
    }
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

// ------------------------------------------------------------------------------------------------- descent

template <class Problem>
double penalised(const Problem &problem, const Penalty &penalty, const double *w, std::size_t k) {
    double value = problem.half_square(w, k);
    for (std::size_t j = 0; j < k; ++j) value += penalty.l1[j] * std::fabs(w[j]) + 0.5 * penalty.l2[j] * w[j] * w[j];
    return value;
}

// F(w) minus the dual objective, over these columns alone.
template <class Problem>
double duality_gap(const Problem &problem, const Penalty &penalty, const double *w, std::size_t k,
                   std::vector<double> &c) {
    DualScale scale;
    double wc = 0.0, unsettled = 0.0;
    for (std::size_t j = 0; j < k; ++j) {
        c[j] = problem.correlation(j);
        if (penalty.l1[j] > 0.0 || penalty.l2[j] > 0.0) {
            wc += w[j] * c[j];
            scale.column(c[j], w[j], penalty.l1[j], penalty.l2[j], penalty.positive);
        } else if (problem.norm2[j] > 0.0) {
            // Unpenalised: the dual point is orthogonal to it, for which the caller cares; what its step would gain
            // stands for that here.
            unsettled += 0.5 * c[j] * c[j] / problem.norm2[j];
        }
    }
    const double rr = 2.0 * problem.half_square(w, k);
    double best = -std::numeric_limits<double>::infinity();
    for (const double s : {scale.tight, scale.loose}) {
        double dual = s * (rr + wc) - 0.5 * s * s * rr;  // <y, r> = |r|^2 + w'X'r
        for (std::size_t j = 0; j < k; ++j)
            dual -= dual_penalty(s, c[j], penalty.l1[j], penalty.l2[j], penalty.positive);
        best = std::max(best, dual);
    }
    return penalised(problem, penalty, w, k) - best + unsettled;
}

// Extrapolation of a linearly converging sequence (Anderson 1965; for coordinate descent Bertrand and Massias 2021):
// the affine combination of the last K iterates whose combined difference is smallest.
class Anderson {
public:
    static constexpr std::size_t K = 5;
    explicit Anderson(std::size_t k) : k_(k), iterates_((K + 1) * k) {}

    // Remembers an iterate; true when there are enough for an extrapolation.
    bool remember(const double *w) {
        std::copy(w, w + k_, iterates_.begin() + static_cast<std::ptrdiff_t>(count_ * k_));
        return ++count_ == K + 1;
    }
    void forget() { count_ = 0; }

    bool extrapolate(std::vector<double> &out) const {
        double A[K][K + 1];
        double largest = 0.0;
        for (std::size_t a = 0; a < K; ++a)
            for (std::size_t b = 0; b <= a; ++b) {
                double sum = 0.0;
                const double *a0 = at(a), *a1 = at(a + 1), *b0 = at(b), *b1 = at(b + 1);
                for (std::size_t j = 0; j < k_; ++j) sum += (a1[j] - a0[j]) * (b1[j] - b0[j]);
                A[a][b] = A[b][a] = sum;
                if (a == b) largest = std::max(largest, sum);
            }
        if (!(largest > 0.0)) return false;
        for (std::size_t a = 0; a < K; ++a) A[a][a] += 1e-12 * largest, A[a][K] = 1.0;
        for (std::size_t a = 0; a < K; ++a) {  // elimination with pivoting by rows
            std::size_t pivot = a;
            for (std::size_t b = a + 1; b < K; ++b)
                if (std::fabs(A[b][a]) > std::fabs(A[pivot][a])) pivot = b;
            if (A[pivot][a] == 0.0) return false;
            std::swap(A[a], A[pivot]);
            for (std::size_t b = 0; b < K; ++b)
                if (b != a) {
                    const double f = A[b][a] / A[a][a];
                    for (std::size_t c = a; c <= K; ++c) A[b][c] -= f * A[a][c];
                }
        }
        double z[K], sum = 0.0;
        for (std::size_t a = 0; a < K; ++a) sum += z[a] = A[a][K] / A[a][a];
        if (!(std::fabs(sum) > 0.0) || !std::isfinite(sum)) return false;
        std::fill(out.begin(), out.end(), 0.0);
        for (std::size_t a = 0; a < K; ++a) {
            const double *w = at(a + 1), share = z[a] / sum;
            for (std::size_t j = 0; j < k_; ++j) out[j] += share * w[j];
        }
        return true;
    }

private:
    const double *at(std::size_t i) const { return iterates_.data() + i * k_; }
    std::size_t k_, count_ = 0;
    std::vector<double> iterates_;
};

struct Descent {
    std::size_t epochs = 0;
    double gap = std::numeric_limits<double>::infinity();  // over these columns, where it was computed last
    bool settled = false;                                  // the last epochs changed no sign
};

// What an epoch over some columns did: the sum of the decreases that its steps guarantee, and its multiply-adds.
struct Epoch {
    double drop = 0.0, work = 0.0;
    bool sign_changed = false;
};

// The exact minimum in one coordinate after the other; `column(i)` is the i-th of `count`.
template <class Problem, class Column>
Epoch coordinate_epoch(Problem &problem, const Penalty &penalty, double *w, std::size_t count, Column column) {
    Epoch done;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t j = column(i);
        const double curvature = problem.norm2[j] + penalty.l2[j];
        if (!(curvature > 0.0)) continue;  // a constant column without ridge: w_j stays
        const double old = w[j];
        const double g = problem.correlation(j) + problem.norm2[j] * old;
        const double fresh = soft_threshold(g, penalty.l1[j], penalty.positive) / curvature;
        done.work += static_cast<double>(problem.cost(j));
        if (fresh == old) continue;
        problem.move(j, fresh - old);
        w[j] = fresh;
        done.drop += 0.5 * curvature * (fresh - old) * (fresh - old);
        done.sign_changed |= (fresh > 0.0) != (old > 0.0) || (fresh < 0.0) != (old < 0.0);
    }
    return done;
}

// Goes to `trial` if the objective is lower there; returns the multiply-adds.
template <class Problem>
double try_point(Problem &problem, const Penalty &penalty, double *w, std::size_t k, std::vector<double> &trial,
                 std::vector<double> &backup) {
    const double before = penalised(problem, penalty, w, k), shift = problem.shift();
    double work = 0.0;
    backup.assign(problem.state(), problem.state() + problem.state_size());
    for (std::size_t j = 0; j < k; ++j) {
        if (penalty.positive) trial[j] = std::max(trial[j], 0.0);
        if (trial[j] != w[j]) problem.move(j, trial[j] - w[j]), work += static_cast<double>(problem.cost(j));
    }
    if (penalised(problem, penalty, trial.data(), k) < before)
        std::copy(trial.begin(), trial.end(), w);
    else {
        std::copy(backup.begin(), backup.end(), problem.state());
        problem.set_shift(shift);
    }
    return work;
}

// Epochs over the columns in use between two over all: as long as they gain more than this share of what the epoch over
// all gained, and at most so many. They pay where at most every other column is in use.
constexpr double WORTH_ANOTHER = 0.03;
constexpr std::size_t EPOCHS_OF_SUPPORT = 10;

// Epochs until the gap over these columns is at most `target`, `max_epochs` are done or about `max_work`
// multiply-adds; with `until_settled` also as soon as two epochs in a row change no sign.
template <class Problem>
Descent descend(Problem &problem, const Penalty &penalty, double *w, std::size_t k, std::size_t max_epochs,
                double target, double max_work, bool until_settled) {
    Descent done;
    Anderson anderson(k);
    std::vector<double> trial(k), c(k), backup;
    std::vector<std::size_t> support;
    double work = 0.0, worth = 0.0;
    std::size_t unchanged = 0, since_check = 0, of_support = 0;
    anderson.remember(w);
    while (done.epochs < max_epochs && work < max_work) {
        const bool all = of_support == 0;
        const Epoch epoch =
            all ? coordinate_epoch(problem, penalty, w, k, [](std::size_t i) { return i; })
                : coordinate_epoch(problem, penalty, w, support.size(), [&](std::size_t i) { return support[i]; });
        work += epoch.work;
        ++done.epochs;
        if (all) {
            ++since_check;
            unchanged = epoch.sign_changed ? 0 : unchanged + 1;
            done.settled = unchanged >= 2;
            // What one epoch gains is a lower bound of what was missing: no gap below it is worth computing.
            if (epoch.drop <= target || since_check >= 10) {
                done.gap = duality_gap(problem, penalty, w, k, c);
                since_check = 0;
                if (done.gap <= target || epoch.drop == 0.0) return done;
            }
            if (until_settled && done.settled) return done;
            if (Problem::walks_columns) {
                support.clear();
                for (std::size_t j = 0; j < k; ++j)
                    if (w[j] != 0.0) support.push_back(j);
                worth = WORTH_ANOTHER * epoch.drop;
                if (2 * support.size() <= k) of_support = EPOCHS_OF_SUPPORT;
            }
        } else
            of_support = epoch.drop > worth ? of_support - 1 : 0;
        if (!anderson.remember(w)) continue;
        const bool found = anderson.extrapolate(trial);
        anderson.forget();
        if (found) work += try_point(problem, penalty, w, k, trial, backup);
        anderson.remember(w);
    }
    return done;
}

}  // namespace epicycle
