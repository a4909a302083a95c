// Merges of a hierarchical clustering: sorted by height, numbered as nodes of a tree, cut.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

namespace epicycle {

// Clusters x and y, named by one of their rows or by the number of a node, and the height at which they merge.
struct Merge {
    std::int64_t x, y;
    double height;
};

// The chain of nearest neighbours: every cluster is the nearest of the one before it.
template <class Name>
struct NeighborChain {
    std::vector<Name> clusters;
    std::vector<char> member;

    explicit NeighborChain(std::size_t n) : member(n, 0) {}
    bool empty() const { return clusters.empty(); }
    Name last() const { return clusters.back(); }
    bool has_previous() const { return clusters.size() > 1; }
    Name previous() const { return clusters[clusters.size() - 2]; }
    void append(Name x) {
        clusters.push_back(x);
        member[x] = 1;
    }
    // Goes on with the nearest of the last cluster. Where that is in the chain already, rounding has brought the union
    // of two clusters nearer than both were: a chain that begins anew with the last cluster has falling distances of
    // today only, and cannot come back.
    void follow(Name nearest) {
        if (member[nearest]) {
            const Name x = last();
            for (const Name i : clusters) member[i] = 0;
            clusters.clear();
            append(x);
        }
        append(nearest);
    }
    void rename(const std::vector<Name> &name) {
        std::fill(member.begin(), member.end(), 0);
        for (Name &i : clusters) member[i = name[i]] = 1;
    }
    void drop_pair() {
        for (int k = 0; k < 2; ++k) {
            member[last()] = 0;
            clusters.pop_back();
        }
    }
};

// A binary heap of keys 0..n-1 with values that change; the least value is on top.
struct ValueHeap {
    std::vector<double> value;            // by place
    std::vector<std::size_t> key, place;  // key by place, place by key
    std::size_t size;

    explicit ValueHeap(const std::vector<double> &values)
        : value(values), key(values.size()), place(values.size()), size(values.size()) {
        std::iota(key.begin(), key.end(), 0);
        std::iota(place.begin(), place.end(), 0);
        for (std::size_t i = size / 2; i-- > 0;) down(i);
    }
    std::size_t top() const { return key[0]; }
    double least() const { return value[0]; }
    void pop() {
        exchange(0, --size);
        down(0);
    }
    void set(std::size_t k, double v) {
        const std::size_t i = place[k];
        const bool lower = v < value[i];
        value[i] = v;
        if (lower)
            up(i);
        else
            down(i);
    }

private:
    void exchange(std::size_t i, std::size_t j) {
        std::swap(value[i], value[j]);
        std::swap(key[i], key[j]);
        place[key[i]] = i;
        place[key[j]] = j;
    }
    void up(std::size_t i) {
        for (std::size_t parent; i > 0 && value[parent = (i - 1) / 2] > value[i]; i = parent) exchange(i, parent);
    }
    void down(std::size_t i) {
        for (std::size_t child; (child = 2 * i + 1) < size; i = child) {
            if (child + 1 < size && value[child + 1] < value[child]) ++child;
            if (!(value[i] > value[child])) break;
            exchange(i, child);
        }
    }
};

// Sets of rows that are joined one by one; the root of a set is the number of the node that made it.
struct DisjointNodes {
    std::vector<std::int64_t> parent, count;
    std::int64_t next;

    explicit DisjointNodes(std::size_t n) : parent(2 * n, -1), count(2 * n, 1), next(static_cast<std::int64_t>(n)) {}
    std::int64_t find(std::int64_t x) {
        std::int64_t root = x;
        while (parent[root] >= 0) root = parent[root];
        while (parent[x] >= 0) {
            const std::int64_t up = parent[x];
            parent[x] = root;
            x = up;
        }
        return root;
    }
    std::int64_t join(std::int64_t x, std::int64_t y) {
        parent[x] = parent[y] = next;
        return count[next++] = count[x] + count[y];
    }
};

// Rows of the linkage matrix from merges of rows, sorted by height; merges of equal height keep their order.
inline void linkage_from_merges(std::vector<Merge> &merges, std::size_t n, double *Z) {
    std::stable_sort(merges.begin(), merges.end(), [](const Merge &a, const Merge &b) { return a.height < b.height; });
    DisjointNodes nodes(n);
    for (const Merge &merge : merges) {
        const std::int64_t a = nodes.find(merge.x), b = nodes.find(merge.y);
        Z[0] = static_cast<double>(std::min(a, b));
        Z[1] = static_cast<double>(std::max(a, b));
        Z[2] = merge.height;
        Z[3] = static_cast<double>(nodes.join(a, b));
        Z += 4;
    }
}

// Merges whose x and y are numbers of nodes already.
inline void linkage_from_nodes(const std::vector<Merge> &merges, std::size_t n, double *Z) {
    std::vector<double> count(n + merges.size(), 1.0);
    for (std::size_t k = 0; k < merges.size(); ++k) {
        const Merge &merge = merges[k];
        Z[4 * k] = static_cast<double>(std::min(merge.x, merge.y));
        Z[4 * k + 1] = static_cast<double>(std::max(merge.x, merge.y));
        Z[4 * k + 2] = merge.height;
        Z[4 * k + 3] = count[n + k] = count[merge.x] + count[merge.y];
    }
}

}  // namespace epicycle
