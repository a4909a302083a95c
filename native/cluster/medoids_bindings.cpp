// Bindings of medoids.
#include "cluster/medoids.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

template <class T>
void check(const RowMajor<T> &distances, std::size_t k, const char *expected) {
    require(distances.shape(0) == distances.shape(1) && k > 0 && k <= distances.shape(0), expected);
}

template <class T>
void bind(nb::module_ &m) {
    m.def(
        "swap_medoids",
        [](RowMajor<T> distances, Weight weight, InOut1<std::int64_t> medoids, std::size_t until, int threads) {
            constexpr const char *expected =
                "swap_medoids: expected distances (n, n), row-major, weight (n,) or None, medoids (k,), distinct and "
                "below n";
            const std::size_t n = distances.shape(0), k = medoids.shape(0);
            check(distances, k, expected);
            require(all_below(medoids, n), expected);
            std::vector<char> seen(n);
            for (std::size_t i = 0; i < k; ++i) {
                char &at = seen[static_cast<std::size_t>(medoids.data()[i])];
                require(!at, expected);
                at = 1;
            }
            const double *v = pointer(weight, n, expected);
            const int size = team(threads);
            SwapPass pass;
            {
                nb::gil_scoped_release nogil;
                pass = swap_pass(distances.data(), n, k, v, medoids.data(), until, size);
            }
            return nb::make_tuple(pass.swaps, pass.last, pass.value, pass.least);
        },
        "distances"_a.noconvert(), "weight"_a.none(), "medoids"_a.noconvert(), "until"_a, "threads"_a);
    m.def(
        "build_medoids",
        [](RowMajor<T> distances, Weight weight, InOut1<std::int64_t> medoids, int threads) {
            constexpr const char *expected =
                "build_medoids: expected distances (n, n), row-major, weight (n,) or None, medoids (k,) with k <= n";
            const std::size_t n = distances.shape(0), k = medoids.shape(0);
            check(distances, k, expected);
            const double *v = pointer(weight, n, expected);
            const int size = team(threads);
            nb::gil_scoped_release nogil;
            build_medoids(distances.data(), n, k, v, medoids.data(), size);
        },
        "distances"_a.noconvert(), "weight"_a.none(), "medoids"_a.noconvert(), "threads"_a);
}

}  // namespace

void bind_medoids(nb::module_ &m) {
    bind<double>(m);
    bind<float>(m);
}

}  // namespace epicycle
