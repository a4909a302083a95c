// The k nearest rows of a table to each of many queries, by a walk through a kd-tree; ties go to the row that comes
// first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "spatial/kd_tree.hpp"

namespace epicycle {

// Nearest rows of one query at a time, in Euclidean distance and at most `bound` away.
class NearestRowsSearch {
public:
    NearestRowsSearch(const KdTree &tree, std::size_t k, double bound) : tree(tree), k(k), bound(norm.reduced(bound)) {
        heap.reserve(k + 1);
    }

    // Distances and rows, nearest first; infinity and the number of rows where there are fewer than k.
    void operator()(const double *query, double *distance, std::int64_t *row) {
        q = query;
        heap.clear();
        limit = bound;
        visit(0, 0.0);
        std::sort_heap(heap.begin(), heap.end());
        for (std::size_t j = 0; j < k; ++j) {
            const bool there = j < heap.size();
            distance[j] = there ? norm.root(heap[j].first) : std::numeric_limits<double>::infinity();
            row[j] = there ? heap[j].second : static_cast<std::int64_t>(tree.rows());
        }
    }

private:
    const KdTree &tree;
    Norm<Metric::euclidean> norm;
    std::size_t k;
    double bound, limit = 0.0;
    const double *q = nullptr;
    std::vector<std::pair<double, std::int64_t>> heap;  // the first is the last to stay
    std::array<double, KD_LEAF> d{};

    void scan(std::size_t leaf) {
        const auto &points = tree[leaf];
        tree.distances(norm, q, points.start, points.size(), d.data());
        for (std::size_t j = 0; j < points.size(); ++j) {
            if (d[j] > limit) continue;
            const std::pair<double, std::int64_t> found{d[j], tree.row[points.start + j]};
            if (heap.size() == k) {
                if (!(found < heap.front())) continue;
                std::pop_heap(heap.begin(), heap.end());
                heap.back() = found;
            } else {
                heap.push_back(found);
            }
            std::push_heap(heap.begin(), heap.end());
            if (heap.size() == k) limit = heap.front().first;
        }
    }
    void visit(std::size_t node, double near) {
        if (near > limit) return;  // at the same distance an earlier row may still come
        if (tree.is_leaf(node)) return scan(node);
        tree.visit_children(norm, q, node, [this](std::size_t child, double near) { visit(child, near); });
    }
};

// For the m rows of Q, of as many columns as the tree: distances and rows, m x k.
template <class Interrupt>
void nearest_rows(const KdTree &tree, const double *Q, std::size_t m, std::size_t k, double bound, double *distance,
                  std::int64_t *row, [[maybe_unused]] int threads, const Interrupt &interrupt) {
    const std::size_t p = tree.cols();
    // Queries that are near each other one after the other: they visit the same leaves, which stay near the core.
    std::vector<std::pair<std::size_t, std::size_t>> order(m);
    const Norm<Metric::euclidean> norm;
    for (std::size_t i = 0; i < m; ++i) {
        std::size_t node = 0;
        while (!tree.is_leaf(node)) {
            const std::size_t left = 2 * node + 1;
            node = tree.near(norm, Q + i * p, left) <= tree.near(norm, Q + i * p, left + 1) ? left : left + 1;
        }
        order[i] = {node, i};
    }
    std::sort(order.begin(), order.end());
    in_pieces(0, m, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            NearestRowsSearch nearest(tree, k, bound);
#pragma omp for schedule(dynamic, 16)
            for (std::size_t j = from; j < to; ++j) {
                const std::size_t i = order[j].second;
                nearest(Q + i * p, distance + i * k, row + i * k);
            }
        }
    });
}

}  // namespace epicycle
