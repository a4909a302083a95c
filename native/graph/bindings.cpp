// Bindings of the kernels of graphs.
#include "core/binding.hpp"
#include "graph/d_separation.hpp"

namespace epicycle {

namespace {

using Ends = Vector<std::int64_t>;
using Indices = Vector<std::int32_t>;
using Mask = Vector<std::uint8_t>;

Adjacency adjacency(const Ends &first, const Indices &index, const char *expected) {
    require(first.shape(0) >= 1, expected);
    const std::size_t n = first.shape(0) - 1;
    bool rising = first.data()[0] == 0 && static_cast<std::size_t>(first.data()[n]) == index.shape(0);
    for (std::size_t v = 0; v < n; ++v) rising = rising && first.data()[v] <= first.data()[v + 1];
    require(rising && all_below(index, n), expected);
    return {first.data(), index.data()};
}

}  // namespace

void bind_graph(nb::module_ &m) {
    m.def(
        "d_connected",
        [](Ends parent_first, Indices parent, Ends child_first, Indices child, Indices sources, Mask given, Mask target,
           InOut1<std::uint8_t> reached) {
            constexpr const char *expected =
                "d_connected: expected parents and children as lists of n nodes (n + 1 places, rising from 0), sources "
                "among the nodes, given, target and reached (n,)";
            const Adjacency up = adjacency(parent_first, parent, expected);
            const Adjacency down = adjacency(child_first, child, expected);
            const std::size_t n = parent_first.shape(0) - 1;
            require(child_first.shape(0) == n + 1 && given.shape(0) == n && target.shape(0) == n &&
                        reached.shape(0) == n && all_below(sources, n),
                    expected);
            const std::vector<std::int32_t> start(sources.data(), sources.data() + sources.shape(0));
            nb::gil_scoped_release nogil;
            return roll_ball(up, down, start, given.data(), target.data(), n, reached.data());
        },
        "parent_first"_a, "parent"_a, "child_first"_a, "child"_a, "sources"_a, "given"_a, "target"_a,
        "reached"_a.noconvert());
    m.def(
        "reachable",
        [](Ends first, Indices index, Indices sources, InOut1<std::uint8_t> found) {
            constexpr const char *expected = "reachable: expected lists of n nodes (n + 1 places, rising from 0), "
                                             "sources among the nodes, found (n,)";
            const Adjacency edges = adjacency(first, index, expected);
            require(found.shape(0) == first.shape(0) - 1 && all_below(sources, found.shape(0)), expected);
            std::vector<std::int32_t> stack(sources.data(), sources.data() + sources.shape(0));
            nb::gil_scoped_release nogil;
            close_under(edges, stack, found.data());
        },
        "first"_a, "index"_a, "sources"_a, "found"_a.noconvert());
}

}  // namespace epicycle
