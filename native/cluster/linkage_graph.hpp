// Hierarchical clustering in which only clusters that an edge joins may merge.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <queue>
#include <tuple>
#include <vector>

#include "cluster/merges.hpp"

namespace epicycle {

struct GraphEdge {
    std::int64_t node;
    double distance;
};

enum class GraphLinkage { complete, average, single, ward };

// The tree of a graph given by its edges i > j. Distances are those of the edges; for Ward's linkage those of means.
// Merges stop when `clusters` are left, or when no edge is; x and y are numbers of nodes.
class GraphClusters {
public:
    GraphClusters(GraphLinkage linkage, std::size_t n, const double *rows, std::size_t p, const double *weight)
        : linkage(linkage), n(n), p(p), size(n, 1.0), edges(n), alive(n, 1) {
        if (weight != nullptr) std::copy(weight, weight + n, size.begin());
        if (linkage == GraphLinkage::ward) mean.assign(rows, rows + n * p);
    }
    void add(std::int64_t i, std::int64_t j, double distance) {
        const double d = linkage == GraphLinkage::ward ? ward(i, j) : distance;
        edges[i].push_back({j, d});
        edges[j].push_back({i, d});
        queue.emplace(d, std::max(i, j), std::min(i, j));
    }
    template <class Interrupt>
    std::vector<Merge> merges(std::size_t clusters, const Interrupt &interrupt) {
        for (auto &list : edges)
            std::sort(list.begin(), list.end(), [](const GraphEdge &a, const GraphEdge &b) { return a.node < b.node; });
        std::vector<Merge> found;
        while (n - found.size() > clusters && !queue.empty()) {
            interrupt();
            const auto [height, i, j] = queue.top();
            queue.pop();
            if (!alive[i] || !alive[j]) continue;
            found.push_back({i, j, linkage == GraphLinkage::ward ? std::sqrt(2.0 * height) : height});
            join(i, j);
        }
        return found;
    }

private:
    GraphLinkage linkage;
    std::size_t n, p;
    std::vector<double> size, mean;
    std::vector<std::vector<GraphEdge>> edges;  // by node, sorted by the node at the other end
    std::vector<char> alive;
    using Pair = std::tuple<double, std::int64_t, std::int64_t>;
    std::priority_queue<Pair, std::vector<Pair>, std::greater<Pair>> queue;

    double ward(std::int64_t i, std::int64_t j) const {
        double s = 0.0;
        for (std::size_t c = 0; c < p; ++c) {
            const double d = mean[i * p + c] - mean[j * p + c];
            s += d * d;
        }
        return s * (size[i] * size[j] / (size[i] + size[j]));
    }
    // The distance of a cluster to the union, where both have an edge to it.
    double combined(double a, double b, double na, double nb) const {
        if (linkage == GraphLinkage::average) return (na * a + nb * b) / (na + nb);
        return linkage == GraphLinkage::complete ? std::max(a, b) : std::min(a, b);
    }
    void join(std::int64_t i, std::int64_t j) {
        const auto k = static_cast<std::int64_t>(size.size());
        const double ni = size[i], nj = size[j];
        alive[i] = alive[j] = 0;
        size.push_back(ni + nj);
        alive.push_back(1);
        if (linkage == GraphLinkage::ward)
            for (std::size_t c = 0; c < p; ++c)
                mean.push_back((ni * mean[i * p + c] + nj * mean[j * p + c]) / (ni + nj));
        std::vector<GraphEdge> both;
        const std::vector<GraphEdge> a = std::move(edges[i]), b = std::move(edges[j]);
        edges[i] = {};
        edges[j] = {};
        for (std::size_t u = 0, v = 0; u < a.size() || v < b.size();) {
            GraphEdge edge;
            if (v == b.size() || (u < a.size() && a[u].node < b[v].node)) {
                edge = a[u++];
            } else if (u == a.size() || b[v].node < a[u].node) {
                edge = b[v++];
            } else {
                edge = {a[u].node, combined(a[u].distance, b[v].distance, ni, nj)};
                ++u;
                ++v;
            }
            if (!alive[edge.node]) continue;
            if (linkage == GraphLinkage::ward) edge.distance = ward(k, edge.node);
            both.push_back(edge);
        }
        for (const GraphEdge &edge : both) {
            edges[edge.node].push_back({k, edge.distance});  // k is the largest: the list stays sorted
            queue.emplace(edge.distance, k, edge.node);
        }
        edges.push_back(std::move(both));
    }
};

}  // namespace epicycle
