// What a tree is grown from: features as codes of one byte or as sorted columns, targets, rules, random numbers.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "cart/criterion.hpp"
#include "cart/sort.hpp"
#include "core/dense.hpp"
#include "core/splitmix.hpp"
#include "tree/split.hpp"

namespace epicycle {

// The numbers behind sorted columns, for thresholds: dense, or compressed by column with rows ascending.
struct CartValues {
    const double *wide = nullptr;
    const float *narrow = nullptr;
    std::int64_t row_stride = 0, col_stride = 0;
    const std::int64_t *start = nullptr;  // sparse: n_features + 1
    const std::int32_t *row = nullptr;

    double at(std::size_t feature, std::uint32_t r) const {
        std::int64_t i = static_cast<std::int64_t>(r) * row_stride + static_cast<std::int64_t>(feature) * col_stride;
        if (start) {
            const std::int32_t *first = row + start[feature], *last = row + start[feature + 1];
            const std::int32_t *found = std::lower_bound(first, last, static_cast<std::int32_t>(r));
            if (found == last || *found != static_cast<std::int32_t>(r)) return 0.0;
            i = found - row;
        }
        return wide ? wide[i] : static_cast<double>(narrow[i]);
    }
};

struct CartTable {
    std::size_t n, p;
    // Coded features: one byte a cell, 255 where it is missing. Code c stands for numbers from low to high.
    const std::uint8_t *codes;  // n x n_coded
    std::size_t n_coded;
    const std::int32_t *coded_feature, *n_codes;
    const double *low, *high, *centre;  // n_coded x 256; thresholds are drawn between the centres of two codes
    const std::uint8_t *categorical;
    // Sorted features: lists that the tree divides as it grows. Sparse ones leave out the zeros.
    std::uint32_t *lists;
    const std::int64_t *list_start;  // n_sorted + 1
    std::size_t n_sorted;
    const std::int32_t *sorted_feature;
    bool sparse;
    CartValues values;
};

// Targets: K numbers a row (y), or a class a row (label).
struct CartTarget {
    const double *weight;  // n, none negative
    const double *y;       // n x K, centred; null for more than two classes
    const std::int32_t *label;
    std::size_t K;
};

struct CartRules {
    CriterionRules criterion;
    std::size_t max_depth, max_leaves;  // 0: no limit
    std::size_t min_split, min_leaf;
    double min_weight, min_gain, leaf_cost;
    std::size_t max_features;
    bool random;                  // thresholds are drawn
    const std::int8_t *monotone;  // by feature; null without
    std::uint64_t seed;
};

// Every tree has a stream of its own.
struct CartRandom : SplitMix {
    explicit CartRandom(std::uint64_t seed) : SplitMix{seed} {}
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    std::size_t below(std::size_t bound) {
        return static_cast<std::size_t>((static_cast<unsigned __int128>(next()) * bound) >> 64);
    }
};

// How sums (W, S_1 .. S_K) of rows are taken: one target, a class, several targets.
struct OneTarget {
    static constexpr std::size_t FIXED = 1;
    const double *pair;  // n x 2: weight and weighted target
    EPICYCLE_INLINE void add(double *a, std::uint32_t r) const {
        a[0] += pair[2 * std::size_t{r}];
        a[1] += pair[2 * std::size_t{r} + 1];
    }
    std::size_t K() const { return 1; }
};
struct ClassTarget {
    static constexpr std::size_t FIXED = 0;
    const double *weight;
    const std::int32_t *label;
    std::size_t classes;
    EPICYCLE_INLINE void add(double *a, std::uint32_t r) const {
        a[0] += weight[r];
        a[1 + label[r]] += weight[r];
    }
    std::size_t K() const { return classes; }
};
struct ManyTargets {
    static constexpr std::size_t FIXED = 0;
    const double *weight, *y;
    std::size_t targets;
    EPICYCLE_INLINE void add(double *a, std::uint32_t r) const {
        const double w = weight[r], *yr = y + std::size_t{r} * targets;
        a[0] += w;
        for (std::size_t k = 0; k < targets; ++k) a[1 + k] += w * yr[k];
    }
    std::size_t K() const { return targets; }
};

struct CartSplit {
    double gain = CART_NEVER;
    std::int32_t slot = -1;         // coded features first, then sorted ones
    std::int32_t from = 0, to = 0;  // coded: the last code on the left and the first on the right; 256 for none
    std::size_t at = 0;             // sorted: how many entries (the zeros are one) are on the left
    bool missing_left = false, some_missing = false;
    double threshold = std::numeric_limits<double>::infinity();
    Sides left{};                                // coded: what goes left
    double value_left = 0.0, value_right = 0.0;  // with monotone constraints
    bool found() const { return slot >= 0; }
};

// Codes 0 .. end-1 go left.
inline void send_left_below(Sides &sides, std::size_t end) {
    for (std::size_t word = 0; word < 4; ++word) {
        const std::size_t from = 64 * word;
        if (end >= from + 64)
            sides[word] = ~std::uint64_t{0};
        else if (end > from)
            sides[word] |= (std::uint64_t{1} << (end - from)) - 1;
    }
}

struct CartNode {
    std::size_t begin = 0, end = 0, depth = 0;
    std::int32_t left = 0;
    CartSplit split;
    double weight = 0.0, cost = 0.0;
    bool pure = true;
    Bounds bounds;
    std::vector<std::int64_t> ranges;  // sparse: first and last entry in every list, while the node is open
    std::size_t size() const { return end - begin; }
};

}  // namespace epicycle
