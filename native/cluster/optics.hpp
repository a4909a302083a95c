// OPTICS: rows in an order in which each is the nearest to those before it, and how far it is from them.
//
// A row is reached from a core row p at max(core_p, d(p, row)), for distances up to a radius. The next row is always
// the one that is reached at the least distance, the first one where there are several or none is reached.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "spatial/kd_tree.hpp"

namespace epicycle {

struct Ordering {
    std::vector<std::int64_t> order, predecessor;
    std::vector<double> reach;
    explicit Ordering(std::size_t n) : predecessor(n, -1), reach(n, std::numeric_limits<double>::infinity()) {
        order.reserve(n);
    }
    bool improve(std::size_t j, std::size_t from, double at) {
        if (!(at < reach[j])) return false;
        reach[j] = at;
        predecessor[j] = static_cast<std::int64_t>(from);
        return true;
    }
};

// From all distances; columns: (p, n). `pause` is called for every row.
template <Metric M, class Pause>
Ordering optics(const double *columns, std::size_t n, std::size_t p, const Norm<M> &norm, const double *core,
                double radius, const Pause &pause) {
    Ordering out(n);
    std::vector<double> d(n);
    std::vector<std::uint8_t> done(n);
    const double limit = norm.reduced(radius), never = std::numeric_limits<double>::infinity();
    while (out.order.size() < n) {
        pause();
        std::size_t next = n;
        for (std::size_t j = 0; j < n; ++j)
            if (!done[j] && (next == n || out.reach[j] < out.reach[next])) next = j;
        done[next] = 1;
        out.order.push_back(static_cast<std::int64_t>(next));
        if (core[next] == never) continue;
        std::fill(d.begin(), d.end(), 0.0);
        for (std::size_t k = 0; k < p; ++k) add_column(norm, columns + k * n, n, columns[k * n + next], d.data());
        for (std::size_t j = 0; j < n; ++j)
            if (!done[j] && d[j] <= limit) out.improve(j, next, std::max(norm.root(d[j]), core[next]));
    }
    return out;
}

// The same with the rows within the radius from a tree.
template <Metric M>
class OpticsWalk {
public:
    OpticsWalk(const KdTree &tree, const Norm<M> &norm, const double *core, double radius)
        : tree(tree), norm(norm), core(core), limit(norm.reduced(radius)), out(tree.rows()), done(tree.rows()),
          left(tree.count()), q(tree.cols()), place(tree.rows()) {
        for (std::size_t i = 0; i < tree.rows(); ++i) place[static_cast<std::size_t>(tree.row[i])] = i;
        for (std::size_t node = 0; node < tree.count(); ++node) left[node] = tree[node].size();
    }

    template <class Pause>
    Ordering operator()(const Pause &pause) {
        std::size_t first = 0;
        const std::size_t n = tree.rows();
        while (out.order.size() < n) {
            pause();
            std::size_t next = n;
            while (!open.empty() && next == n) {
                const auto [reach, row] = open.top();
                open.pop();
                if (!done[row] && reach == out.reach[row]) next = row;
            }
            while (next == n) {
                if (!done[first]) next = first;
                ++first;
            }
            take(next);
        }
        return std::move(out);
    }

private:
    const KdTree &tree;
    const Norm<M> &norm;
    const double *core;
    double limit;
    Ordering out;
    std::vector<std::uint8_t> done;
    std::vector<std::size_t> left;  // rows of a node that are not yet in order
    std::vector<double> q;
    std::vector<std::size_t> place;
    std::array<double, KD_LEAF> d{};
    using Open = std::pair<double, std::size_t>;
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open;

    void take(std::size_t row) {
        done[row] = 1;
        out.order.push_back(static_cast<std::int64_t>(row));
        std::size_t node = tree.leaf_of(place[row]);
        for (; node > 0; node = (node - 1) / 2) --left[node];
        --left[0];
        if (core[row] == std::numeric_limits<double>::infinity()) return;
        tree.point(place[row], q.data());
        reach_from(row, 0);
    }
    void reach_from(std::size_t row, std::size_t node) {
        if (left[node] == 0 || tree.near(norm, q.data(), node) > limit) return;
        if (!tree.is_leaf(node)) {
            reach_from(row, 2 * node + 1);
            reach_from(row, 2 * node + 2);
            return;
        }
        const auto &points = tree[node];
        tree.distances(norm, q.data(), points.start, points.size(), d.data());
        for (std::size_t k = 0; k < points.size(); ++k) {
            const auto j = static_cast<std::size_t>(tree.row[points.start + k]);
            if (!done[j] && d[k] <= limit && out.improve(j, row, std::max(norm.root(d[k]), core[row])))
                open.emplace(out.reach[j], j);
        }
    }
};

}  // namespace epicycle
