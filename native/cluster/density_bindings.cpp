// Bindings of density clustering over a kd-tree.
#include "cluster/dbscan.hpp"
#include "cluster/hdbscan.hpp"
#include "cluster/optics.hpp"
#include "core/binding.hpp"
#include "spatial/with_norm.hpp"

namespace epicycle {
namespace {

// Edges as (from, to, distance).
auto edges_out(const std::vector<TreeEdge> &edges) {
    std::vector<std::int64_t> from, to;
    std::vector<double> distance;
    for (const auto &edge : edges) {
        from.push_back(static_cast<std::int64_t>(edge.a));
        to.push_back(static_cast<std::int64_t>(edge.b));
        distance.push_back(edge.distance);
    }
    return std::make_tuple(array_out(std::move(from)), array_out(std::move(to)), array_out(std::move(distance)));
}

// A dendrogram that kernels can walk without looking: children before their parents.
Linkage checked_linkage(const Vector<std::int64_t> &left, const Vector<std::int64_t> &right,
                        const Vector<double> &value, const Vector<std::int64_t> &size) {
    constexpr const char *expected = "expected a dendrogram: left, right, value and size (n - 1,), children first";
    const std::size_t merges = left.shape(0);
    require(merges > 0 && right.shape(0) == merges && value.shape(0) == merges && size.shape(0) == merges, expected);
    for (std::size_t k = 0; k < merges; ++k)
        for (const std::int64_t child : {left.data()[k], right.data()[k]})
            require(child >= 0 && child < static_cast<std::int64_t>(merges + 1 + k), expected);
    return {left.data(), right.data(), value.data(), size.data(), merges};
}

void bind_hierarchy(nb::module_ &m) {
    m.def(
        "core_distances",
        [](RowMajor<double> X, int metric, double power, std::size_t k, int threads) {
            constexpr const char *expected =
                "core_distances: expected X (n, p) with 0 < k <= n, a metric from 0 to 3, power >= 1";
            const std::size_t n = X.shape(0), p = X.shape(1);
            require(n > 0 && p > 0 && k > 0 && k <= n, expected);
            const int size = team(threads);
            std::vector<double> out(n);
            with_norm(metric, power, expected, [&](auto norm) {
                nb::gil_scoped_release nogil;
                const KdTree tree(X.data(), n, p);
                for (const auto &[i, distance] : kth_distances(tree, norm, k, size, Interrupts{})) out[i] = distance;
            });
            return array_out(std::move(out));
        },
        "X"_a.noconvert(), "metric"_a, "power"_a, "k"_a, "threads"_a,
        "Distance of every row from its k-th nearest, itself included.");
    m.def(
        "reachability_tree",
        [](RowMajor<double> X, int metric, double power, Vector<double> core, double alpha, int threads) {
            constexpr const char *expected =
                "reachability_tree: expected X (n, p) with n, p > 0, a metric from 0 to 3, power >= 1, core (n,), "
                "alpha > 0";
            const std::size_t n = X.shape(0), p = X.shape(1);
            require(n > 0 && p > 0 && core.shape(0) == n && alpha > 0.0, expected);
            const int size = team(threads);
            std::vector<TreeEdge> edges;
            with_norm(metric, power, expected, [&](auto norm) {
                nb::gil_scoped_release nogil;
                const KdTree tree(X.data(), n, p);
                std::vector<double> ordered(n);
                for (std::size_t i = 0; i < n; ++i) ordered[i] = core.data()[tree.row[i]];
                edges = in_order_of_prim(Boruvka(tree, norm, std::move(ordered), alpha)(size, Interrupts{}));
            });
            return edges_out(edges);
        },
        "X"_a.noconvert(), "metric"_a, "power"_a, "core"_a.noconvert(), "alpha"_a, "threads"_a,
        "Minimum spanning tree of mutual reachability distances, in the order of Prim from row 0.");
    m.def(
        "reachability_prim",
        [](RowMajor<double> columns, int metric, double power, Vector<double> core, double alpha) {
            constexpr const char *expected =
                "reachability_prim: expected columns (p, n) with n > 0, a metric from 0 to 3, power >= 1, core (n,), "
                "alpha > 0";
            const std::size_t p = columns.shape(0), n = columns.shape(1);
            require(n > 0 && core.shape(0) == n && alpha > 0.0, expected);
            std::vector<TreeEdge> edges;
            with_norm(metric, power, expected, [&](auto norm) {
                nb::gil_scoped_release nogil;
                edges = prim(columns.data(), n, p, norm, core.data(), alpha, Interrupts{});
            });
            return edges_out(edges);
        },
        "columns"_a.noconvert(), "metric"_a, "power"_a, "core"_a.noconvert(), "alpha"_a,
        "The same from all distances.");
    m.def(
        "merge_edges",
        [](Vector<std::int64_t> a, Vector<std::int64_t> b) {
            const std::size_t merges = a.shape(0);
            require(merges > 0 && b.shape(0) == merges && all_below(a, merges + 1) && all_below(b, merges + 1),
                    "merge_edges: expected a and b (n - 1,), rows below n");
            std::vector<std::int64_t> left(merges), right(merges), size(merges);
            single_linkage(a.data(), b.data(), merges, left.data(), right.data(), size.data());
            return std::make_tuple(array_out(std::move(left)), array_out(std::move(right)), array_out(std::move(size)));
        },
        "a"_a.noconvert(), "b"_a.noconvert(), "Single linkage of the edges of a tree, the shortest first.");
    m.def(
        "condense",
        [](Vector<std::int64_t> left, Vector<std::int64_t> right, Vector<double> value, Vector<std::int64_t> size,
           std::int64_t least_size) {
            CondensedTree found = condense(checked_linkage(left, right, value, size), least_size);
            return std::make_tuple(array_out(std::move(found.parent)), array_out(std::move(found.child)),
                                   array_out(std::move(found.value)), array_out(std::move(found.size)));
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "value"_a.noconvert(), "size"_a.noconvert(), "least_size"_a);
    m.def(
        "labels_at_cut",
        [](Vector<std::int64_t> left, Vector<std::int64_t> right, Vector<double> value, Vector<std::int64_t> size,
           double cut, std::int64_t least_size) {
            return array_out(labels_at_cut(checked_linkage(left, right, value, size), cut, least_size));
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "value"_a.noconvert(), "size"_a.noconvert(), "cut"_a,
        "least_size"_a);
    m.def(
        "cophenetic",
        [](Vector<std::int64_t> left, Vector<std::int64_t> right, Vector<double> value, Vector<std::int64_t> size,
           std::int64_t row) {
            const Linkage tree = checked_linkage(left, right, value, size);
            require(row >= 0 && row < tree.rows(), "cophenetic: expected a row");
            return array_out(cophenetic(tree, row));
        },
        "left"_a.noconvert(), "right"_a.noconvert(), "value"_a.noconvert(), "size"_a.noconvert(), "row"_a,
        "Height at which every row is first in one cluster with this one.");
}

void bind_optics(nb::module_ &m) {
    m.def(
        "optics",
        [](RowMajor<double> X, int metric, double power, Vector<double> core, double radius, bool by_tree) {
            constexpr const char *expected =
                "optics: expected X (n, p), or its columns (p, n) without a tree, with n, p > 0, a metric from 0 to 3, "
                "power >= 1, core (n,)";
            const std::size_t n = X.shape(by_tree ? 0 : 1), p = X.shape(by_tree ? 1 : 0);
            require(n > 0 && p > 0 && core.shape(0) == n, expected);
            Ordering found(0);
            with_norm(metric, power, expected, [&](auto norm) {
                nb::gil_scoped_release nogil;
                if (by_tree) {
                    const KdTree tree(X.data(), n, p);
                    found = OpticsWalk(tree, norm, core.data(), radius)(Interrupts{});
                } else {
                    found = optics(X.data(), n, p, norm, core.data(), radius, Interrupts{});
                }
            });
            return std::make_tuple(array_out(std::move(found.order)), array_out(std::move(found.reach)),
                                   array_out(std::move(found.predecessor)));
        },
        "X"_a.noconvert(), "metric"_a, "power"_a, "core"_a.noconvert(), "radius"_a, "by_tree"_a,
        "Order, reachability and predecessors of OPTICS.");
}

}  // namespace

void bind_density(nb::module_ &m) {
    bind_hierarchy(m);
    bind_optics(m);
    m.def(
        "dbscan",
        [](RowMajor<double> X, int metric, double power, double radius, double enough, Weight weight, int threads) {
            constexpr const char *expected =
                "dbscan: expected X (n, p) with n, p > 0, a metric from 0 to 3, power >= 1, weight (n,) or None";
            const std::size_t n = X.shape(0), p = X.shape(1);
            require(n > 0 && p > 0, expected);
            const double *w = pointer(weight, n, expected);
            const int size = team(threads);
            std::vector<std::int64_t> label(n);
            std::vector<std::uint8_t> core(n);
            with_norm(metric, power, expected, [&](auto norm) {
                nb::gil_scoped_release nogil;
                const KdTree tree(X.data(), n, p);
                Dbscan clusters(tree, norm, radius, w);
                const Interrupts interrupts;
                clusters.find_core(enough, size, interrupts);
                clusters.unite_core(size);
                interrupts();
                clusters.labels(label.data(), size, interrupts);
                for (std::size_t i = 0; i < n; ++i) core[static_cast<std::size_t>(tree.row[i])] = clusters.is_core(i);
            });
            return std::make_tuple(array_out(std::move(core)), array_out(std::move(label)));
        },
        "X"_a.noconvert(), "metric"_a, "power"_a, "radius"_a, "enough"_a, "weight"_a.none(), "threads"_a,
        "Whether every row is a core point, and its cluster, or -1.");
    m.def(
        "dbscan_graph",
        [](Vector<double> distance, Vector<std::int64_t> column, Vector<std::int64_t> start, double radius,
           double enough, Weight weight) {
            constexpr const char *expected =
                "dbscan_graph: expected a square CSR matrix (distance, column, start), weight (n,) or None";
            require(start.shape(0) > 0 && column.shape(0) == distance.shape(0), expected);
            const std::size_t n = start.shape(0) - 1;
            const auto *starts = start.data();
            require(starts[0] == 0 && starts[n] == static_cast<std::int64_t>(column.shape(0)), expected);
            for (std::size_t i = 0; i < n; ++i) require(starts[i] <= starts[i + 1], expected);
            require(all_below(column, n), expected);
            const double *w = pointer(weight, n, expected);
            std::vector<std::int64_t> label(n);
            std::vector<std::uint8_t> core(n);
            {
                nb::gil_scoped_release nogil;
                dbscan_graph({distance.data(), column.data(), starts, n, radius}, enough, w, core.data(), label.data());
            }
            return std::make_tuple(array_out(std::move(core)), array_out(std::move(label)));
        },
        "distance"_a.noconvert(), "column"_a.noconvert(), "start"_a.noconvert(), "radius"_a, "enough"_a,
        "weight"_a.none());
}

}  // namespace epicycle
