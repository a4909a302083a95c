// Columns in ascending order, once for the whole tree.
//
// An entry of a sorted column is a row number with three marks: NEW where the number differs from the one before it,
// GAP for what is missing (at the end), BELOW for numbers under zero. With the marks, splits are found and lists are
// divided without another look at the numbers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace epicycle {

constexpr std::uint32_t CART_ROW = (1u << 29) - 1, CART_BELOW = 1u << 29, CART_GAP = 1u << 30, CART_NEW = 1u << 31;

struct SortedColumn {
    std::size_t distinct = 0, missing = 0;
};

// Bits that ascend with the number; the two zeros are one.
inline std::uint64_t ascending_bits(double x) {
    x += 0.0;
    std::uint64_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits ^ (bits >> 63 ? ~std::uint64_t{0} : std::uint64_t{1} << 63);
}

struct SortSpace {
    std::vector<std::uint64_t> key, spare;
};

// x[i] belongs to row rows[i] (i itself where null); equal numbers keep their order. A radix sort on the upper half of
// the bits, then the few runs that share them are sorted by the rest.
inline SortedColumn sort_column(const double *x, const std::uint32_t *rows, std::size_t n, std::uint32_t *out,
                                SortSpace &space) {
    constexpr int SHIFT[3] = {32, 43, 54};
    constexpr std::size_t DIGITS[3] = {1 << 11, 1 << 11, 1 << 10};
    static_assert(DIGITS[0] * DIGITS[1] * DIGITS[2] == std::size_t{1} << 32);
    space.key.resize(n);
    space.spare.resize(n);
    std::uint64_t *key = space.key.data(), *spare = space.spare.data();
    std::vector<std::uint32_t> count(DIGITS[0] + DIGITS[1] + DIGITS[2], 0);
    std::uint32_t *of[3] = {count.data(), count.data() + DIGITS[0], count.data() + DIGITS[0] + DIGITS[1]};
    std::size_t m = 0, gap = n;
    for (std::size_t i = 0; i < n; ++i) {
        if (x[i] != x[i]) continue;
        const std::uint64_t k = (ascending_bits(x[i]) & 0xffffffff00000000u) | i;
        for (int d = 0; d < 3; ++d) ++of[d][k >> SHIFT[d] & (DIGITS[d] - 1)];
        key[m++] = k;
    }
    for (std::size_t i = n; i-- > 0;)
        if (x[i] != x[i]) out[--gap] = (rows ? rows[i] : static_cast<std::uint32_t>(i)) | CART_GAP | CART_NEW;
    for (int d = 0; d < 3; ++d) {
        std::uint32_t sum = 0, full = 0;
        for (std::size_t b = 0; b < DIGITS[d]; ++b) {
            full += of[d][b] == m && m > 0;
            const std::uint32_t c = of[d][b];
            of[d][b] = sum;
            sum += c;
        }
        if (full) continue;  // all share this digit
        for (std::size_t i = 0; i < m; ++i) spare[of[d][key[i] >> SHIFT[d] & (DIGITS[d] - 1)]++] = key[i];
        std::swap(key, spare);
    }
    const auto number = [&](std::uint64_t k) { return x[k & 0xffffffff]; };
    for (std::size_t i = 0; i < m;) {
        std::size_t stop = i + 1;
        bool same = true;
        const std::uint64_t high = key[i] >> 32;
        for (; stop < m && key[stop] >> 32 == high; ++stop) same &= number(key[stop]) == number(key[i]);
        if (!same)
            std::sort(key + i, key + stop, [&](std::uint64_t a, std::uint64_t b) {
                const double u = number(a), v = number(b);
                return u < v || (u == v && a < b);
            });
        i = stop;
    }
    SortedColumn found;
    found.missing = n - m;
    for (std::size_t i = 0; i < m; ++i) {
        const std::size_t at = key[i] & 0xffffffff;
        const bool fresh = i == 0 || number(key[i]) != number(key[i - 1]);
        found.distinct += fresh;
        out[i] =
            (rows ? rows[at] : static_cast<std::uint32_t>(at)) | (fresh ? CART_NEW : 0) | (x[at] < 0 ? CART_BELOW : 0);
    }
    return found;
}

}  // namespace epicycle
