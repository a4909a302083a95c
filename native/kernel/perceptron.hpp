// The perceptron in the space of a kernel: w = sum_i c_i y_i phi(x_i), known through its scores on the rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/simd.hpp"

namespace epicycle {

EPICYCLE_CLONES inline void add_scaled(double *x, const double *y, double a, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) x[i] += a * y[i];
}

// Shows rows order[from .. to). A row on the wrong side moves w by its share; places of mistakes go to `at`.
// square is |w|^2. Returns the number of mistakes.
inline std::size_t kernel_perceptron_pass(const double *K, std::size_t n, const std::int64_t *order,
                                          const double *share, std::size_t from, std::size_t to, const double *sign,
                                          double *scores, double *counts, double &square, std::int64_t *at) {
    std::size_t made = 0;
    for (std::size_t t = from; t < to; ++t) {
        const auto i = static_cast<std::size_t>(order[t]);
        const double y = sign[i], margin = y * scores[i], step = share ? share[t] : 1.0;
        if (margin > 0.0 || y == 0.0) continue;
        square += 2.0 * step * margin + step * step * K[i * n + i];
        counts[i] += step;
        add_scaled(scores, K + i * n, step * y, n);
        at[made++] = static_cast<std::int64_t>(t);
    }
    return made;
}

// One pass of coordinate ascent on  sum_i a_i - |sum_i a_i y_i phi(x_i)|^2 / 2,  a >= 0, whose solution has the largest
// margin there is. Returns the change of |w|^2.
inline void kernel_margin_pass(const double *K, std::size_t n, const double *sign, double *scores, double *a,
                               double &square) {
    for (std::size_t i = 0; i < n; ++i) {
        const double y = sign[i], own = K[i * n + i];
        if (y == 0.0 || !(own > 0.0)) continue;
        const double margin = y * scores[i], next = std::max(0.0, a[i] + (1.0 - margin) / own), step = next - a[i];
        if (step == 0.0) continue;
        square += 2.0 * step * margin + step * step * own;
        a[i] = next;
        add_scaled(scores, K + i * n, step * y, n);
    }
}

}  // namespace epicycle
