// Orders of the levels of a category.
//
// With one target, or two classes, the best of all ways to divide the levels is a cut in the order of their means
// (Fisher, 1958; Breiman et al., 1984). With more, all ways are tried where there are few, and otherwise levels are
// ordered along the first principal component of their class shares (Coppersmith, Hong and Hosking, 1999).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cart/candidates.hpp"

namespace epicycle {

template <std::size_t Fixed>
class LevelOrders {
public:
    static constexpr std::size_t FEW = 10;

    LevelOrders(const CartRules &rules, std::size_t K) : rules(rules), K(K), V(K + 1) {}

    bool wants_subsets(std::size_t n) const { return n <= FEW && n > 2 && (K > 1 || rules.criterion.l2 > 0); }

    // Every set of levels that leaves out the first; bit i of the candidate's number stands for level i + 1.
    void push_subsets(const double *hist, const std::uint32_t *count, const std::uint8_t *level, std::size_t n,
                      Candidates<Fixed> &candidates) {
        sum.resize(V);
        for (std::size_t set = 1; set < std::size_t{1} << (n - 1); ++set) {
            std::fill(sum.begin(), sum.end(), 0.0);
            double rows = 0.0;
            for (std::size_t i = 1; i < n; ++i) {
                if (!(set >> (i - 1) & 1)) continue;
                for (std::size_t v = 0; v < V; ++v) sum[v] += hist[level[i] * V + v];
                rows += count ? count[level[i]] : hist[level[i] * V];
            }
            candidates.push(set, sum.data(), rows);
        }
    }

    void arrange(const double *hist, std::uint8_t *level, std::size_t n, const CartWhole &node) {
        double along[256];
        if (K == 1) {
            for (std::size_t i = 0; i < n; ++i)
                along[level[i]] = hist[level[i] * V + 1] / (hist[level[i] * V] + rules.criterion.l2);
        } else {
            principal(hist, level, n, node);
            for (std::size_t i = 0; i < n; ++i) {
                double s = 0.0;
                for (std::size_t k = 0; k < K; ++k) s += axis[k] * hist[level[i] * V + 1 + k];
                along[level[i]] = s / hist[level[i] * V];
            }
        }
        std::stable_sort(level, level + n, [&](std::uint8_t a, std::uint8_t b) { return along[a] < along[b]; });
    }

private:
    const CartRules &rules;
    std::size_t K, V;
    std::vector<double> sum, axis, next, shares;

    // First principal component of the means of the levels, weighted, by power iteration.
    void principal(const double *hist, const std::uint8_t *level, std::size_t n, const CartWhole &node) {
        shares.assign(n * K, 0.0);
        axis.assign(K, 0.0);
        std::vector<double> spread(K, 0.0);
        for (std::size_t i = 0; i < n; ++i) {
            const double *h = hist + level[i] * V, root = std::sqrt(h[0]);
            for (std::size_t k = 0; k < K; ++k) {
                const double d = root * (h[1 + k] / h[0] - node.sum[1 + k] / node.sum[0]);
                shares[i * K + k] = d;
                spread[k] += d * d;
            }
        }
        axis[static_cast<std::size_t>(std::max_element(spread.begin(), spread.end()) - spread.begin())] = 1.0;
        for (int round = 0; round < 60; ++round) {
            next.assign(K, 0.0);
            for (std::size_t i = 0; i < n; ++i) {
                double s = 0.0;
                for (std::size_t k = 0; k < K; ++k) s += shares[i * K + k] * axis[k];
                for (std::size_t k = 0; k < K; ++k) next[k] += s * shares[i * K + k];
            }
            double norm = 0.0;
            for (double v : next) norm += v * v;
            if (!(norm > 0)) return;
            norm = std::sqrt(norm);
            for (std::size_t k = 0; k < K; ++k) axis[k] = next[k] / norm;
        }
    }
};

}  // namespace epicycle
