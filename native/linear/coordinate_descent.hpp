// Cyclic coordinate descent with Anderson extrapolation on
//
//     F(w) = 1/2 |y - Xw|^2 + sum_j l1_j |w_j| + 1/2 sum_j l2_j w_j^2          (w >= 0 where `positive`)
//
// over a few columns (a working set). With r = y - Xw and c_j = x_j'r the best w_j, all others fixed, is
//
//     S(c_j + |x_j|^2 w_j, l1_j) / (|x_j|^2 + l2_j),     S(g, l) = sign(g) max(|g| - l, 0).
//
// How r is held and c_j computed is the business of the `Problem` (lasso_problems.hpp).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "linear/lasso_problems.hpp"
#include "linear/support_newton.hpp"

namespace epicycle {

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
    std::size_t signs_changed = 0;
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
        done.signs_changed += (fresh > 0.0) != (old > 0.0) || (fresh < 0.0) != (old < 0.0);
    }
    return done;
}

// Goes to `trial` if the objective is lower there; adds up the multiply-adds.
template <class Problem>
bool try_point(Problem &problem, const Penalty &penalty, double *w, std::size_t k, std::vector<double> &trial,
               std::vector<double> &backup, double &work) {
    const double before = penalised(problem, penalty, w, k), shift = problem.shift();
    backup.assign(problem.state(), problem.state() + problem.state_size());
    for (std::size_t j = 0; j < k; ++j) {
        if (penalty.positive) trial[j] = std::max(trial[j], 0.0);
        if (trial[j] != w[j]) problem.move(j, trial[j] - w[j]), work += static_cast<double>(problem.cost(j));
    }
    if (penalised(problem, penalty, trial.data(), k) < before) {
        std::copy(trial.begin(), trial.end(), w);
        return true;
    }
    std::copy(backup.begin(), backup.end(), problem.state());
    problem.set_shift(shift);
    return false;
}

// Epochs over the columns in use between two over all: as long as they gain more than this share of what the epoch over
// all gained, and at most so many. They pay where at most every other column is in use.
constexpr double WORTH_ANOTHER = 0.03;
constexpr std::size_t EPOCHS_OF_SUPPORT = 10;

// Newton's step is tried where at least so many columns are in use and an epoch over all changed the signs of at most
// this share of them, so many epochs after the one before: twice as many after every step that did not help, whole or
// halved so many times.
constexpr std::size_t NEWTON_COLUMNS = 500, NEWTON_WAIT = 2;
constexpr int NEWTON_HALVINGS = 3;
constexpr double NEWTON_SIGNS = 0.02;

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
    std::size_t unchanged = 0, since_check = 0, of_support = 0, wait = NEWTON_WAIT, next_newton = 0;
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
            unchanged = epoch.signs_changed ? 0 : unchanged + 1;
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
            if constexpr (Problem::has_newton)
                if (done.epochs >= next_newton && support.size() >= NEWTON_COLUMNS &&
                    static_cast<double>(epoch.signs_changed) <= NEWTON_SIGNS * static_cast<double>(support.size())) {
                    const SupportStep step = newton_on_support(problem, penalty, w, support, max_work - work);
                    work += step.work;
                    bool lower = false;
                    for (int halvings = 0; !lower && halvings <= NEWTON_HALVINGS; ++halvings) {
                        step.take(w, k, support, std::ldexp(1.0, -halvings), trial);
                        lower = try_point(problem, penalty, w, k, trial, backup, work);
                    }
                    if (!lower) wait *= 2;
                    next_newton = done.epochs + wait;
                    of_support = 0;
                    anderson.forget();
                }
        } else
            of_support = epoch.drop > worth ? of_support - 1 : 0;
        if (!anderson.remember(w)) continue;
        const bool found = anderson.extrapolate(trial);
        anderson.forget();
        if (found) try_point(problem, penalty, w, k, trial, backup, work);
        anderson.remember(w);
    }
    return done;
}

}  // namespace epicycle
