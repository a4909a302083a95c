// Multidimensional scaling: Guttman's transform with the stress in one pass, and monotone regression of distances.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd.hpp"

namespace epicycle::scaling {

constexpr std::size_t LANES = 8;

// Adds `count` rows from j on, at most LANES, to the sums of row i. Columns of X are `stride` apart.
template <std::size_t P>
EPICYCLE_INLINE void add(const double *columns, std::size_t stride, std::size_t any, const double *target,
                         const double *weight, std::size_t i, std::size_t j, std::size_t count, double *sums,
                         double *missed, double *length) {
    const std::size_t p = P == 0 ? any : P;
    double squared[LANES] = {}, ratio[LANES] = {};
    for (std::size_t c = 0; c < p; ++c) {
        const double here = columns[c * stride + i];
        for (std::size_t l = 0; l < count; ++l) {
            const double gap = here - columns[c * stride + j + l];
            squared[l] += gap * gap;
        }
    }
    for (std::size_t l = 0; l < count; ++l) {
        const double d = std::sqrt(squared[l]), w = weight ? weight[j + l] : 1.0, t = target[j + l];
        ratio[l] = w * t / (d > 0.0 ? d : std::numeric_limits<double>::infinity());  // 0 where rows meet
        missed[l] += w * (d - t) * (d - t);
        length[l] += w * squared[l];
    }
    for (std::size_t c = 0; c < p; ++c) {
        const double here = columns[c * stride + i];
        for (std::size_t l = 0; l < count; ++l) sums[c * LANES + l] += ratio[l] * (here - columns[c * stride + j + l]);
    }
}

EPICYCLE_INLINE double total(const double *v) {
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

// Of one row i: sum_j w_ij t_ij (x_i - x_j) / d_ij, sum_j w_ij (d_ij - t_ij)^2 and sum_j w_ij d_ij^2, with targets t.
// P is the number of columns, 0 for any. Eight partial sums, whatever the width of the registers.
template <std::size_t P>
EPICYCLE_INLINE void row(const double *columns, std::size_t stride, std::size_t n, std::size_t any,
                         const double *target, const double *weight, std::size_t i, double *space, double *out,
                         double *stress, double *size) {
    const std::size_t p = P == 0 ? any : P;
    double own[(P == 0 ? 1 : P) * LANES] = {}, missed[LANES] = {}, length[LANES] = {};
    double *sums = P == 0 ? space : own;
    for (std::size_t c = 0; c < p * LANES; ++c) sums[c] = 0.0;
    const std::size_t whole = n - n % LANES;
    if (weight)
        for (std::size_t j = 0; j < whole; j += LANES)
            add<P>(columns, stride, any, target, weight, i, j, LANES, sums, missed, length);
    else
        for (std::size_t j = 0; j < whole; j += LANES)
            add<P>(columns, stride, any, target, nullptr, i, j, LANES, sums, missed, length);
    if (whole < n) add<P>(columns, stride, any, target, weight, i, whole, n - whole, sums, missed, length);
    for (std::size_t c = 0; c < p; ++c) out[c] = total(sums + c * LANES);
    *stress = total(missed);
    *size = total(length);
}

#define EPICYCLE_SCALING_ROW(NAME, P)                                                                         \
    EPICYCLE_CLONES inline void NAME(const double *columns, std::size_t stride, std::size_t n, std::size_t p, \
                                     const double *target, const double *weight, std::size_t i, double *sums, \
                                     double *out, double *stress, double *size) {                             \
        row<P>(columns, stride, n, p, target, weight, i, sums, out, stress, size);                            \
    }
EPICYCLE_SCALING_ROW(row_of_two, 2)
EPICYCLE_SCALING_ROW(row_of_three, 3)
EPICYCLE_SCALING_ROW(row_of_any, 0)
#undef EPICYCLE_SCALING_ROW

// out (n, p), stress and size (n,) of all rows; targets and weights (n, n).
inline void guttman(const double *X, std::size_t n, std::size_t p, const double *target, const double *weight,
                    int threads, double *out, double *stress, double *size) {
    const std::size_t stride = (n + LANES - 1) / LANES * LANES;
    std::vector<double> columns(p * stride, 0.0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t c = 0; c < p; ++c) columns[c * stride + i] = X[i * p + c];
    const auto one = p == 2 ? row_of_two : p == 3 ? row_of_three : row_of_any;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        std::vector<double> sums(p * LANES);
#pragma omp for schedule(static)
        for (std::int64_t s = 0; s < static_cast<std::int64_t>(n); ++s) {
            const auto i = static_cast<std::size_t>(s);
            one(columns.data(), stride, n, p, target + i * n, weight ? weight + i * n : nullptr, i, sums.data(),
                out + i * p, stress + i, size + i);
        }
    }
}

// Disparities: the distances of pairs, made monotone in the order in which the pairs come. Pairs of a group, from
// group[g] to group[g + 1] - 1, are ties and get one value. Writes to both places of each pair in D (n, n), and returns
// sum w t^2 over the pairs. Pool adjacent violators; a group without weight goes with the one before it.
inline double monotone(const double *X, std::size_t n, std::size_t p, const std::int32_t *first,
                       const std::int32_t *second, const double *weight, const std::int64_t *group,
                       std::size_t n_groups, double *D) {
    struct Block {
        double weight, sum;
        std::size_t end;  // of its groups
    };
    std::vector<Block> blocks;
    blocks.reserve(n_groups);
    for (std::size_t g = 0; g < n_groups; ++g) {
        Block block{0.0, 0.0, g + 1};
        for (std::int64_t e = group[g]; e < group[g + 1]; ++e) {
            const double *a = X + static_cast<std::size_t>(first[e]) * p;
            const double *b = X + static_cast<std::size_t>(second[e]) * p;
            double squared = 0.0;
            for (std::size_t c = 0; c < p; ++c) squared += (a[c] - b[c]) * (a[c] - b[c]);
            const double w = weight ? weight[e] : 1.0;
            block.weight += w;
            block.sum += w * std::sqrt(squared);
        }
        while (!blocks.empty() &&
               (block.weight == 0.0 || blocks.back().sum * block.weight >= block.sum * blocks.back().weight)) {
            block.weight += blocks.back().weight;
            block.sum += blocks.back().sum;
            blocks.pop_back();
            if (block.weight == 0.0 && blocks.empty()) break;
        }
        blocks.push_back(block);
    }
    double total = 0.0;
    std::size_t g = 0;
    for (const Block &block : blocks) {
        const double value = block.weight > 0.0 ? block.sum / block.weight : 0.0;
        total += block.weight * value * value;
        for (; g < block.end; ++g)
            for (std::int64_t e = group[g]; e < group[g + 1]; ++e) {
                const auto i = static_cast<std::size_t>(first[e]), j = static_cast<std::size_t>(second[e]);
                D[i * n + j] = D[j * n + i] = value;
            }
    }
    return total;
}

}  // namespace epicycle::scaling
