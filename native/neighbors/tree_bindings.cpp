// Bindings of the search for nearest rows by a tree.
#include "core/binding.hpp"
#include "spatial/nearest_rows.hpp"

namespace epicycle {

void bind_point_tree(nb::module_ &m) {
    nb::class_<KdTree>(m, "PointTree")
        .def(
            "__init__",
            [](KdTree *self, RowMajor<double> X) {
                require(X.shape(0) > 0 && X.shape(1) > 0, "PointTree: expected X (n, p) with n, p > 0");
                nb::gil_scoped_release nogil;
                new (self) KdTree(X.data(), X.shape(0), X.shape(1));
            },
            "X"_a.noconvert());
    m.def(
        "nearest_rows",
        [](const KdTree &points, RowMajor<double> Q, std::size_t k, double bound, int threads) {
            require(Q.shape(1) == points.cols() && k > 0 && k <= points.rows() && bound >= 0.0,
                    "nearest_rows: expected Q (m, p) with the columns of the tree, 0 < k <= n, bound >= 0");
            const int size = team(threads);
            const std::size_t n = Q.shape(0);
            std::vector<double> distance(n * k);
            std::vector<std::int64_t> row(n * k);
            {
                nb::gil_scoped_release nogil;
                nearest_rows(points, Q.data(), n, k, bound, distance.data(), row.data(), size, Interrupts{});
            }
            return std::make_tuple(array_out(std::move(distance), n, k), array_out(std::move(row), n, k));
        },
        "points"_a, "Q"_a.noconvert(), "k"_a, "bound"_a, "threads"_a,
        "Euclidean distances and numbers of the k rows nearest to every row of Q, at most `bound` away; infinity and "
        "the number of rows for those that are missing.");
}

}  // namespace epicycle
