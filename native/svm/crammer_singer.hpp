// The multiclass machine of Crammer and Singer (2001), row by row on its dual (Keerthi et al. 2008).
//
//     P(W) = sum_k |w_k|^2 / 2 + sum_i c_i max_k (e_ik + w_k'x_i - w_y'x_i),   e_ik = [k != y_i],
//     D(a) = -sum_k |w_k|^2 / 2 - sum_ik e_ik a_ik,   w_k = sum_i a_ik x_i,   a_ik <= c_i [k = y_i],   sum_k a_ik = 0.
//
// One visit minimises over the a_i of a row, the others fixed: with G_k = w_k'x_i + e_ik and Q = |x_i|^2 the problem is
// a projection, a_k = u_k - max(0, D_k - b) / Q with the bounds u_k, D_k = G_k - Q a_k + Q u_k, and b such that they
// sum to zero. What a row contributes to the gap, c (max G - G_y) + sum_k a_k G_k >= 0, is known at its visit for
// nothing. Rows with a = 0 whose margin exceeds one by more than the worst violation of the last pass are set aside.
#pragma once

#include <algorithm>
#include <vector>

#include "svm/linear_svm_dual.hpp"

namespace epicycle {

template <class Rows>
class CrammerSingerPass : public ShrinkingPass {
public:
    // alpha is (n, K), W is (p + 1, K); order, number and the report are those of DualPass.
    CrammerSingerPass(Rows &rows, const std::int64_t *code, const double *bound, const double *square, double scale,
                      std::size_t K, double *alpha, double *W, std::int64_t *order, double *number)
        : ShrinkingPass(order, number), rows(rows), code(code), bound(bound), square(square), scale(scale), K(K),
          alpha(alpha), W(W), G(K), sorted(K), step(K) {}

    bool visit(std::size_t count) {
        double *u = W + rows.cols() * K;  // weights of the constant feature
        const std::size_t until = next + count;
        for (; next < active && next < until; ++next) {
            rows.prefetch(order, next, active);
            const std::size_t i = static_cast<std::size_t>(order[next]);
            const std::size_t y = static_cast<std::size_t>(code[i]);
            double *a = alpha + K * i;
            const double c = bound[i], Q = square[i];
            rows.select(i);
            for (std::size_t k = 0; k < K; ++k) G[k] = scale * u[k] + (k == y ? 0.0 : 1.0);
            rows.dots(W, K, G.data());
            double most = G[y], least = std::numeric_limits<double>::infinity(), linear = 0.0, rival = -least;
            bool zero = true;
            for (std::size_t k = 0; k < K; ++k) {
                most = std::max(most, G[k]);
                if (k != y) rival = std::max(rival, G[k]);
                if (a[k] < (k == y ? c : 0.0)) least = std::min(least, G[k]);
                linear += a[k] * G[k];
                zero = zero && a[k] == 0.0;
            }
            gap += c * (most - G[y]) + linear;
            if (zero && G[y] - rival > number[WORST]) {
                set_aside();
                continue;
            }
            violation = std::max(violation, most - least);
            if (!(most - least > 0.0)) continue;
            project(a, y, c, Q);
            bool moved = false;
            double slope = 0.0, length = 0.0;
            for (std::size_t k = 0; k < K; ++k) {
                moved = moved || step[k] != 0.0;
                slope += step[k] * G[k];
                length += step[k] * step[k];
                a[k] += step[k];
            }
            if (!moved) continue;
            number[DUAL] -= slope + 0.5 * Q * length;
            rows.adds(step.data(), W, K);
            for (std::size_t k = 0; k < K; ++k) u[k] += scale * step[k];
        }
        return next < active;
    }

private:
    // The step to the best a of the row.
    void project(const double *a, std::size_t y, double c, double Q) {
        for (std::size_t k = 0; k < K; ++k) sorted[k] = step[k] = G[k] - Q * (a[k] - (k == y ? c : 0.0));
        std::sort(sorted.begin(), sorted.end(), [](double s, double t) { return s > t; });
        double sum = sorted[0] - Q * c, level = sum;
        for (std::size_t r = 1; r < K && sorted[r] > level; ++r) {
            sum += sorted[r];
            level = sum / static_cast<double>(r + 1);
        }
        for (std::size_t k = 0; k < K; ++k) step[k] = (k == y ? c : 0.0) - std::max(0.0, step[k] - level) / Q - a[k];
    }

    Rows &rows;
    const std::int64_t *code;
    const double *bound, *square;
    double scale;
    std::size_t K;
    double *alpha, *W;
    std::vector<double> G, sorted, step;
};

}  // namespace epicycle
