// Absolute error: the cost of every beginning of a sequence of rows, with a tree of sums over the ranks of the targets.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace epicycle {

// Weighted targets in ascending order; the median is half-way between two where exactly half of the weight is below.
inline double weighted_median(std::vector<std::pair<double, double>> &of) {  // (target, weight)
    std::sort(of.begin(), of.end());
    double total = 0.0, below = 0.0;
    for (const auto &item : of) total += item.second;
    for (std::size_t i = 0; i < of.size(); ++i) {
        below += of[i].second;
        if (2 * below < total * (1 - 1e-14)) continue;
        const bool half = std::abs(2 * below - total) <= 1e-14 * total;
        return half && i + 1 < of.size() ? of[i].first + (of[i + 1].first - of[i].first) / 2 : of[i].first;
    }
    return of.empty() ? 0.0 : of.back().first;
}

class MedianCosts {
public:
    // rank[i] is the position of row i among the targets y of the node in ascending order.
    void begin(const double *sorted_y, std::size_t m) {
        y = sorted_y;
        size = m;
        top = 1;
        while (2 * top <= m) top *= 2;
        weights.assign(m + 1, 0.0);
        sums.assign(m + 1, 0.0);
        W = S = 0.0;
    }
    void add(std::size_t rank, double w) {
        for (std::size_t i = rank + 1; i <= size; i += i & (~i + 1)) {
            weights[i] += w;
            sums[i] += w * y[rank];
        }
        W += w;
        S += w * y[rank];
    }
    // The cost of what was added.
    double cost() const {
        double below = 0.0, below_sum = 0.0;
        const double median = quantile(W, below, below_sum);
        return std::max(0.0, median * below - below_sum + (S - below_sum) - median * (W - below));
    }
    // The median of what was added: as weighted_median(), half-way between two where half of the weight is below.
    double median() const {
        double below = 0.0, below_sum = 0.0;
        const double low = quantile(W * (1 - 1e-14), below, below_sum);
        below = below_sum = 0.0;
        const double high = quantile(W * (1 + 1e-14), below, below_sum);
        return low + (high - low) / 2;
    }

private:
    // The least target up to which twice the weight is at least w; `below` and `below_sum` sum over those before it.
    double quantile(double w, double &below, double &below_sum) const {
        std::size_t at = 0;
        for (std::size_t step = top; step > 0; step /= 2)
            if (at + step <= size && 2 * (below + weights[at + step]) < w) {
                at += step;
                below += weights[at];
                below_sum += sums[at];
            }
        return y[std::min(at, size - 1)];
    }

    const double *y = nullptr;
    std::size_t size = 0, top = 1;
    std::vector<double> weights, sums;
    double W = 0.0, S = 0.0;
};

}  // namespace epicycle
