// DBSCAN over a kd-tree: no list of neighbours is ever stored.
//
// 1. Core points: neighbours are counted leaf by leaf, near ones first, until there are enough.
// 2. Clusters: core points within the radius of each other are united by a walk over pairs of nodes. A pair is left out
//    if it is too far apart, or if all its core points are in one cluster already.
// 3. Any other point takes the first cluster that has a core point within the radius.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "spatial/kd_tree.hpp"
#include "spatial/union_find.hpp"

namespace epicycle {

template <Metric M>
class Dbscan {
public:
    Dbscan(const KdTree &tree, const Norm<M> &norm, double radius, const double *weight)
        : tree(tree), norm(norm), radius(norm.reduced(radius)), core(tree.rows()), cores(tree.count()),
          state(tree.count(), EMPTY), first(tree.count()), sets(tree.rows()) {
        if (weight == nullptr) return;
        weights.resize(tree.rows());
        for (std::size_t i = 0; i < tree.rows(); ++i) {
            weights[i] = weight[tree.row[i]];
            if (weights[i] < 0.0) early = false;
        }
    }

    template <class Interrupt>
    void find_core(double enough, [[maybe_unused]] int threads, const Interrupt &interrupt) {
        in_pieces(tree.first_leaf(), tree.count(), interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
            for (std::size_t a = from; a < to; ++a) count_leaf(a, enough);
        });
        for (std::size_t a = tree.count(); a-- > 0;) {
            if (tree.is_leaf(a)) {
                for (std::size_t i = tree[a].start; i < tree[a].end; ++i) cores[a] += core[i];
            } else {
                cores[a] = cores[2 * a + 1] + cores[2 * a + 2];
            }
        }
    }

    void unite_core([[maybe_unused]] int threads) {
#pragma omp parallel num_threads(threads)
#pragma omp single
        unite_within(0, 0);
    }

    // Clusters are numbered by their first core row; -1 for points in none.
    template <class Interrupt>
    void labels(std::int64_t *out, [[maybe_unused]] int threads, const Interrupt &interrupt) {
        const std::size_t n = tree.rows();
        std::vector<std::size_t> place(n);
        for (std::size_t i = 0; i < n; ++i) place[static_cast<std::size_t>(tree.row[i])] = i;
        std::vector<std::int64_t> number(n, -1);
        std::int64_t next = 0;
        for (std::size_t r = 0; r < n; ++r) {
            out[r] = -1;
            if (!core[place[r]]) continue;
            std::int64_t &own = number[sets.find(place[r])];
            if (own < 0) own = next++;
            out[r] = own;
        }
        // Not yet numbered points read the labels of core rows only, which are final.
        in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads)
            {
                std::vector<double> q(tree.cols());
#pragma omp for schedule(dynamic, 256)
                for (std::size_t i = from; i < to; ++i) {
                    if (core[i]) continue;
                    tree.point(i, q.data());
                    std::int64_t least = std::numeric_limits<std::int64_t>::max();
                    least_label(0, q.data(), out, least);
                    if (least != std::numeric_limits<std::int64_t>::max()) out[tree.row[i]] = least;
                }
            }
        });
    }

    bool is_core(std::size_t i) const { return core[i] != 0; }

private:
    enum State : std::uint8_t { EMPTY, MIXED, ONE };  // core points of a node: none, or in several clusters, or in one

    const KdTree &tree;
    const Norm<M> &norm;
    double radius;
    bool early = true;  // counts cannot fall
    std::vector<double> weights;
    std::vector<std::uint8_t> core;
    std::vector<std::size_t> cores;
    std::vector<State> state;
    std::vector<std::size_t> first;  // a core point of the node
    UnionFind sets;

    // ------------------------------------------------------------------------------------------- core points

    struct Counts {
        std::size_t leaf, open;
        double enough;
        std::array<double, KD_LEAF> sum{};
    };

    void count_leaf(std::size_t leaf, double enough) {
        Counts counts{leaf, tree[leaf].size(), enough, {}};
        count_in(leaf, counts);
        for (std::size_t node = leaf; node > 0 && counts.open > 0; node = (node - 1) / 2)
            count_in(node % 2 == 1 ? node + 1 : node - 1, counts);
        for (std::size_t i = 0; i < tree[leaf].size(); ++i) core[tree[leaf].start + i] = counts.sum[i] >= enough;
    }
    bool closed(const Counts &counts, std::size_t i) const { return early && counts.sum[i] >= counts.enough; }

    void count_in(std::size_t node, Counts &counts) const {
        if (counts.open == 0 || tree.near(norm, counts.leaf, node) > radius) return;
        const bool whole = tree.far(norm, counts.leaf, node) <= radius;
        if (!tree.is_leaf(node) && !(whole && weights.empty())) {
            const std::size_t left = 2 * node + 1, right = left + 1;
            const bool swap = tree.near(norm, counts.leaf, right) < tree.near(norm, counts.leaf, left);
            count_in(swap ? right : left, counts);
            count_in(swap ? left : right, counts);
            return;
        }
        const auto &own = tree[counts.leaf], &other = tree[node];
        std::array<double, KD_LEAF> d;
        std::vector<double> q(tree.cols());
        for (std::size_t i = 0; i < own.size(); ++i) {
            if (closed(counts, i)) continue;
            if (whole && weights.empty()) {
                counts.sum[i] += static_cast<double>(other.size());
            } else {
                tree.point(own.start + i, q.data());
                if (!whole && tree.near(norm, q.data(), node) > radius) continue;
                tree.distances(norm, q.data(), other.start, other.size(), d.data());
                if (weights.empty()) {
                    counts.sum[i] += static_cast<double>(count_within(d.data(), other.size(), radius));
                } else {
                    for (std::size_t j = 0; j < other.size(); ++j)
                        if (d[j] <= radius) counts.sum[i] += weights[other.start + j];
                }
            }
            if (closed(counts, i)) --counts.open;
        }
    }

    // ------------------------------------------------------------------------------------------- clusters

    bool all_one(std::size_t a, std::size_t b) {
        return state[a] == ONE && state[b] == ONE && sets.find(first[a]) == sets.find(first[b]);
    }
    void refresh(std::size_t node) {
        if (state[node] == ONE) return;
        if (tree.is_leaf(node)) {
            state[node] = ONE;
            const std::size_t root = sets.find(first[node]);
            for (std::size_t i = tree[node].start; i < tree[node].end; ++i)
                if (core[i] && sets.find(i) != root) state[node] = MIXED;
            return;
        }
        const std::size_t left = 2 * node + 1, right = left + 1;
        if (state[left] == EMPTY || state[right] == EMPTY)
            state[node] = state[left] == EMPTY ? state[right] : state[left];
        else
            state[node] = all_one(left, right) ? ONE : MIXED;
    }
    // All core points of the node are in one cluster.
    void unite_all(std::size_t node) {
        if (state[node] == ONE || cores[node] == 0) return;
        set_first(node);
        if (tree.is_leaf(node)) {
            for (std::size_t i = tree[node].start; i < tree[node].end; ++i)
                if (core[i]) sets.unite(first[node], i);
        } else {
            for (std::size_t child = 2 * node + 1; child <= 2 * node + 2; ++child) {
                unite_all(child);
                if (cores[child] > 0) sets.unite(first[node], first[child]);
            }
        }
        state[node] = ONE;
    }
    void set_first(std::size_t node) {
        if (state[node] != EMPTY) return;
        state[node] = MIXED;
        std::size_t i = tree[node].start;
        while (!core[i]) ++i;
        first[node] = i;
    }

    // Points of a subtree are united with each other only, so that two subtrees do not meet.
    void unite_within(std::size_t node, int level) {
        if (cores[node] == 0) return;
        set_first(node);
        if (tree.far(norm, node, node) <= radius) return unite_all(node);
        if (tree.is_leaf(node)) {
            unite_leaves(node, node);
            return refresh(node);
        }
        const std::size_t left = 2 * node + 1, right = left + 1;
        const bool split = level < 6;
#pragma omp task if (split)
        unite_within(left, level + 1);
        unite_within(right, level + 1);
#pragma omp taskwait
        unite_between(left, right);
        refresh(node);
    }

    void unite_between(std::size_t a, std::size_t b) {
        if (cores[a] == 0 || cores[b] == 0 || tree.near(norm, a, b) > radius || all_one(a, b)) return;
        if (tree.far(norm, a, b) <= radius) {
            unite_all(a);
            unite_all(b);
            sets.unite(first[a], first[b]);
            return;
        }
        if (tree.is_leaf(a)) {  // then b is one, too
            unite_leaves(a, b);
        } else {
            for (std::size_t i = 2 * a + 1; i <= 2 * a + 2; ++i)
                for (std::size_t j = 2 * b + 1; j <= 2 * b + 2; ++j) unite_between(i, j);
        }
        refresh(a);
        refresh(b);
    }

    void unite_leaves(std::size_t a, std::size_t b) {
        std::array<double, KD_LEAF> d;
        std::vector<double> q(tree.cols());
        for (std::size_t i = tree[a].start; i < tree[a].end; ++i) {
            if (!core[i] || (state[b] == ONE && sets.find(i) == sets.find(first[b]))) continue;
            tree.point(i, q.data());
            if (a != b && tree.near(norm, q.data(), b) > radius) continue;
            tree.distances(norm, q.data(), tree[b].start, tree[b].size(), d.data());
            for (std::size_t j = 0; j < tree[b].size(); ++j)
                if (d[j] <= radius && core[tree[b].start + j]) {
                    sets.unite(i, tree[b].start + j);
                    if (state[b] == ONE) break;
                }
        }
    }

    void least_label(std::size_t node, const double *q, const std::int64_t *label, std::int64_t &least) const {
        if (cores[node] == 0 || tree.near(norm, q, node) > radius) return;
        if (state[node] == ONE && label[tree.row[first[node]]] >= least) return;
        if (!tree.is_leaf(node)) {
            least_label(2 * node + 1, q, label, least);
            least_label(2 * node + 2, q, label, least);
            return;
        }
        std::array<double, KD_LEAF> d;
        const auto &points = tree[node];
        tree.distances(norm, q, points.start, points.size(), d.data());
        for (std::size_t j = 0; j < points.size(); ++j)
            if (d[j] <= radius && core[points.start + j]) least = std::min(least, label[tree.row[points.start + j]]);
    }
};

// The same over a graph of distances in CSR, which need not be symmetric: from the first core row without a cluster to
// all that can be reached from it. A row whose distance to itself is not stored is at distance 0 from itself.
struct DistanceGraph {
    const double *distance;
    const std::int64_t *column, *start;
    std::size_t rows;
    double radius;

    template <class Visit>
    void neighbours(std::size_t i, Visit visit) const {
        bool self = false;
        for (auto k = start[i]; k < start[i + 1]; ++k) {
            const auto j = static_cast<std::size_t>(column[k]);
            if (j == i) self = true;
            if (distance[k] <= radius) visit(j);
        }
        if (!self) visit(i);
    }
};

inline void dbscan_graph(const DistanceGraph &graph, double enough, const double *weight, std::uint8_t *core,
                         std::int64_t *label) {
    for (std::size_t i = 0; i < graph.rows; ++i) {
        double sum = 0.0;
        graph.neighbours(i, [&](std::size_t j) { sum += weight == nullptr ? 1.0 : weight[j]; });
        core[i] = sum >= enough;
        label[i] = -1;
    }
    std::vector<std::size_t> waiting;
    std::int64_t next = 0;
    for (std::size_t i = 0; i < graph.rows; ++i) {
        if (!core[i] || label[i] >= 0) continue;
        label[i] = next;
        waiting.push_back(i);
        while (!waiting.empty()) {
            const std::size_t from = waiting.back();
            waiting.pop_back();
            graph.neighbours(from, [&](std::size_t j) {
                if (label[j] >= 0) return;
                label[j] = next;
                if (core[j]) waiting.push_back(j);
            });
        }
        ++next;
    }
}

}  // namespace epicycle
