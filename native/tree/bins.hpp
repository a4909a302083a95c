// From numbers to bins of one byte: cuts at quantiles, and the bin of every cell.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/dense.hpp"
#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t MAX_CUTS = 254;      // 255 bins of numbers
constexpr std::uint8_t MISSING_BIN = 255;  // and one for what is missing
constexpr std::size_t BINS = 256;

// A number c with a <= c < b, half-way where that is a number: "x <= c" tells a from b.
inline double between(double a, double b) {
    const double c = a + (b - a) / 2;
    return std::isfinite(c) && a <= c && c < b ? c : a;
}

// Cuts between n sorted numbers that leave at most `max_bins` bins. Numbers are all told apart where there are no more
// of them than bins. Otherwise a number with the weight of two bins gets one of its own (there are fewer than max_bins
// / 2 of these), and the numbers between such share the other bins by weight.
inline std::vector<double> quantile_cuts(const double *x, const double *weight, std::size_t n, std::size_t max_bins) {
    std::vector<double> value, total, cuts;
    double all = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        const double w = weight ? weight[i] : 1.0;
        all += w;
        if (value.empty() || x[i] != value.back()) {
            value.push_back(x[i]);
            total.push_back(w);
        } else {
            total.back() += w;
        }
    }
    const std::size_t d = value.size();
    const auto cut_after = [&](std::size_t i) {
        if (i + 1 < d) cuts.push_back(between(value[i], value[i + 1]));
    };
    if (d <= max_bins) {
        for (std::size_t i = 0; i < d; ++i) cut_after(i);
        return cuts;
    }
    const auto heavy = [&](std::size_t i) { return total[i] * static_cast<double>(max_bins) >= 2.0 * all; };
    std::size_t n_heavy = 0, n_runs = 0;  // runs of numbers that are not heavy
    double light = 0.0;
    for (std::size_t i = 0; i < d; ++i) {
        n_heavy += heavy(i);
        n_runs += !heavy(i) && (i == 0 || heavy(i - 1));
        light += heavy(i) ? 0.0 : total[i];
    }
    const double spare = static_cast<double>(max_bins - n_heavy - n_runs);
    for (std::size_t i = 0; i < d;) {
        if (heavy(i)) {
            cut_after(i++);
            continue;
        }
        std::size_t stop = i;
        double left = 0.0, in_bin = 0.0;
        for (; stop < d && !heavy(stop); ++stop) left += total[stop];
        auto bins = 1 + static_cast<std::size_t>(spare * left / light + 1e-9);
        for (; i < stop; ++i) {
            in_bin += total[i];
            const double next = i + 1 < stop ? total[i + 1] : 0.0;
            // Closed where half of the next number would be too much.
            if (i + 1 < stop && (bins <= 1 || in_bin + next / 2 < left / static_cast<double>(bins))) continue;
            cut_after(i);
            left -= in_bin;
            in_bin = 0.0;
            --bins;
        }
    }
    return cuts;
}

constexpr std::size_t BIN_TILE = 64;

EPICYCLE_CLONES inline void search_cuts(const double *v, const double *cut, std::int64_t *at) {
    for (std::size_t i = 0; i < BIN_TILE; ++i) at[i] = 0;
    for (std::int64_t step = 128; step > 0; step /= 2)
        for (std::size_t i = 0; i < BIN_TILE; ++i) at[i] += v[i] > cut[at[i] + step - 1] ? step : 0;
}

template <class T>
void bin_column(const T *x, std::int64_t row_stride, const double *cut, std::size_t n, std::uint8_t *out,
                std::size_t out_stride) {
    double v[BIN_TILE];
    std::int64_t at[BIN_TILE];
    for (std::size_t i0 = 0; i0 < n; i0 += BIN_TILE) {
        const std::size_t m = std::min(BIN_TILE, n - i0);
        for (std::size_t i = 0; i < m; ++i)
            v[i] = static_cast<double>(x[static_cast<std::int64_t>(i0 + i) * row_stride]);
        for (std::size_t i = m; i < BIN_TILE; ++i) v[i] = 0.0;
        search_cuts(v, cut, at);
        for (std::size_t i = 0; i < m; ++i)
            out[(i0 + i) * out_stride] = v[i] == v[i] ? static_cast<std::uint8_t>(at[i]) : MISSING_BIN;
    }
}

template <class T>
void bin_rows(const Dense<T> &X, const double *cuts, std::uint8_t *out, int threads) {
    constexpr std::int64_t ROWS_AT_ONCE = 512;  // a piece of all columns that stays in the cache
    const std::int64_t pieces = (static_cast<std::int64_t>(X.rows) + ROWS_AT_ONCE - 1) / ROWS_AT_ONCE;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const std::size_t i0 = static_cast<std::size_t>(piece * ROWS_AT_ONCE);
        const std::size_t m = std::min<std::size_t>(ROWS_AT_ONCE, X.rows - i0);
        for (std::size_t j = 0; j < X.cols; ++j)
            bin_column(&X(i0, j), X.row_stride, cuts + j * 255, m, out + i0 * X.cols + j, X.cols);
    }
}

// columns (p x n) from rows (n x p), in tiles that fit the first-level cache.
inline void transpose_bytes(const std::uint8_t *rows, std::size_t n, std::size_t p, std::uint8_t *columns,
                            int threads) {
    constexpr std::size_t TILE = 512;
    const std::int64_t tiles = static_cast<std::int64_t>((n + TILE - 1) / TILE);
#pragma omp parallel for num_threads(threads) schedule(static)
    for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::size_t i0 = static_cast<std::size_t>(tile) * TILE, i1 = std::min(i0 + TILE, n);
        for (std::size_t j = 0; j < p; ++j)
            for (std::size_t i = i0; i < i1; ++i) columns[j * n + i] = rows[i * p + j];
    }
}

}  // namespace epicycle
