// Bindings of the kernels of multidimensional scaling.
#include "core/binding.hpp"
#include "manifold/scaling.hpp"

namespace epicycle {

void bind_scaling(nb::module_ &m) {
    m.def(
        "guttman",
        [](RowMajor<double> X, RowMajor<double> target, std::optional<RowMajor<double>> weight, int threads) {
            constexpr const char *expected = "guttman: expected X (n, p), target and weight (n, n)";
            const std::size_t n = X.shape(0), p = X.shape(1);
            require(target.shape(0) == n && target.shape(1) == n, expected);
            require(!weight || (weight->shape(0) == n && weight->shape(1) == n), expected);
            const int size = team(threads);
            Buffer out(n * p), stress(n), length(n);
            {
                nb::gil_scoped_release nogil;
                scaling::guttman(X.data(), n, p, target.data(), weight ? weight->data() : nullptr, size, out.data.get(),
                                 stress.data.get(), length.data.get());
            }
            return std::tuple(matrix_out(out, n, p), vector_out(stress, n), vector_out(length, n));
        },
        "X"_a.noconvert(), "target"_a.noconvert(), "weight"_a.none(), "threads"_a);
    m.def(
        "monotone_disparities",
        [](RowMajor<double> X, Vector<std::int32_t> first, Vector<std::int32_t> second, Weight weight,
           Vector<std::int64_t> group, InOut2<double> D) {
            constexpr const char *expected = "monotone_disparities: expected X (n, p), first, second and weight (m,), "
                                             "ends below n, group rising from "
                                             "0 to m, D (n, n)";
            const std::size_t n = X.shape(0), m = first.shape(0);
            require(second.shape(0) == m && D.shape(0) == n && D.shape(1) == n && group.shape(0) >= 1, expected);
            require(all_below(first, n) && all_below(second, n), expected);
            const std::size_t groups = group.shape(0) - 1;
            bool rising = group.data()[0] == 0 && static_cast<std::size_t>(group.data()[groups]) == m;
            for (std::size_t g = 0; g < groups; ++g) rising = rising && group.data()[g] <= group.data()[g + 1];
            require(rising, expected);
            const double *w = pointer(weight, m, expected);
            nb::gil_scoped_release nogil;
            return scaling::monotone(X.data(), n, X.shape(1), first.data(), second.data(), w, group.data(), groups,
                                     D.data());
        },
        "X"_a.noconvert(), "first"_a, "second"_a, "weight"_a.none(), "group"_a, "D"_a.noconvert());
}

}  // namespace epicycle
