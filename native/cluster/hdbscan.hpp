// The hierarchy of HDBSCAN: a spanning tree in the order of Prim, single linkage, the condensed tree, cuts.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "spatial/boruvka.hpp"

namespace epicycle {

// The edges of a spanning tree, each from a row that Prim has reached before to the next one; ties by the row.
inline std::vector<TreeEdge> in_order_of_prim(const std::vector<TreeEdge> &edges) {
    const std::size_t n = edges.size() + 1;
    std::vector<std::size_t> start(n + 1);
    for (const auto &edge : edges) {
        ++start[edge.a + 1];
        ++start[edge.b + 1];
    }
    for (std::size_t i = 0; i < n; ++i) start[i + 1] += start[i];
    std::vector<std::pair<std::size_t, double>> links(2 * edges.size());
    std::vector<std::size_t> at(start.begin(), start.end() - 1);
    for (const auto &edge : edges) {
        links[at[edge.a]++] = {edge.b, edge.distance};
        links[at[edge.b]++] = {edge.a, edge.distance};
    }
    using Open = std::tuple<double, std::size_t, std::size_t>;  // distance, row, from
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
    std::vector<std::uint8_t> reached(n);
    std::vector<TreeEdge> ordered;
    ordered.reserve(edges.size());
    const auto reach = [&](std::size_t i) {
        reached[i] = 1;
        for (std::size_t k = start[i]; k < start[i + 1]; ++k)
            if (!reached[links[k].first]) open.emplace(links[k].second, links[k].first, i);
    };
    reach(0);
    while (!open.empty()) {
        const auto [distance, row, from] = open.top();
        open.pop();
        ordered.push_back({from, row, distance});
        reach(row);
    }
    return ordered;
}

// Prim's algorithm with distances that are computed when they are needed; columns: (p, n). `pause` is called for every
// row.
template <Metric M, class Pause>
std::vector<TreeEdge> prim(const double *columns, std::size_t n, std::size_t p, const Norm<M> &norm, const double *core,
                           double alpha, const Pause &pause) {
    std::vector<TreeEdge> edges;
    edges.reserve(n - 1);
    std::vector<double> least(n, std::numeric_limits<double>::infinity()), d(n);
    std::vector<std::size_t> from(n);
    std::vector<std::uint8_t> reached(n);
    std::size_t row = 0;
    while (edges.size() + 1 < n) {
        pause();
        reached[row] = 1;
        std::fill(d.begin(), d.end(), 0.0);
        for (std::size_t k = 0; k < p; ++k) add_column(norm, columns + k * n, n, columns[k * n + row], d.data());
        TreeEdge next;
        for (std::size_t j = 0; j < n; ++j) {
            if (reached[j]) continue;
            const double apart = std::max({core[row], core[j], norm.root(d[j]) / alpha});
            if (apart < least[j]) {
                least[j] = apart;
                from[j] = row;
            }
            if (least[j] < next.distance || (next.a == next.b)) next = {from[j], j, least[j]};
        }
        edges.push_back(next);
        row = next.b;
    }
    return edges;
}

// A dendrogram as SciPy has it: merge k makes node n + k of two nodes.
struct Linkage {
    const std::int64_t *left, *right;
    const double *value;
    const std::int64_t *size;
    std::size_t merges;

    std::int64_t rows() const { return static_cast<std::int64_t>(merges) + 1; }
    std::int64_t size_of(std::int64_t node) const { return node < rows() ? 1 : size[node - rows()]; }
};

// Merges of edges in ascending order of their distances.
inline void single_linkage(const std::int64_t *a, const std::int64_t *b, std::size_t merges, std::int64_t *left,
                           std::int64_t *right, std::int64_t *size) {
    const std::size_t n = merges + 1;
    std::vector<std::size_t> parent(2 * n - 1);
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto find = [&](std::size_t i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    };
    std::vector<std::int64_t> count(2 * n - 1, 1);
    for (std::size_t k = 0; k < merges; ++k) {
        const std::size_t x = find(static_cast<std::size_t>(a[k])), y = find(static_cast<std::size_t>(b[k]));
        left[k] = static_cast<std::int64_t>(x);
        right[k] = static_cast<std::int64_t>(y);
        size[k] = count[n + k] = count[x] + count[y];
        parent[x] = parent[y] = n + k;
    }
}

// Rows of the condensed tree: parent, child, 1 / distance at which the child leaves it, size of the child. The root is
// node n, and clusters are numbered from the root downwards.
struct CondensedTree {
    std::vector<std::int64_t> parent, child, size;
    std::vector<double> value;
    void add(std::int64_t from, std::int64_t to, double at, std::int64_t n) {
        parent.push_back(from);
        child.push_back(to);
        value.push_back(at);
        size.push_back(n);
    }
};

inline CondensedTree condense(const Linkage &tree, std::int64_t least_size) {
    const std::int64_t n = tree.rows();
    CondensedTree out;
    std::vector<std::pair<std::int64_t, std::int64_t>> level{{2 * n - 2, n}}, next;  // node, its cluster
    std::int64_t clusters = n + 1;
    std::vector<std::int64_t> falling;
    const auto drop = [&](std::int64_t node, std::int64_t cluster, double at) {
        falling.assign(1, node);
        for (std::size_t k = 0; k < falling.size(); ++k) {
            const std::int64_t below = falling[k];
            if (below < n) {
                out.add(cluster, below, at, 1);
            } else {
                falling.push_back(tree.left[below - n]);
                falling.push_back(tree.right[below - n]);
            }
        }
    };
    for (; !level.empty(); level.swap(next)) {
        next.clear();
        for (const auto &[node, cluster] : level) {
            if (node < n) continue;
            const std::int64_t left = tree.left[node - n], right = tree.right[node - n];
            const double distance = tree.value[node - n];
            const double at = distance > 0.0 ? 1.0 / distance : std::numeric_limits<double>::infinity();
            const bool keep_left = tree.size_of(left) >= least_size, keep_right = tree.size_of(right) >= least_size;
            const bool split = keep_left && keep_right;
            for (const std::int64_t child : {left, right}) {
                const bool keep = child == left ? keep_left : keep_right;
                if (!keep) {
                    drop(child, cluster, at);
                } else if (split) {
                    out.add(cluster, clusters, at, tree.size_of(child));
                    next.emplace_back(child, clusters++);
                } else {
                    next.emplace_back(child, cluster);
                }
            }
        }
    }
    return out;
}

// Clusters of at least `least_size` rows that are linked by merges below the cut; others are noise. Nodes are numbered
// as a union by rank leaves them.
inline std::vector<std::int64_t> labels_at_cut(const Linkage &tree, double cut, std::int64_t least_size) {
    const auto n = static_cast<std::size_t>(tree.rows());
    std::vector<std::size_t> parent(2 * n - 1), rank(2 * n - 1), size(2 * n - 1);
    std::iota(parent.begin(), parent.end(), std::size_t{0});
    const auto find = [&](std::size_t i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    };
    const auto unite = [&](std::int64_t from, std::size_t node) {
        std::size_t x = find(static_cast<std::size_t>(from)), y = find(node);
        if (rank[x] < rank[y]) std::swap(x, y);
        parent[y] = x;
        rank[x] += rank[x] == rank[y];
    };
    for (std::size_t k = 0; k < tree.merges; ++k)
        if (tree.value[k] < cut) {
            unite(tree.left[k], n + k);
            unite(tree.right[k], n + k);
        }
    for (std::size_t i = 0; i < n; ++i) ++size[find(i)];
    std::vector<std::int64_t> number(2 * n - 1, -1), label(n);
    std::int64_t next = 0;
    for (std::size_t node = 0; node < size.size(); ++node)
        if (size[node] > 0 && static_cast<std::int64_t>(size[node]) >= least_size) number[node] = next++;
    for (std::size_t i = 0; i < n; ++i) label[i] = number[find(i)];
    return label;
}

// Height at which every row is first in one cluster with `row`.
inline std::vector<double> cophenetic(const Linkage &tree, std::int64_t row) {
    const std::int64_t n = tree.rows();
    std::vector<double> height(static_cast<std::size_t>(2 * n - 1), -1.0);  // -1: on the way from the row to the root
    std::vector<std::uint8_t> above(height.size());
    above[static_cast<std::size_t>(row)] = 1;
    for (std::size_t k = 0; k < tree.merges; ++k)
        above[static_cast<std::size_t>(n) + k] =
            above[static_cast<std::size_t>(tree.left[k])] | above[static_cast<std::size_t>(tree.right[k])];
    for (std::size_t k = tree.merges; k-- > 0;)
        for (const std::int64_t child : {tree.left[k], tree.right[k]}) {
            const auto c = static_cast<std::size_t>(child), node = static_cast<std::size_t>(n) + k;
            height[c] = above[c] ? -1.0 : above[node] ? tree.value[k] : height[node];
        }
    height.resize(static_cast<std::size_t>(n));
    height[static_cast<std::size_t>(row)] = 0.0;
    return height;
}

}  // namespace epicycle
