// The minimum spanning tree of mutual reachability distances, by Boruvka's rounds over a kd-tree:
//
//     d*(a, b) = max(core_a, core_b, d(a, b) / alpha).
//
// In every round each component takes its shortest edge to another one. What a point found in an earlier round bounds
// what it can find later, because components only grow: as long as the point that it found is outside, it is still the
// nearest one, and otherwise its distance is a lower bound.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "spatial/kd_tree.hpp"
#include "spatial/union_find.hpp"

namespace epicycle {

struct TreeEdge {
    std::size_t a = 0, b = 0;
    double distance = std::numeric_limits<double>::infinity();
};

template <Metric M>
class Boruvka {
public:
    // core: in tree order, with the last root taken.
    Boruvka(const KdTree &tree, const Norm<M> &norm, std::vector<double> core, double alpha)
        : tree(tree), norm(norm), core(std::move(core)), alpha(alpha), sets(tree.rows()), component(tree.rows()),
          found(tree.rows()), bound(this->core), node_core(tree.count()), node_component(tree.count()),
          best(tree.rows()) {
        for (std::size_t node = tree.count(); node-- > 0;) {
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t i = tree[node].start; tree.is_leaf(node) && i < tree[node].end; ++i)
                least = std::min(least, this->core[i]);
            if (!tree.is_leaf(node)) least = std::min(node_core[2 * node + 1], node_core[2 * node + 2]);
            node_core[node] = least;
        }
        for (std::size_t i = 0; i < found.size(); ++i) found[i] = i;  // itself: nothing is found yet
    }

    // Edges between rows, in the order in which they were found.
    template <class Interrupt>
    std::vector<TreeEdge> operator()(int threads, const Interrupt &interrupt) {
        const std::size_t n = tree.rows();
        std::vector<TreeEdge> edges;
        edges.reserve(n - 1);
        while (edges.size() + 1 < n) {
            set_components();
            search(threads);
            interrupt();
            for (std::size_t i = 0; i < n; ++i)
                if (component[i] == i && sets.unite(best[i].a, best[i].b))
                    edges.push_back({static_cast<std::size_t>(tree.row[best[i].a]),
                                     static_cast<std::size_t>(tree.row[best[i].b]), best[i].distance});
        }
        return edges;
    }

private:
    static constexpr std::size_t BLOCKS = 64;  // the same for any number of threads
    static constexpr std::size_t NONE = static_cast<std::size_t>(-1);

    const KdTree &tree;
    const Norm<M> &norm;
    std::vector<double> core;
    double alpha;
    UnionFind sets;
    std::vector<std::size_t> component, found;
    std::vector<double> bound;  // no point outside is nearer
    std::vector<double> node_core;
    std::vector<std::size_t> node_component;  // of all points of a node, or NONE
    std::vector<TreeEdge> best;               // of each component, at its root

    void set_components() {
        for (std::size_t i = 0; i < component.size(); ++i) component[i] = sets.find(i);
        for (std::size_t node = tree.count(); node-- > 0;) {
            if (tree.is_leaf(node)) {
                std::size_t own = component[tree[node].start];
                for (std::size_t i = tree[node].start; i < tree[node].end; ++i)
                    if (component[i] != own) own = NONE;
                node_component[node] = own;
            } else {
                const std::size_t left = node_component[2 * node + 1];
                node_component[node] = left == node_component[2 * node + 2] ? left : NONE;
            }
        }
    }

    static void improve(TreeEdge &edge, std::size_t a, std::size_t b, double distance) {
        // Ties by the points: the choice does not depend on the order in which edges are found.
        const auto key = [](const TreeEdge &e) { return std::make_pair(std::min(e.a, e.b), std::max(e.a, e.b)); };
        const TreeEdge other{a, b, distance};
        if (distance < edge.distance || (distance == edge.distance && key(other) < key(edge))) edge = other;
    }

    void search([[maybe_unused]] int threads) {
        const std::size_t n = tree.rows();
        for (auto &edge : best) edge = TreeEdge{};
        for (std::size_t i = 0; i < n; ++i)
            if (component[found[i]] != component[i]) improve(best[component[i]], i, found[i], bound[i]);
        const std::size_t leaf = tree.first_leaf(), leaves = tree.count() - leaf;
        std::vector<std::vector<TreeEdge>> parts(BLOCKS);
#pragma omp parallel num_threads(threads)
        {
            std::vector<TreeEdge> own(n);  // of each component, in this block
            std::vector<std::size_t> touched;
            Walk walk(*this);
#pragma omp for schedule(dynamic, 1)
            for (std::size_t block = 0; block < BLOCKS; ++block) {
                for (std::size_t l = leaf + leaves * block / BLOCKS; l < leaf + leaves * (block + 1) / BLOCKS; ++l)
                    for (std::size_t i = tree[l].start; i < tree[l].end; ++i) {
                        const std::size_t c = component[i];
                        if (component[found[i]] != c) continue;
                        TreeEdge &edge = own[c];
                        if (edge.distance > best[c].distance) edge.distance = best[c].distance;
                        if (bound[i] > edge.distance) continue;
                        const TreeEdge nearest = walk(i, l, edge.distance);
                        if (nearest.b == NONE) continue;
                        if (edge.a == edge.b) {  // only a limit so far
                            touched.push_back(c);
                            edge = nearest;
                        } else {
                            improve(edge, i, nearest.b, nearest.distance);
                        }
                    }
                for (const std::size_t c : touched) parts[block].push_back(own[c]);
                touched.clear();
                for (std::size_t l = leaf + leaves * block / BLOCKS; l < leaf + leaves * (block + 1) / BLOCKS; ++l)
                    for (std::size_t i = tree[l].start; i < tree[l].end; ++i) own[component[i]] = TreeEdge{};
            }
        }
        for (const auto &part : parts)
            for (const auto &edge : part) improve(best[component[edge.a]], edge.a, edge.b, edge.distance);
    }

    // The nearest point of another component, at most `limit` away.
    class Walk {
    public:
        explicit Walk(Boruvka &all) : all(all), tree(all.tree), q(all.tree.cols()) {}

        TreeEdge operator()(std::size_t i, std::size_t leaf, double limit) {
            point = i;
            own = all.component[i];
            nearest = {i, NONE, limit};
            tree.point(i, q.data());
            visit(leaf, 0.0);
            for (std::size_t node = leaf; node > 0; node = (node - 1) / 2) {
                if (nearest.b != NONE && nearest.distance <= all.core[i]) break;  // nothing can be nearer
                const std::size_t sibling = node % 2 == 1 ? node + 1 : node - 1;
                visit(sibling, tree.near(all.norm, q.data(), sibling));
            }
            if (nearest.b == NONE) {
                all.bound[i] = std::max(all.bound[i], limit);
            } else {
                all.bound[i] = nearest.distance;
                all.found[i] = nearest.b;
            }
            return nearest;
        }

    private:
        Boruvka &all;
        const KdTree &tree;
        std::vector<double> q;
        std::array<double, KD_LEAF> d{};
        std::size_t point = 0, own = 0;
        TreeEdge nearest;

        // Without anything found yet an edge as long as the limit is as good as the one that the component has.
        bool out(double lower) const {
            return nearest.b == NONE ? lower > nearest.distance : lower >= nearest.distance;
        }

        void visit(std::size_t node, double reduced) {
            if (all.node_component[node] == own) return;
            const double reach = std::max(all.core[point], all.node_core[node]);
            if (out(reach) || out(all.norm.root(reduced) / all.alpha)) return;
            if (tree.is_leaf(node)) return scan(node);
            tree.visit_children(all.norm, q.data(), node, [this](std::size_t child, double d) { visit(child, d); });
        }
        void scan(std::size_t leaf) {
            const auto &points = tree[leaf];
            tree.distances(all.norm, q.data(), points.start, points.size(), d.data());
            for (std::size_t j = 0; j < points.size(); ++j) {
                const std::size_t other = points.start + j;
                if (all.component[other] == own) continue;
                const double apart = std::max({all.core[point], all.core[other], all.norm.root(d[j]) / all.alpha});
                if (!out(apart)) nearest = {point, other, apart};
            }
        }
    };
};

}  // namespace epicycle
