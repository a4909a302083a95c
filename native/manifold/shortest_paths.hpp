// Lengths of shortest paths in an undirected graph, from many sources, by Dijkstra's algorithm.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace epicycle::paths {

// Edges of node v are first[v] ... first[v + 1] - 1, each in the lists of both of its ends.
struct Edges {
    std::vector<std::int64_t> first;
    std::vector<std::int32_t> end;
    std::vector<double> length;
    std::size_t nodes() const { return first.size() - 1; }
};

// Of edges to the same node the shortest is left, by the number of the node; many are given from both ends.
inline Edges without_copies(const Edges &given) {
    Edges edges;
    edges.first.assign(given.first.size(), 0);
    edges.end.reserve(given.end.size());
    edges.length.reserve(given.end.size());
    std::vector<std::pair<std::int32_t, double>> list;
    for (std::size_t v = 0; v + 1 < given.first.size(); ++v) {
        list.clear();
        for (auto e = static_cast<std::size_t>(given.first[v]); e < static_cast<std::size_t>(given.first[v + 1]); ++e)
            list.emplace_back(given.end[e], given.length[e]);
        std::sort(list.begin(), list.end());
        for (std::size_t i = 0; i < list.size(); ++i) {
            if (i > 0 && list[i].first == list[i - 1].first) continue;
            edges.end.push_back(list[i].first);
            edges.length.push_back(list[i].second);
        }
        edges.first[v + 1] = static_cast<std::int64_t>(edges.end.size());
    }
    return edges;
}

// An edge that is given from either end, or from both with different lengths, can be walked both ways.
inline Edges undirected(const std::int64_t *start, const std::int32_t *index, const double *length, std::size_t n) {
    Edges edges;
    edges.first.assign(n + 1, 0);
    for (std::size_t v = 0; v < n; ++v) {
        edges.first[v + 1] += start[v + 1] - start[v];
        for (std::int64_t e = start[v]; e < start[v + 1]; ++e) ++edges.first[static_cast<std::size_t>(index[e]) + 1];
    }
    for (std::size_t v = 0; v < n; ++v) edges.first[v + 1] += edges.first[v];
    edges.end.resize(static_cast<std::size_t>(edges.first[n]));
    edges.length.resize(edges.end.size());
    std::vector<std::int64_t> place(edges.first.begin(), edges.first.end() - 1);
    const auto put = [&](std::size_t from, std::size_t to, double l) {
        const auto at = static_cast<std::size_t>(place[from]++);
        edges.end[at] = static_cast<std::int32_t>(to);
        edges.length[at] = l;
    };
    for (std::size_t v = 0; v < n; ++v)
        for (std::int64_t e = start[v]; e < start[v + 1]; ++e) {
            const auto u = static_cast<std::size_t>(index[e]);
            put(v, u, length[e]);
            put(u, v, length[e]);
        }
    return without_copies(edges);
}

// Nodes by distance: a heap in which every node has four children, and knows its place.
class Heap {
    struct Entry {
        double distance;
        std::int32_t node;
    };
    std::vector<Entry> heap;
    std::vector<std::int32_t> place;  // -1: not yet in it
    std::size_t size = 0;

    void set(std::size_t at, Entry entry) {
        heap[at] = entry;
        place[static_cast<std::size_t>(entry.node)] = static_cast<std::int32_t>(at);
    }

public:
    explicit Heap(std::size_t n) : heap(n), place(n, -1) {}

    void clear() {
        std::fill(place.begin(), place.end(), -1);
        size = 0;
    }
    bool empty() const { return size == 0; }

    // The node is at this distance, which is less than before where it is in the heap.
    void put(std::int32_t node, double distance) {
        const std::int32_t known = place[static_cast<std::size_t>(node)];
        std::size_t at = known < 0 ? size++ : static_cast<std::size_t>(known);
        while (at > 0) {
            const std::size_t parent = (at - 1) / 4;
            if (heap[parent].distance <= distance) break;
            set(at, heap[parent]);
            at = parent;
        }
        set(at, {distance, node});
    }

    std::int32_t take() {
        const std::int32_t nearest = heap[0].node;
        const Entry last = heap[--size];
        if (size == 0) return nearest;
        std::size_t at = 0;
        for (;;) {
            const std::size_t child = 4 * at + 1;
            if (child >= size) break;
            std::size_t least = child;
            const std::size_t end = std::min(child + 4, size);
            for (std::size_t c = child + 1; c < end; ++c)
                if (heap[c].distance < heap[least].distance) least = c;
            if (heap[least].distance >= last.distance) break;
            set(at, heap[least]);
            at = least;
        }
        set(at, last);
        return nearest;
    }
};

// Distances from a source with a heap. Lengths are not negative, so that a node that was taken is never put back.
inline void by_heap(const Edges &edges, std::size_t source, Heap &heap, double *distance) {
    heap.clear();
    distance[source] = 0.0;
    heap.put(static_cast<std::int32_t>(source), 0.0);
    while (!heap.empty()) {
        const auto v = static_cast<std::size_t>(heap.take());
        const double here = distance[v];
        for (auto e = static_cast<std::size_t>(edges.first[v]); e < static_cast<std::size_t>(edges.first[v + 1]); ++e) {
            const auto u = static_cast<std::size_t>(edges.end[e]);
            const double through = here + edges.length[e];
            if (through < distance[u]) {
                distance[u] = through;
                heap.put(edges.end[e], through);
            }
        }
    }
}

// Nodes in buckets of a width of about one edge, in a ring that is long enough for the longest edge. Within a bucket
// the order is that of arrival: a node whose distance falls after it was looked at comes once more (delta stepping,
// Meyer and Sanders). The distances solve d(u) = min_v d(v) + l(v, u), which has one solution: they are those of the
// heap.
class Buckets {
    std::vector<std::vector<std::int32_t>> ring;
    std::vector<double> seen;  // the distance at which the edges of a node were last followed
    double per_width;

public:
    static constexpr double MOST = 4096;  // widths in the longest edge, beyond which a heap is used

    Buckets(std::size_t n, double width, double longest)
        : ring(static_cast<std::size_t>(longest / width) + 3), seen(n), per_width(1.0 / width) {}

    void from(const Edges &edges, std::size_t source, double *distance) {
        std::fill(seen.begin(), seen.end(), -1.0);
        distance[source] = 0.0;
        ring[0].push_back(static_cast<std::int32_t>(source));
        std::size_t waiting = 1;
        for (std::size_t at = 0; waiting > 0; at = at + 1 == ring.size() ? 0 : at + 1) {
            auto &bucket = ring[at];
            for (std::size_t next = 0; next < bucket.size(); ++next) {  // grows on the way
                const auto v = static_cast<std::size_t>(bucket[next]);
                const double here = distance[v];
                if (here == seen[v]) continue;
                seen[v] = here;
                for (auto e = static_cast<std::size_t>(edges.first[v]);
                     e < static_cast<std::size_t>(edges.first[v + 1]); ++e) {
                    const auto u = static_cast<std::size_t>(edges.end[e]);
                    const double through = here + edges.length[e];
                    if (through < distance[u]) {
                        distance[u] = through;
                        ring[static_cast<std::size_t>(through * per_width) % ring.size()].push_back(edges.end[e]);
                        ++waiting;
                    }
                }
            }
            waiting -= bucket.size();
            bucket.clear();
        }
    }
};

// Row i of `distance` holds the distances from source i, infinity where no path leads; it is written by one thread.
template <class Interrupt>
void from_sources(const Edges &edges, const std::int64_t *source, std::size_t n_sources, int threads,
                  const Interrupt &interrupt, double *distance) {
    const std::size_t n = edges.nodes();
    const auto team = static_cast<std::size_t>(threads);
    double sum = 0.0, longest = 0.0;
    for (const double l : edges.length) {
        sum += l;
        longest = std::max(longest, l);
    }
    const double width = edges.length.empty() ? 0.0 : sum / static_cast<double>(edges.length.size());
    const bool even = width >= std::numeric_limits<double>::min() && longest <= Buckets::MOST * width &&
                      sum <= std::numeric_limits<double>::max() && width * static_cast<double>(n) < 1e300;
    std::vector<Buckets> buckets(even ? team : 0, Buckets(n, even ? width : 1.0, even ? longest : 1.0));
    std::vector<Heap> heaps(even ? 0 : team, Heap(n));
    const std::size_t piece = 16 * team;  // sources between two looks for Ctrl-C
    for (std::size_t from = 0; from < n_sources; from += piece) {
        const std::size_t to = std::min(from + piece, n_sources);
#pragma omp parallel for schedule(static, 1) num_threads(threads) if (threads > 1)
        for (std::int64_t t = 0; t < static_cast<std::int64_t>(team); ++t)
            for (std::size_t i = from + static_cast<std::size_t>(t); i < to; i += team) {
                double *row = distance + i * n;
                std::fill_n(row, n, std::numeric_limits<double>::infinity());
                if (even)
                    buckets[static_cast<std::size_t>(t)].from(edges, static_cast<std::size_t>(source[i]), row);
                else
                    by_heap(edges, static_cast<std::size_t>(source[i]), heaps[static_cast<std::size_t>(t)], row);
            }
        interrupt();
    }
}

// Both directions of a pair get the lesser of the two sums, which differ by rounding.
inline void make_symmetric(double *D, std::size_t n) {
    constexpr std::size_t TILE = 64;
    for (std::size_t I = 0; I < n; I += TILE)
        for (std::size_t J = 0; J <= I; J += TILE)
            for (std::size_t i = I; i < std::min(I + TILE, n); ++i)
                for (std::size_t j = J; j < std::min(J + TILE, i); ++j) {
                    double &a = D[i * n + j], &b = D[j * n + i];
                    a = b = std::min(a, b);
                }
}

}  // namespace epicycle::paths
