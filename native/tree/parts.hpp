// One part of the rows of a tree that grows over many: what is done where the rows are, and how a split is chosen from
// what all parts sum up to.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tree/split.hpp"
#include "tree/sums.hpp"

namespace epicycle {

// Stable: the rows of order[0:m] that go left come first. Returns how many they are.
inline std::size_t divide_rows(const std::uint8_t *rows, std::size_t p, std::size_t feature, const Sides &sides,
                               std::uint32_t *order, std::size_t m) {
    std::uint8_t left[BINS];
    for (std::size_t b = 0; b < BINS; ++b) left[b] = goes_left(sides, b);
    std::vector<std::uint32_t> right(m);
    std::uint32_t *l = order, *r = right.data();
    for (std::size_t i = 0; i < m; ++i) {
        const std::uint32_t row = order[i];
        const std::size_t is_left = left[rows[static_cast<std::size_t>(row) * p + feature]];
        *l = row;
        *r = row;
        l += is_left;
        r += 1 - is_left;
    }
    std::copy(right.data(), r, l);
    return static_cast<std::size_t>(l - order);
}

// Rows by feature of the table's list and bin.
inline void count_rows(const BinnedTable &table, const std::uint32_t *order, std::size_t m, std::uint32_t *count) {
    for (std::size_t k0 = 0; k0 < table.n_features; k0 += COLUMNS_AT_ONCE) {
        const std::size_t k1 = std::min(k0 + COLUMNS_AT_ONCE, table.n_features);
        for (std::size_t i = 0; i < m; ++i) {
            const std::uint8_t *b = table.rows + static_cast<std::size_t>(order[i]) * table.p;
            for (std::size_t k = k0; k < k1; ++k) ++count[k * BINS + b[table.features[k]]];
        }
    }
}

// Sums over all rows of order[begin:end].
inline void sum_range(const float *gh, const std::uint32_t *order, std::size_t begin, std::size_t end,
                      const FixedScale &scale, WideSum &G, WideSum &H) {
    G = H = 0;
    for (std::size_t i = begin; i < end; i += SUM_ROWS) {
        const FixedSum sum = sum_rows(gh, order, i, std::min(i + SUM_ROWS, end), scale);
        G += sum.g;
        H += sum.h;
    }
}

}  // namespace epicycle
