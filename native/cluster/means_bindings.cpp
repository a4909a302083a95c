// Bindings of hierarchical clustering by the means of clusters.
#include <string>

#include "cluster/linkage_vectors.hpp"
#include "core/binding.hpp"

namespace epicycle {

void bind_hierarchy_means(nb::module_ &m) {
    m.def(
        "linkage_from_means",
        [](RowMajor<double> X, const char *name, Weight weight, int threads) {
            constexpr const char *expected =
                "linkage_from_means: expected X (n, p) with n >= 1, method 'ward', 'centroid' or 'median', weight "
                "(n,) or None";
            const std::string method(name);
            require(X.shape(0) > 0 && (method == "ward" || method == "centroid" || method == "median"), expected);
            const std::size_t n = X.shape(0), p = X.shape(1);
            const double *size = pointer(weight, n, expected);
            const int members = team(threads);
            Buffer Z(4 * (n - 1));
            if (n > 1) {
                nb::gil_scoped_release nogil;
                if (method == "ward") {
                    std::vector<Merge> merges = ward_merges(X.data(), n, p, size, members, Interrupts{});
                    linkage_from_merges(merges, n, Z.data.get());
                } else {
                    linkage_from_nodes(mean_merges(X.data(), n, p, size, method == "median", members, Interrupts{}), n,
                                       Z.data.get());
                }
            }
            return matrix_out(Z, n - 1, 4);
        },
        "X"_a, "method"_a, "weight"_a.none(), "threads"_a);
}

}  // namespace epicycle
