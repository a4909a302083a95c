// Newton's step on the sparse columns in use. With the signs s of w held, F is quadratic in them and least at w + d,
//
//     (X'X + l2) d = g,     g_j = c_j - l1_j s_j - l2_j w_j,
//
// by conjugate gradients, preconditioned by the diagonal: their number grows with the square root of the condition of
// X'X, that of epochs of coordinate descent with the condition itself, and a product with X'X costs less than an epoch.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "linear/lasso_problems.hpp"

namespace epicycle {

// Steps end where g'g, in the metric of the diagonal, has fallen to this share: signs will change before more digits
// count. The duality gap falls as |g|, to the square root of the share.
constexpr double NEWTON_REDUCTION = 1e-2;
constexpr std::size_t MAX_GRADIENTS = 40;

struct SupportStep {
    std::vector<double> d;
    double work = 0.0;  // multiply-adds

    // trial = w + length d, with zero for coefficients that would change their sign.
    void take(const double *w, std::size_t k, const std::vector<std::size_t> &support, double length,
              std::vector<double> &trial) const {
        std::copy(w, w + k, trial.begin());
        for (std::size_t t = 0; t < support.size(); ++t) {
            const double old = w[support[t]], moved = old + length * d[t];
            trial[support[t]] = (moved > 0.0) == (old > 0.0) ? moved : 0.0;
        }
    }
};

inline SupportStep newton_on_support(const SparseProblem &problem, const Penalty &penalty, const double *w,
                                     const std::vector<std::size_t> &support, double max_work) {
    const std::size_t m = support.size();
    SupportStep found{std::vector<double>(m, 0.0)};
    std::vector<double> &d = found.d;
    std::vector<double> g(m), p(m), diagonal(m), product(m), image(problem.R.size());
    double rho = 0.0, of_epoch = 0.0;
    for (std::size_t t = 0; t < m; ++t) {
        const std::size_t j = support[t];
        g[t] = problem.correlation(j) - std::copysign(penalty.l1[j], w[j]) - penalty.l2[j] * w[j];
        diagonal[t] = problem.norm2[j] + penalty.l2[j];
        p[t] = g[t] / diagonal[t];
        rho += g[t] * p[t];
        of_epoch += static_cast<double>(problem.cost(j));
    }
    found.work = of_epoch;
    const double enough = NEWTON_REDUCTION * rho;
    for (std::size_t step = 0; step < MAX_GRADIENTS && rho > enough && found.work < max_work; ++step) {
        std::fill(image.begin(), image.end(), 0.0);
        double shift = 0.0, curvature = 0.0, next = 0.0;
        for (std::size_t t = 0; t < m; ++t) {
            const std::size_t j = support[t];
            for (std::size_t a = problem.begin[j]; a < problem.begin[j + 1]; ++a)
                image[static_cast<std::size_t>(problem.row[a])] += problem.value[a] * p[t];
            shift -= problem.mean[j] * p[t];
        }
        for (std::size_t t = 0; t < m; ++t) {
            const std::size_t j = support[t];
            product[t] = problem.dot(j, image.data()) + shift * problem.mean[j] + penalty.l2[j] * p[t];
            curvature += p[t] * product[t];
        }
        found.work += of_epoch;
        if (!(curvature > 0.0)) break;
        const double length = rho / curvature;
        for (std::size_t t = 0; t < m; ++t) {
            d[t] += length * p[t];
            g[t] -= length * product[t];
            next += g[t] * g[t] / diagonal[t];
        }
        for (std::size_t t = 0; t < m; ++t) p[t] = g[t] / diagonal[t] + next / rho * p[t];
        rho = next;
    }
    return found;
}

}  // namespace epicycle
