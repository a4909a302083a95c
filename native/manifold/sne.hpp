// Stochastic neighbour embedding of Hinton and Roweis:  F = sum_ij p_j|i log(p_j|i / q_j|i)  with q_j|i ~ exp(-d_ij^2)
// among the others, and its gradient  2 sum_j (p_j|i - q_j|i + p_i|j - q_i|j) (y_i - y_j).
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "core/simd.hpp"
#include "core/threads.hpp"

namespace epicycle::manifold {

// P (n x n) with a diagonal of zeros. Returns -sum_ij p_j|i log q_j|i.
template <class Interrupt>
double sne(const double *P, const double *points, std::size_t n, std::size_t dim, int threads,
           const Interrupt &interrupt, double *g) {
    std::vector<double> logarithm(n), value(n);  // log sum_j exp(-d_ij^2), and the shares of F
    const auto square = [&](std::size_t i, std::size_t j) {
        double s = 0.0;
        for (std::size_t k = 0; k < dim; ++k) {
            const double d = points[i * dim + k] - points[j * dim + k];
            s += d * d;
        }
        return s;
    };
    in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::size_t i = from; i < to; ++i) {
            double nearest = INFINITY, sum = 0.0, cost = 0.0;
            for (std::size_t j = 0; j < n; ++j)
                if (j != i) nearest = std::min(nearest, square(i, j));
            for (std::size_t j = 0; j < n; ++j)
                if (j != i) sum += exp_nonpositive(nearest - square(i, j));
            logarithm[i] = std::log(sum) - nearest;
            for (std::size_t j = 0; j < n; ++j) cost += P[i * n + j] * (square(i, j) + logarithm[i]);
            value[i] = cost;
        }
    });
    in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::size_t i = from; i < to; ++i) {
            for (std::size_t k = 0; k < dim; ++k) g[i * dim + k] = 0.0;
            for (std::size_t j = 0; j < n; ++j) {
                if (i == j) continue;
                const double s = square(i, j);
                const double q = exp_nonpositive(std::min(-s - logarithm[i], 0.0)) +
                                 exp_nonpositive(std::min(-s - logarithm[j], 0.0));
                const double c = 2.0 * (P[i * n + j] + P[j * n + i] - q);
                for (std::size_t k = 0; k < dim; ++k) g[i * dim + k] += c * (points[i * dim + k] - points[j * dim + k]);
            }
        }
    });
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += value[i];
    return sum;
}

}  // namespace epicycle::manifold
