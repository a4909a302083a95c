// Shapley values of the features in the prediction of a sum of trees, for many rows abreast.
//
// On the way to a leaf each feature j has a factor: o_j is 1 where the row passes all of its conditions and 0
// otherwise, z_j is the share of training rows that pass them. The leaf's value v gives feature i the Shapley value
//
//     v (o_i - z_i) int_0^1 prod_{j != i} (o_j t + z_j (1 - t)) dt,
//
// because |S|! (d - 1 - |S|)! / d! is the integral of t^|S| (1 - t)^(d - 1 - |S|). The integrand is a polynomial of
// degree d - 1: Gauss-Legendre with d / 2 points gives it exactly. All terms are positive, nothing cancels, and the
// sum over the leaves below an edge is carried up, so a row costs O(nodes * points).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/dense.hpp"
#include "core/simd.hpp"
#include "tree/predict.hpp"

namespace epicycle {

constexpr std::size_t SHAP_ROWS = 8;

// One edge, from a node to its child, met on the way down and, after all below it, on the way up.
struct ShapEdge {
    std::uint32_t parent, child;
    std::uint32_t depth;  // of the child
    std::int32_t above;   // depth of the last edge before it with the same feature, -1 without
    std::uint32_t feature;
    bool up, leaf;
    double value;          // of the leaf
    double before, share;  // training rows that pass the conditions of the feature above, and here too
    std::size_t table;     // where its factors and coefficients begin
};

// Points and weights of Gauss-Legendre on (0, 1), exact for polynomials of degree 2 n - 1: the roots of the Legendre
// polynomial P_n by Newton's method.
struct Quadrature {
    std::vector<double> point, weight;

    explicit Quadrature(std::size_t n) : point(n), weight(n) {
        const double pi = std::acos(-1.0), degree = static_cast<double>(n);
        for (std::size_t i = 0; i < n; ++i) {
            double x = std::cos(pi * (static_cast<double>(i) + 0.75) / (degree + 0.5)), slope = 1.0;
            for (int iteration = 0; iteration < 100; ++iteration) {
                double now = 1.0, before = 0.0;  // P_k and P_{k-1} at x
                for (std::size_t k = 1; k <= n; ++k) {
                    const double order = static_cast<double>(k);
                    const double next = ((2.0 * order - 1.0) * x * now - (order - 1.0) * before) / order;
                    before = now;
                    now = next;
                }
                slope = degree * (x * now - before) / (x * x - 1.0);
                const double change = now / slope;
                x -= change;
                if (std::abs(change) < 1e-16) break;
            }
            point[i] = (1.0 + x) / 2.0;
            weight[i] = 1.0 / ((1.0 - x * x) * slope * slope);
        }
    }
};

// What the rows have in common in a tree: its edges in order, and for each edge, state and point the factor that the
// product takes and the coefficient with which the leaves below count. States: 0, the row left the conditions of the
// feature before; 1, it leaves them here; 2, it passes.
struct ShapTree {
    std::vector<ShapEdge> edges;
    std::vector<double> tables;  // by edge: 3 x points factors, 3 x points coefficients
    std::size_t depth = 0, points = 1;

    ShapTree(const Node *nodes, const double *values, const double *count) {
        struct Open {
            std::uint32_t node, depth;
            bool up;
        };
        std::vector<Open> stack;
        std::vector<std::uint32_t> way(1, 0);                      // nodes on the way, by depth
        std::vector<std::size_t> edge_to(1, 0), n_features(1, 0);  // the edge to each, and the features until there
        const auto descend = [&](std::uint32_t node, std::uint32_t below) {
            for (std::uint32_t side = 2; side-- > 0;) {
                stack.push_back({nodes[node].left() + side, below, true});
                stack.push_back({nodes[node].left() + side, below, false});
            }
        };
        if (!nodes[0].leaf()) descend(0, 1);
        while (!stack.empty()) {
            const Open at = stack.back();
            stack.pop_back();
            const std::uint32_t d = at.depth;
            if (at.up) {
                ShapEdge edge = edges[edge_to[d]];
                edge.up = true;
                edges.push_back(edge);
                continue;
            }
            if (way.size() <= d) way.resize(d + 1), edge_to.resize(d + 1), n_features.resize(d + 1);
            depth = std::max<std::size_t>(depth, d);
            const std::uint32_t parent = way[d - 1], feature = nodes[parent].feature();
            std::int32_t above = static_cast<std::int32_t>(d) - 1;
            while (above > 0 && nodes[way[above - 1]].feature() != feature) --above;
            if (above == 0) above = -1;
            const double before = above < 0 ? 1.0 : edges[edge_to[above]].share;
            const double share = before * count[at.node] / count[parent];
            const bool leaf = nodes[at.node].leaf();
            way[d] = at.node;
            edge_to[d] = edges.size();
            n_features[d] = n_features[d - 1] + (above < 0);
            points = std::max(points, (n_features[d] + 1) / 2);
            edges.push_back(
                {parent, at.node, d, above, feature, false, leaf, leaf ? values[at.node] : 0.0, before, share, 0});
            if (!leaf) descend(at.node, d + 1);
        }
    }

    void tabulate(const Quadrature &rule) {
        std::vector<std::size_t> table_at(depth + 1, 0);  // the way up uses the table of the way down
        for (ShapEdge &edge : edges) {
            if (edge.up) {
                edge.table = table_at[edge.depth];
                continue;
            }
            edge.table = table_at[edge.depth] = tables.size();
            tables.resize(tables.size() + 6 * points);
            fill_table(edge, rule, tables.data() + edge.table);
        }
    }

private:
    void fill_table(const ShapEdge &edge, const Quadrature &rule, double *table) const {
        const bool again = edge.above >= 0;
        for (std::size_t state = 0; state < 3; ++state) {
            const double o = state == 2 ? 1.0 : 0.0, o_before = state > 0 ? 1.0 : 0.0;
            for (std::size_t k = 0; k < points; ++k) {
                const double t = rule.point[k], s = 1.0 - t;
                const double now = o * t + edge.share * s, earlier = again ? o_before * t + edge.before * s : 1.0;
                table[state * points + k] = now / earlier;
                // The leaves below count with this edge's factor, no longer with that of the edge above.
                const double coefficient = (o - edge.share) / now - (again ? (o_before - edge.before) / earlier : 0.0);
                table[(3 + state) * points + k] = rule.weight[k] * coefficient;
            }
        }
    }
};

// Work space for a block of rows.
struct ShapSpace {
    std::vector<double> product, below, passes;  // by depth: points x rows, points x rows, rows
    void fit(std::size_t depth, std::size_t points) {
        const std::size_t size = (depth + 1) * points * SHAP_ROWS;
        if (product.size() < size) product.resize(size), below.resize(size);
        if (passes.size() < (depth + 1) * SHAP_ROWS) passes.resize((depth + 1) * SHAP_ROWS);
    }
};

// phi (p x rows) += the values of one tree for rows x (p x rows).
EPICYCLE_CLONES inline void shap_block(const ShapTree &tree, const Node *nodes, const Sides *levels, const double *x,
                                       ShapSpace &space, double *phi, std::size_t stride) {
    constexpr std::size_t L = SHAP_ROWS;
    const std::size_t points = tree.points;
    double *const product = space.product.data(), *const below = space.below.data(),
                  *const passes = space.passes.data();
    const std::size_t plane = points * L;
    std::fill(product, product + plane, 1.0);
    std::fill(below, below + plane, 0.0);
    for (const ShapEdge &edge : tree.edges) {
        double *const now_at = passes + edge.depth * L;
        const double *const table = tree.tables.data() + edge.table;
        double *const P = product + edge.depth * plane, *const B = below + edge.depth * plane;
        double before[L], now[L];  // copies, which nothing else can point to: the loops over rows vectorise
        for (std::size_t l = 0; l < L; ++l)
            before[l] = edge.above < 0 ? 1.0 : passes[static_cast<std::size_t>(edge.above) * L + l];
        if (!edge.up) {
            const Node &node = nodes[edge.parent];
            const double *const xs = x + edge.feature * L;
            for (std::size_t l = 0; l < L; ++l) {
                now[l] = step<true>(node, xs[l], levels) == edge.child ? before[l] : 0.0;
                now_at[l] = now[l];
            }
            for (std::size_t k = 0; k < points; ++k) {
                const double f0 = table[k], f1 = table[points + k], f2 = table[2 * points + k];
                const double *const __restrict__ from = P - plane + k * L;
                double *const __restrict__ to = P + k * L;
                for (std::size_t l = 0; l < L; ++l) {
                    const double left = before[l] > 0 ? f1 : f0;
                    to[l] = from[l] * (now[l] > 0 ? f2 : left);
                }
            }
            if (edge.leaf)
                for (std::size_t i = 0; i < plane; ++i) B[i] = P[i] * edge.value;
            else
                std::fill(B, B + plane, 0.0);
            continue;
        }
        double sum[L] = {};
        for (std::size_t l = 0; l < L; ++l) now[l] = now_at[l];
        for (std::size_t k = 0; k < points; ++k) {
            const double c0 = table[3 * points + k], c1 = table[4 * points + k], c2 = table[5 * points + k];
            const double *const __restrict__ b = B + k * L;
            double *const __restrict__ parent = B - plane + k * L;
            for (std::size_t l = 0; l < L; ++l) {
                const double left = before[l] > 0 ? c1 : c0;
                sum[l] += b[l] * (now[l] > 0 ? c2 : left);
                parent[l] += b[l];
            }
        }
        double *const to = phi + edge.feature * stride;
        for (std::size_t l = 0; l < L; ++l) to[l] += sum[l];
    }
}

// out (n x p x K) += Shapley values of all trees for rows X; tree t counts for output t mod K. poll() may throw.
template <class T, class Poll>
void shap_values(const Forest &f, const double *count, const Dense<T> &X, std::size_t K, double *out, int threads,
                 const Poll &poll) {
    constexpr std::size_t L = SHAP_ROWS, TREES = 16;  // whose tables are made at a time
    const std::size_t p = X.cols;
    const std::int64_t blocks = static_cast<std::int64_t>((X.rows + L - 1) / L);
    for (std::size_t t0 = 0; t0 < f.n_trees; t0 += TREES) {
        poll();
        const std::size_t t1 = std::min(t0 + TREES, f.n_trees);
        std::vector<ShapTree> trees;
        for (std::size_t t = t0; t < t1; ++t)
            trees.emplace_back(f.nodes + f.roots[t], f.values + f.roots[t], count + f.roots[t]);
        for (ShapTree &tree : trees) tree.tabulate(Quadrature(tree.points));
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            ShapSpace space;
            std::vector<double> x(p * L), phi(p * K * L);
#pragma omp for schedule(static)
            for (std::int64_t block = 0; block < blocks; ++block) {
                const std::size_t i0 = static_cast<std::size_t>(block) * L, m = std::min(L, X.rows - i0);
                for (std::size_t j = 0; j < p; ++j)
                    for (std::size_t l = 0; l < L; ++l)
                        x[j * L + l] = static_cast<double>(X(i0 + std::min(l, m - 1), j));
                std::fill(phi.begin(), phi.end(), 0.0);
                for (std::size_t t = t0; t < t1; ++t) {
                    const ShapTree &tree = trees[t - t0];
                    space.fit(tree.depth, tree.points);
                    shap_block(tree, f.nodes + f.roots[t], f.levels, x.data(), space, phi.data() + (t % K) * L, K * L);
                }
                for (std::size_t l = 0; l < m; ++l)
                    for (std::size_t j = 0; j < p * K; ++j) out[(i0 + l) * p * K + j] += phi[j * L + l];
            }
        }
    }
}

}  // namespace epicycle
