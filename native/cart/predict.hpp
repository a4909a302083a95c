// Forests whose leaves hold several numbers: sums of leaf values, numbers of leaves, and leaves of rows of codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tree/predict.hpp"

namespace epicycle {

// at_tree(t)(row, leaf) for every tree and row.
template <class T, class AtTree>
void walk(const Forest &f, const Dense<T> &X, int threads, const AtTree &at_tree) {
    const std::size_t tile =
        std::max<std::size_t>(64, std::min<std::size_t>(1024, (128 << 10) / (X.cols * sizeof(T)) / 8 * 8));
    const auto tiles = static_cast<std::int64_t>((X.rows + tile - 1) / tile);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (std::int64_t i = 0; i < tiles; ++i) {
        const std::size_t i0 = static_cast<std::size_t>(i) * tile, i1 = std::min(i0 + tile, X.rows);
        f.n_levels ? walk_tile<T, true>(f, 0, f.n_trees, X, i0, i1, at_tree)
                   : walk_tile<T, false>(f, 0, f.n_trees, X, i0, i1, at_tree);
    }
}

// out (n x K) += the values (nodes x K) of the leaves, tree by tree.
template <class T>
void sum_leaves(const Forest &f, const Dense<T> &X, std::size_t K, double *out, int threads) {
    walk(f, X, threads, [&f, K, out](std::size_t t) {
        return [values = f.values + static_cast<std::size_t>(f.roots[t]) * K, K, out](std::size_t i, std::size_t leaf) {
            for (std::size_t k = 0; k < K; ++k) out[i * K + k] += values[leaf * K + k];
        };
    });
}

// out (n x n_trees): the leaf of every row in every tree, numbered from the tree's root.
template <class T>
void find_leaves(const Forest &f, const Dense<T> &X, std::int32_t *out, int threads) {
    walk(f, X, threads, [&f, out](std::size_t t) {
        return [to = out + t, n_trees = f.n_trees](std::size_t i, std::uint32_t leaf) {
            to[i * n_trees] = static_cast<std::int32_t>(leaf);
        };
    });
}

// The leaf of each of the rows[0:m] of codes (n x p) in one tree; children of node i are left[i] and the next, 0 is
// none.
inline void leaves_of_codes(const std::uint8_t *codes, std::size_t p, const std::uint32_t *rows, std::size_t m,
                            const std::int32_t *column, const std::int32_t *left, const Sides *sides,
                            std::int32_t *out) {
    for (std::size_t i = 0; i < m; ++i) {
        const std::uint8_t *row = codes + std::size_t{rows[i]} * p;
        std::int32_t at = 0;
        while (left[at]) at = left[at] + !goes_left(sides[at], row[column[at]]);
        out[i] = at;
    }
}

}  // namespace epicycle
