// What a tree lowers: the cost of a node, and the part of it that a split can change.
//
// A node keeps sums (W, S_1 .. S_K) of weights and of weighted targets; for classes S_k is the weight of class k, and
// two classes need only the second. The cost of a node with its best value is
//   squared   sum w (y - c)^2 + g c^2,  c = S / (W + g)          gini      W - sum_k S_k^2 / W
//   poisson   sum w (y log(y / c) - y + c),  c = S / W           entropy   (W log W - sum_k S_k log S_k) / log 2
//   absolute  sum w |y - c|,  c a median
// summed over the columns of the target,
// and `score` is such that the costs of two children fall short of their parent's by the difference of scores.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

enum class Criterion { squared = 0, absolute = 1, poisson = 2, gini = 3, entropy = 4 };

constexpr double CART_NEVER = -std::numeric_limits<double>::infinity();

inline double xlogx(double x) { return x > 0 ? x * std::log(x) : 0.0; }

struct CriterionRules {
    Criterion kind;
    double l2 = 0.0;                // g
    bool two_classes = false;       // S is the weight of the second of two classes
    const double *table = nullptr;  // x log x of whole numbers, where all weights are whole
    std::size_t table_size = 0;
    double outputs = 1.0;  // columns of the target: numbers, or columns of labels whose classes stand side by side

    double x_log_x(double x) const {
        if (table) {
            const auto i = static_cast<std::size_t>(x + 0.5);
            if (i < table_size) return table[i];
        }
        return xlogx(x);
    }
};

// Score of one side with sums a = (W, S_1 .. S_K); `centre` holds the means of the node (squares are then differences
// from them, so that nothing cancels).
template <std::size_t Fixed>
EPICYCLE_INLINE double side_score(const CriterionRules &rules, const double *a, const double *centre, std::size_t K_) {
    const std::size_t K = Fixed ? Fixed : K_;
    const double W = a[0];
    double score = 0.0;
    switch (rules.kind) {
        case Criterion::squared:
        case Criterion::gini: {
            for (std::size_t k = 1; k <= K; ++k) {
                const double s = a[k] - centre[k] * W;
                score += s * s;
            }
            return (rules.two_classes ? 2.0 : 1.0) * score / (W + rules.l2);
        }
        case Criterion::entropy: {
            constexpr double per_bit = 1.4426950408889634074;
            score = -rules.x_log_x(W) * (rules.two_classes ? 1.0 : rules.outputs);
            for (std::size_t k = 1; k <= K; ++k) score += rules.x_log_x(a[k]);
            if (rules.two_classes) score += rules.x_log_x(W - a[1]);
            return per_bit * score;
        }
        default:
            for (std::size_t k = 1; k <= K; ++k) {
                if (!(a[k] > std::numeric_limits<double>::epsilon() * W)) return CART_NEVER;  // no logarithm of zero
                score += a[k] * std::log(a[k] / W);
            }
            return score;
    }
}

// Both sides of many splits with one sum each, least squares and Gini: W, S of the left, `whole` of the node.
EPICYCLE_CLONES inline void pair_gains(const double *W, const double *S, const double *n, std::size_t m, double whole_W,
                                       double whole_S, double whole_n, double centre, double l2, double factor,
                                       double least_n, double least_W, double *gain) {
    const double s0 = whole_S - centre * whole_W, parent = s0 * s0 / (whole_W + l2);
    for (std::size_t i = 0; i < m; ++i) {
        const double wl = W[i], wr = whole_W - wl, sl = S[i] - centre * wl, sr = s0 - sl;
        const double both = sl * sl / (wl + l2) + sr * sr / (wr + l2);
        const bool enough =
            (n[i] >= least_n) & (whole_n - n[i] >= least_n) & (wl >= least_W) & (wr >= least_W) & (wr > 0) & (wl > 0);
        gain[i] = enough ? factor * (both - parent) : CART_NEVER;
    }
}

}  // namespace epicycle
