// Hierarchical clustering over a condensed matrix of distances, which is overwritten.
//
// The chain of nearest neighbours (Benzecri 1982, Juan 1982) for linkages in which a merge brings no two clusters
// closer; a heap of nearest neighbours (Anderberg 1973, Müllner 2011) for the others. Of equal distances the one to the
// cluster of the smallest number is taken, and the partner before in the chain is kept, so that the tree is SciPy's.
#pragma once

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "cluster/merges.hpp"
#include "core/simd.hpp"

namespace epicycle {

constexpr double FAR = std::numeric_limits<double>::infinity();
// A cluster without a nearest one: its distances have become infinite or NaN.
constexpr const char *LOST = "distances: those of clusters overflow; scale them down";

// The distance of the union of x and y to another cluster i, from the three distances and sizes before.
struct CompleteLinkage {
    double operator()(double xi, double yi, double, double, double, double) const { return xi > yi ? xi : yi; }
};
struct AverageLinkage {
    double operator()(double xi, double yi, double, double x, double y, double) const {
        return (x * xi + y * yi) / (x + y);
    }
};
struct WeightedLinkage {
    double operator()(double xi, double yi, double, double, double, double) const { return 0.5 * (xi + yi); }
};
struct WardLinkage {
    double operator()(double xi, double yi, double xy, double x, double y, double i) const {
        const double t = 1.0 / (x + y + i);
        const double square = (i + x) * t * xi * xi + (i + y) * t * yi * yi - i * t * xy * xy;
        return std::sqrt(square > 0.0 ? square : 0.0);
    }
};
struct CentroidLinkage {
    double operator()(double xi, double yi, double xy, double x, double y, double) const {
        const double square = (((x * xi * xi) + (y * yi * yi)) - (x * y * xy * xy) / (x + y)) / (x + y);
        return std::sqrt(square > 0.0 ? square : 0.0);
    }
};
struct MedianLinkage {
    double operator()(double xi, double yi, double xy, double, double, double) const {
        const double square = 0.5 * (xi * xi + yi * yi) - 0.25 * xy * xy;
        return std::sqrt(square > 0.0 ? square : 0.0);
    }
};

// The least of v[i] + far[i]; far is 0, or infinite where there is no cluster any more.
EPICYCLE_CLONES inline double least_sum(const double *v, const double *far, std::size_t n) {
    constexpr std::size_t L = 16;
    double m[L];
    for (std::size_t l = 0; l < L; ++l) m[l] = FAR;
    std::size_t i = 0;
    for (; i + L <= n; i += L)
        for (std::size_t l = 0; l < L; ++l) {
            const double s = v[i + l] + far[i + l];
            m[l] = s < m[l] ? s : m[l];
        }
    for (; i < n; ++i) {
        const double s = v[i] + far[i];
        m[0] = s < m[0] ? s : m[0];
    }
    for (std::size_t l = 1; l < L; ++l) m[0] = m[l] < m[0] ? m[l] : m[0];
    return m[0];
}

// x and y become one: new distances of i to the union, side by side in memory.
template <class Linkage>
inline void update_rows(const Linkage &linkage, const double *xi, double *yi, double xy, double x, double y,
                        const double *size, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) yi[i] = linkage(xi[i], yi[i], xy, x, y, size[i]);
}

// Ward's distances of rows with weights: sqrt(2 v w / (v + w)) times those of rows with weight one.
inline void weigh_ward(double *d, std::size_t n, const double *weight) {
    for (std::size_t i = 0; i + 1 < n; ++i)
        for (std::size_t j = i + 1; j < n; ++j)
            *d++ *= std::sqrt(2.0 * weight[i] * weight[j] / (weight[i] + weight[j]));
}

struct CondensedMatrix {
    double *d;
    std::size_t n;

    // d[row(i) + j] is the distance of i and j > i.
    std::ptrdiff_t row(std::size_t i) const {
        return static_cast<std::ptrdiff_t>(i * (2 * n - i - 1) / 2) - static_cast<std::ptrdiff_t>(i) - 1;
    }
    double &at(std::size_t i, std::size_t j) const { return i < j ? d[row(i) + j] : d[row(j) + i]; }
};

struct NearestCluster {
    double distance;
    std::size_t cluster;
};

// Distances, sizes and names of the clusters that are left, in the order of their names.
struct MatrixClusters {
    CondensedMatrix D;
    std::vector<double> size, far;
    std::vector<std::int64_t> name;
    std::size_t left;
    static constexpr std::size_t AHEAD = 16;  // rows of which a column is fetched before it is needed

    MatrixClusters(double *d, std::size_t n, const double *weight)
        : D{d, n}, size(n, 1.0), far(n, 0.0), name(n), left(n) {
        if (weight != nullptr) std::copy(weight, weight + n, size.begin());
        std::iota(name.begin(), name.end(), 0);
    }
    bool alive(std::size_t i) const { return far[i] == 0.0; }
    // How far row i + AHEAD begins behind row i, which is `step` elements before the next; each is shorter by one.
    static std::ptrdiff_t ahead(std::ptrdiff_t step) {
        constexpr auto A = static_cast<std::ptrdiff_t>(AHEAD);
        return A * step - A * (A - 1) / 2;
    }

    // The nearest of x; of equals the first.
    NearestCluster nearest(std::size_t x) const {
        const std::size_t n = D.n;
        NearestCluster found{FAR, n};
        std::ptrdiff_t at = D.row(0) + static_cast<std::ptrdiff_t>(x), step = n - 2;
        for (std::size_t i = 0; i < x; ++i) {
            if (i + AHEAD < x && alive(i + AHEAD)) __builtin_prefetch(D.d + at + ahead(step));
            if (alive(i) && D.d[at] < found.distance) found = {D.d[at], i};
            at += step--;
        }
        row_nearest(x, found.distance, found.cluster);
        return found;
    }
    // The nearest of all, in one pass over the matrix.
    std::vector<NearestCluster> all_nearest() const {
        std::vector<NearestCluster> found(D.n, {FAR, D.n});
        const double *d = D.d;
        for (std::size_t i = 0; i + 1 < D.n; ++i) {
            row_nearest(i, found[i].distance, found[i].cluster);
            for (std::size_t j = i + 1; j < D.n; ++j, ++d)
                if (*d < found[j].distance) found[j] = {*d, i};
        }
        return found;
    }
    // The nearest among clusters after x, if it is nearer than `best`; otherwise y stays.
    void row_nearest(std::size_t x, double &best, std::size_t &y) const {
        const double *row = D.d + D.row(x) + x + 1, *gone = far.data() + x + 1;
        const double least = least_sum(row, gone, D.n - x - 1);
        if (!(least < best)) return;
        std::size_t i = 0;
        while (row[i] + gone[i] != least) ++i;
        best = least;
        y = x + 1 + i;
    }
    // x < y become y. visit(i, distance) sees every distance to the union, in the order of i.
    template <class Linkage, class Visit>
    void merge(const Linkage &linkage, std::size_t x, std::size_t y, double height, const Visit &visit) {
        const std::size_t n = D.n;
        const double nx = size[x], ny = size[y];
        far[x] = FAR;
        std::ptrdiff_t at = D.row(0), step = n - 2;
        for (std::size_t i = 0; i < y; ++i) {
            const std::ptrdiff_t row = at;
            if (i + AHEAD < y && alive(i + AHEAD)) {
                const double *next = D.d + row + ahead(step);
                __builtin_prefetch(next + y, 1);
                if (i + AHEAD < x) __builtin_prefetch(next + x);
            }
            at += step--;
            if (i == x || !alive(i)) continue;
            const double xi = i < x ? D.d[row + x] : D.d[D.row(x) + i];
            const double distance = linkage(xi, D.d[row + y], height, nx, ny, size[i]);
            D.d[row + y] = distance;
            visit(i, distance);
        }
        double *to = D.d + D.row(y);
        update_rows(linkage, D.d + D.row(x) + y + 1, to + y + 1, height, nx, ny, size.data() + y + 1, n - y - 1);
        for (std::size_t i = y + 1; i < n; ++i)
            if (alive(i)) visit(i, to[i]);
        size[y] = nx + ny;
        --left;
    }
    // Moves what is left to the front; returns the new places, valid for clusters that are left.
    std::vector<std::size_t> compact() {
        const CondensedMatrix before = D;
        std::vector<std::size_t> kept, place(before.n, before.n);
        for (std::size_t i = 0; i < before.n; ++i)
            if (alive(i)) {
                place[i] = kept.size();
                size[kept.size()] = size[i];
                name[kept.size()] = name[i];
                kept.push_back(i);
            }
        D.n = kept.size();
        double *to = D.d;  // never behind what is read
        for (std::size_t a = 0; a < kept.size(); ++a) {
            const double *from = before.d + before.row(kept[a]);
            for (std::size_t b = a + 1; b < kept.size(); ++b) *to++ = from[kept[b]];
        }
        far.assign(D.n, 0.0);
        return place;
    }
};

// No merge of two others brings a cluster nearer than its nearest: that is kept, and sought again when it has merged.
template <class Linkage, class Interrupt>
std::vector<Merge> chain_merges(double *d, std::size_t n, const double *weight, const Linkage &linkage,
                                const Interrupt &interrupt) {
    MatrixClusters clusters(d, n, weight);
    std::vector<NearestCluster> nearest = clusters.all_nearest();
    std::vector<Merge> merges;
    merges.reserve(n - 1);
    NeighborChain<std::size_t> chain(n);
    std::size_t first = 0;
    constexpr NearestCluster UNKNOWN{-1.0, 0};
    while (clusters.left > 1) {
        interrupt();
        if (chain.empty()) {
            while (!clusters.alive(first)) ++first;
            chain.append(first);
        }
        std::size_t x, y;
        double height;
        while (true) {
            x = chain.last();
            if (nearest[x].distance == UNKNOWN.distance) nearest[x] = clusters.nearest(x);
            height = nearest[x].distance;
            y = nearest[x].cluster;
            if (chain.has_previous()) {
                const std::size_t before = chain.previous();
                const double back = clusters.D.at(x, before);
                if (!(height < back)) {
                    height = back;
                    y = before;
                }
                if (y == before) break;
            }
            if (y >= clusters.D.n) throw std::domain_error(LOST);
            chain.follow(y);
        }
        chain.drop_pair();
        if (x > y) std::swap(x, y);
        merges.push_back({clusters.name[x], clusters.name[y], height});
        NearestCluster own{FAR, clusters.D.n};
        clusters.merge(linkage, x, y, height, [&](std::size_t i, double distance) {
            if (distance < own.distance) own = {distance, i};
            NearestCluster &other = nearest[i];
            if (distance < other.distance || (distance == other.distance && y < other.cluster))
                other = {distance, y};
            else if (other.cluster == x || other.cluster == y)
                other = UNKNOWN;
        });
        nearest[y] = own;
        if (2 * clusters.left < clusters.D.n && clusters.left > 32) {
            const std::vector<std::size_t> place = clusters.compact();
            for (std::size_t i = 0; i < place.size(); ++i)
                if (place[i] < place.size()) {
                    const NearestCluster old = nearest[i];
                    nearest[place[i]] = old.distance < 0.0 ? UNKNOWN : NearestCluster{old.distance, place[old.cluster]};
                }
            chain.rename(place);
            first = 0;
        }
    }
    return merges;
}

// A minimum spanning tree by Prim's algorithm, with the edges of prim_merges.
template <class Interrupt>
std::vector<Merge> tree_merges(const double *d, std::size_t n, const Interrupt &interrupt) {
    const CondensedMatrix D{const_cast<double *>(d), n};
    std::vector<double> least(n, FAR);
    std::vector<char> added(n, 0);
    std::vector<Merge> merges;
    merges.reserve(n - 1);
    for (std::size_t x = 0, y = 0; merges.size() + 1 < n; x = y) {
        interrupt();
        double height = FAR;
        added[x] = 1;
        for (std::size_t i = 0; i < n; ++i) {
            if (added[i]) continue;
            least[i] = std::min(least[i], D.at(x, i));
            if (least[i] < height) {
                height = least[i];
                y = i;
            }
        }
        merges.push_back({static_cast<std::int64_t>(x), static_cast<std::int64_t>(y), height});
    }
    return merges;
}

// Merges by the numbers of nodes, in the order in which they happen: heights can fall (centroid, median).
template <class Linkage, class Interrupt>
std::vector<Merge> heap_merges(double *d, std::size_t n, const double *weight, const Linkage &linkage,
                               const Interrupt &interrupt) {
    MatrixClusters clusters(d, n, weight);
    std::vector<Merge> merges;
    merges.reserve(n - 1);
    std::vector<std::size_t> neighbor(n, n);
    std::vector<double> bound(n - 1, FAR);  // below the distances to all clusters after this one
    for (std::size_t x = 0; x + 1 < n; ++x) clusters.row_nearest(x, bound[x], neighbor[x]);
    ValueHeap heap(bound);
    for (std::size_t k = 0; k + 1 < n; ++k) {
        interrupt();
        std::size_t x, y;
        double height;
        while (true) {
            x = heap.top();
            height = heap.least();
            y = neighbor[x];
            if (!(height < FAR)) throw std::domain_error(LOST);
            if (height == clusters.D.at(x, y)) break;
            height = FAR;
            clusters.row_nearest(x, height, y);
            neighbor[x] = y;
            bound[x] = height;
            heap.set(x, height);
        }
        heap.pop();
        merges.push_back({clusters.name[x], clusters.name[y], height});
        clusters.merge(linkage, x, y, height, [](std::size_t, double) {});
        clusters.name[y] = static_cast<std::int64_t>(n + k);
        for (std::size_t z = 0; z < y; ++z) {
            if (!clusters.alive(z)) continue;
            if (z < x && neighbor[z] == x) neighbor[z] = y;
            const double distance = clusters.D.at(z, y);
            if (distance < bound[z]) {
                neighbor[z] = y;
                bound[z] = distance;
                heap.set(z, distance);
            }
        }
        if (y + 1 < n) {
            double nearest = FAR;
            std::size_t z = n;
            clusters.row_nearest(y, nearest, z);
            if (z < n) {
                neighbor[y] = z;
                bound[y] = nearest;
                heap.set(y, nearest);
            }
        }
    }
    return merges;
}

}  // namespace epicycle
