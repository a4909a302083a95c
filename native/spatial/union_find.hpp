// Disjoint sets.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace epicycle {

// The root of a set is its least element.
class UnionFind {
public:
    explicit UnionFind(std::size_t n) : parent(n) { std::iota(parent.begin(), parent.end(), std::size_t{0}); }
    std::size_t find(std::size_t i) {
        while (parent[i] != i) i = parent[i] = parent[parent[i]];
        return i;
    }
    bool unite(std::size_t a, std::size_t b) {
        a = find(a);
        b = find(b);
        if (a == b) return false;
        parent[std::max(a, b)] = std::min(a, b);
        return true;
    }

private:
    std::vector<std::size_t> parent;
};

}  // namespace epicycle
