// Barnes and Hut's approximation of the field: a tree of cubes, halved along every axis; a cube that is seen under a
// small angle counts as its mean with its weight.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "manifold/repulsion_kernel.hpp"

namespace epicycle::manifold {

template <std::size_t D>
class Tree {
public:
    Tree(const double *points, const double *weight, std::size_t n) : points_(points), weight_(weight), order_(n) {
        std::iota(order_.begin(), order_.end(), std::int32_t{0});
        double low[D], high[D], middle[D], width = 0.0;
        for (std::size_t k = 0; k < D; ++k) {
            low[k] = high[k] = points[k];
            for (std::size_t i = 1; i < n; ++i) {
                low[k] = std::min(low[k], points[i * D + k]);
                high[k] = std::max(high[k], points[i * D + k]);
            }
            middle[k] = low[k] + (high[k] - low[k]) / 2;
            width = std::max(width, high[k] - low[k]);
        }
        nodes_.reserve(n);
        build(0, n, middle, width, 0);
        gathered_.resize(n * (D + 1));
        for (std::size_t s = 0; s < n; ++s) {
            const auto i = static_cast<std::size_t>(order_[s]);
            for (std::size_t k = 0; k < D; ++k) gathered_[s * (D + 1) + k] = points[i * D + k];
            gathered_[s * (D + 1) + D] = weight[i];
        }
    }

    double field(const Kernel &kernel, const double *at, double angle, double *push) const {
        double sum = 0.0;
        for (std::size_t k = 0; k < D; ++k) push[k] = 0.0;
        const auto add = [&](const double *b, double w) {
            double square = 0.0;
            for (std::size_t k = 0; k < D; ++k) square += (at[k] - b[k]) * (at[k] - b[k]);
            sum += w * kernel.value(square);
            const double v = w * kernel.slope(square);
            for (std::size_t k = 0; k < D; ++k) push[k] += v * (at[k] - b[k]);
        };
        const double limit = angle * angle;
        for (std::size_t t = 0; t < nodes_.size();) {
            const Node &node = nodes_[t];
            double square = 0.0;
            for (std::size_t k = 0; k < D; ++k) square += (at[k] - node.mean[k]) * (at[k] - node.mean[k]);
            if (node.width * node.width < limit * square) {
                add(node.mean, node.weight);
                t = node.next;
            } else if (node.leaf) {
                for (std::size_t s = node.from; s < node.to; ++s)
                    add(&gathered_[s * (D + 1)], gathered_[s * (D + 1) + D]);
                t = node.next;
            } else {
                ++t;
            }
        }
        return sum;
    }

private:
    struct Node {
        double mean[D], weight, width;
        std::size_t from, to, next;  // the node after all of its children
        bool leaf;
    };
    static constexpr std::size_t LEAF = 8;
    static constexpr int DEEPEST = 64;  // points that still share a cube there are equal but for rounding

    void build(std::size_t from, std::size_t to, const double *middle, double width, int depth) {
        const std::size_t own = nodes_.size();
        nodes_.push_back({});
        Node node{};
        node.from = from, node.to = to, node.width = width;
        for (std::size_t s = from; s < to; ++s) {
            const auto i = static_cast<std::size_t>(order_[s]);
            node.weight += weight_[i];
            for (std::size_t k = 0; k < D; ++k) node.mean[k] += weight_[i] * points_[i * D + k];
        }
        for (std::size_t k = 0; k < D; ++k) node.mean[k] = node.weight > 0.0 ? node.mean[k] / node.weight : middle[k];
        node.leaf = to - from <= LEAF || depth == DEEPEST || width == 0.0;
        if (!node.leaf) {
            const auto child = [&](std::int32_t i) {
                std::size_t c = 0;
                for (std::size_t k = 0; k < D; ++k)
                    c |= static_cast<std::size_t>(points_[static_cast<std::size_t>(i) * D + k] > middle[k]) << k;
                return c;
            };
            constexpr std::size_t CHILDREN = std::size_t{1} << D;
            std::size_t start[CHILDREN + 1] = {};
            for (std::size_t s = from; s < to; ++s) ++start[child(order_[s]) + 1];
            for (std::size_t c = 0; c < CHILDREN; ++c) start[c + 1] += start[c];
            std::vector<std::int32_t> sorted(to - from);
            std::size_t next[CHILDREN];
            std::copy(start, start + CHILDREN, next);
            for (std::size_t s = from; s < to; ++s) sorted[next[child(order_[s])]++] = order_[s];
            std::copy(sorted.begin(), sorted.end(), order_.begin() + static_cast<std::ptrdiff_t>(from));
            for (std::size_t c = 0; c < CHILDREN; ++c) {
                if (start[c] == start[c + 1]) continue;
                double centre[D];
                for (std::size_t k = 0; k < D; ++k) centre[k] = middle[k] + ((c >> k & 1) ? 0.25 : -0.25) * width;
                build(from + start[c], from + start[c + 1], centre, width / 2, depth + 1);
            }
        }
        node.next = nodes_.size();
        nodes_[own] = node;
    }

    const double *points_, *weight_;
    std::vector<std::int32_t> order_;
    std::vector<Node> nodes_;
    std::vector<double> gathered_;  // points in the order of the leaves, with their weights
};

}  // namespace epicycle::manifold
