// Histograms of gradients and curvatures in fixed point.
//
// A row's gradient and curvature are rounded to whole multiples of a unit and packed into one 64-bit integer,
// (gradient << 32) + curvature. The units are such that no sum over rows overflows its half, so a bin is filled by one
// integer addition per row, sums are exact, and their bits do not depend on the order of rows or the number of threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "core/simd.hpp"
#include "tree/bundles.hpp"

namespace epicycle {

using Packed = std::int64_t;

// A sum rounded up to 20 bits: what is left does not depend on the order in which rows were added.
inline double coarse(double sum) {
    int exponent = 0;
    const double mantissa = std::frexp(sum, &exponent);
    return std::ldexp(std::ceil(std::ldexp(mantissa, 20)), exponent - 20);
}

struct Units {
    double g = 1.0, h = 1.0;  // worth of one unit
    // Over the rows, in units; so that those of several parts are the smallest and largest of theirs.
    std::uint32_t smallest_h = ~std::uint32_t{0}, largest_h = 0, largest_g = 0;

    // For n rows; the sums of |g| and h over them bound what a half holds.
    Units(std::size_t n, double sum_abs_g, double sum_h) {
        const double room = static_cast<double>(n) + 1.0;
        if (sum_abs_g > 0) g = coarse(sum_abs_g) / (2147483647.0 - room);
        if (sum_h > 0) h = coarse(sum_h) / (4294967295.0 - room);
    }
    double gradient(Packed v) const { return g * static_cast<double>(v >> 32); }
    double curvature(Packed v) const { return h * static_cast<double>(v & 0xffffffff); }
};

// Rows `rows` (all where null; n of them) of gh, n x 2, to packed integers.
inline void quantise(const float *gh, const std::uint32_t *rows, std::size_t n, Units &units, Packed *packed,
                     int threads) {
    const double per_g = 1.0 / units.g, per_h = 1.0 / units.h;
    std::uint32_t smallest = units.smallest_h, largest = units.largest_h, largest_g = units.largest_g;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : smallest) \
    reduction(max : largest, largest_g)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
        const std::size_t r = rows ? rows[i] : static_cast<std::size_t>(i);
        const auto g = static_cast<Packed>(std::nearbyint(static_cast<double>(gh[2 * r]) * per_g));
        const auto h = static_cast<Packed>(std::nearbyint(static_cast<double>(gh[2 * r + 1]) * per_h));
        packed[r] = g * (Packed{1} << 32) + h;
        smallest = std::min(smallest, static_cast<std::uint32_t>(h));
        largest = std::max(largest, static_cast<std::uint32_t>(h));
        largest_g = std::max(largest_g, static_cast<std::uint32_t>(g < 0 ? -g : g));
    }
    units.smallest_h = smallest;
    units.largest_h = largest;
    units.largest_g = largest_g;
}

struct Column {
    const std::uint8_t *data;
    std::size_t stride;
    std::uint8_t operator[](std::size_t row) const { return data[row * stride]; }
};

// The binned table and the features that a tree may use.
struct BinnedTable {
    const std::uint8_t *rows;     // n x p: a byte for every stored column
    const std::uint8_t *columns;  // p x n, the same again; or null, and columns are read from the rows, more slowly
    std::size_t n, p;
    const std::int32_t *features;  // ascending
    std::size_t n_features;
    const std::int32_t *n_bins;        // of numbers, by feature
    const Bundles *bundles;            // null: every feature has a column for itself
    std::vector<std::int32_t> stored;  // columns that hold the features, ascending
    std::vector<std::uint32_t> slot;   // where the column of feature k of the list is among them

    BinnedTable(const std::uint8_t *rows, const std::uint8_t *columns, std::size_t n, std::size_t p,
                const std::int32_t *features, std::size_t n_features, const std::int32_t *n_bins,
                const Bundles *bundles = nullptr)
        : rows(rows), columns(columns), n(n), p(p), features(features), n_features(n_features), n_bins(n_bins),
          bundles(bundles) {
        for (std::size_t k = 0; k < n_features; ++k) stored.push_back(column_of(features[k]));
        std::sort(stored.begin(), stored.end());
        stored.erase(std::unique(stored.begin(), stored.end()), stored.end());
        for (std::size_t k = 0; k < n_features; ++k) {
            const auto at = std::lower_bound(stored.begin(), stored.end(), column_of(features[k]));
            slot.push_back(static_cast<std::uint32_t>(at - stored.begin()));
        }
    }
    bool all() const { return stored.size() == p; }
    std::size_t n_stored() const { return stored.size(); }
    std::int32_t column_of(std::int32_t feature) const { return bundles ? bundles->column[feature] : feature; }
    Column column(std::int32_t feature) const {
        const auto j = static_cast<std::size_t>(column_of(feature));
        return columns ? Column{columns + j * n, 1} : Column{rows + j, p};
    }
    // Codes of numbers in stored column s of the list.
    std::size_t codes_of(std::size_t s) const {
        return static_cast<std::size_t>(bundles ? bundles->n_codes[stored[s]] : n_bins[stored[s]]);
    }
    bool shares(std::int32_t feature) const { return bundles && bundles->shares(feature); }
    // Sums by bin of feature k of the list, from those of its column; `own` has room for 256.
    template <class Sum>
    const Sum *by_bin(std::size_t k, const Sum *of_column, Sum total, Sum *own) const {
        const std::int32_t j = features[k];
        if (!shares(j)) return of_column;
        by_own_bins(*bundles, j, n_bins[j], of_column, total, own);
        return own;
    }
    // Of every byte of the feature's column whether it goes left, from the sides of its bins.
    template <class GoesLeft>
    void by_code(std::int32_t feature, const GoesLeft &bin_left, std::uint8_t *left) const {
        if (!shares(feature)) {
            for (std::size_t b = 0; b < BINS; ++b) left[b] = bin_left(b);
            return;
        }
        std::fill(left, left + BINS, static_cast<std::uint8_t>(bin_left(bundles->usual[feature])));
        for (std::int32_t b = 0; b < n_bins[feature]; ++b)
            if (b != bundles->usual[feature]) left[bundles->code(feature, b)] = bin_left(b);
    }
};

// Of the 256 codes of a column only those of numbers and the one for missing values are ever touched.
inline void clear(const BinnedTable &table, Packed *hist) {
    for (std::size_t s = 0; s < table.n_stored(); ++s) {
        std::memset(hist + s * BINS, 0, table.codes_of(s) * sizeof *hist);
        hist[s * BINS + MISSING_BIN] = 0;
    }
}

// hist += sign * other
template <int sign>
void combine(const BinnedTable &table, Packed *hist, const Packed *other) {
    for (std::size_t s = 0; s < table.n_stored(); ++s) {
        Packed *h = hist + s * BINS;
        const Packed *o = other + s * BINS;
        const std::size_t nb = table.codes_of(s);
        for (std::size_t b = 0; b < nb; ++b) h[b] += sign * o[b];
        h[MISSING_BIN] += sign * o[MISSING_BIN];
    }
}

constexpr std::size_t COLUMNS_AT_ONCE = 32;  // whose histograms stay near the core
constexpr std::size_t PREFETCH = 12;         // rows ahead

// hist (columns x 256) += rows[begin:end] of the stored columns k0:k1; rows null means begin..end themselves.
template <bool Indexed, bool Contiguous>
EPICYCLE_INLINE void accumulate(const BinnedTable &table, std::size_t k0, std::size_t k1, const Packed *packed,
                                const std::uint32_t *rows, std::size_t begin, std::size_t end, Packed *hist) {
    const std::size_t p = table.p, k = k1 - k0;
    Packed *const h = hist + k0 * BINS;
    const std::uint8_t *const base = table.rows + (Contiguous ? k0 : 0);
    const std::int32_t *const list = table.stored.data() + k0;
    const std::size_t last = end - 1;
    for (std::size_t i = begin; i < end; ++i) {
        std::size_t r = i;
        if (Indexed) {
            r = rows[i];
            const std::size_t ahead = rows[std::min(i + PREFETCH, last)];
            __builtin_prefetch(base + ahead * p);
            __builtin_prefetch(packed + ahead);
        }
        const Packed v = packed[r];
        const std::uint8_t *b = base + r * p;
        std::size_t j = 0;
        if (Contiguous) {
            Packed *hj = h;
            for (; j + 8 <= k; j += 8, hj += 8 * BINS) {
                std::uint64_t eight;
                std::memcpy(&eight, b + j, 8);
                hj[eight & 255] += v;
                hj[BINS + (eight >> 8 & 255)] += v;
                hj[2 * BINS + (eight >> 16 & 255)] += v;
                hj[3 * BINS + (eight >> 24 & 255)] += v;
                hj[4 * BINS + (eight >> 32 & 255)] += v;
                hj[5 * BINS + (eight >> 40 & 255)] += v;
                hj[6 * BINS + (eight >> 48 & 255)] += v;
                hj[7 * BINS + (eight >> 56)] += v;
            }
            for (; j < k; ++j, hj += BINS) hj[b[j]] += v;
        } else {
            for (; j < k; ++j) h[j * BINS + b[list[j]]] += v;
        }
    }
}

inline void accumulate_rows(const BinnedTable &table, std::size_t k0, std::size_t k1, const Packed *packed,
                            const std::uint32_t *rows, std::size_t begin, std::size_t end, Packed *hist) {
    if (begin >= end || k0 >= k1) return;
    if (rows)
        table.all() ? accumulate<true, true>(table, k0, k1, packed, rows, begin, end, hist)
                    : accumulate<true, false>(table, k0, k1, packed, rows, begin, end, hist);
    else
        table.all() ? accumulate<false, true>(table, k0, k1, packed, rows, begin, end, hist)
                    : accumulate<false, false>(table, k0, k1, packed, rows, begin, end, hist);
}

// Threads that pay for a loop of so many additions: a team costs microseconds to gather, and far more on a busy
// machine.
inline int worth(double additions, int threads) {
    return std::max(1, std::min(threads, static_cast<int>(additions / 150e3)));
}

// The histogram of the rows[begin:end]: threads share the columns where there are many, otherwise the rows.
inline void histogram(const BinnedTable &table, const Packed *packed, const std::uint32_t *rows, std::size_t begin,
                      std::size_t end, Packed *hist, std::vector<std::vector<Packed>> &spare, int threads) {
    const std::size_t k = table.n_stored(), size = k * BINS;
    clear(table, hist);
    threads = worth(static_cast<double>(end - begin) * static_cast<double>(k), threads);
    const std::size_t groups = (k + COLUMNS_AT_ONCE - 1) / COLUMNS_AT_ONCE;
    const auto group_end = [&](std::size_t g) { return std::min(k, (g + 1) * COLUMNS_AT_ONCE); };
    if (threads == 1 || groups >= 2 * static_cast<std::size_t>(threads)) {
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
        for (std::int64_t g = 0; g < static_cast<std::int64_t>(groups); ++g)
            accumulate_rows(table, g * COLUMNS_AT_ONCE, group_end(g), packed, rows, begin, end, hist);
        return;
    }
    spare.resize(std::max<std::size_t>(spare.size(), threads - 1));
    const std::size_t m = end - begin;
#pragma omp parallel for num_threads(threads) schedule(static, 1)
    for (int t = 0; t < threads; ++t) {
        Packed *own = hist;
        if (t > 0) {
            spare[t - 1].resize(size);
            own = spare[t - 1].data();
            clear(table, own);
        }
        const std::size_t from = begin + m * t / threads, to = begin + m * (t + 1) / threads;
        for (std::size_t g = 0; g < groups; ++g)
            accumulate_rows(table, g * COLUMNS_AT_ONCE, group_end(g), packed, rows, from, to, own);
    }
    for (int t = 1; t < threads; ++t) combine<1>(table, hist, spare[t - 1].data());
}

}  // namespace epicycle
