// Forests whose leaves hold several numbers: sums of leaf values, numbers of leaves, and leaves of rows of codes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tree/predict.hpp"

namespace epicycle {

// visit(tree, row, leaf) for every tree and row; several rows walk down abreast.
template <class T, bool Categorical, class Visit>
EPICYCLE_INLINE void walk_tile(const Forest &f, const Dense<T> &X, std::size_t i0, std::size_t i1, const Visit &visit) {
    constexpr std::size_t ABREAST = 8;
    for (std::size_t t = 0; t < f.n_trees; ++t) {
        const Node *nodes = f.nodes + f.roots[t];
        std::size_t i = i0;
        for (; i + ABREAST <= i1; i += ABREAST) {
            std::uint32_t at[ABREAST] = {};
            for (bool all = false; !all;) {
                all = true;
                for (std::size_t j = 0; j < ABREAST; ++j) {
                    const Node &node = nodes[at[j]];
                    at[j] = step<Categorical>(node, static_cast<double>(X(i + j, node.feature())), f.levels);
                    all &= nodes[at[j]].leaf();
                }
            }
            for (std::size_t j = 0; j < ABREAST; ++j) visit(t, i + j, at[j]);
        }
        for (; i < i1; ++i) {
            std::uint32_t at = 0;
            while (!nodes[at].leaf())
                at = step<Categorical>(nodes[at], static_cast<double>(X(i, nodes[at].feature())), f.levels);
            visit(t, i, at);
        }
    }
}

template <class T, class Visit>
void walk(const Forest &f, const Dense<T> &X, int threads, const Visit &visit) {
    const std::size_t tile =
        std::max<std::size_t>(64, std::min<std::size_t>(1024, (128 << 10) / (X.cols * sizeof(T)) / 8 * 8));
    const auto tiles = static_cast<std::int64_t>((X.rows + tile - 1) / tile);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (std::int64_t i = 0; i < tiles; ++i) {
        const std::size_t i0 = static_cast<std::size_t>(i) * tile, i1 = std::min(i0 + tile, X.rows);
        f.n_levels ? walk_tile<T, true>(f, X, i0, i1, visit) : walk_tile<T, false>(f, X, i0, i1, visit);
    }
}

// out (n x K) += the values (nodes x K) of the leaves, tree by tree.
template <class T>
void sum_leaves(const Forest &f, const Dense<T> &X, std::size_t K, double *out, int threads) {
    walk(f, X, threads, [&](std::size_t t, std::size_t i, std::uint32_t leaf) {
        const double *v = f.values + (static_cast<std::size_t>(f.roots[t]) + leaf) * K;
        double *to = out + i * K;
        for (std::size_t k = 0; k < K; ++k) to[k] += v[k];
    });
}

// out (n x n_trees): the leaf of every row in every tree, numbered from the tree's root.
template <class T>
void find_leaves(const Forest &f, const Dense<T> &X, std::int32_t *out, int threads) {
    walk(f, X, threads, [&](std::size_t t, std::size_t i, std::uint32_t leaf) {
        out[i * f.n_trees + t] = static_cast<std::int32_t>(leaf);
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
