// Which nodes of a directed acyclic graph are d-connected to a set of sources, given a set of nodes.
#pragma once

#include <cstdint>
#include <vector>

namespace epicycle {

// Neighbours of node v are index[first[v]] ... index[first[v + 1] - 1].
struct Adjacency {
    const std::int64_t *first;
    const std::int32_t *index;

    const std::int32_t *begin(std::int32_t v) const { return index + first[v]; }
    const std::int32_t *end(std::int32_t v) const { return index + first[v + 1]; }
};

// Adds to `found` all that is reached from the nodes in `stack` along `edges`.
inline void close_under(const Adjacency &edges, std::vector<std::int32_t> &stack, std::uint8_t *found) {
    for (const std::int32_t v : stack) found[v] = 1;
    while (!stack.empty()) {
        const std::int32_t v = stack.back();
        stack.pop_back();
        for (const std::int32_t *u = edges.begin(v); u != edges.end(v); ++u) {
            if (found[*u]) continue;
            found[*u] = 1;
            stack.push_back(*u);
        }
    }
}

// A ball rolls along the edges (Shachter, 1998). It arrives at a node from a child or from a parent, each at most once:
//     from a child:   to all parents and children, unless the node is given;
//     from a parent:  to the children unless the node is given, to the parents if the node or a descendant is given.
// reached[v] becomes 1 for every node outside of `given` at which it arrives. Returns true, and stops, at a target.
inline bool roll_ball(const Adjacency &parents, const Adjacency &children, std::vector<std::int32_t> sources,
                      const std::uint8_t *given, const std::uint8_t *target, std::size_t n, std::uint8_t *reached) {
    std::vector<std::uint8_t> opens(n, 0), seen(n, 0);  // bit 1: arrived from a child, bit 2: from a parent
    std::vector<std::int32_t> stack;
    for (std::size_t v = 0; v < n; ++v) {
        if (given[v]) stack.push_back(static_cast<std::int32_t>(v));
    }
    close_under(parents, stack, opens.data());

    constexpr std::uint8_t from_child = 1, from_parent = 2;
    std::vector<std::int32_t> up = std::move(sources), down;
    for (const std::int32_t v : up) seen[v] |= from_child;
    const auto arrive = [&](const Adjacency &edges, std::int32_t v, std::uint8_t side, std::vector<std::int32_t> &to) {
        for (const std::int32_t *u = edges.begin(v); u != edges.end(v); ++u) {
            if (seen[*u] & side) continue;
            seen[*u] |= side;
            to.push_back(*u);
        }
    };
    while (!up.empty() || !down.empty()) {
        const bool rising = !up.empty();
        std::vector<std::int32_t> &from = rising ? up : down;
        const std::int32_t v = from.back();
        from.pop_back();
        if (!given[v]) {
            reached[v] = 1;
            if (target[v]) return true;
            arrive(children, v, from_parent, down);
        }
        if (rising ? !given[v] : opens[v] != 0) arrive(parents, v, from_child, up);
    }
    return false;
}

}  // namespace epicycle
