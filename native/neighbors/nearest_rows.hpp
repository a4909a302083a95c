// The k nearest points of a kd-tree to queries that need not be among them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "core/threads.hpp"
#include "spatial/kd_tree.hpp"

namespace epicycle {

template <Metric M>
class NearestRows {
public:
    NearestRows(const KdTree &tree, const Norm<M> &norm, std::size_t k) : tree(tree), norm(norm), best(k) {}

    void operator()(const double *query, std::int64_t *out) {
        q = query;
        best.clear();
        visit(0, tree.near(norm, q, 0));
        for (const auto &[distance, i] : best.found()) *out++ = tree.row[i];
    }

private:
    const KdTree &tree;
    const Norm<M> &norm;
    Nearest best;
    const double *q = nullptr;
    std::array<double, KD_LEAF> d{};

    void visit(std::size_t node, double near) {
        if (near >= best.limit()) return;
        if (tree.is_leaf(node)) {
            const auto &points = tree[node];
            tree.distances(norm, q, points.start, points.size(), d.data());
            for (std::size_t j = 0; j < points.size(); ++j)
                if (d[j] < best.limit()) best.offer(d[j], points.start + j);
            return;
        }
        const std::size_t left = 2 * node + 1;
        const double a = tree.near(norm, q, left), b = tree.near(norm, q, left + 1);
        visit(a <= b ? left : left + 1, std::min(a, b));
        visit(a <= b ? left + 1 : left, std::max(a, b));
    }
};

// out (m x k): the rows nearest to the m rows of Q.
template <Metric M, class Interrupt>
void nearest_rows(const KdTree &tree, const Norm<M> &norm, const double *Q, std::size_t m, std::size_t k,
                  std::int64_t *out, [[maybe_unused]] int threads, const Interrupt &interrupt) {
    in_pieces(0, m, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            NearestRows<M> search(tree, norm, k);
#pragma omp for schedule(dynamic, 16)
            for (std::size_t i = from; i < to; ++i) search(Q + i * tree.cols(), out + i * k);
        }
    });
}

}  // namespace epicycle
