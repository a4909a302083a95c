// Stochastic neighbour embedding of Hinton and Roweis:  F = sum_ij p_j|i log(p_j|i / q_j|i)  with q_j|i ~ exp(-d_ij^2)
// among the others, and its gradient  2 sum_j (p_j|i - q_j|i + p_i|j - q_i|j) (y_i - y_j).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/simd.hpp"
#include "core/threads.hpp"
#include "manifold/pairs.hpp"

namespace epicycle::manifold {

// Squared distances of a point from all; coordinates lie one after the other.
EPICYCLE_CLONES inline void squares_from(const double *columns, std::size_t n, std::size_t dim, const double *at,
                                         double *s) {
    for (std::size_t j = 0; j < n; ++j) s[j] = 0.0;
    for (std::size_t k = 0; k < dim; ++k)
        for (std::size_t j = 0; j < n; ++j) s[j] += (at[k] - columns[k * n + j]) * (at[k] - columns[k * n + j]);
}

// sum_j exp(least - s_j) and sum_j p_j s_j in eight lanes; n is a multiple of eight.
EPICYCLE_CLONES inline void sums_of_row(const double *s, const double *p, std::size_t n, double least, double *mass,
                                        double *cost) {
    double e[DOUBLES] = {}, c[DOUBLES] = {};
    for (std::size_t j = 0; j < n; j += DOUBLES)
        for (std::size_t l = 0; l < DOUBLES; ++l) {
            e[l] += exp_nonpositive(std::min(least - s[j + l], 0.0));
            c[l] += p[j + l] * s[j + l];
        }
    *mass = ((e[0] + e[4]) + (e[1] + e[5])) + ((e[2] + e[6]) + (e[3] + e[7]));
    *cost = ((c[0] + c[4]) + (c[1] + c[5])) + ((c[2] + c[6]) + (c[3] + c[7]));
}

// p_j|i + p_i|j - q_j|i - q_i|j into s, which holds the squared distances.
EPICYCLE_CLONES inline void differences(const double *both, const double *logarithm, double own, std::size_t n,
                                        double *s) {
    for (std::size_t j = 0; j < n; ++j)
        s[j] = both[j] - exp_nonpositive(std::min(-s[j] - own, 0.0)) -
               exp_nonpositive(std::min(-s[j] - logarithm[j], 0.0));
}

// P (n x n) with a diagonal of zeros, and both = P + P'. Returns -sum_ij p_j|i log q_j|i.
template <class Interrupt>
double sne(const double *P, const double *both, const double *points, std::size_t n, std::size_t dim, int threads,
           const Interrupt &interrupt, double *g) {
    const std::size_t room = (n + DOUBLES - 1) / DOUBLES * DOUBLES;
    std::vector<double> columns(n * dim), logarithm(n), value(n);  // log sum_j exp(-d_ij^2), and the shares of F
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t k = 0; k < dim; ++k) columns[k * n + i] = points[i * dim + k];
    in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            std::vector<double> s(room), p(room);
#pragma omp for schedule(static)
            for (std::size_t i = from; i < to; ++i) {
                squares_from(columns.data(), n, dim, points + i * dim, s.data());
                s[i] = INFINITY;
                const double least = *std::min_element(s.begin(), s.begin() + static_cast<std::ptrdiff_t>(n));
                s[i] = 1e300;  // the row itself does not count, and 0 times this is 0
                std::fill(s.begin() + static_cast<std::ptrdiff_t>(n), s.end(), 1e300);
                std::copy(P + i * n, P + (i + 1) * n, p.begin());
                double mass, cost;
                sums_of_row(s.data(), p.data(), room, least, &mass, &cost);
                logarithm[i] = std::log(mass) - least;
                value[i] = cost + logarithm[i];
            }
        }
    });
    in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            std::vector<double> s(n);
#pragma omp for schedule(static)
            for (std::size_t i = from; i < to; ++i) {
                squares_from(columns.data(), n, dim, points + i * dim, s.data());
                differences(both + i * n, logarithm.data(), logarithm[i], n, s.data());
                s[i] = 0.0;
                for (std::size_t k = 0; k < dim; ++k) {
                    double sum = 0.0;
                    for (std::size_t j = 0; j < n; ++j) sum += s[j] * (points[i * dim + k] - columns[k * n + j]);
                    g[i * dim + k] = 2.0 * sum;
                }
            }
        }
    });
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += value[i];
    return sum;
}

}  // namespace epicycle::manifold
