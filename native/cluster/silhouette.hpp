// Sums of the distances of rows to the rows of each cluster, from which silhouettes are made. Rows come in the order of
// their clusters, so that a cluster is a run of rows.
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

EPICYCLE_CLONES inline void add_columns(const double *d, const double *w, double *sum) {
    for (std::size_t r = 0; r < ROWS; ++r)
        for (std::size_t l = 0; l < LANES; ++l) sum[l] += w[r] * d[r * LANES + l];
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

// ------------------------------------------------------------------------------------------------- all rows

// Distances of all rows from each other are computed once for each pair. Clusters are filled up to whole tiles with
// rows of weight zero, so that a tile belongs to one cluster, and tiles are gathered in panels. In round r panel I
// meets panel I + r: sums over the rows of I and over those of J go to arrays of their own, in which no two panels of a
// round write to the same place, so that the order of addition does not depend on the threads.
class AllPairs {
    static constexpr std::size_t PANEL = 8;  // tiles
    std::size_t p, k, tiles = 0, panels = 0;
    std::vector<double> rows, lanes, weight, by_first, by_second;
    std::vector<std::size_t> cluster, place;  // of a tile; of a row of the table

public:
    AllPairs(const double *X, std::size_t n, std::size_t p, const double *w, const std::int64_t *start, std::size_t k)
        : p(p), k(k), place(n) {
        for (std::size_t c = 0; c < k; ++c) {
            const auto from = static_cast<std::size_t>(start[c]), to = static_cast<std::size_t>(start[c + 1]);
            for (std::size_t i = from; i < to; ++i) place[i] = tiles * LANES + (i - from);
            const std::size_t count = (to - from + LANES - 1) / LANES;
            cluster.insert(cluster.end(), count, c);
            tiles += count;
        }
        panels = (tiles + PANEL - 1) / PANEL;
        rows.resize(tiles * LANES * p);
        lanes.resize(tiles * LANES * p);
        weight.resize(tiles * LANES);
        by_first.resize(tiles * LANES * k);
        by_second.resize(tiles * LANES * k);
        for (std::size_t i = 0; i < n; ++i) {
            const std::size_t at = place[i];
            weight[at] = w[i];
            std::copy(X + i * p, X + (i + 1) * p, rows.begin() + static_cast<std::ptrdiff_t>(at * p));
            for (std::size_t j = 0; j < p; ++j) lanes[(at / LANES * p + j) * LANES + at % LANES] = X[i * p + j];
        }
    }

    // Whether it takes less time and not much memory: rows that fill up tiles, and one sum for each row and cluster.
    static bool pays(std::size_t n, std::size_t k) { return n >= 40 * k && n * k <= (std::size_t{1} << 23); }

    void run(int threads) {
        for (std::size_t r = 0; r <= panels / 2; ++r) {
            const bool twice = r > 0 && 2 * r == panels;  // both panels of a pair would meet the other
            const auto count = static_cast<std::int64_t>(twice ? panels / 2 : panels);
#pragma omp parallel for schedule(dynamic, 4) num_threads(threads) if (threads > 1)
            for (std::int64_t i = 0; i < count; ++i) {
                const auto first = static_cast<std::size_t>(i);
                meet(first, (first + r) % panels, r > 0);
            }
        }
    }

    double sum(std::size_t i, std::size_t c) const { return by_first[place[i] * k + c] + by_second[place[i] * k + c]; }

private:
    void meet(std::size_t I, std::size_t J, bool both) {
        const std::size_t first = I * PANEL, end = std::min(first + PANEL, tiles);
        const std::size_t last = std::min((J + 1) * PANEL, tiles);
        double sums[PANEL * LANES * LANES], d[ROWS * LANES];
        for (std::size_t b = J * PANEL; b < last;) {
            const std::size_t c = cluster[b];
            std::fill(sums, sums + (end - first) * LANES * LANES, 0.0);
            for (; b < last && cluster[b] == c; ++b)
                for (std::size_t a = first; a < end; ++a) {
                    double column[LANES] = {};
                    for (std::size_t g = 0; g < LANES; g += ROWS) {
                        const double *x[ROWS];
                        for (std::size_t q = 0; q < ROWS; ++q) x[q] = rows.data() + (a * LANES + g + q) * p;
                        tile_distances(x, lanes.data() + b * p * LANES, p, d);
                        add_weighted(d, weight.data() + b * LANES, sums + ((a - first) * LANES + g) * LANES);
                        if (both) add_columns(d, weight.data() + a * LANES + g, column);
                    }
                    if (both)
                        for (std::size_t l = 0; l < LANES; ++l)
                            by_second[(b * LANES + l) * k + cluster[a]] += column[l];
                }
            for (std::size_t i = 0; i < (end - first) * LANES; ++i)
                by_first[(first * LANES + i) * k + c] += total(sums + i * LANES);
        }
    }
};

// For each query i, a row of X: own = sum_j w_j |x_i - x_j| over the rows of its cluster, other = the least mean over
// another cluster. start(c) is the first row of cluster c, start(k) = n. Queries that are all rows in their order are
// computed by pairs.
inline void distances_to_clusters(const double *X, std::size_t n, std::size_t p, const double *weight,
                                  const std::int64_t *start, std::size_t k, const std::int64_t *query,
                                  std::size_t n_queries, int threads, double *own, double *other) {
    std::vector<double> cluster_weight(k);
    for (std::size_t c = 0; c < k; ++c)
        for (auto i = start[c]; i < start[c + 1]; ++i) cluster_weight[c] += weight[i];
    bool all = n_queries == n && AllPairs::pays(n, k);
    for (std::size_t i = 0; all && i < n; ++i) all = query[i] == static_cast<std::int64_t>(i);
    if (all) {
        AllPairs pairs(X, n, p, weight, start, k);
        pairs.run(threads);
        for (std::size_t c = 0; c < k; ++c)
            for (auto i = static_cast<std::size_t>(start[c]); i < static_cast<std::size_t>(start[c + 1]); ++i) {
                own[i] = pairs.sum(i, c);
                other[i] = std::numeric_limits<double>::infinity();
                for (std::size_t e = 0; e < k; ++e)
                    if (e != c && cluster_weight[e] > 0.0)
                        other[i] = std::min(other[i], pairs.sum(i, e) / cluster_weight[e]);
            }
        return;
    }
    const Tiles rows(X, n, p);
    const auto blocks = static_cast<std::int64_t>((n_queries + ROWS - 1) / ROWS);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads) if (threads > 1)
    for (std::int64_t b = 0; b < blocks; ++b)
        queries_of(rows, X, weight, start, k, cluster_weight.data(), query, n_queries,
                   static_cast<std::size_t>(b) * ROWS, own, other);
}

}  // namespace epicycle::silhouette
