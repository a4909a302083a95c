// Several regressions that share their features: block coordinate descent on a Gram matrix.
//
//     minimise  F(W) = 1/2 |Y - XW|^2 + sum_j l1_j |W_j| + 1/2 sum_j l2_j |W_j|^2,   W_j the coefficients of feature j.
//
// With G = X'X and Q = X'(Y - XW), the minimum over W_j alone is a soft threshold of the length of z = Q_j + G_jj W_j:
// W_j = (1 - l1_j / |z|)_+ z / (G_jj + l2_j). Arrays by feature are (m, k) in C order, k tasks.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "linear/coordinate_descent.hpp"

namespace epicycle {

struct MultiTask {
    const double *G;
    std::size_t ld, m, k;
    const double *l1, *l2;
    double *W, *Q;
    double square;  // |Y - XW|^2, kept up to date

    double diagonal(std::size_t j) const { return G[j * ld + j]; }

    // W_j += d; returns <d, Q_j before + Q_j after>, by which |Y - XW|^2 falls.
    double move(std::size_t j, const double *d) {
        double fall = 0.0;
        for (std::size_t t = 0; t < k; ++t) fall += d[t] * Q[j * k + t];
        for (std::size_t i = 0; i < m; ++i) {
            const double g = G[j * ld + i];
            double *q = Q + i * k;
            for (std::size_t t = 0; t < k; ++t) q[t] -= g * d[t];
        }
        for (std::size_t t = 0; t < k; ++t) fall += d[t] * Q[j * k + t], W[j * k + t] += d[t];
        return fall;
    }
};

inline double length(const double *x, std::size_t k) {
    double sum = 0.0;
    for (std::size_t t = 0; t < k; ++t) sum += x[t] * x[t];
    return std::sqrt(sum);
}

inline double multi_task_value(const MultiTask &x) {
    double value = 0.5 * x.square;
    for (std::size_t j = 0; j < x.m; ++j) {
        const double w = length(x.W + j * x.k, x.k);
        value += x.l1[j] * w + 0.5 * x.l2[j] * w * w;
    }
    return value;
}

// F(W) minus the dual objective D(s R), R = Y - XW, over these features alone; see the dual of one task.
inline double multi_task_gap(const MultiTask &x) {
    DualScale scale;
    double inner = 0.0;
    std::vector<double> size(x.m), shifted(x.k);
    for (std::size_t j = 0; j < x.m; ++j) {
        const double *q = x.Q + j * x.k, *w = x.W + j * x.k;
        for (std::size_t t = 0; t < x.k; ++t) inner += w[t] * q[t], shifted[t] = q[t] - x.l2[j] * w[t];
        size[j] = length(q, x.k);
        if (x.l2[j] == 0.0) scale.column(size[j], 0.0, x.l1[j], 0.0, false);
        const double tight = length(shifted.data(), x.k);
        if (tight > x.l1[j]) scale.tight = std::min(scale.tight, x.l1[j] / tight);
    }
    double best = -std::numeric_limits<double>::infinity();
    for (const double s : {scale.tight, scale.loose}) {
        double dual = s * (x.square + inner) - 0.5 * s * s * x.square;
        for (std::size_t j = 0; j < x.m; ++j) dual -= dual_penalty(s, size[j], x.l1[j], x.l2[j], false);
        best = std::max(best, dual);
    }
    return multi_task_value(x) - best;
}

// Epochs until the gap over these features is at most `target`, `max_epochs` are done or about `max_work`
// multiply-adds.
inline Descent multi_task_descend(MultiTask &x, std::size_t max_epochs, double target, double max_work) {
    Descent done;
    const std::size_t size = x.m * x.k;
    Anderson anderson(size);
    std::vector<double> trial(size), step(x.k), W, Q;
    double work = 0.0;
    std::size_t since_check = 0;
    anderson.remember(x.W);
    while (done.epochs < max_epochs && work < max_work) {
        double drop = 0.0;
        for (std::size_t j = 0; j < x.m; ++j) {
            const double norm2 = x.diagonal(j), curvature = norm2 + x.l2[j];
            if (!(curvature > 0.0)) continue;
            double *w = x.W + j * x.k;
            for (std::size_t t = 0; t < x.k; ++t) step[t] = x.Q[j * x.k + t] + norm2 * w[t];
            const double z = length(step.data(), x.k);
            const double shrink = z > x.l1[j] ? (1.0 - x.l1[j] / z) / curvature : 0.0;
            double moved = 0.0;
            for (std::size_t t = 0; t < x.k; ++t) step[t] = shrink * step[t] - w[t], moved += step[t] * step[t];
            work += static_cast<double>(x.k);
            if (moved == 0.0) continue;
            x.square -= x.move(j, step.data());
            work += static_cast<double>(size);
            drop += 0.5 * curvature * moved;
            // What is left of coefficients that went to zero is rounding.
            if (shrink == 0.0) std::fill(w, w + x.k, 0.0);
        }
        x.square = std::max(x.square, 0.0);
        ++done.epochs, ++since_check;
        if (drop <= target || since_check >= 10) {
            done.gap = multi_task_gap(x);
            since_check = 0;
            if (done.gap <= target || drop == 0.0) return done;
        }
        if (!anderson.remember(x.W)) continue;
        const bool found = anderson.extrapolate(trial);
        anderson.forget();
        if (found) {
            const double before = multi_task_value(x), square = x.square;
            W.assign(x.W, x.W + size), Q.assign(x.Q, x.Q + size);
            for (std::size_t j = 0; j < x.m; ++j) {
                for (std::size_t t = 0; t < x.k; ++t) step[t] = trial[j * x.k + t] - x.W[j * x.k + t];
                if (length(step.data(), x.k) > 0.0)
                    x.square -= x.move(j, step.data()), work += static_cast<double>(size);
            }
            x.square = std::max(x.square, 0.0);
            if (!(multi_task_value(x) < before)) {
                std::copy(W.begin(), W.end(), x.W);
                std::copy(Q.begin(), Q.end(), x.Q);
                x.square = square;
            }
        }
        anderson.remember(x.W);
    }
    return done;
}

}  // namespace epicycle
