// Distances of rows by columns of lanes: condensed matrices, and minimum spanning trees by Prim's algorithm, which
// computes distances when it needs them.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "cluster/merges.hpp"
#include "core/simd.hpp"

namespace epicycle {

enum class RowMetric { euclidean, manhattan, chebyshev };

constexpr std::size_t LANES = 32;

// Rows by columns, padded to whole lanes; rows of the padding are infinitely far.
struct LaneRows {
    std::size_t n, p, width;
    std::vector<double> x;

    LaneRows(const double *rows, std::size_t n, std::size_t p)
        : n(n), p(p), width((n + LANES - 1) / LANES * LANES), x(p * width, std::numeric_limits<double>::infinity()) {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < p; ++j) x[j * width + i] = rows[i * p + j];
    }
};

// The row c and LANES rows, one column after another as SciPy adds them: s := join(s, c_j - x_j) from 0.
template <class Join>
EPICYCLE_INLINE void join_lanes(const double *c, const double *x, std::size_t width, std::size_t p, double *out,
                                const Join &join) {
    double s[LANES] = {};
    for (std::size_t j = 0; j < p; ++j) {
        const double cj = c[j], *xj = x + j * width;
        for (std::size_t l = 0; l < LANES; ++l) s[l] = join(s[l], cj - xj[l]);
    }
    for (std::size_t l = 0; l < LANES; ++l) out[l] = s[l];
}
// Squared distances (others: distances).
EPICYCLE_CLONES inline void square_lanes(const double *c, const double *x, std::size_t width, std::size_t p,
                                         double *out) {
    join_lanes(c, x, width, p, out, [](double s, double d) EPICYCLE_INLINE_LAMBDA { return s + d * d; });
}
EPICYCLE_CLONES inline void absolute_lanes(const double *c, const double *x, std::size_t width, std::size_t p,
                                           double *out) {
    join_lanes(c, x, width, p, out, [](double s, double d) EPICYCLE_INLINE_LAMBDA { return s + std::fabs(d); });
}
EPICYCLE_CLONES inline void largest_lanes(const double *c, const double *x, std::size_t width, std::size_t p,
                                          double *out) {
    join_lanes(c, x, width, p, out,
               [](double s, double d) EPICYCLE_INLINE_LAMBDA { return std::fabs(d) > s ? std::fabs(d) : s; });
}
inline void metric_lanes(RowMetric metric, const double *c, const double *x, std::size_t width, std::size_t p,
                         double *out) {
    if (metric == RowMetric::euclidean)
        square_lanes(c, x, width, p, out);
    else if (metric == RowMetric::manhattan)
        absolute_lanes(c, x, width, p, out);
    else
        largest_lanes(c, x, width, p, out);
}
EPICYCLE_CLONES inline void root_lanes(const double *from, double *to) {
    for (std::size_t l = 0; l < LANES; ++l) to[l] = std::sqrt(from[l]);
}
EPICYCLE_CLONES inline double keep_smaller(const double *s, double *least, double best) {
    double m[LANES];
    for (std::size_t l = 0; l < LANES; ++l) {
        least[l] = s[l] < least[l] ? s[l] : least[l];
        m[l] = least[l];
    }
    for (std::size_t h = LANES / 2; h > 0; h /= 2)
        for (std::size_t l = 0; l < h; ++l) m[l] = m[l + h] < m[l] ? m[l + h] : m[l];
    return m[0] < best ? m[0] : best;
}

// All distances of i < j, row after row of the upper triangle.
inline void condensed_distances(const double *rows, std::size_t n, std::size_t p, RowMetric metric, int threads,
                                double *out) {
    const LaneRows lanes(rows, n, p);
    const auto last = static_cast<std::ptrdiff_t>(n);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (std::ptrdiff_t at = 0; at < last; ++at) {
        const auto i = static_cast<std::size_t>(at);
        double *to = out + i * (2 * n - i - 1) / 2, s[LANES];  // of the pair (i, i + 1)
        for (std::size_t b = (i + 1) / LANES * LANES; b < n; b += LANES) {
            metric_lanes(metric, rows + i * p, lanes.x.data() + b, lanes.width, p, s);
            if (metric == RowMetric::euclidean) root_lanes(s, s);
            const std::size_t from = std::max(b, i + 1), stop = std::min(b + LANES, n);
            for (std::size_t j = from; j < stop; ++j) to[j - i - 1] = s[j - b];
        }
    }
}

// Edges of a minimum spanning tree. Each is (row that was added last, row that is added next): not an edge of the tree
// itself, but merging in the order of the lengths gives the same clusters, and SciPy's.
template <class Interrupt>
std::vector<Merge> prim_merges(const double *rows, std::size_t n, std::size_t p, RowMetric metric, int threads,
                               const Interrupt &interrupt) {
    constexpr std::size_t BLOCK = 32 * LANES;
    LaneRows lanes(rows, n, p);
    std::vector<double> least(lanes.width, std::numeric_limits<double>::infinity()), c(p);
    std::vector<std::int64_t> name(n);
    std::iota(name.begin(), name.end(), 0);
    std::vector<double> block_least(lanes.width / BLOCK + 1);
    std::vector<char> added(n, 0);
    std::vector<Merge> merges;
    merges.reserve(n - 1);
    std::size_t held = n, left = n - 1, x = 0;  // rows in lanes, rows to be added, place of the row added last
    std::int64_t from = 0;
    const auto drop = [&](std::size_t at) {  // rows that are in the tree are infinitely far from all others
        for (std::size_t j = 0; j < p; ++j) {
            c[j] = lanes.x[j * lanes.width + at];
            lanes.x[j * lanes.width + at] = std::numeric_limits<double>::infinity();
        }
        least[at] = std::numeric_limits<double>::infinity();
        added[at] = 1;
    };
    drop(0);
    while (left > 0) {
        interrupt();
        if (16 * left < 15 * held && held > 4 * LANES) {
            std::size_t to = 0;
            for (std::size_t i = 0; i < held; ++i) {
                if (added[i]) continue;
                for (std::size_t j = 0; j < p; ++j) lanes.x[j * lanes.width + to] = lanes.x[j * lanes.width + i];
                least[to] = least[i];
                name[to++] = name[i];
            }
            for (std::size_t i = to; i < (to + LANES - 1) / LANES * LANES; ++i) {
                for (std::size_t j = 0; j < p; ++j)
                    lanes.x[j * lanes.width + i] = std::numeric_limits<double>::infinity();
                least[i] = std::numeric_limits<double>::infinity();
            }
            std::fill(added.begin(), added.end(), 0);
            held = to;
        }
        const std::size_t blocks = (held + BLOCK - 1) / BLOCK;
        const auto last = static_cast<std::ptrdiff_t>(blocks);
        const auto work = [&](std::size_t b) {
            double s[LANES], best = std::numeric_limits<double>::infinity();
            for (std::size_t i = b * BLOCK; i < std::min((b + 1) * BLOCK, held); i += LANES) {
                metric_lanes(metric, c.data(), lanes.x.data() + i, lanes.width, p, s);
                best = keep_smaller(s, least.data() + i, best);
            }
            block_least[b] = best;
        };
        if (threads > 1 && held * p > 400'000) {
#pragma omp parallel for schedule(static) num_threads(threads)
            for (std::ptrdiff_t b = 0; b < last; ++b) work(static_cast<std::size_t>(b));
        } else {
            for (std::size_t b = 0; b < blocks; ++b) work(b);
        }
        double best = block_least[0];
        for (std::size_t b = 1; b < blocks; ++b) best = std::min(best, block_least[b]);
        double height = best;
        if (metric == RowMetric::euclidean) {  // different squares can have the same root: distances decide
            height = std::sqrt(best);
            for (double next;
                 std::sqrt(next = std::nextafter(best, std::numeric_limits<double>::infinity())) == height &&
                 next > best;)
                best = next;
        }
        std::size_t b = 0;
        while (block_least[b] > best) ++b;
        x = b * BLOCK;
        while (least[x] > best) ++x;
        merges.push_back({from, name[x], height});
        from = name[x];
        drop(x);
        --left;
    }
    return merges;
}

}  // namespace epicycle
