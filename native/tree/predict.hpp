// The sum of trees for rows of numbers, and one tree for rows of bins.
//
// A node is two 64-bit words: the threshold (a double), and  left | feature << 32 | flags << 56.  Its right child
// follows its left one; numbering starts anew in every tree. A leaf leads to itself (threshold infinity, missing values
// left), so that several rows can walk down abreast until all have arrived. A node that divides levels holds, for its
// threshold, the number of its row in the table of levels that go left.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/dense.hpp"
#include "tree/split.hpp"

namespace epicycle {

struct Node {
    double threshold;
    std::uint64_t meta;
    std::uint32_t left() const { return static_cast<std::uint32_t>(meta); }
    std::uint32_t feature() const { return static_cast<std::uint32_t>(meta >> 32 & 0xffffff); }
    bool missing_left() const { return meta >> 56 & 1; }
    bool leaf() const { return meta >> 57 & 1; }
    bool categorical() const { return meta >> 58 & 1; }
    std::uint64_t levels() const {
        std::uint64_t row;
        std::memcpy(&row, &threshold, sizeof row);
        return row;
    }
};

struct Forest {
    const Node *nodes;
    const double *values;
    const std::int64_t *roots;  // n_trees + 1
    std::size_t n_trees;
    const Sides *levels;
    std::size_t n_nodes, n_levels;
};

// Whether node i of a tree of `size` nodes is a leaf that leads to itself, or has both children after it in the tree, a
// feature of the table and, where it divides levels, a row of theirs.
EPICYCLE_INLINE bool well_formed(const Node &node, std::int64_t i, std::int64_t size, std::size_t p,
                                 std::size_t n_levels) {
    const std::int64_t left = node.left();
    if (node.leaf())
        return left == i && node.missing_left() && node.threshold > 1e308 && !node.categorical() && node.feature() < p;
    return left > i && left + 1 < size && node.feature() < p && (!node.categorical() || node.levels() < n_levels);
}

inline bool well_formed_roots(const Forest &f) {
    if (f.roots[0] != 0 || static_cast<std::size_t>(f.roots[f.n_trees]) != f.n_nodes) return false;
    for (std::size_t t = 0; t < f.n_trees; ++t)
        if (f.roots[t] >= f.roots[t + 1]) return false;
    return true;
}

// All nodes, before a walk by many rows follows them.
inline bool well_formed(const Forest &f, std::size_t p) {
    for (std::size_t t = 0; t < f.n_trees; ++t) {
        const std::int64_t size = f.roots[t + 1] - f.roots[t];
        for (std::int64_t i = 0; i < size; ++i)
            if (!well_formed(f.nodes[f.roots[t] + i], i, size, p, f.n_levels)) return false;
    }
    return true;
}

template <bool Categorical>
EPICYCLE_INLINE std::uint32_t step(const Node &node, double x, const Sides *levels) {
    bool left = x <= node.threshold;
    if (Categorical && node.categorical())
        left = x >= 0 && x < 255 && goes_left(levels[node.levels()], static_cast<std::size_t>(x));
    left = x == x ? left : node.missing_left();
    return node.left() + !left;
}

// Rows i0 .. i1 in the trees first .. last-1, several abreast: at_tree(t) gives what takes (row, leaf) of this tree.
template <class T, bool Categorical, class AtTree>
EPICYCLE_INLINE void walk_tile(const Forest &f, std::size_t first, std::size_t last, const Dense<T> &X, std::size_t i0,
                               std::size_t i1, const AtTree &at_tree) {
    constexpr std::size_t ABREAST = 8;
    for (std::size_t t = first; t < last; ++t) {
        const Node *nodes = f.nodes + f.roots[t];
        const auto visit = at_tree(t);
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
            for (std::size_t j = 0; j < ABREAST; ++j) visit(i + j, at[j]);
        }
        for (; i < i1; ++i) {
            std::uint32_t at = 0;
            while (!nodes[at].leaf())
                at = step<Categorical>(nodes[at], static_cast<double>(X(i, nodes[at].feature())), f.levels);
            visit(i, at);
        }
    }
}

template <class T, bool Categorical>
void predict_tile(const Forest &f, std::size_t first, std::size_t last, const Dense<T> &X, std::size_t i0,
                  std::size_t i1, std::size_t K, double *out) {
    walk_tile<T, Categorical>(f, first, last, X, i0, i1, [&f, K, out](std::size_t t) {
        return [values = f.values + f.roots[t], to = out + t % K, K](std::size_t i, std::uint32_t leaf) {
            to[i * K] += values[leaf];
        };
    });
}

// out (n x K) += the trees first..last-1 of rows X; tree t counts for output t mod K.
template <class T>
void predict(const Forest &f, std::size_t first, std::size_t last, const Dense<T> &X, std::size_t K, double *out,
             int threads) {
    const std::size_t tile =
        std::max<std::size_t>(64, std::min<std::size_t>(1024, (128 << 10) / (X.cols * sizeof(T)) / 8 * 8));
    const std::int64_t tiles = static_cast<std::int64_t>((X.rows + tile - 1) / tile);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (std::int64_t i = 0; i < tiles; ++i) {
        const std::size_t i0 = static_cast<std::size_t>(i) * tile, i1 = std::min(i0 + tile, X.rows);
        f.n_levels ? predict_tile<T, true>(f, first, last, X, i0, i1, K, out)
                   : predict_tile<T, false>(f, first, last, X, i0, i1, K, out);
    }
}

// The same for few rows: nodes are checked on the way, which costs less than all of them; false where one is
// ill-formed.
template <class T>
bool predict_few(const Forest &f, std::size_t first, std::size_t last, const Dense<T> &X, std::size_t K, double *out) {
    for (std::size_t t = first; t < last; ++t) {
        const Node *nodes = f.nodes + f.roots[t];
        const std::int64_t size = f.roots[t + 1] - f.roots[t];
        for (std::size_t i = 0; i < X.rows; ++i)
            for (std::uint32_t at = 0;;) {
                const Node &node = nodes[at];
                if (!well_formed(node, at, size, X.cols, f.n_levels)) return false;
                if (node.leaf()) {
                    out[i * K + t % K] += f.values[f.roots[t] + at];
                    break;
                }
                at = step<true>(node, static_cast<double>(X(i, node.feature())), f.levels);
            }
    }
    return true;
}

// out (n) += one tree for rows of bins (n x p): the children of node i are left[i] and left[i] + 1; left 0 is a leaf.
inline void predict_bins(const std::uint8_t *rows, std::size_t n, std::size_t p, const std::int32_t *feature,
                         const std::int32_t *left, const Sides *sides, const double *values, double *out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
        const std::uint8_t *row = rows + static_cast<std::size_t>(i) * p;
        std::int32_t at = 0;
        while (left[at]) at = left[at] + !goes_left(sides[at], row[feature[at]]);
        out[i] += values[at];
    }
}

}  // namespace epicycle
