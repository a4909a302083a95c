// Forward stagewise regression in covariance form. With q = X'V(y - Xw) and rows of G = X'VX, a move of w_j by d is
//
//     j = argmax |q_j|,     w_j += d,     q -= d G_j,     loss -= d q_j - d^2/2 |x_j|^2
//
// where d = step sign(q_j), or step q_j / |x_j|^2 (a share of the way to the best w_j).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/simd.hpp"

namespace epicycle {

enum class StagewiseEnd : int { budget = 0, level = 1, exhausted = 2, row_missing = 3, turned = 4 };

struct Stagewise {
    const double *G;  // rows of the Gram matrix, as far as they are known
    std::size_t ld, p;
    const std::int64_t *row;  // row of G of each column, -1: not known
    const double *square;     // |x_j|^2; 0 for a column that takes no part
    double step;
    bool proportional;
    double level;  // the largest correlation at which to end
    double *q, *w;
    std::uint8_t *ways;  // directions in which each column has been moved: 1 up, 2 down, 3 both
};

struct StagewiseRun {
    std::size_t moves = 0;
    StagewiseEnd end = StagewiseEnd::budget;
    std::int64_t column = -1;  // the column that was to be moved next, or was moved last where it turned
    double gained = 0.0;       // by how much half the mean square of the residuals fell
};

// Index of the largest |q_i|, the first of equals. `top` is its value.
inline std::size_t first_of_size(const double *q, std::size_t p, double top) {
    for (std::size_t i = 0; i < p; ++i)
        if (std::fabs(q[i]) == top) return i;
    return 0;
}
EPICYCLE_CLONES inline double largest_of(const double *q, std::size_t p) {
    constexpr std::size_t K = 16;
    double part[K] = {}, top = 0.0;
    std::size_t i = 0;
    for (; i + K <= p; i += K)
        for (std::size_t k = 0; k < K; ++k) {
            const double a = std::fabs(q[i + k]);
            part[k] = a > part[k] ? a : part[k];
        }
    for (; i < p; ++i) top = std::max(top, std::fabs(q[i]));
    for (std::size_t k = 0; k < K; ++k) top = std::max(top, part[k]);
    return top;
}
// q -= d g; returns the largest |q_i| afterwards.
EPICYCLE_CLONES inline double subtract_and_find(double *q, const double *g, double d, std::size_t p) {
    constexpr std::size_t K = 16;
    double part[K] = {}, top = 0.0;
    std::size_t i = 0;
    for (; i + K <= p; i += K)
        for (std::size_t k = 0; k < K; ++k) {
            const double x = q[i + k] - d * g[i + k];
            q[i + k] = x;
            const double a = std::fabs(x);
            part[k] = a > part[k] ? a : part[k];
        }
    for (; i < p; ++i) {
        q[i] -= d * g[i];
        top = std::max(top, std::fabs(q[i]));
    }
    for (std::size_t k = 0; k < K; ++k) top = std::max(top, part[k]);
    return top;
}

// At most `budget` moves, written to `moves` (column + 1, negative where w_j fell) and `sizes` (null: not wanted).
// Ends early at the level, where a move of this size gains nothing, before a column whose row of G is not known, and
// after the first move of a column in a new direction.
inline StagewiseRun stagewise(const Stagewise &s, std::size_t budget, std::int32_t *moves, double *sizes) {
    StagewiseRun run;
    double top = largest_of(s.q, s.p);
    while (run.moves < budget) {
        const std::size_t j = first_of_size(s.q, s.p, top);
        run.column = static_cast<std::int64_t>(j);
        if (!(top > s.level)) {
            run.end = StagewiseEnd::level;
            return run;
        }
        const double c = s.q[j];
        const double d = s.proportional ? s.step * c / s.square[j] : std::copysign(s.step, c);
        const double gain = d * (c - 0.5 * d * s.square[j]);
        if (!(gain > 0.0) || s.w[j] + d == s.w[j]) {
            run.end = StagewiseEnd::exhausted;
            return run;
        }
        if (s.row[j] < 0) {
            run.end = StagewiseEnd::row_missing;
            return run;
        }
        s.w[j] += d;
        top = subtract_and_find(s.q, s.G + static_cast<std::size_t>(s.row[j]) * s.ld, d, s.p);
        run.gained += gain;
        const std::int32_t code = static_cast<std::int32_t>(j) + 1;
        if (sizes) sizes[run.moves] = d;
        moves[run.moves++] = d > 0.0 ? code : -code;
        const std::uint8_t way = d > 0.0 ? 1 : 2;
        if (!(s.ways[j] & way)) {
            s.ways[j] = static_cast<std::uint8_t>(s.ways[j] | way);
            run.end = StagewiseEnd::turned;
            return run;
        }
    }
    return run;
}

}  // namespace epicycle
