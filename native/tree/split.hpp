// The best split of a node from its histogram.
//
// With G and H the sums of gradients and curvatures of the rows of a node, giving it the value v changes the
// second-order expansion of the loss by  G v + (H + lambda) v^2 / 2,  at best by -score / 2 with score = G^2 / (H +
// lambda) at v = -G / (H + lambda). A split gains half of what the scores of its children exceed that of their parent
// by.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "core/simd.hpp"
#include "tree/histogram.hpp"

namespace epicycle {

struct SplitRules {
    double l2, min_child_weight, min_gain, smoothing;
    std::size_t min_samples;
    const std::uint8_t *categorical;  // by feature
    const std::int8_t *monotone;      // by feature; null without constraints
};

struct Bounds {  // on the value of a node, from monotone constraints
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
};

constexpr std::size_t MOST_LEVELS = 16;  // of a category that a split lists

using Sides = std::array<std::uint64_t, 4>;  // which of the 256 bins go left

inline bool goes_left(const Sides &sides, std::size_t bin) { return sides[bin >> 6] >> (bin & 63) & 1; }
inline void send_left(Sides &sides, std::size_t bin) { sides[bin >> 6] |= std::uint64_t{1} << (bin & 63); }

struct Split {
    double gain = 0.0;  // half the difference of scores
    std::int32_t feature = -1;
    std::int32_t bin = 0;  // numbers up to this bin go left
    bool missing_left = false, categorical = false, counted = false;
    Sides left{};
    Packed left_sum = 0;
    bool found() const { return feature >= 0; }
};

inline double node_value(double G, double H, double l2, const Bounds &bounds) {
    const double v = H + l2 > 0 ? -G / (H + l2) : 0.0;
    return std::min(std::max(v, bounds.low), bounds.high);
}

// The middle of the values of both children: a monotone split bounds everything below them by it.
inline double middle_value(Packed left, Packed right, const Units &units, double l2, const Bounds &bounds) {
    const double vl = node_value(units.gradient(left), units.curvature(left), l2, bounds);
    const double vr = node_value(units.gradient(right), units.curvature(right), l2, bounds);
    return (vl + vr) / 2;
}

// Gains below this are the rounding of sums.
inline double gain_noise(double sum_abs_g, double sum_h, double l2) {
    const double g = coarse(sum_abs_g), h = coarse(sum_h) + l2;
    return 1e-12 * g * g / (h > 0 ? h : 1.0);
}

// Scores of both children for left sums left[0:m]; -1 where a child has too little curvature.
EPICYCLE_CLONES inline void pair_scores(const Packed *left, std::size_t m, Packed total, double unit_g, double unit_h,
                                        double l2, double least_h, double *score) {
    for (std::size_t b = 0; b < m; ++b) {
        const Packed L = left[b], R = total - L;
        const double hl = static_cast<double>(L & 0xffffffff), hr = static_cast<double>(R & 0xffffffff);
        const double GL = unit_g * static_cast<double>(L >> 32), GR = unit_g * static_cast<double>(R >> 32);
        const double both = GL * GL / (unit_h * hl + l2) + GR * GR / (unit_h * hr + l2);
        score[b] = (hl >= least_h) & (hr >= least_h) ? both : -1.0;
    }
}

// The same where values are bounded and must not decrease (sign 1) or increase (sign -1) from left to right.
inline void bounded_scores(const Packed *left, std::size_t m, Packed total, const Units &units, double l2,
                           double least_h, const Bounds &bounds, int sign, double *score) {
    const auto score_at = [&](double G, double H, double v) { return -2 * (G * v + (H + l2) * v * v / 2); };
    for (std::size_t b = 0; b < m; ++b) {
        const Packed L = left[b], R = total - L;
        score[b] = -std::numeric_limits<double>::infinity();
        if (static_cast<double>(L & 0xffffffff) < least_h || static_cast<double>(R & 0xffffffff) < least_h) continue;
        const double GL = units.gradient(L), HL = units.curvature(L), GR = units.gradient(R), HR = units.curvature(R);
        const double vl = node_value(GL, HL, l2, bounds), vr = node_value(GR, HR, l2, bounds);
        if (sign * (vr - vl) < 0) continue;
        score[b] = score_at(GL, HL, vl) + score_at(GR, HR, vr);
    }
}

class SplitSearch {
public:
    SplitSearch(const BinnedTable &table, const SplitRules &rules, const Units &units, double noise)
        : table(table), rules(rules), units(units), noise(noise) {
        // A row's curvature is rounded by half a unit at most: what meets the limit must not miss it by that.
        const double rounding = std::min(1e-3, 0.5 / std::max(1.0, static_cast<double>(units.smallest_h)));
        least_h = std::max({1.0, std::ceil(rules.min_child_weight / units.h * (1.0 - rounding) - 0.5),
                            static_cast<double>(rules.min_samples) * static_cast<double>(units.smallest_h)});
    }

    // The best split of every feature of the list into `found`, from a histogram and the sums of a node. `allowed` (may
    // be null) says which features may be used.
    void each(const Packed *hist, Packed total, std::size_t n_rows, const Bounds &bounds, const std::uint8_t *allowed,
              std::vector<Split> &found, int threads) const {
        const std::size_t K = table.n_features;
        found.assign(K, Split{});
        threads = worth(static_cast<double>(K) * 1000.0, threads);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::int64_t k = 0; k < static_cast<std::int64_t>(K); ++k)
            if (!allowed || allowed[k]) of_feature(k, hist, nullptr, total, n_rows, bounds, found[k]);
    }

    // The best split of feature k of the list that leaves enough rows on both sides; `count` (256) says how many are
    // where.
    Split counted(std::size_t k, const Packed *hist, const std::uint32_t *count, Packed total, std::size_t n_rows,
                  const Bounds &bounds) const {
        Split split;
        of_feature(k, hist, count, total, n_rows, bounds, split);
        return split;
    }

    // The best of the splits found by each() that leaves min_samples rows on both sides, the first of equals.
    // Histograms hold no counts of rows: count(k) gives those of feature k by bin, and is called where curvature cannot
    // vouch for them, and only for features whose split would be chosen.
    template <class Count>
    Split best(std::vector<Split> &found, const Packed *hist, Packed total, std::size_t n_rows, const Bounds &bounds,
               const Count &count) const {
        while (true) {
            std::size_t at = 0;
            for (std::size_t k = 1; k < found.size(); ++k)
                if (found[k].found() && (!found[at].found() || found[k].gain > found[at].gain)) at = k;
            if (!found[at].found() || found[at].counted || surely_enough(found[at], total)) return found[at];
            found[at] = counted(at, hist, count(at), total, n_rows, bounds);
            found[at].counted = true;
        }
    }

    // Whether both children of a split surely have min_samples rows, from their curvatures alone.
    bool surely_enough(const Split &split, Packed total) const {
        const double least = static_cast<double>(rules.min_samples) * static_cast<double>(units.largest_h);
        return rules.min_samples <= 1 || (static_cast<double>(split.left_sum & 0xffffffff) >= least &&
                                          static_cast<double>((total - split.left_sum) & 0xffffffff) >= least);
    }

private:
    const BinnedTable &table;
    const SplitRules &rules;
    const Units units;
    double noise, least_h;

    double parent_score(Packed total, double l2, const Bounds &bounds) const {
        const double G = units.gradient(total), H = units.curvature(total);
        if (!rules.monotone) return H + l2 > 0 ? G * G / (H + l2) : 0.0;
        const double v = node_value(G, H, l2, bounds);
        return -2 * (G * v + (H + l2) * v * v / 2);
    }

    void scores(const Packed *left, std::size_t m, Packed total, double l2, const Bounds &bounds, int sign,
                double *score) const {
        if (rules.monotone)
            bounded_scores(left, m, total, units, l2, least_h, bounds, sign, score);
        else
            pair_scores(left, m, total, units.g, units.h, l2, least_h, score);
    }

    // The first of the best candidates, if it beats `best`; counts of rows on the left decide where they are given.
    bool take(const double *score, const std::uint32_t *rows_left, std::size_t m, std::size_t n_rows, double parent,
              Split &best, std::size_t &at) const {
        double top = parent + 2 * std::max({best.gain, rules.min_gain, noise});
        bool better = false;
        for (std::size_t b = 0; b < m; ++b) {
            if (!(score[b] > top)) continue;
            if (rows_left && (rows_left[b] < rules.min_samples || n_rows - rows_left[b] < rules.min_samples)) continue;
            top = score[b];
            at = b;
            better = true;
        }
        if (better) best.gain = (top - parent) / 2;
        return better;
    }

    void of_feature(std::size_t k, const Packed *hist, const std::uint32_t *count, Packed total, std::size_t n_rows,
                    const Bounds &bounds, Split &best) const {
        const std::int32_t feature = table.features[k];
        alignas(64) Packed own[BINS];
        const Packed *h = table.by_bin(k, hist + table.slot[k] * BINS, total, own);
        if (rules.categorical[feature])
            of_levels(feature, h, count, total, n_rows, bounds, best);
        else
            of_numbers(feature, h, count, total, n_rows, bounds, best);
    }

    void of_numbers(std::int32_t feature, const Packed *h, const std::uint32_t *c, Packed total, std::size_t n_rows,
                    const Bounds &bounds, Split &best) const {
        const std::size_t nb = static_cast<std::size_t>(table.n_bins[feature]);
        const int sign = rules.monotone ? rules.monotone[feature] : 0;
        const double parent = parent_score(total, rules.l2, bounds);
        alignas(64) Packed left[BINS];
        alignas(64) double score[BINS];
        std::uint32_t rows_left[BINS];
        const Packed missing = h[MISSING_BIN];
        const bool some_missing = missing != 0 || (c && c[MISSING_BIN] > 0);
        Packed sum = 0;
        for (std::size_t b = 0; b < nb; ++b) left[b] = sum += h[b];
        if (c) std::partial_sum(c, c + nb, rows_left);
        std::size_t at = 0;
        // Missing values to the right; then "missing or not" is a split too, behind the last bin.
        std::size_t m = some_missing ? nb : nb - 1;
        scores(left, m, total, rules.l2, bounds, sign, score);
        if (take(score, c ? rows_left : nullptr, m, n_rows, parent, best, at)) {
            const Packed right = total - left[at];
            record(best, feature, at, left[at], !some_missing && (left[at] & 0xffffffff) > (right & 0xffffffff));
        }
        if (!some_missing) return;
        for (std::size_t b = 0; b < nb; ++b) left[b] += missing;
        if (c)
            for (std::size_t b = 0; b < nb; ++b) rows_left[b] += c[MISSING_BIN];
        m = nb - 1;
        scores(left, m, total, rules.l2, bounds, sign, score);
        if (take(score, c ? rows_left : nullptr, m, n_rows, parent, best, at))
            record(best, feature, at, left[at], true);
    }

    static void record(Split &best, std::int32_t feature, std::size_t bin, Packed left, bool missing_left) {
        best.feature = feature;
        best.bin = static_cast<std::int32_t>(bin);
        best.left_sum = left;
        best.missing_left = missing_left;
        best.categorical = false;
        best.left = Sides{};
        for (std::size_t b = 0; b <= bin; ++b) send_left(best.left, b);
        if (missing_left) send_left(best.left, MISSING_BIN);
    }

    // Levels in the order of their mean gradient: among all ways to divide them in two the best is a cut in this order
    // (Fisher, 1958), exactly so without smoothing. What is missing is a level too. The levels of one side, which are
    // the fewer and at most MOST_LEVELS, go left. Levels with fewer rows than a leaf must have say nothing reliable
    // about where they belong, and stay on the right; how many rows a level has is judged by its curvature.
    void of_levels(std::int32_t feature, const Packed *h, const std::uint32_t *c, Packed total, std::size_t n_rows,
                   const Bounds &bounds, Split &best) const {
        const double l2 = rules.l2 + rules.smoothing;
        const double per_row = static_cast<double>(total & 0xffffffff) / static_cast<double>(n_rows) * (1.0 - 1e-9);
        const double least = rules.min_samples > 1 ? static_cast<double>(rules.min_samples) * per_row : 0.0;
        std::array<std::uint8_t, BINS> level;
        std::array<double, BINS> mean;
        std::array<bool, BINS> absent{};
        std::size_t m = 0, present = 0;
        const auto nb = static_cast<std::size_t>(table.n_bins[feature]);
        for (std::size_t b = 0; b < BINS; b = b + 1 == nb ? MISSING_BIN : b + 1) {
            absent[b] = h[b] == 0 && !(c && c[b] > 0);
            present += !absent[b];
            if (absent[b] || static_cast<double>(h[b] & 0xffffffff) < least) continue;
            const double H = units.curvature(h[b]) + l2;
            mean[b] = H > 0 ? units.gradient(h[b]) / H : 0.0;
            level[m++] = static_cast<std::uint8_t>(b);
        }
        if (present < 2 || m == 0) return;
        std::stable_sort(level.begin(), level.begin() + m, [&](auto a, auto b) { return mean[a] < mean[b]; });
        alignas(64) Packed left[BINS];
        alignas(64) double score[BINS];
        std::uint32_t rows_left[BINS];
        const double parent = parent_score(total, l2, bounds);
        const std::size_t most = std::min({m, (present + 1) / 2, MOST_LEVELS});
        for (int end = 0; end < 2; ++end) {  // from the lowest level up, then from the highest down
            Packed sum = 0;
            std::uint32_t rows = 0;
            for (std::size_t i = 0; i < most; ++i) {
                left[i] = sum += h[level[i]];
                if (c) rows_left[i] = rows += c[level[i]];
            }
            std::size_t at = 0;
            scores(left, most, total, l2, bounds, 0, score);
            if (take(score, c ? rows_left : nullptr, most, n_rows, parent, best, at))
                list(best, feature, level.data(), at + 1, left[at]);
            std::reverse(level.begin(), level.begin() + m);
        }
        if (best.feature != feature) return;
        // Levels that are not here go where most rows go.
        if ((best.left_sum & 0xffffffff) > ((total - best.left_sum) & 0xffffffff))
            for (std::size_t b = 0; b < BINS; b = b + 1 == nb ? MISSING_BIN : b + 1)
                if (absent[b]) send_left(best.left, b);
        best.missing_left = goes_left(best.left, MISSING_BIN);
    }

    static void list(Split &best, std::int32_t feature, const std::uint8_t *level, std::size_t m, Packed left) {
        best.feature = feature;
        best.bin = 0;
        best.categorical = true;
        best.left = Sides{};
        best.left_sum = left;
        for (std::size_t i = 0; i < m; ++i) send_left(best.left, level[i]);
    }
};

}  // namespace epicycle
