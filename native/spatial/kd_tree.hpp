// A balanced kd-tree over the rows of a table, for few columns and Minkowski's distances.
//
// Distances are left without their last root ("reduced": sums of |d|^q, or the largest |d|). Those between boxes are
// computed in the order of those between points; rounding is monotone, so that a box that is discarded, or taken as a
// whole, would have been discarded or taken point by point as well. Files that include this are compiled without
// contraction to FMA, which would break the order.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/simd.hpp"
#include "core/threads.hpp"
#include "spatial/metric.hpp"

namespace epicycle {

constexpr std::size_t KD_LEAF = 32;  // most points of a leaf

// How the differences of the columns add up.
template <Metric M>
struct Norm {
    double power = 2.0;
    double part(double d) const {
        if constexpr (M == Metric::euclidean) return d * d;
        if constexpr (M == Metric::minkowski) return std::pow(d, power);
        return d;
    }
    double join(double sum, double part) const {
        if constexpr (M == Metric::chebyshev) return std::max(sum, part);
        return sum + part;
    }
    double reduced(double distance) const { return part(distance); }
    double root(double reduced) const {
        if constexpr (M == Metric::euclidean) return std::sqrt(reduced);
        if constexpr (M == Metric::minkowski) return std::pow(reduced, 1.0 / power);
        return reduced;
    }
};

EPICYCLE_CLONES inline void euclidean_column(const double *x, std::size_t m, double q, double *out) {
    for (std::size_t j = 0; j < m; ++j) {
        const double d = x[j] - q;
        out[j] += d * d;
    }
}
EPICYCLE_CLONES inline void manhattan_column(const double *x, std::size_t m, double q, double *out) {
    for (std::size_t j = 0; j < m; ++j) out[j] += std::abs(x[j] - q);
}
EPICYCLE_CLONES inline void chebyshev_column(const double *x, std::size_t m, double q, double *out) {
    for (std::size_t j = 0; j < m; ++j) {
        const double d = std::abs(x[j] - q);
        out[j] = d > out[j] ? d : out[j];
    }
}
// Adds the parts of one column to the reduced distances of m points from one whose value there is q.
template <Metric M>
void add_column(const Norm<M> &norm, const double *x, std::size_t m, double q, double *out) {
    if constexpr (M == Metric::euclidean) {
        euclidean_column(x, m, q, out);
    } else if constexpr (M == Metric::manhattan) {
        manhattan_column(x, m, q, out);
    } else if constexpr (M == Metric::chebyshev) {
        chebyshev_column(x, m, q, out);
    } else {
        for (std::size_t j = 0; j < m; ++j) out[j] = norm.join(out[j], norm.part(std::abs(x[j] - q)));
    }
}

EPICYCLE_CLONES inline std::size_t count_within(const double *d, std::size_t m, double radius) {
    std::size_t found = 0;
    for (std::size_t j = 0; j < m; ++j) found += d[j] <= radius;
    return found;
}

// All leaves are on one level: node i has the children 2i + 1 and 2i + 2, and the points [start, end) in tree order.
class KdTree {
public:
    struct Node {
        std::size_t start, end;
        std::size_t size() const { return end - start; }
    };

    KdTree(const double *X, std::size_t rows, std::size_t cols) : n(rows), p(cols) {
        while (((n - 1) >> depth) >= KD_LEAF) ++depth;  // the larger half of m points has (m + 1) / 2
        nodes.resize((std::size_t{2} << depth) - 1);
        box.resize(nodes.size() * 2 * p);
        row.resize(n);
        for (std::size_t i = 0; i < n; ++i) row[i] = static_cast<std::int64_t>(i);
        std::vector<std::pair<double, std::int64_t>> keys(n);
        build(X, 0, 0, n, keys.data());
        columns.resize(n * p);
        for (std::size_t k = 0; k < p; ++k)
            for (std::size_t i = 0; i < n; ++i) columns[k * n + i] = X[static_cast<std::size_t>(row[i]) * p + k];
    }

    std::size_t rows() const { return n; }
    std::size_t cols() const { return p; }
    std::size_t count() const { return nodes.size(); }
    std::size_t first_leaf() const { return nodes.size() / 2; }
    bool is_leaf(std::size_t node) const { return node >= first_leaf(); }
    const Node &operator[](std::size_t node) const { return nodes[node]; }
    double lower(std::size_t node, std::size_t k) const { return box[node * 2 * p + k]; }
    double upper(std::size_t node, std::size_t k) const { return box[node * 2 * p + p + k]; }
    std::size_t leaf_of(std::size_t i) const {
        std::size_t node = 0;
        while (!is_leaf(node)) node = 2 * node + (i < nodes[2 * node + 1].end ? 1 : 2);
        return node;
    }
    void point(std::size_t i, double *q) const {
        for (std::size_t k = 0; k < p; ++k) q[k] = columns[k * n + i];
    }

    // Reduced distances of q from the m points that begin with `start`.
    template <Metric M>
    void distances(const Norm<M> &norm, const double *q, std::size_t start, std::size_t m, double *out) const {
        std::fill(out, out + m, 0.0);
        for (std::size_t k = 0; k < p; ++k) add_column(norm, columns.data() + k * n + start, m, q[k], out);
    }

    // The least and the largest reduced distance between points of two boxes, and of a point and a box.
    template <Metric M>
    double near(const Norm<M> &norm, std::size_t a, std::size_t b) const {
        const double *A = box.data() + a * 2 * p, *B = box.data() + b * 2 * p;
        double sum = 0.0;
        for (std::size_t k = 0; k < p; ++k)
            sum = norm.join(sum, norm.part(std::max({B[k] - A[p + k], A[k] - B[p + k], 0.0})));
        return sum;
    }
    template <Metric M>
    double far(const Norm<M> &norm, std::size_t a, std::size_t b) const {
        const double *A = box.data() + a * 2 * p, *B = box.data() + b * 2 * p;
        double sum = 0.0;
        for (std::size_t k = 0; k < p; ++k) sum = norm.join(sum, norm.part(std::max(B[p + k] - A[k], A[p + k] - B[k])));
        return sum;
    }
    template <Metric M>
    double near(const Norm<M> &norm, const double *q, std::size_t b) const {
        const double *B = box.data() + b * 2 * p;
        double sum = 0.0;
        for (std::size_t k = 0; k < p; ++k)
            sum = norm.join(sum, norm.part(std::max({B[k] - q[k], q[k] - B[p + k], 0.0})));
        return sum;
    }

    // visit(child, its reduced distance from q) for both children of a node, the nearer first.
    template <Metric M, class Visit>
    void visit_children(const Norm<M> &norm, const double *q, std::size_t node, const Visit &visit) const {
        const std::size_t left = 2 * node + 1, right = left + 1;
        const double to_left = near(norm, q, left), to_right = near(norm, q, right);
        const bool first = to_left <= to_right;
        visit(first ? left : right, first ? to_left : to_right);
        visit(first ? right : left, first ? to_right : to_left);
    }

    std::vector<std::int64_t> row;  // of each point in tree order

private:
    std::size_t n, p, depth = 0;
    std::vector<Node> nodes;
    std::vector<double> columns, box;

    // Halves at the median of the widest column; equal values go by row, so that the tree is the same on every machine.
    void build(const double *X, std::size_t node, std::size_t start, std::size_t end,
               std::pair<double, std::int64_t> *keys) {
        nodes[node] = {start, end};
        double *lo = box.data() + node * 2 * p, *hi = lo + p;
        std::fill(lo, lo + p, std::numeric_limits<double>::infinity());
        std::fill(hi, hi + p, -std::numeric_limits<double>::infinity());
        for (std::size_t i = start; i < end; ++i) {
            const double *x = X + static_cast<std::size_t>(row[i]) * p;
            for (std::size_t k = 0; k < p; ++k) {
                lo[k] = std::min(lo[k], x[k]);
                hi[k] = std::max(hi[k], x[k]);
            }
        }
        if (is_leaf(node)) return;
        std::size_t widest = 0;
        for (std::size_t k = 1; k < p; ++k)
            if (hi[k] - lo[k] > hi[widest] - lo[widest]) widest = k;
        for (std::size_t i = start; i < end; ++i) keys[i] = {X[static_cast<std::size_t>(row[i]) * p + widest], row[i]};
        const std::size_t middle = start + (end - start) / 2;
        std::nth_element(keys + start, keys + middle, keys + end);
        for (std::size_t i = start; i < end; ++i) row[i] = keys[i].second;
        build(X, 2 * node + 1, start, middle, keys);
        build(X, 2 * node + 2, middle, end, keys);
    }
};

// The k least reduced distances, and the points in tree order, as a heap whose first is the largest.
class Nearest {
public:
    explicit Nearest(std::size_t k) : k(k) { heap.reserve(k + 1); }
    void clear() { heap.clear(); }
    const std::vector<std::pair<double, std::size_t>> &found() const { return heap; }
    double limit() const { return heap.size() < k ? std::numeric_limits<double>::infinity() : heap.front().first; }
    void offer(double distance, std::size_t i) {
        if (heap.size() == k) {
            if (distance >= heap.front().first) return;
            std::pop_heap(heap.begin(), heap.end());
            heap.back() = {distance, i};
        } else {
            heap.emplace_back(distance, i);
        }
        std::push_heap(heap.begin(), heap.end());
    }

private:
    std::size_t k;
    std::vector<std::pair<double, std::size_t>> heap;
};

// Reduced distance of every point, in tree order, to its k-th nearest, itself included.
template <Metric M>
class NearestWalk {
public:
    NearestWalk(const KdTree &tree, const Norm<M> &norm, std::size_t k)
        : tree(tree), norm(norm), best(k), q(tree.cols()) {}

    double operator()(std::size_t i, std::size_t leaf) {
        best.clear();
        tree.point(i, q.data());
        scan(leaf);
        // From the leaf to the root: the near points come first, and most siblings are out of reach.
        for (std::size_t node = leaf; node > 0; node = (node - 1) / 2) visit(node % 2 == 1 ? node + 1 : node - 1);
        return best.limit();
    }

private:
    const KdTree &tree;
    const Norm<M> &norm;
    Nearest best;
    std::vector<double> q;
    std::array<double, KD_LEAF> d{};

    void scan(std::size_t leaf) {
        const auto &points = tree[leaf];
        tree.distances(norm, q.data(), points.start, points.size(), d.data());
        for (std::size_t j = 0; j < points.size(); ++j)
            if (d[j] < best.limit()) best.offer(d[j], points.start + j);
    }
    void visit(std::size_t node) {
        if (tree.near(norm, q.data(), node) >= best.limit()) return;
        if (tree.is_leaf(node)) return scan(node);
        const std::size_t left = 2 * node + 1, right = left + 1;
        const bool first = tree.near(norm, q.data(), left) <= tree.near(norm, q.data(), right);
        visit(first ? left : right);
        visit(first ? right : left);
    }
};

// (row, distance to its k-th nearest, itself included) of every point in tree order.
template <Metric M, class Interrupt>
std::vector<std::pair<std::size_t, double>> kth_distances(const KdTree &tree, const Norm<M> &norm, std::size_t k,
                                                          [[maybe_unused]] int threads, const Interrupt &interrupt) {
    std::vector<std::pair<std::size_t, double>> out(tree.rows());
    in_pieces(tree.first_leaf(), tree.count(), interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads)
        {
            NearestWalk<M> walk(tree, norm, k);
#pragma omp for schedule(dynamic, 16)
            for (std::size_t leaf = from; leaf < to; ++leaf)
                for (std::size_t i = tree[leaf].start; i < tree[leaf].end; ++i)
                    out[i] = {static_cast<std::size_t>(tree.row[i]), norm.root(walk(i, leaf))};
        }
    });
    return out;
}

}  // namespace epicycle
