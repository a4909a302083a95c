// Loss, gradient and curvature of every row at its current score, in one pass.
//
// Scores are K x n (K = 1 but for softmax), gradients and curvatures K x n x 2 in single precision. Sums are taken over
// pieces of a fixed size and added in their order, so that their bits do not depend on the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/losses.hpp"
#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t LOSS_ROWS = 256;

// Loss, first and second derivative by the score, for rows that the caller has laid side by side.
struct RowTerms {
    double loss[LOSS_ROWS], g[LOSS_ROWS], h[LOSS_ROWS];
};

// y and s are the target and the score of row i, in terms of which ROW is its loss.
#define EPICYCLE_TREE_TERMS(NAME, ROW)                                                                    \
    EPICYCLE_CLONES inline void NAME##_terms(const double *target, const double *score, double parameter, \
                                             std::size_t m, RowTerms &t) {                                \
        (void)parameter;                                                                                  \
        for (std::size_t i = 0; i < m; ++i) {                                                             \
            const double y = target[i], s = score[i];                                                     \
            const LossRow row = ROW;                                                                      \
            t.loss[i] = row.value;                                                                        \
            t.g[i] = row.slope;                                                                           \
            t.h[i] = row.curvature;                                                                       \
        }                                                                                                 \
    }
EPICYCLE_TREE_TERMS(squared, squared_row(s, y, 0.0, 0.0))
EPICYCLE_TREE_TERMS(absolute, quantile_row(s, y, 0.5, 2.0))
EPICYCLE_TREE_TERMS(quantile, quantile_row(s, y, parameter, 1.0))
EPICYCLE_TREE_TERMS(huber, huber_row(s, y, parameter))
EPICYCLE_TREE_TERMS(poisson, poisson_row(s, y, 0.0, 0.0))
EPICYCLE_TREE_TERMS(gamma, gamma_row(s, y, 0.0, 0.0))
EPICYCLE_TREE_TERMS(tweedie, tweedie_row(s, y, parameter - 1.0, 2.0 - parameter))
EPICYCLE_TREE_TERMS(logistic, label_row(s, y))
#undef EPICYCLE_TREE_TERMS

// exp(s_k - max) of every class in place, and their sum.
EPICYCLE_CLONES inline void softmax_terms(double *s, std::size_t K, std::size_t m, double *top, double *sum) {
    for (std::size_t i = 0; i < m; ++i) top[i] = s[i];
    for (std::size_t k = 1; k < K; ++k)
        for (std::size_t i = 0; i < m; ++i) top[i] = std::max(top[i], s[k * LOSS_ROWS + i]);
    for (std::size_t i = 0; i < m; ++i) sum[i] = 0.0;
    for (std::size_t k = 0; k < K; ++k)
        for (std::size_t i = 0; i < m; ++i) {
            const double e = exp_nonpositive(s[k * LOSS_ROWS + i] - top[i]);
            s[k * LOSS_ROWS + i] = e;
            sum[i] += e;
        }
}

struct LossSums {  // one for each output, but for the loss, which is the first's
    double loss = 0.0, abs_g = 0.0, h = 0.0;
};

// Weights, rounding to single precision and sums for the rows of one piece and output; stored where there is a gh.
inline void store_terms(const RowTerms &t, const double *weight, std::size_t m, float *gh, LossSums &sums) {
    double loss[4] = {0, 0, 0, 0}, a[4] = {0, 0, 0, 0}, c[4] = {0, 0, 0, 0};
    for (std::size_t i = 0; i < m; ++i) {
        const double w = weight ? weight[i] : 1.0;
        const auto g = static_cast<float>(w * t.g[i]), h = static_cast<float>(w * t.h[i]);
        if (gh) {
            gh[2 * i] = g;
            gh[2 * i + 1] = h;
        }
        loss[i & 3] += w * t.loss[i];
        a[i & 3] += std::abs(static_cast<double>(g));
        c[i & 3] += static_cast<double>(h);
    }
    sums.loss += (loss[0] + loss[1]) + (loss[2] + loss[3]);
    sums.abs_g += (a[0] + a[1]) + (a[2] + a[3]);
    sums.h += (c[0] + c[1]) + (c[2] + c[3]);
}

// Derivatives by the score of class k, where p_k = exp(s_k - top) / sum. The factor makes up for what the curvature off
// the diagonal would say (Friedman, 2001).
inline void class_terms(const double *e, const double *sum, const double *y, std::size_t k, std::size_t K,
                        std::size_t m, RowTerms &t) {
    const double factor = static_cast<double>(K) / static_cast<double>(K - 1);
    for (std::size_t i = 0; i < m; ++i) {
        const double p = e[i] / sum[i], is_k = y[i] == static_cast<double>(k) ? 1.0 : 0.0;
        t.g[i] = p - is_k;
        t.h[i] = factor * p * (1.0 - p);
    }
}

// gh: K x n x 2, or null. normal: 2 x n, or null; for softmax the largest score of each row and the sum of the
// exponentials of the others' distances from it, which is all that the derivatives by one score need of the others.
inline void loss_piece(LossId kind, double parameter, const double *y, const double *weight, const double *score,
                       std::size_t n, std::size_t K, std::size_t i0, std::size_t m, float *gh, double *normal,
                       LossSums *sums) {
    RowTerms t;
    const double *yi = y + i0, *si = score + i0, *wi = weight ? weight + i0 : nullptr;
    if (kind == LossId::softmax) {
        std::vector<double> e(K * LOSS_ROWS);
        double top[LOSS_ROWS], sum[LOSS_ROWS];
        for (std::size_t k = 0; k < K; ++k) std::copy(si + k * n, si + k * n + m, e.data() + k * LOSS_ROWS);
        softmax_terms(e.data(), K, m, top, sum);
        for (std::size_t k = 0; k < K; ++k) {
            class_terms(e.data() + k * LOSS_ROWS, sum, yi, k, K, m, t);
            for (std::size_t i = 0; i < m; ++i)
                t.loss[i] = k == 0 ? std::log(sum[i]) + top[i] - si[static_cast<std::size_t>(yi[i]) * n + i] : 0.0;
            store_terms(t, wi, m, gh ? gh + 2 * (k * n + i0) : nullptr, sums[k]);
        }
        if (normal) {
            std::copy(top, top + m, normal + i0);
            std::copy(sum, sum + m, normal + n + i0);
        }
        return;
    }
    // Every loss has a loop of its own, cloned for the instruction sets.
    const auto terms = kind == LossId::squared    ? squared_terms
                       : kind == LossId::absolute ? absolute_terms
                       : kind == LossId::huber    ? huber_terms
                       : kind == LossId::quantile ? quantile_terms
                       : kind == LossId::poisson  ? poisson_terms
                       : kind == LossId::gamma    ? gamma_terms
                       : kind == LossId::tweedie  ? tweedie_terms
                                                  : logistic_terms;
    terms(yi, si, parameter, m, t);
    store_terms(t, wi, m, gh ? gh + 2 * i0 : nullptr, sums[0]);
}

inline std::vector<LossSums> loss_rows(LossId kind, double parameter, const double *y, const double *weight,
                                       const double *score, std::size_t n, std::size_t K, float *gh, double *normal,
                                       int threads) {
    constexpr std::size_t PIECE = 16 * LOSS_ROWS;
    const std::size_t pieces = (n + PIECE - 1) / PIECE;
    std::vector<LossSums> partial(pieces * K), total(K);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (std::int64_t piece = 0; piece < static_cast<std::int64_t>(pieces); ++piece) {
        const std::size_t from = static_cast<std::size_t>(piece) * PIECE, to = std::min(from + PIECE, n);
        for (std::size_t i0 = from; i0 < to; i0 += LOSS_ROWS)
            loss_piece(kind, parameter, y, weight, score, n, K, i0, std::min(LOSS_ROWS, to - i0), gh, normal,
                       partial.data() + static_cast<std::size_t>(piece) * K);
    }
    for (std::size_t piece = 0; piece < pieces; ++piece)
        for (std::size_t k = 0; k < K; ++k) {
            total[k].loss += partial[piece * K + k].loss;
            total[k].abs_g += partial[piece * K + k].abs_g;
            total[k].h += partial[piece * K + k].h;
        }
    return total;
}

EPICYCLE_CLONES inline void distances_exp(const double *s, const double *top, std::size_t m, double *e) {
    for (std::size_t i = 0; i < m; ++i) e[i] = exp_nonpositive(s[i] - top[i]);
}

// Gradient and curvature of the softmax loss by the scores of class k alone, with the bits of loss_rows, from the
// scores of that class and what loss_rows left in `normal`.
inline void class_rows(const double *y, const double *weight, const double *score, const double *normal, std::size_t n,
                       std::size_t k, std::size_t K, float *gh, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (std::int64_t piece = 0; piece < static_cast<std::int64_t>((n + LOSS_ROWS - 1) / LOSS_ROWS); ++piece) {
        const std::size_t i0 = static_cast<std::size_t>(piece) * LOSS_ROWS, m = std::min(LOSS_ROWS, n - i0);
        RowTerms t;
        double e[LOSS_ROWS];
        LossSums sums;
        distances_exp(score + i0, normal + i0, m, e);
        class_terms(e, normal + n + i0, y + i0, k, K, m, t);
        std::fill(t.loss, t.loss + m, 0.0);
        store_terms(t, weight ? weight + i0 : nullptr, m, gh + 2 * i0, sums);
    }
}

}  // namespace epicycle
