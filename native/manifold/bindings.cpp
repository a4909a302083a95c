// Bindings of the kernels of embeddings: shortest paths, agreement of neighbourhoods.
#include "core/binding.hpp"
#include "manifold/neighborhoods.hpp"
#include "manifold/shortest_paths.hpp"

namespace epicycle {

void bind_manifold(nb::module_ &m) {
    m.def(
        "shortest_paths",
        [](Vector<std::int64_t> start, Vector<std::int32_t> index, Vector<double> length, Vector<std::int64_t> source,
           int threads) {
            constexpr const char *expected =
                "shortest_paths: expected lists of n nodes (n + 1 places, rising from 0), ends below n, lengths >= 0, "
                "sources below n";
            require(start.shape(0) >= 1 && index.shape(0) == length.shape(0), expected);
            const std::size_t n = start.shape(0) - 1, m = source.shape(0);
            bool good = start.data()[0] == 0 && static_cast<std::size_t>(start.data()[n]) == index.shape(0);
            for (std::size_t v = 0; v < n; ++v) good = good && start.data()[v] <= start.data()[v + 1];
            for (std::size_t e = 0; e < length.shape(0); ++e) good = good && length.data()[e] >= 0.0;
            require(good && all_below(index, n) && all_below(source, n), expected);
            const int size = team(threads);
            Buffer distance(m * n);
            {
                nb::gil_scoped_release nogil;
                const paths::Edges edges = paths::undirected(start.data(), index.data(), length.data(), n);
                paths::from_sources(edges, source.data(), m, size, Interrupts{}, distance.data.get());
                bool all = m == n;
                for (std::size_t i = 0; all && i < n; ++i) all = source.data()[i] == static_cast<std::int64_t>(i);
                if (all) paths::make_symmetric(distance.data.get(), n);
            }
            return matrix_out(distance, m, n);
        },
        "start"_a, "index"_a, "length"_a, "source"_a, "threads"_a);
    m.def(
        "compare_neighborhoods",
        [](RowMajor<double> A, RowMajor<double> B, Vector<std::int64_t> query, std::size_t k, int threads) {
            constexpr const char *expected =
                "compare_neighborhoods: expected A and B (m, n), query (m,) below n, and 0 < k < n";
            const std::size_t m = A.shape(0), n = A.shape(1);
            require(B.shape(0) == m && B.shape(1) == n && query.shape(0) == m, expected);
            require(k > 0 && k < n && all_below(query, n), expected);
            const int size = team(threads);
            std::vector<std::int64_t> result(3 * m);
            {
                nb::gil_scoped_release nogil;
                neighborhoods::compare(A.data(), B.data(), m, n, query.data(), k, size, result.data());
            }
            return array_out(std::move(result), m, 3);
        },
        "A"_a.noconvert(), "B"_a.noconvert(), "query"_a, "k"_a, "threads"_a);
}

}  // namespace epicycle
