// Bindings of hierarchical clustering over distances. Compiled without FMA: the bits are those of SciPy.
#include <stdexcept>
#include <string>

#include "cluster/linkage_graph.hpp"
#include "cluster/linkage_matrix.hpp"
#include "cluster/row_distances.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

RowMetric row_metric(const std::string &name) {
    if (name == "euclidean") return RowMetric::euclidean;
    if (name == "manhattan") return RowMetric::manhattan;
    require(name == "chebyshev", "metric: expected 'euclidean', 'manhattan' or 'chebyshev'");
    return RowMetric::chebyshev;
}

std::vector<Merge> matrix_merges(const std::string &method, double *d, std::size_t n, const double *weight,
                                 const Interrupts &interrupts) {
    if (method == "single") return tree_merges(d, n, interrupts);
    if (method == "complete") return chain_merges(d, n, weight, CompleteLinkage{}, interrupts);
    if (method == "average") return chain_merges(d, n, weight, AverageLinkage{}, interrupts);
    if (method == "weighted") return chain_merges(d, n, weight, WeightedLinkage{}, interrupts);
    if (method == "ward" && weight != nullptr) weigh_ward(d, n, weight);
    if (method == "ward") return chain_merges(d, n, weight, WardLinkage{}, interrupts);
    if (method == "centroid") return heap_merges(d, n, weight, CentroidLinkage{}, interrupts);
    return heap_merges(d, n, weight, MedianLinkage{}, interrupts);
}

}  // namespace

void bind_hierarchy(nb::module_ &m) {
    m.def(
        "condensed_distances",
        [](RowMajor<double> X, const char *metric, InOut1<double> out, int threads) {
            const RowMetric kind = row_metric(metric);
            const std::size_t n = X.shape(0), p = X.shape(1);
            require(out.shape(0) == (n < 2 ? 0 : n * (n - 1) / 2),
                    "condensed_distances: expected X (n, p) and out for n (n - 1) / 2 pairs");
            const int members = team(threads);
            nb::gil_scoped_release nogil;
            condensed_distances(X.data(), n, p, kind, members, out.data());
        },
        "X"_a, "metric"_a, "out"_a.noconvert(), "threads"_a);
    m.def(
        "linkage_from_distances",
        [](InOut1<double> distances, std::size_t n, const char *name, Weight weight) {
            constexpr const char *expected =
                "linkage_from_distances: expected finite distances of n (n - 1) / 2 pairs of n >= 1 rows, method "
                "'single', 'complete', 'average', 'weighted', 'ward', 'centroid' or 'median', weight (n,) or None";
            const std::string method(name);
            const bool nodes = method == "centroid" || method == "median";
            require(n > 0 && n < (std::size_t{1} << 31) && distances.shape(0) == n * (n - 1) / 2, expected);
            require(nodes || method == "single" || method == "complete" || method == "average" ||
                        method == "weighted" || method == "ward",
                    expected);
            for (std::size_t i = 0; i < distances.shape(0); ++i) require(distances.data()[i] < FAR, expected);
            const double *size = pointer(weight, n, expected);
            Buffer Z(4 * (n - 1));
            if (n > 1) {
                nb::gil_scoped_release nogil;
                std::vector<Merge> merges = matrix_merges(method, distances.data(), n, size, Interrupts{});
                if (nodes)
                    linkage_from_nodes(merges, n, Z.data.get());
                else
                    linkage_from_merges(merges, n, Z.data.get());
            }
            return matrix_out(Z, n - 1, 4);
        },
        "distances"_a.noconvert(), "n"_a, "method"_a, "weight"_a.none());
    m.def(
        "single_linkage",
        [](RowMajor<double> X, const char *metric, int threads) {
            require(X.shape(0) > 0, "single_linkage: expected X (n, p) with n >= 1");
            const RowMetric kind = row_metric(metric);
            const std::size_t n = X.shape(0), p = X.shape(1);
            const int members = team(threads);
            Buffer Z(4 * (n - 1));
            if (n > 1) {
                nb::gil_scoped_release nogil;
                std::vector<Merge> merges = prim_merges(X.data(), n, p, kind, members, Interrupts{});
                linkage_from_merges(merges, n, Z.data.get());
            }
            return matrix_out(Z, n - 1, 4);
        },
        "X"_a, "metric"_a, "threads"_a);
    m.def(
        "linkage_from_edges",
        [](Vector<std::int64_t> first, Vector<std::int64_t> second, Vector<double> length) {
            constexpr const char *expected =
                "linkage_from_edges: expected the n - 1 edges of a tree of n rows: first, second (n - 1,) below n, "
                "length (n - 1,)";
            const std::size_t k = length.shape(0);
            require(first.shape(0) == k && second.shape(0) == k && all_below(first, k + 1) && all_below(second, k + 1),
                    expected);
            std::vector<Merge> merges(k);
            DisjointNodes seen(k + 1);
            for (std::size_t i = 0; i < k; ++i) {
                merges[i] = {first.data()[i], second.data()[i], length.data()[i]};
                const std::int64_t a = seen.find(merges[i].x), b = seen.find(merges[i].y);
                require(a != b, expected);
                seen.join(a, b);
            }
            Buffer Z(4 * k);
            linkage_from_merges(merges, k + 1, Z.data.get());
            return matrix_out(Z, k, 4);
        },
        "first"_a, "second"_a, "length"_a);
    m.def(
        "linkage_of_graph",
        [](Vector<std::int64_t> first, Vector<std::int64_t> second, Vector<double> length, RowMajor<double> X,
           const char *name, Weight weight, std::size_t clusters) {
            constexpr const char *expected =
                "linkage_of_graph: expected edges first, second (m,) below n, length (m,), X (n, p), method "
                "'complete', 'average', 'single' or 'ward', weight (n,) or None, clusters >= 1";
            const std::size_t n = X.shape(0), k = first.shape(0);
            require(n > 0 && clusters > 0 && second.shape(0) == k && length.shape(0) == k, expected);
            require(all_below(first, n) && all_below(second, n), expected);
            const double *size = pointer(weight, n, expected);
            const std::string method(name);
            GraphLinkage linkage = GraphLinkage::ward;
            if (method == "complete")
                linkage = GraphLinkage::complete;
            else if (method == "average")
                linkage = GraphLinkage::average;
            else if (method == "single")
                linkage = GraphLinkage::single;
            else
                require(method == "ward", expected);
            std::vector<Merge> merges;
            {
                nb::gil_scoped_release nogil;
                GraphClusters graph(linkage, n, X.data(), X.shape(1), size);
                for (std::size_t i = 0; i < k; ++i) graph.add(first.data()[i], second.data()[i], length.data()[i]);
                merges = graph.merges(clusters, Interrupts{});
            }
            Buffer Z(4 * merges.size());
            linkage_from_nodes(merges, n, Z.data.get());
            return matrix_out(Z, merges.size(), 4);
        },
        "first"_a, "second"_a, "length"_a, "X"_a, "method"_a, "weight"_a.none(), "clusters"_a);
    m.def(
        "node_labels",
        [](RowMajor<std::int64_t> children, std::size_t n, InOut1<std::int64_t> label) {
            constexpr const char *expected =
                "node_labels: expected children (m, 2), those of row i below n + i, and label (n + m,)";
            const std::size_t count = children.shape(0);
            require(children.shape(1) == 2 && label.shape(0) == n + count, expected);
            for (std::size_t i = count; i-- > 0;)
                for (std::size_t c = 0; c < 2; ++c) {
                    const std::int64_t child = children.data()[2 * i + c];
                    require(child >= 0 && static_cast<std::size_t>(child) < n + i, expected);
                    if (label.data()[n + i] >= 0) label.data()[child] = label.data()[n + i];
                }
        },
        "children"_a, "n"_a, "label"_a.noconvert());
    m.def(
        "highest_below",
        [](RowMajor<double> Z, std::size_t n) {
            constexpr const char *expected = "highest_below: expected a linkage matrix (m, 4) of n rows";
            require(Z.shape(1) == 4, expected);
            const std::size_t count = Z.shape(0);
            std::vector<double> out(count);
            for (std::size_t i = 0; i < count; ++i) {
                out[i] = Z.data()[4 * i + 2];
                for (std::size_t c = 0; c < 2; ++c) {
                    const double child = Z.data()[4 * i + c];
                    require(child >= 0.0 && child < static_cast<double>(n + i), expected);
                    const auto at = static_cast<std::size_t>(child);
                    if (at >= n) out[i] = std::max(out[i], out[at - n]);
                }
            }
            return array_out(std::move(out));
        },
        "Z"_a, "n"_a);
}

}  // namespace epicycle
