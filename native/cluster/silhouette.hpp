// Sums of the distances of every row to the rows of each cluster, from which silhouettes are made. Rows come in the
// order of their clusters, so that a cluster is a run of rows; only the own sum and the least mean are kept.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd.hpp"

namespace epicycle::silhouette {

constexpr std::size_t LANES = 16, ROWS = 4;

// Rows in tiles of LANES: column j of a tile is LANES numbers side by side. The last tile is filled up with zeros.
struct Tiles {
    std::size_t n, p;
    std::vector<double> values;

    Tiles(const double *X, std::size_t n, std::size_t p) : n(n), p(p), values((n + LANES - 1) / LANES * LANES * p) {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < p; ++j) values[(i / LANES * p + j) * LANES + i % LANES] = X[i * p + j];
    }
    const double *tile(std::size_t t) const { return values.data() + t * p * LANES; }
};

// Distances of ROWS rows from the rows of one tile.
EPICYCLE_CLONES inline void tile_distances(const double *const x[ROWS], const double *tile, std::size_t p,
                                           double *out) {
    double a0[LANES] = {}, a1[LANES] = {}, a2[LANES] = {}, a3[LANES] = {};
    for (std::size_t j = 0; j < p; ++j) {
        const double *c = tile + j * LANES;
        const double x0 = x[0][j], x1 = x[1][j], x2 = x[2][j], x3 = x[3][j];
        for (std::size_t l = 0; l < LANES; ++l) {
            const double d0 = x0 - c[l], d1 = x1 - c[l], d2 = x2 - c[l], d3 = x3 - c[l];
            a0[l] += d0 * d0;
            a1[l] += d1 * d1;
            a2[l] += d2 * d2;
            a3[l] += d3 * d3;
        }
    }
    for (std::size_t l = 0; l < LANES; ++l) {
        out[l] = std::sqrt(a0[l]);
        out[LANES + l] = std::sqrt(a1[l]);
        out[2 * LANES + l] = std::sqrt(a2[l]);
        out[3 * LANES + l] = std::sqrt(a3[l]);
    }
}

EPICYCLE_CLONES inline void add_weighted(const double *d, const double *w, double *sum) {
    for (std::size_t r = 0; r < ROWS; ++r)
        for (std::size_t l = 0; l < LANES; ++l) sum[r * LANES + l] += w[l] * d[r * LANES + l];
}

inline double total(const double *part) {
    double s[LANES];
    std::copy(part, part + LANES, s);
    for (std::size_t width = LANES / 2; width > 0; width /= 2)
        for (std::size_t l = 0; l < width; ++l) s[l] += s[l + width];
    return s[0];
}

// ROWS of the queries from the first on (the last one repeated): own and other of each.
// A cluster that holds only part of a tile gets its distances one by one.
inline void queries_of(const Tiles &rows, const double *X, const double *weight, const std::int64_t *start,
                       std::size_t k, const double *cluster_weight, const std::int64_t *query, std::size_t n_queries,
                       std::size_t first, double *own, double *other) {
    const double *x[ROWS];
    std::size_t label[ROWS];
    double least[ROWS], mine[ROWS] = {}, sum[ROWS * LANES] = {}, edge[ROWS] = {}, d[ROWS * LANES];
    for (std::size_t r = 0; r < ROWS; ++r) {
        const std::int64_t i = query[std::min(first + r, n_queries - 1)];
        x[r] = X + static_cast<std::size_t>(i) * rows.p;
        label[r] = static_cast<std::size_t>(std::upper_bound(start, start + k, i) - start) - 1;
        least[r] = std::numeric_limits<double>::infinity();
    }
    bool known = false;  // whether d holds the distances of the tile
    for (std::size_t c = 0; c < k; ++c) {
        const auto from = static_cast<std::size_t>(start[c]), to = static_cast<std::size_t>(start[c + 1]);
        for (std::size_t tile = from / LANES; tile * LANES < to; ++tile) {
            const std::size_t begin = tile * LANES;
            // the tile at the edge of two clusters has been computed for the first of them
            if (!known) tile_distances(x, rows.tile(tile), rows.p, d);
            if (begin >= from && begin + LANES <= to) {
                add_weighted(d, weight + begin, sum);
                known = false;
                continue;
            }
            const std::size_t low = std::max(begin, from), high = std::min(begin + LANES, to);
            for (std::size_t r = 0; r < ROWS; ++r)
                for (std::size_t i = low; i < high; ++i) edge[r] += weight[i] * d[r * LANES + i - begin];
            known = high < begin + LANES;
        }
        for (std::size_t r = 0; r < ROWS; ++r) {
            const double whole = total(sum + r * LANES) + edge[r];
            if (c == label[r])
                mine[r] = whole;
            else if (cluster_weight[c] > 0.0)
                least[r] = std::min(least[r], whole / cluster_weight[c]);
            edge[r] = 0.0;
        }
        std::fill(sum, sum + ROWS * LANES, 0.0);
    }
    for (std::size_t r = 0; r < ROWS && first + r < n_queries; ++r) {
        own[first + r] = mine[r];
        other[first + r] = least[r];
    }
}

// For each query i, a row of X: own = sum_j w_j |x_i - x_j| over the rows of its cluster, other = the least mean over
// another cluster. start(c) is the first row of cluster c, start(k) = n.
inline void distances_to_clusters(const double *X, std::size_t n, std::size_t p, const double *weight,
                                  const std::int64_t *start, std::size_t k, const std::int64_t *query,
                                  std::size_t n_queries, int threads, double *own, double *other) {
    const Tiles rows(X, n, p);
    std::vector<double> cluster_weight(k);
    for (std::size_t c = 0; c < k; ++c)
        for (auto i = start[c]; i < start[c + 1]; ++i) cluster_weight[c] += weight[i];
    const auto blocks = static_cast<std::int64_t>((n_queries + ROWS - 1) / ROWS);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (std::int64_t b = 0; b < blocks; ++b)
        queries_of(rows, X, weight, start, k, cluster_weight.data(), query, n_queries,
                   static_cast<std::size_t>(b) * ROWS, own, other);
}

}  // namespace epicycle::silhouette
