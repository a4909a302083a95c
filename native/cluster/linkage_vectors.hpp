// Hierarchical clustering of rows by their means, whose distances are computed when they are needed: Ward's linkage by
// the chain of nearest neighbours, centroid and median by a heap. Memory grows with the number of rows.
//
// Means lie in blocks that halve the space along its widest column again and again. A block is skipped when its box is
// farther away than what has been found.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "cluster/merges.hpp"
#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t MEANS = 32;  // of a block
constexpr double NOWHERE = std::numeric_limits<double>::infinity();

EPICYCLE_CLONES inline double square_means(const double *c, const double *x, std::size_t p, double *out) {
    double s[MEANS] = {}, m[MEANS];
    for (std::size_t j = 0; j < p; ++j) {
        const double cj = c[j], *xj = x + j * MEANS;
        for (std::size_t l = 0; l < MEANS; ++l) {
            const double d = cj - xj[l];
            s[l] += d * d;
        }
    }
    for (std::size_t l = 0; l < MEANS; ++l) out[l] = m[l] = s[l];
    for (std::size_t h = MEANS / 2; h > 0; h /= 2)
        for (std::size_t l = 0; l < h; ++l) m[l] = m[l + h] < m[l] ? m[l + h] : m[l];
    return m[0];
}
// The same for one pair, with the same bits.
EPICYCLE_CLONES inline double square_pair(const double *a, const double *b, std::size_t p) {
    double s = 0.0;
    for (std::size_t j = 0; j < p; ++j) {
        const double d = a[j] - b[j];
        s += d * d;
    }
    return s;
}
// Squared distances of c from 8 boxes, low and high by column.
EPICYCLE_CLONES inline void square_boxes(const double *c, const double *low, const double *high, std::size_t stride,
                                         std::size_t p, double *out) {
    double s[8] = {};
    for (std::size_t j = 0; j < p; ++j)
        for (std::size_t b = 0; b < 8; ++b) {
            const double below = low[j * stride + b] - c[j], above = c[j] - high[j * stride + b];
            double d = below > above ? below : above;
            d = d > 0.0 ? d : 0.0;
            s[b] += d * d;
        }
    for (std::size_t b = 0; b < 8; ++b) out[b] = s[b];
}

struct Found {
    double value = NOWHERE;
    std::int64_t name = -1;
    std::uint32_t version = 0;  // how often the cluster of this name had merged
};

// Means of the clusters that are left. WARD: the value of a pair is 2 n m / (n + m) times the squared distance.
template <bool WARD>
struct MeanClusters {
    std::size_t p, slots, blocks, box_stride, left;
    std::vector<double> mean;                                 // by name, (name, column)
    std::vector<double> size, bound;                          // by name; bounds that a heap keeps, or none
    std::vector<std::size_t> slot;                            // by name
    std::vector<std::uint32_t> version;                       // by name
    std::vector<std::int64_t> name;                           // by slot; -1 where there is none
    std::vector<double> lanes, low, high, lightest, loosest;  // by block; the least size, the largest bound
    static constexpr double SAFETY = 1.0 - 1e-10;             // for the rounding of boxes

    MeanClusters(const double *rows, std::size_t n, std::size_t p, const double *weight)
        : p(p), left(n), mean(rows, rows + n * p), size(n, 1.0), slot(n), version(n, 0) {
        if (weight != nullptr) std::copy(weight, weight + n, size.begin());
        std::vector<std::int64_t> all(n);
        std::iota(all.begin(), all.end(), 0);
        arrange(all);
    }
    // Symmetric to the last bit.
    static double factor(double n, double m) { return WARD ? 2.0 * n * m / (n + m) : 1.0; }
    double value(std::int64_t a, std::int64_t b) const {
        return square_pair(mean.data() + a * p, mean.data() + b * p, p) * factor(size[a], size[b]);
    }

    // Places the clusters in blocks anew.
    void arrange(std::vector<std::int64_t> &names) {
        blocks = (names.size() + MEANS - 1) / MEANS;
        slots = blocks * MEANS;
        box_stride = (blocks + 7) / 8 * 8;
        split(names.data(), names.size());
        name.assign(slots, -1);
        lanes.assign(slots * p, NOWHERE);
        low.assign(box_stride * p, NOWHERE);
        high.assign(box_stride * p, -NOWHERE);
        lightest.assign(box_stride, NOWHERE);
        loosest.assign(box_stride, 0.0);
        for (std::size_t i = 0; i < names.size(); ++i) put(names[i], i);
    }
    void split(std::int64_t *names, std::size_t n) {
        if (n <= MEANS) return;
        std::size_t widest = 0;
        double most = -1.0;
        for (std::size_t j = 0; j < p; ++j) {
            double least = NOWHERE, largest = -NOWHERE;
            for (std::size_t i = 0; i < n; ++i) {
                const double v = mean[names[i] * p + j];
                least = std::min(least, v);
                largest = std::max(largest, v);
            }
            if (largest - least > most) {
                most = largest - least;
                widest = j;
            }
        }
        const std::size_t half = (n / 2 + MEANS - 1) / MEANS * MEANS;  // whole blocks on the left
        std::nth_element(names, names + half, names + n, [&](std::int64_t a, std::int64_t b) {
            const double u = mean[a * p + widest], v = mean[b * p + widest];
            return u < v || (u == v && a < b);
        });
        split(names, half);
        split(names + half, n - half);
    }
    void put(std::int64_t a, std::size_t at) {
        const std::size_t b = at / MEANS;
        slot[a] = at;
        name[at] = a;
        for (std::size_t j = 0; j < p; ++j) {
            const double v = mean[a * p + j];
            lanes[(b * p + j) * MEANS + at % MEANS] = v;
            low[j * box_stride + b] = std::min(low[j * box_stride + b], v);
            high[j * box_stride + b] = std::max(high[j * box_stride + b], v);
        }
        lightest[b] = std::min(lightest[b], size[a]);
        if (!bound.empty()) loosest[b] = std::max(loosest[b], bound[a]);
    }
    void set_bound(std::int64_t a, double value) {
        bound[a] = value;
        double &most = loosest[slot[a] / MEANS];
        most = std::max(most, value);
    }
    void remove(std::int64_t a) {
        const std::size_t at = slot[a], b = at / MEANS;
        name[at] = -1;
        for (std::size_t j = 0; j < p; ++j) lanes[(b * p + j) * MEANS + at % MEANS] = NOWHERE;
    }
    // visit(block, its squared distances, their least) for all blocks whose box may hold values of at most
    // limit(block).
    template <class Limit, class Visit>
    void near_blocks(std::int64_t a, const Limit &limit, const Visit &visit) const {
        const double *c = mean.data() + a * p, n = size[a];
        double square[MEANS], box[8];
        const std::size_t own = slot[a] / MEANS;
        visit(own, square, square_means(c, lanes.data() + own * p * MEANS, p, square));
        for (std::size_t b = 0; b < blocks; b += 8) {
            square_boxes(c, low.data() + b, high.data() + b, box_stride, p, box);
            for (std::size_t q = b; q < std::min(b + 8, blocks); ++q) {
                if (q == own || lightest[q] == NOWHERE) continue;
                const double most = limit(q) / (SAFETY * factor(n, lightest[q]));
                if (box[q - b] > most) continue;
                const double least = square_means(c, lanes.data() + q * p * MEANS, p, square);
                if (least <= most) visit(q, square, least);
            }
        }
    }
    // The nearest of cluster a, among those of larger names only where `after`; of equals the smallest name.
    Found nearest(std::int64_t a, bool after) const {
        Found best;
        near_blocks(
            a, [&](std::size_t) { return best.value; },
            [&](std::size_t b, const double *square, double) {
                for (std::size_t l = 0; l < MEANS; ++l) {
                    const std::int64_t other = name[b * MEANS + l];
                    if (other < 0 || other == a || (after && other < a)) continue;
                    const double v = square[l] * factor(size[a], size[other]);
                    if (v < best.value || (v == best.value && other < best.name)) best = {v, other};
                }
            });
        if (best.name >= 0) best.version = version[best.name];
        return best;
    }
    // x and y become y, at the mean of both, or in the middle.
    void merge(std::int64_t x, std::int64_t y, bool middle) {
        const double nx = size[x], ny = size[y];
        const std::size_t at = nx > ny ? slot[x] : slot[y];
        remove(x);
        remove(y);
        const double share = middle ? 0.5 : nx / (nx + ny);
        for (std::size_t j = 0; j < p; ++j) mean[y * p + j] += share * (mean[x * p + j] - mean[y * p + j]);
        size[y] = nx + ny;
        ++version[x];
        ++version[y];
        put(y, at);
        if (4 * --left < 3 * slots && slots > 4 * MEANS) {
            std::vector<std::int64_t> names;
            for (const std::int64_t a : name)
                if (a >= 0) names.push_back(a);
            std::sort(names.begin(), names.end());
            arrange(names);
        }
    }
};

template <class Interrupt>
std::vector<Merge> ward_merges(const double *rows, std::size_t n, std::size_t p, const double *weight, int threads,
                               const Interrupt &interrupt) {
    MeanClusters<true> clusters(rows, n, p, weight);
    std::vector<Found> nearest(n);
    const auto last = static_cast<std::ptrdiff_t>(n);
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (std::ptrdiff_t i = 0; i < last; ++i) nearest[i] = clusters.nearest(i, false);
    std::vector<char> gone(n, 0);
    NeighborChain<std::int64_t> chain(n);
    std::vector<Merge> merges;
    merges.reserve(n - 1);
    std::int64_t first = 0;
    while (clusters.left > 1) {
        interrupt();
        if (chain.empty()) {
            while (gone[first]) ++first;
            chain.append(first);
        }
        std::int64_t x, y;
        double value;
        while (true) {
            x = chain.last();
            // No merge of two others comes nearer: what was nearest stays so until it merges itself.
            if (nearest[x].version != clusters.version[nearest[x].name]) nearest[x] = clusters.nearest(x, false);
            const bool follows = chain.has_previous();
            const std::int64_t before = follows ? chain.previous() : -1;
            value = follows ? clusters.value(x, before) : NOWHERE;
            y = before;
            if (nearest[x].value < value) {
                value = nearest[x].value;
                y = nearest[x].name;
            }
            if (follows && y == before) break;
            chain.follow(y);
        }
        chain.drop_pair();
        if (x > y) std::swap(x, y);
        merges.push_back({x, y, std::sqrt(value)});
        clusters.merge(x, y, false);
        gone[x] = 1;
        if (clusters.left > 1) nearest[y] = clusters.nearest(y, false);
    }
    return merges;
}

// Merges by the numbers of nodes, in the order in which they happen: heights can fall.
template <class Interrupt>
std::vector<Merge> mean_merges(const double *rows, std::size_t n, std::size_t p, const double *weight, bool middle,
                               int threads, const Interrupt &interrupt) {
    MeanClusters<false> clusters(rows, n, p, weight);
    std::vector<Found> nearest(n);
    const auto last = static_cast<std::ptrdiff_t>(n) - 1;
#pragma omp parallel for schedule(dynamic, 64) num_threads(threads)
    for (std::ptrdiff_t i = 0; i < last; ++i) nearest[i] = clusters.nearest(i, true);
    clusters.bound.assign(n, 0.0);
    std::vector<double> bounds(n - 1);
    for (std::ptrdiff_t i = 0; i < last; ++i) {
        bounds[i] = nearest[i].value;
        clusters.set_bound(i, bounds[i]);
    }
    ValueHeap heap(bounds);
    std::vector<std::int64_t> node(n);
    std::iota(node.begin(), node.end(), 0);
    std::vector<Merge> merges;
    merges.reserve(n - 1);
    for (std::size_t k = 0; k + 1 < n; ++k) {
        interrupt();
        std::int64_t x;
        while (true) {
            x = static_cast<std::int64_t>(heap.top());
            if (nearest[x].version == clusters.version[nearest[x].name]) break;
            nearest[x] = clusters.nearest(x, true);
            clusters.set_bound(x, nearest[x].value);
            heap.set(x, nearest[x].value);
        }
        heap.pop();
        const std::int64_t y = nearest[x].name;
        merges.push_back({node[x], node[y], std::sqrt(nearest[x].value)});
        node[y] = static_cast<std::int64_t>(n + k);
        clusters.merge(x, y, middle);
        if (clusters.left == 1) break;
        // One pass finds the nearest after y, and those before y that y is nearest to now.
        Found best;
        clusters.near_blocks(
            y, [&](std::size_t b) { return std::max(best.value, clusters.loosest[b]); },
            [&](std::size_t b, const double *square, double) {
                for (std::size_t l = 0; l < MEANS; ++l) {
                    const std::int64_t other = clusters.name[b * MEANS + l];
                    if (other < 0 || other == y) continue;
                    const double v = square[l];
                    if (other > y) {
                        if (v < best.value || (v == best.value && other < best.name))
                            best = {v, other, clusters.version[other]};
                    } else if (v < clusters.bound[other]) {
                        clusters.bound[other] = v;
                        nearest[other] = {v, y, clusters.version[y]};
                        heap.set(other, v);
                    }
                }
            });
        if (best.name >= 0) {
            nearest[y] = best;
            clusters.set_bound(y, best.value);
            heap.set(y, best.value);
        }
    }
    return merges;
}

}  // namespace epicycle
