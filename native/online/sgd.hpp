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
#include <limits>
#include <vector>

#include "core/losses.hpp"
#include "core/rows.hpp"

namespace epicycle {

// The last two are the passive-aggressive steps of Crammer et al. (2006), whose length follows from the loss of the
// row.
enum class Schedule : int { optimal, constant, power, adaptive, inverse, offset, pa1, pa2 };

struct OnlineRule {
    LossId loss;
    double epsilon;
    Schedule schedule;
    double eta0, exponent, offset;
    double alpha;         // of the schedule "optimal"
    double l2, l1;        // alpha (1 - rho) and alpha rho
    double intercept;     // length of b's steps relative to those of w; 0 without b
    double average_from;  // steps before the mean of w begins; 0 for none
    double pull;          // slope of the objective in b beside the losses: nu of the one-class machine, else 0
};

// Places in the vector of numbers that a learner carries along.
enum OnlineNumber : int { STEP, SCALE, OWED, SUM, COUNT, ETA, CAPPED, FIRST, ONLINE_NUMBERS };

struct OnlineState {
    double *v, *b, *number;
    double *a, *base, *b_sum;  // of the mean; null without
    double *q;                 // of the L1 penalty; null without
    std::size_t p, K;
};

// The curvature of losses whose derivative has no bound: a step longer than 1 / (curvature |x|^2) would go past the
// row's own minimum, and many such steps diverge. 0 for the others.
inline double unbounded_curvature(LossId loss) {
    if (loss == LossId::squared) return 1.0;
    return loss == LossId::squared_hinge || loss == LossId::squared_epsilon_insensitive ? 2.0 : 0.0;
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

// A passive-aggressive step of length tau on a row of loss l, as a share tau / C of the largest one that PA-I takes:
// tau = min(C, l / |x|^2), and tau = l / (|x|^2 + 1 / (2 C)) for PA-II, with C = eta0.
inline double passive_share(const OnlineRule &rule, double loss, double square) {
    if (rule.schedule == Schedule::pa2) return loss / (square * rule.eta0 + 0.5);
    return square > 0.0 ? std::min(1.0, loss / (square * rule.eta0)) : 0.0;
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
// score or a length that is not finite, and says so with nan.
template <bool One, class Rows>
double online_learn(Rows &rows, const OnlineRule &rule, OnlineState &state, const double *y, const double *positive,
                    const std::int64_t *order, const double *fraction, std::size_t from, std::size_t to, double *dual,
                    double *scores, double *mistakes, double *z) {
    const std::size_t K = One ? 1 : state.K;
    double *number = state.number, *g = z + K, losses = 0.0;
    const double curvature = unbounded_curvature(rule.loss);
    const bool plain = !state.a && !state.q, passive = rule.schedule >= Schedule::pa1;
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
        const double square = curvature > 0.0 || passive ? row_square(rows) : 0.0;
        if (!std::isfinite(square)) return std::numeric_limits<double>::quiet_NaN();
        double step = eta;
        if (curvature > 0.0) {
            const double longest = 1.0 / (curvature * (square + rule.intercept));
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
            const double loss = plain_loss(rule.loss, rule.epsilon, score, target, slope);
            losses += f * loss;
            if (passive) slope *= passive_share(rule, loss, square);
            if (positive && score * target <= 0.0) mistakes[k] += f;
            if (dual) dual[row * K + k] += f * slope;
            if (scores) scores[i * K + k] = score;
            const double update = -step * slope;
            state.b[k] += rule.intercept * (update - eta * rule.pull);
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
