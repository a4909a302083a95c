// Stochastic neighbour embedding of Hinton and Roweis:  F = sum_i w_i sum_j w_j p_j|i log(p_j|i / q_j|i)  with
// q_j|i ~ exp(-|y_i - y_j|^2) among the others, and its gradient.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "core/simd.hpp"
#include "core/threads.hpp"

namespace epicycle::manifold {

// P (n x n): mass of all copies of j for a copy of i, the diagonal that of the other copies of i itself. Returns
// sum_i w_i sum_j P_ij (-log q of one copy of j).
template <class Interrupt>
double sne(const double *P, const double *weight, const double *points, std::size_t n, std::size_t dim, int threads,
           const Interrupt &interrupt, double *g) {
    std::vector<double> logarithm(n), value(n);
    const auto square = [&](std::size_t i, std::size_t j) {
        double s = 0.0;
        for (std::size_t k = 0; k < dim; ++k) {
            const double d = points[i * dim + k] - points[j * dim + k];
            s += d * d;
        }
        return s;
    };
    const auto copies = [&](std::size_t i, std::size_t j) { return i == j ? std::max(weight[i] - 1.0, 0.0) : weight[j]; };
    in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::size_t i = from; i < to; ++i) {
            double nearest = INFINITY, sum = 0.0, cost = 0.0;
            for (std::size_t j = 0; j < n; ++j)
                if (copies(i, j) > 0.0) nearest = std::min(nearest, square(i, j));
            for (std::size_t j = 0; j < n; ++j)
                if (copies(i, j) > 0.0) sum += copies(i, j) * exp_nonpositive(nearest - square(i, j));
            logarithm[i] = std::log(sum) - nearest;
            for (std::size_t j = 0; j < n; ++j)
                if (P[i * n + j] > 0.0) cost += P[i * n + j] * (square(i, j) + logarithm[i]);
            value[i] = weight[i] * cost;
        }
    });
    in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::size_t i = from; i < to; ++i) {
            for (std::size_t k = 0; k < dim; ++k) g[i * dim + k] = 0.0;
            for (std::size_t j = 0; j < n; ++j) {
                if (i == j) continue;
                const double s = square(i, j);
                const double to_j = P[i * n + j] - weight[j] * std::exp(std::min(-s - logarithm[i], 0.0));
                const double to_i = P[j * n + i] - weight[i] * std::exp(std::min(-s - logarithm[j], 0.0));
                const double c = 2.0 * (weight[i] * to_j + weight[j] * to_i);
                for (std::size_t k = 0; k < dim; ++k) g[i * dim + k] += c * (points[i * dim + k] - points[j * dim + k]);
            }
        }
    });
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += value[i];
    return sum;
}

}  // namespace epicycle::manifold
