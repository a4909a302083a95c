// Mutual information of two partitions that is to be expected by chance: cells of the table have hypergeometric
// distributions once the sizes of the parts are given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace epicycle {

// E[m/N log(N m / (a b))], m hypergeometric: rows of a part of size b that fall into one of size a, of N.
// The ratio of neighbouring probabilities is rational, so they are walked from the mode, where the walk starts with 1,
// and divided by their sum: no factorial is computed and no digit lost for large N.
inline double expected_cell(double a, double b, double N) {
    constexpr double NEGLIGIBLE = 1e-24;  // of the probability of the mode
    const double lowest = std::max(0.0, a + b - N), highest = std::min(a, b), mean = a * b / N;
    const double mode = std::min(std::max(std::floor((a + 1.0) * (b + 1.0) / (N + 2.0)), lowest), highest);
    const auto term = [&](double m) { return m > 0.0 ? m / N * std::log1p((m - mean) / mean) : 0.0; };
    double sum = 1.0, value = term(mode), p = 1.0;
    for (double m = mode; m < highest && p > NEGLIGIBLE; ++m) {
        p *= (a - m) * (b - m) / ((m + 1.0) * (N - a - b + m + 1.0));
        sum += p;
        value += p * term(m + 1.0);
    }
    p = 1.0;
    for (double m = mode; m > lowest && p > NEGLIGIBLE; --m) {
        p *= m * (N - a - b + m) / ((a - m + 1.0) * (b - m + 1.0));
        sum += p;
        value += p * term(m - 1.0);
    }
    return value / sum;
}

// Over all pairs of parts; a size that occurs several times is given once, with its number.
inline double expected_information(const double *a, const double *a_times, std::size_t rows, const double *b,
                                   const double *b_times, std::size_t cols, double N) {
    double value = 0.0;
    for (std::size_t i = 0; i < rows; ++i)
        for (std::size_t j = 0; j < cols; ++j) value += a_times[i] * b_times[j] * expected_cell(a[i], b[j], N);
    return value;
}

}  // namespace epicycle
