// Causal trees: honest trees over binned features that split where the slope of y on t changes most.
//
// y and t are residuals. In a node with means m_t, m_y and slope tau, row i has the pseudo-outcome
//     rho_i = (t_i - m_t) (y_i - m_y - tau (t_i - m_t)),
// and the split maximises (sum_left rho)^2 / w_left + (sum_right rho)^2 / w_right (Athey, Tibshirani and Wager 2019).
// Rows of one half of a tree's sample choose the splits; those of the other half give the leaves their moments
// A = mean t y and B = mean t^2, so that tau(x) = sum A / sum B over the trees.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/splitmix.hpp"

namespace epicycle {

constexpr int CAUSAL_BINS = 128;

struct CausalRows {
    const std::uint8_t *bins;  // n x p, all below CAUSAL_BINS
    const double *y, *t, *w;
    std::size_t n, p;
};

struct CausalOptions {
    std::size_t min_leaf;      // rows of each half in a leaf
    std::size_t max_features;  // features that are tried in a node
    double max_samples;        // share of all rows in a tree's sample, at most 1/2
    double balance;            // least share of a node's rows, and of its sum of squares of t, in a child
};

struct CausalNode {
    std::int32_t feature;  // -1 in a leaf
    std::int32_t cut;      // bins up to this go left
    std::int32_t left;     // the right child follows
    double A, B;           // NaN where no row of the second half came
};

// A stream of numbers for each tree, so that threads do not share one.
struct TreeRandom : SplitMix {
    explicit TreeRandom(std::uint64_t seed) : SplitMix{seed} {}
    std::size_t below(std::size_t n) {
        return static_cast<std::size_t>((static_cast<unsigned __int128>(next()) * n) >> 64);
    }
};

// The first k places of `values` become a random sample of all of them.
inline void draw_first(std::vector<std::int32_t> &values, std::size_t k, TreeRandom &random) {
    for (std::size_t i = 0; i < k; ++i) std::swap(values[i], values[i + random.below(values.size() - i)]);
}

class CausalTree {
public:
    CausalTree(const CausalRows &rows, const CausalOptions &options) : rows_(rows), options_(options) {}

    std::vector<CausalNode> grow(std::vector<std::int32_t> sample, TreeRandom &random) {
        const std::size_t half = sample.size() / 2;
        draw_first(sample, half, random);
        std::vector<std::int32_t> first(sample.begin(), sample.begin() + static_cast<std::ptrdiff_t>(half));
        std::vector<std::int32_t> second(sample.begin() + static_cast<std::ptrdiff_t>(half), sample.end());
        features_.resize(rows_.p);
        for (std::size_t j = 0; j < rows_.p; ++j) features_[j] = static_cast<std::int32_t>(j);
        rho_.resize(first.size());
        weight_.resize(first.size());
        square_.resize(first.size());
        std::vector<CausalNode> nodes(1);
        std::vector<Span> open{{0, 0, first.size(), 0, second.size()}};
        while (!open.empty()) {
            const Span s = open.back();
            open.pop_back();
            const Split best = split(first.data() + s.begin, s.end - s.begin, random);
            if (best.feature >= 0) {
                const std::size_t middle = divide(first, s.begin, s.end, best);
                const std::size_t other = divide(second, s.begin2, s.end2, best);
                if (other - s.begin2 >= options_.min_leaf && s.end2 - other >= options_.min_leaf) {
                    const auto left = static_cast<std::int32_t>(nodes.size());
                    nodes[s.node] = {best.feature, best.cut, left, 0.0, 0.0};
                    nodes.resize(nodes.size() + 2);
                    open.push_back({static_cast<std::size_t>(left), s.begin, middle, s.begin2, other});
                    open.push_back({static_cast<std::size_t>(left) + 1, middle, s.end, other, s.end2});
                    continue;
                }
            }
            nodes[s.node] = leaf(second.data() + s.begin2, s.end2 - s.begin2);
        }
        return nodes;
    }

private:
    struct Span {
        std::size_t node, begin, end, begin2, end2;
    };
    struct Split {
        std::int32_t feature = -1, cut = 0;
    };
    struct Bin {  // sums over few rows: single precision keeps a histogram in the first-level cache
        float rho, w, square;
        std::int32_t count;
    };

    CausalNode leaf(const std::int32_t *index, std::size_t m) const {
        double A = 0.0, B = 0.0, total = 0.0;
        for (std::size_t k = 0; k < m; ++k) {
            const auto i = static_cast<std::size_t>(index[k]);
            const double w = rows_.w[i], t = rows_.t[i];
            A += w * t * rows_.y[i];
            B += w * t * t;
            total += w;
        }
        const double nan = std::numeric_limits<double>::quiet_NaN();
        return {-1, 0, 0, total > 0 ? A / total : nan, total > 0 ? B / total : nan};
    }

    // Rows whose bin of the feature is at most the cut, first; returns their end.
    std::size_t divide(std::vector<std::int32_t> &index, std::size_t begin, std::size_t end, const Split &s) const {
        const auto from = index.begin() + static_cast<std::ptrdiff_t>(begin);
        const auto to = index.begin() + static_cast<std::ptrdiff_t>(end);
        const auto middle = std::partition(from, to, [&](std::int32_t i) {
            return rows_.bins[static_cast<std::size_t>(i) * rows_.p + static_cast<std::size_t>(s.feature)] <= s.cut;
        });
        return static_cast<std::size_t>(middle - index.begin());
    }

    Split split(const std::int32_t *index, std::size_t m, TreeRandom &random) {
        Split best;
        if (m < 2 * options_.min_leaf) return best;
        double w = 0.0, mt = 0.0, my = 0.0;
        for (std::size_t k = 0; k < m; ++k) {
            const auto i = static_cast<std::size_t>(index[k]);
            w += rows_.w[i];
            mt += rows_.w[i] * rows_.t[i];
            my += rows_.w[i] * rows_.y[i];
        }
        mt /= w;
        my /= w;
        double tt = 0.0, ty = 0.0, yy = 0.0;
        for (std::size_t k = 0; k < m; ++k) {
            const auto i = static_cast<std::size_t>(index[k]);
            tt += rows_.w[i] * (rows_.t[i] - mt) * (rows_.t[i] - mt);
            ty += rows_.w[i] * (rows_.t[i] - mt) * (rows_.y[i] - my);
            yy += rows_.w[i] * (rows_.y[i] - my) * (rows_.y[i] - my);
        }
        if (!(tt > 0.0)) return best;
        const double tau = ty / tt;
        const double unit = yy > 0.0 ? 1.0 / std::sqrt(yy * tt) : 1.0;  // so that no unit of y leaves single precision
        for (std::size_t k = 0; k < m; ++k) {
            const auto i = static_cast<std::size_t>(index[k]);
            const double t = rows_.t[i] - mt;
            rho_[k] = static_cast<float>(rows_.w[i] * t * (rows_.y[i] - my - tau * t) * unit);
            weight_[k] = static_cast<float>(rows_.w[i]);
            square_[k] = static_cast<float>(rows_.w[i] * t * t / tt);
        }
        const std::size_t tried = std::min(options_.max_features, rows_.p);
        draw_first(features_, tried, random);
        const auto least = std::max<std::int64_t>(static_cast<std::int64_t>(options_.min_leaf),
                                                  static_cast<std::int64_t>(std::ceil(options_.balance * m)));
        double highest = 0.0;
        for (std::size_t f = 0; f < tried; ++f) {
            const auto j = static_cast<std::size_t>(features_[f]);
            std::fill(histogram_, histogram_ + CAUSAL_BINS, Bin{0.0f, 0.0f, 0.0f, 0});
            for (std::size_t k = 0; k < m; ++k) {
                const auto i = static_cast<std::size_t>(index[k]);
                Bin &bin = histogram_[rows_.bins[i * rows_.p + j]];
                bin.rho += rho_[k];
                bin.w += weight_[k];
                bin.square += square_[k];
                ++bin.count;
            }
            double left_rho = 0.0, left_w = 0.0, left_square = 0.0;
            std::int64_t left = 0;
            for (int b = 0; b < CAUSAL_BINS - 1; ++b) {
                if (histogram_[b].count == 0) continue;
                left_rho += histogram_[b].rho;
                left_w += histogram_[b].w;
                left_square += histogram_[b].square;
                left += histogram_[b].count;
                if (static_cast<std::int64_t>(m) - left < least) break;
                if (left < least || left_square < options_.balance || 1.0 - left_square < options_.balance) continue;
                // The sum of rho over the node is zero.
                const double gain = left_rho * left_rho * (1.0 / left_w + 1.0 / (w - left_w));
                if (gain > highest) {
                    highest = gain;
                    best = {static_cast<std::int32_t>(j), b};
                }
            }
        }
        return best;
    }

    const CausalRows &rows_;
    const CausalOptions &options_;
    std::vector<std::int32_t> features_;
    std::vector<float> rho_, weight_, square_;
    Bin histogram_[CAUSAL_BINS];
};

// Trees in groups: those of a group draw their samples from one half of all rows, so that the variation between groups
// shows the sampling variance (bootstrap of little bags).
inline std::vector<std::vector<CausalNode>> grow_causal_trees(const CausalRows &rows, const CausalOptions &options,
                                                              std::size_t groups, std::size_t per_group,
                                                              std::uint64_t seed, int threads) {
    std::vector<std::vector<CausalNode>> trees(groups * per_group);
#pragma omp parallel for num_threads(threads) schedule(dynamic)
    for (std::int64_t g = 0; g < static_cast<std::int64_t>(groups); ++g) {
        TreeRandom random(seed + 0x9e3779b97f4a7c15ull * (2 * static_cast<std::uint64_t>(g) + 1));
        std::vector<std::int32_t> all(rows.n);
        for (std::size_t i = 0; i < rows.n; ++i) all[i] = static_cast<std::int32_t>(i);
        const std::size_t half = rows.n / 2;
        draw_first(all, half, random);
        all.resize(half);
        const auto size = std::min(half, static_cast<std::size_t>(std::max(2.0, options.max_samples * rows.n)));
        CausalTree tree(rows, options);
        for (std::size_t k = 0; k < per_group; ++k) {
            draw_first(all, size, random);
            trees[static_cast<std::size_t>(g) * per_group + k] =
                tree.grow({all.begin(), all.begin() + static_cast<std::ptrdiff_t>(size)}, random);
        }
    }
    return trees;
}

// The variance of tau(x) and the degrees of freedom of that estimate, from mean squares of psi = A - tau B, whose mean
// over the trees is zero and whose variance, divided by (mean B)^2, is that of tau.
//
// A tree has psi = v + e with v of its group, of variance V, and e of its own, of variance N. With G groups of l trees
// the mean square between groups, of G - 1 degrees of freedom, has the expectation V + N/l, and the one within, of
// G (l - 1), N/l: V is their difference, with the variance of two chi-squares. Its mean and variance are taken under a
// flat prior on V > 0, for which the difference is about normal. The forest itself varies by (V + N/l)/G.
//
// V has an error of its own beside that of few trees, as a sum of squares over the m rows that count at x. A tree's
// noise is that of a mean of at least min_leaf of them, so that m > min_leaf (V + N)/V, and normal scores give V twice
// its square divided by m as variance. Satterthwaite's degrees of freedom follow from both.
struct BagVariance {
    double variance, degrees;
};

inline BagVariance bag_variance(double between, double within, double total, double G, double l, double min_leaf) {
    const double pi = 4 * std::atan(1.0);
    const double difference = between - within;
    const double error = std::sqrt(2 * between * between / (G - 1) + 2 * within * within / (G * (l - 1)));
    double V = std::max(difference, 0.0), spread = 0.0;
    if (error > 0) {
        const double r = difference / error;
        const double tail = 0.5 * std::erfc(-r / std::sqrt(2.0));
        if (tail > 1e-12) {
            const double hazard = std::exp(-0.5 * r * r) / std::sqrt(2 * pi) / tail;
            V = error * (r + hazard);
            spread = error * error * std::max(1 - r * hazard - hazard * hazard, 0.0);
        } else {  // so far out the tail of a normal density is exponential
            V = -error / r;
            spread = V * V;
        }
    }
    const double variance = V + between / G;
    const double of_rows = total > 0 ? 2 * V * V * V / (min_leaf * total) : 0.0;
    const double error_squared = spread + of_rows;
    return {variance, error_squared > 0 ? 2 * variance * variance / error_squared : 1e6};
}

// tau(x), its variance and the degrees of freedom of that, for every row.
inline void predict_causal_trees(const CausalNode *nodes, const std::int64_t *first, std::size_t groups,
                                 std::size_t per_group, std::size_t min_leaf, const std::uint8_t *bins, std::size_t n,
                                 std::size_t p, double *effect, double *variance, double *degrees, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t row = 0; row < static_cast<std::int64_t>(n); ++row) {
        const std::uint8_t *x = bins + static_cast<std::size_t>(row) * p;
        double A = 0, B = 0, AA = 0, AB = 0, BB = 0, gA = 0, gB = 0, gAA = 0, gAB = 0, gBB = 0;
        std::size_t trees = 0, whole = 0, whole_trees = 0;
        for (std::size_t g = 0; g < groups; ++g) {
            double a = 0, b = 0, aa = 0, ab = 0, bb = 0;
            std::size_t found = 0;
            for (std::size_t k = 0; k < per_group; ++k) {
                const CausalNode *tree = nodes + first[g * per_group + k];
                const CausalNode *node = tree;
                while (node->feature >= 0) node = tree + node->left + (x[node->feature] > node->cut);
                if (std::isnan(node->A)) continue;
                ++found;
                a += node->A;
                b += node->B;
                aa += node->A * node->A;
                ab += node->A * node->B;
                bb += node->B * node->B;
            }
            A += a;
            B += b;
            trees += found;
            if (found < per_group) continue;
            ++whole;
            whole_trees += found;
            AA += aa, AB += ab, BB += bb;
            const double q = 1.0 / static_cast<double>(per_group);
            gA += a * q, gB += b * q, gAA += a * a * q * q, gAB += a * b * q * q, gBB += b * b * q * q;
        }
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const double tau = trees && B > 0 ? A / B : nan;
        effect[row] = tau;
        if (whole < 2 || per_group < 2 || std::isnan(tau)) {
            variance[row] = degrees[row] = nan;
            continue;
        }
        const double G = static_cast<double>(whole), l = static_cast<double>(per_group);
        const double mean_B = B / static_cast<double>(trees);
        const double of_groups = (gAA - 2 * tau * gAB + tau * tau * gBB) / G;
        const double total = (AA - 2 * tau * AB + tau * tau * BB) / static_cast<double>(whole_trees);
        const double within = std::max(total - of_groups, 0.0) / (l - 1);
        const double between = std::max(of_groups, 0.0) * G / (G - 1);
        const BagVariance found = bag_variance(between, within, total, G, l, static_cast<double>(min_leaf));
        variance[row] = found.variance / (mean_B * mean_B);
        degrees[row] = found.degrees;
    }
}

}  // namespace epicycle
