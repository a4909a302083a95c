// Bindings of density clustering over a kd-tree.
#include "cluster/dbscan.hpp"
#include "core/binding.hpp"

namespace epicycle {
namespace {

// Calls work(Norm) for the metric of this number, of those that have a tree.
template <class Work>
auto with_norm(int metric, double power, const char *message, Work work) {
    require(metric >= 0 && metric <= 3 && power >= 1.0, message);
    switch (static_cast<Metric>(metric)) {
        case Metric::manhattan:
            return work(Norm<Metric::manhattan>{});
        case Metric::chebyshev:
            return work(Norm<Metric::chebyshev>{});
        case Metric::minkowski:
            return work(Norm<Metric::minkowski>{power});
        default:
            return work(Norm<Metric::euclidean>{});
    }
}

}  // namespace

void bind_density(nb::module_ &m) {
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
                clusters.find_core(enough, size);
                clusters.unite_core(size);
                clusters.labels(label.data(), size);
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
