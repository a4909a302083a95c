// The best stump: one threshold on one feature that tells weighted classes apart, among all features and thresholds.
//
// A column is the list of its rows in ascending order of their numbers. The top bit of an entry says that a threshold
// fits behind it, because the next number is larger. Rows that a sparse column does not store form one block, with the
// value zero, at a known place of the list; missing numbers come last, and go to the side where they serve better.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/simd.hpp"
#include "tree/histogram.hpp"

namespace epicycle {

struct SortedColumns {
    const std::uint32_t *entries;
    const std::int64_t *begin;    // p + 1
    const std::int64_t *zeros;    // where the block of zeros stands, -1 without
    const std::int64_t *missing;  // entries at the end whose numbers are missing
    std::size_t p;
};

constexpr std::uint32_t CUT = 0x80000000u, ROW = 0x7fffffffu;

// Scores are equal where they differ by less than this part of all weight: which of them is the first then decides, not
// how its sums were rounded.
constexpr double TIE = 1e-11;

struct Stump {
    double score = 0.0;
    std::int64_t feature = 0, at = 0;  // the last entry before the threshold
    bool after_zeros = false, missing_left = false;
};

// Sums of weights of two classes, and how well two sides tell them apart.
struct TwoClasses {
    double plus = 0.0, minus = 0.0;
    TwoClasses operator+(const TwoClasses &o) const { return {plus + o.plus, minus + o.minus}; }
    TwoClasses operator-(const TwoClasses &o) const { return {plus - o.plus, minus - o.minus}; }
    void add(double signed_weight) {
        plus += signed_weight > 0 ? signed_weight : 0.0;
        minus -= signed_weight < 0 ? signed_weight : 0.0;
    }
    // The weight that is classified rightly; for confidences, less what is left of the exponential loss, which is
    // 2 sqrt(W+ W-). Differences of sums may be rounded below zero.
    double merit(bool confidence) const {
        return confidence ? -std::sqrt(std::max(plus, 0.0) * std::max(minus, 0.0)) : std::max(plus, minus);
    }
};

// Running sums over the rows left of a threshold, for a walk along a column. `lost` are rows with missing numbers,
// `stored` those that a sparse column stores; score() is of the threshold where the walk stands, with missing numbers
// on the left or on the right.
struct TwoClassSums {
    const double *v;  // weight times class, +1 or -1
    bool confidence;
    TwoClasses all, left, lost, stored;

    TwoClassSums(const double *v, std::size_t n, bool confidence) : v(v), confidence(confidence) {
        for (std::size_t i = 0; i < n; ++i) all.add(v[i]);
    }
    void lose(std::uint32_t row) { lost.add(v[row]); }
    void store(std::uint32_t row) { stored.add(v[row]); }
    void add(std::uint32_t row) { left.add(v[row]); }
    void add_zeros() { left = left + (all - stored); }
    double margin() const { return TIE * (all.plus + all.minus); }
    double whole() const { return all.merit(confidence); }
    double score(bool missing_left) const {
        const TwoClasses l = missing_left ? left + lost : left;
        return l.merit(confidence) + (all - l).merit(confidence);
    }
};

// More than two classes: the Gini gain, sum over sides of (sum_k W_k^2) / W.
struct ManyClassSums {
    const double *weight;
    const std::int32_t *code;
    std::vector<double> all, left, lost, stored;

    ManyClassSums(const double *weight, const std::int32_t *code, std::size_t K, std::size_t n)
        : weight(weight), code(code), all(K, 0.0), left(K, 0.0), lost(K, 0.0), stored(K, 0.0) {
        for (std::size_t i = 0; i < n; ++i) all[code[i]] += weight[i];
    }
    void lose(std::uint32_t row) { lost[code[row]] += weight[row]; }
    void store(std::uint32_t row) { stored[code[row]] += weight[row]; }
    void add(std::uint32_t row) { left[code[row]] += weight[row]; }
    void add_zeros() {
        for (std::size_t k = 0; k < all.size(); ++k) left[k] += all[k] - stored[k];
    }
    double margin() const { return TIE * std::accumulate(all.begin(), all.end(), 0.0); }
    double whole() const {
        double total = 0.0, squares = 0.0;
        for (const double w : all) total += w, squares += w * w;
        return total > 0 ? squares / total : 0.0;
    }
    double score(bool missing_left) const {
        double l = 0.0, r = 0.0, ll = 0.0, rr = 0.0;
        for (std::size_t k = 0; k < all.size(); ++k) {
            const double a = missing_left ? left[k] + lost[k] : left[k], b = all[k] - a;
            l += a;
            r += b;
            ll += a * a;
            rr += b * b;
        }
        return (l > 0 ? ll / l : 0.0) + (r > 0 ? rr / r : 0.0);
    }
};

// The best threshold of one column, from its left end; `sums` begin at zero.
template <class Sums>
Stump best_of_column(const SortedColumns &columns, std::size_t j, Sums sums) {
    const std::int64_t begin = columns.begin[j], end = columns.begin[j + 1], numbers = end - columns.missing[j];
    const std::int64_t zeros = columns.zeros[j] < 0 ? -1 : begin + columns.zeros[j];
    const std::uint32_t *const entries = columns.entries;
    for (std::int64_t i = numbers; i < end; ++i) sums.lose(entries[i] & ROW);
    // Everything on one side, to begin with.
    Stump best{sums.whole(), static_cast<std::int64_t>(j), end - 1, false, true};
    const double margin = sums.margin();
    const auto consider = [&](std::int64_t at, bool after_zeros) {
        const double score = sums.score(false);
        if (score > best.score + margin) best = {score, best.feature, at, after_zeros, false};
        if (numbers == end) return;
        const double other = sums.score(true);
        if (other > best.score + margin) best = {other, best.feature, at, after_zeros, true};
    };
    const auto walk = [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) {
            sums.add(entries[i] & ROW);
            if (entries[i] & CUT) consider(i, false);
        }
    };
    if (zeros < 0) {
        walk(begin, numbers);
        return best;
    }
    for (std::int64_t i = begin; i < end; ++i) sums.store(entries[i] & ROW);
    walk(begin, zeros);
    sums.add_zeros();
    if (zeros < end) consider(zeros - 1, true);
    walk(zeros, numbers);
    return best;
}

template <class Sums>
Stump best_stump(const SortedColumns &columns, const Sums &sums, int threads) {
    std::vector<Stump> of_column(columns.p);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(columns.p); ++j)
        of_column[j] = best_of_column(columns, static_cast<std::size_t>(j), sums);
    Stump best = of_column[0];  // the first among equals
    for (const Stump &stump : of_column)
        if (stump.score > best.score + sums.margin()) best = stump;
    return best;
}

// ---------------------------------------------------------------------------------------------- by bins

// Dense columns once more, as bins of neighbours in their order: bin b of column j holds the entries bin_end[b - 1] to
// bin_end[b] of its list (256 ends a column; bin 255 holds what is missing), and rows (n x p) the bins of the cells.
struct BinnedColumns {
    SortedColumns sorted;
    const std::uint8_t *rows;
    const std::int64_t *bin_end;
    const std::int32_t *n_bins;  // of numbers
};

// The best stump for two classes. Sums over bins give the score of every threshold between bins, and a bound on those
// inside. Bins whose bound beats the best score so far are walked entry by entry.
inline Stump best_binned_stump(const BinnedColumns &columns, const double *v, std::size_t n, bool confidence,
                               std::int64_t *packed, int threads) {
    const std::size_t p = columns.sorted.p;
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += std::abs(v[i]);
    const double unit = sum > 0 ? sum / (2147483647.0 - static_cast<double>(n)) : 1.0, per = 1.0 / unit;
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
        const auto g = static_cast<Packed>(std::nearbyint(v[i] * per));
        packed[i] = g * (Packed{1} << 32) + std::abs(g);
    }
    std::vector<std::int32_t> features(p);
    std::iota(features.begin(), features.end(), 0);
    const BinnedTable table{columns.rows, nullptr, n, p, features.data(), p, columns.n_bins};
    std::vector<Packed> hist(p * BINS);
    std::vector<std::vector<Packed>> spare;
    histogram(table, packed, nullptr, 0, n, hist.data(), spare, threads);

    const auto classes = [&](Packed bin) {
        const double g = unit * static_cast<double>(bin >> 32), h = unit * static_cast<double>(bin & 0xffffffff);
        return TwoClasses{(h + g) / 2, (h - g) / 2};
    };
    struct Candidate {
        double bound;
        std::int64_t feature, bin;
        TwoClasses before;
    };
    std::vector<Candidate> candidates;
    const auto score = [&](const TwoClasses &l, const TwoClasses &all) {
        return l.merit(confidence) + (all - l).merit(confidence);
    };
    // The score is convex in the sums of the left side: inside a bin it is at most that of the corners, where all or
    // none of each class is on the left.
    const auto bound = [&](const TwoClasses &l, const TwoClasses &bin, const TwoClasses &all) {
        const TwoClasses plus{l.plus + bin.plus, l.minus}, minus{l.plus, l.minus + bin.minus};
        return std::max(std::max(score(plus, all), score(minus, all)), std::max(score(l, all), score(l + bin, all)));
    };
    // Sums are rounded to units: what is no better than that is a tie.
    const double margin = 4000.0 * unit;
    Stump best;
    for (std::size_t j = 0; j < p; ++j) {
        const Packed *const h = hist.data() + j * BINS;
        const auto nb = static_cast<std::size_t>(columns.n_bins[j]);
        const std::int64_t begin = columns.sorted.begin[j], end = columns.sorted.begin[j + 1];
        const std::int64_t *const bin_end = columns.bin_end + j * BINS;
        const TwoClasses lost = classes(h[MISSING_BIN]);
        TwoClasses all = lost;
        for (std::size_t b = 0; b < nb; ++b) all = all + classes(h[b]);
        if (j == 0) best = {all.merit(confidence), 0, end - 1, false, true};
        TwoClasses left;
        const bool missing = columns.sorted.missing[j] > 0;
        for (std::size_t b = 0; b < nb; ++b) {
            const TwoClasses bin = classes(h[b]);
            const double within = std::max(bound(left, bin, all), missing ? bound(left + lost, bin, all) : -1e300);
            candidates.push_back({within, static_cast<std::int64_t>(j), static_cast<std::int64_t>(b), left});
            left = left + bin;
            if (b + 1 == nb && !missing) break;  // all on the left is no threshold
            const std::int64_t at = begin + bin_end[b] - 1;
            const double right = score(left, all);
            if (right > best.score + margin) best = {right, static_cast<std::int64_t>(j), at, false, false};
            if (!missing) continue;
            const double with = score(left + lost, all);
            if (with > best.score + margin) best = {with, static_cast<std::int64_t>(j), at, false, true};
        }
    }
    const auto worth_a_walk = [&](const Candidate &c) { return c.bound > best.score + margin; };
    candidates.erase(std::stable_partition(candidates.begin(), candidates.end(), worth_a_walk), candidates.end());
    std::sort(candidates.begin(), candidates.end(), [](const Candidate &a, const Candidate &b) {
        return a.bound > b.bound ||
               (a.bound == b.bound && (a.feature < b.feature || (a.feature == b.feature && a.bin < b.bin)));
    });
    for (const Candidate &candidate : candidates) {
        if (!worth_a_walk(candidate)) break;
        const auto j = static_cast<std::size_t>(candidate.feature);
        const std::int64_t begin = columns.sorted.begin[j];
        const std::int64_t *const bin_end = columns.bin_end + j * BINS;
        const Packed *const h = hist.data() + j * BINS;
        const TwoClasses lost = classes(h[MISSING_BIN]);
        TwoClasses all = lost, left = candidate.before;
        for (std::int32_t b = 0; b < columns.n_bins[j]; ++b) all = all + classes(h[b]);
        const bool missing = columns.sorted.missing[j] > 0;
        const std::int64_t from = begin + (candidate.bin ? bin_end[candidate.bin - 1] : 0);
        const std::int64_t to = begin + bin_end[candidate.bin] - 1;  // the last one ends the bin
        for (std::int64_t i = from; i < to; ++i) {
            const std::uint32_t entry = columns.sorted.entries[i], row = entry & ROW;
            if (row >= n) break;  // no list of rows
            left.add(v[row]);
            if (!(entry & CUT)) continue;
            const double right = score(left, all);
            if (right > best.score + margin) best = {right, candidate.feature, i, false, false};
            if (!missing) continue;
            const double with = score(left + lost, all);
            if (with > best.score + margin) best = {with, candidate.feature, i, false, true};
        }
    }
    return best;
}

}  // namespace epicycle
