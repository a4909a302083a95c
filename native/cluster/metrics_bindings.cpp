// Bindings of the criteria of clusterings.
#include "cluster/expected_information.hpp"
#include "cluster/silhouette.hpp"
#include "core/binding.hpp"

namespace epicycle {

void bind_cluster_metrics(nb::module_ &module) {
    module.def(
        "distances_to_clusters",
        [](RowMajor<double> X, Vector<double> weight, Vector<std::int64_t> start, Vector<std::int64_t> query,
           int threads) {
            constexpr const char *expected =
                "distances_to_clusters: expected X (n, p), n > 0, weight (n,), start (k + 1,) rising from 0 to n, "
                "query (m,) below n";
            const std::size_t n = X.shape(0), p = X.shape(1);
            require(n > 0 && weight.shape(0) == n && start.shape(0) > 1, expected);
            const std::size_t k = start.shape(0) - 1;
            const std::int64_t *s = start.data();
            require(s[0] == 0 && s[k] == static_cast<std::int64_t>(n), expected);
            for (std::size_t c = 0; c < k; ++c) require(s[c] <= s[c + 1], expected);
            require(all_below(query, n), expected);
            const std::size_t m = query.shape(0);
            const int size = team(threads);
            Buffer own(m), other(m);
            {
                nb::gil_scoped_release nogil;
                silhouette::distances_to_clusters(X.data(), n, p, weight.data(), s, k, query.data(), m, size,
                                                  own.data.get(), other.data.get());
            }
            return std::tuple(vector_out(own, m), vector_out(other, m));
        },
        "X"_a.noconvert(), "weight"_a, "start"_a, "query"_a, "threads"_a);
    module.def(
        "expected_information",
        [](Vector<double> a, Vector<double> a_times, Vector<double> b, Vector<double> b_times, double total) {
            constexpr const char *expected =
                "expected_information: expected a and a_times (r,), b and b_times (c,), 1 <= a, b <= total";
            require(a.shape(0) == a_times.shape(0) && b.shape(0) == b_times.shape(0), expected);
            for (const auto *side : {&a, &b})
                for (std::size_t i = 0; i < side->shape(0); ++i)
                    require(side->data()[i] >= 1.0 && side->data()[i] <= total, expected);
            nb::gil_scoped_release nogil;
            return expected_information(a.data(), a_times.data(), a.shape(0), b.data(), b_times.data(), b.shape(0),
                                        total);
        },
        "a"_a, "a_times"_a, "b"_a, "b_times"_a, "total"_a);
}

}  // namespace epicycle
