// From numbers to bins of one byte: cuts at quantiles, and the bin of every cell.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "dense.hpp"
#include "simd.hpp"

namespace epicycle {

constexpr std::size_t MAX_CUTS = 254;      // 255 bins of numbers
constexpr std::uint8_t MISSING_BIN = 255;  // and one for what is missing
constexpr std::size_t BINS = 256;

// A number c with a <= c < b, half-way where that is a number: "x <= c" tells a from b.
inline double between(double a, double b) {
    const double c = a + (b - a) / 2;
    return std::isfinite(c) && a <= c && c < b ? c : a;
}

// Cuts between n sorted numbers that leave at most `max_bins` bins of about equal weight. Fewer distinct numbers than
// bins are all told apart; otherwise a number that outweighs a bin gets one of its own, and the rest share the others.
inline std::vector<double> quantile_cuts(const double *x, const double *weight, std::size_t n, std::size_t max_bins) {
    std::vector<double> value, total;
    for (std::size_t i = 0; i < n; ++i) {
        const double w = weight ? weight[i] : 1.0;
        if (value.empty() || x[i] != value.back()) {
            value.push_back(x[i]);
            total.push_back(w);
        } else {
            total.back() += w;
        }
    }
    std::vector<double> cuts;
    const std::size_t d = value.size();
    if (d <= max_bins) {
        for (std::size_t i = 1; i < d; ++i) cuts.push_back(between(value[i - 1], value[i]));
        return cuts;
    }
    double rest = 0.0;
    for (const double t : total) rest += t;
    std::size_t free_bins = max_bins;
    std::vector<bool> heavy(d, false);
    for (bool changed = true; changed && free_bins > 1;) {  // taking one out makes the others' share smaller
        changed = false;
        for (std::size_t i = 0; i < d && free_bins > 1; ++i)
            if (!heavy[i] && total[i] * static_cast<double>(free_bins) >= rest && total[i] < rest) {
                heavy[i] = changed = true;
                rest -= total[i];
                --free_bins;
            }
    }
    // Bins still to be opened, and the weight of light numbers still to be shared out.
    double in_bin = 0.0;
    std::size_t bins_left = max_bins, heavy_left = max_bins - free_bins, light_left = free_bins;
    for (std::size_t i = 0; i + 1 < d && bins_left > 1; ++i) {
        in_bin += heavy[i] ? 0.0 : total[i];
        const double share = rest / static_cast<double>(std::max<std::size_t>(light_left, 1));
        // A light number that is nearer to the share without its successor than with it closes the bin.
        const bool full = !heavy[i] && in_bin + (heavy[i + 1] ? 0.0 : total[i + 1] / 2) >= share;
        // A cut beside a heavy number may cost a bin that the light ones need: only where there is one to spare.
        const bool beside = heavy[i] || (heavy[i + 1] && bins_left > heavy_left);
        if (!full && !beside) continue;
        cuts.push_back(between(value[i], value[i + 1]));
        --bins_left;
        if (heavy[i]) {
            --heavy_left;
        } else {
            rest -= in_bin;
            light_left = light_left > 1 ? light_left - 1 : 1;
        }
        in_bin = 0.0;
    }
    return cuts;
}

// Bins of rows: out[i, j] = number of cuts of column j below x[i, j], MISSING_BIN for NaN. `cuts` is p x 255, each row
// padded with infinity, so that the search takes eight steps without a branch.
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
