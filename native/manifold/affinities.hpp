// Conditional probabilities of neighbours with a given perplexity, p_j ~ exp(-beta_i d_j^2), and the weights of UMAP's
// graph.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/simd.hpp"

namespace epicycle::manifold {

// exp(-beta squares), their sum, and their sum times the squares; squares are relative to the least of them.
EPICYCLE_CLONES inline void masses(const double *squares, std::size_t m, double beta, double *p, double *sum,
                                   double *mean) {
    double s[8] = {}, t[8] = {};
    for (std::size_t j = 0; j < m; j += 8) {
        const std::size_t count = std::min<std::size_t>(8, m - j);
        if (count == 8) {
            for (std::size_t l = 0; l < 8; ++l) {
                p[j + l] = exp_nonpositive(-beta * squares[j + l]);
                s[l] += p[j + l];
                t[l] += p[j + l] * squares[j + l];
            }
        } else {
            for (std::size_t l = 0; l < count; ++l) {
                p[j + l] = exp_nonpositive(-beta * squares[j + l]);
                s[l] += p[j + l];
                t[l] += p[j + l] * squares[j + l];
            }
        }
    }
    *sum = ((s[0] + s[4]) + (s[1] + s[5])) + ((s[2] + s[6]) + (s[3] + s[7]));
    *mean = ((t[0] + t[4]) + (t[1] + t[5])) + ((t[2] + t[6]) + (t[3] + t[7]));
}

// The entropy log(sum) + beta mean falls in beta: bracketed Newton.
inline void calibrate(const double *distance, std::size_t m, double target, double *p, std::vector<double> &squares) {
    squares.resize(m);
    double longest = 0.0, least = 1.0;
    for (std::size_t j = 0; j < m; ++j) longest = std::max(longest, distance[j]);
    const double unit = longest > 0.0 ? 1.0 / longest : 1.0;
    for (std::size_t j = 0; j < m; ++j) {
        squares[j] = distance[j] * unit * (distance[j] * unit);
        least = std::min(least, squares[j]);
    }
    double most = 0.0;
    for (std::size_t j = 0; j < m; ++j) {
        squares[j] = std::max(squares[j] - least, 0.0);
        most = std::max(most, squares[j]);
    }
    double low = 0.0, high = -1.0, beta = most > 0.0 ? 1.0 / most : 1.0, sum = 1.0, mean = 0.0;
    for (int step = 0; step < 200; ++step) {
        masses(squares.data(), m, beta, p, &sum, &mean);
        const double average = mean / sum, entropy = std::log(sum) + beta * average, gap = entropy - target;
        if (std::abs(gap) < 1e-10) break;
        if (gap > 0.0)
            low = beta;
        else
            high = beta;
        // d entropy / d log beta = -beta^2 variance
        double second = 0.0;
        for (std::size_t j = 0; j < m; ++j) second += p[j] * (squares[j] - average) * (squares[j] - average);
        const double slope = beta * beta * second / sum;
        double next = slope > 0.0 ? beta * std::exp(std::max(-3.0, std::min(3.0, gap / slope))) : -1.0;
        const bool inside = next > low && (high < 0.0 || next < high);
        if (!inside) next = high < 0.0 ? beta * 4.0 : (low > 0.0 ? std::sqrt(low * high) : high / 4.0);
        if (next == beta || !(next > 1e-290) || !(next < 1e290)) break;  // entropies that no beta reaches
        beta = next;
    }
    for (std::size_t j = 0; j < m; ++j) p[j] /= sum;
}

// UMAP's weights exp(-max(0, d - rho) / sigma) of k neighbours, rho the least positive distance, and sigma such that
// they add up to log2(k).
inline void fuzzy(const double *distance, std::size_t m, double target, double *p) {
    double rho = 0.0, longest = 0.0;
    for (std::size_t j = 0; j < m; ++j) {
        if (distance[j] > 0.0 && (rho == 0.0 || distance[j] < rho)) rho = distance[j];
        longest = std::max(longest, distance[j]);
    }
    const double unit = longest > 0.0 ? 1.0 / longest : 1.0;
    double low = 0.0, high = -1.0, sigma = 1.0;
    for (int step = 0; step < 100; ++step) {
        double sum = 0.0;
        for (std::size_t j = 0; j < m; ++j) {
            p[j] = std::exp(-std::max(0.0, (distance[j] - rho) * unit) / sigma);
            sum += p[j];
        }
        if (std::abs(sum - target) < 1e-9) break;
        if (sum > target)
            high = sigma;
        else
            low = sigma;
        const double next = high < 0.0 ? sigma * 2.0 : (low + high) / 2.0;
        if (next == sigma || !(next > 1e-290) || !(next < 1e290)) break;
        sigma = next;
    }
}

}  // namespace epicycle::manifold
