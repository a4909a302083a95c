// Bindings of what walks a kd-tree: kernel density estimates, nearest rows.
#include "core/binding.hpp"
#include "neighbors/kernel_density.hpp"
#include "neighbors/nearest_rows.hpp"
#include "spatial/with_norm.hpp"

namespace epicycle {
namespace {

// Calls work with the kernel of this number as a constant.
template <class Work>
void with_kernel(int kernel, const char *message, Work work) {
    require(kernel >= 0 && kernel <= 5, message);
    using K = DensityKernel;
    switch (static_cast<K>(kernel)) {
        case K::gaussian:
            return work(std::integral_constant<K, K::gaussian>{});
        case K::tophat:
            return work(std::integral_constant<K, K::tophat>{});
        case K::epanechnikov:
            return work(std::integral_constant<K, K::epanechnikov>{});
        case K::exponential:
            return work(std::integral_constant<K, K::exponential>{});
        case K::linear:
            return work(std::integral_constant<K, K::linear>{});
        default:
            return work(std::integral_constant<K, K::cosine>{});
    }
}

template <Metric M>
std::integral_constant<Metric, M> metric_of(const Norm<M> &) {
    return {};
}

}  // namespace

void bind_kernel_density(nb::module_ &m) {
    m.def(
        "nearest_by_tree",
        [](RowMajor<double> X, RowMajor<double> Q, int metric, double power, std::size_t k, int threads) {
            constexpr const char *expected =
                "nearest_by_tree: expected X (n, p) with 0 < k <= n, Q (m, p), a metric from 0 to 3, power >= 1";
            const std::size_t n = X.shape(0), p = X.shape(1), m = Q.shape(0);
            require(n > 0 && p > 0 && k > 0 && k <= n && Q.shape(1) == p, expected);
            const int size = team(threads);
            std::vector<std::int64_t> out(m * k);
            with_norm(metric, power, expected, [&](auto norm) {
                nb::gil_scoped_release nogil;
                const KdTree tree(X.data(), n, p);
                nearest_rows(tree, norm, Q.data(), m, k, out.data(), size, Interrupts{});
            });
            return array_out(std::move(out), m, k);
        },
        "X"_a.noconvert(), "Q"_a.noconvert(), "metric"_a, "power"_a, "k"_a, "threads"_a,
        "The k rows of X nearest to every row of Q, in any order; of those at the same distance any.");
    nb::class_<WeightedTree>(m, "WeightedTree")
        .def(
            "__init__",
            [](WeightedTree *self, RowMajor<double> X, Weight weight) {
                constexpr const char *expected = "WeightedTree: expected X (n, p) with n, p > 0, weight (n,) or None";
                require(X.shape(0) > 0 && X.shape(1) > 0, expected);
                const double *w = pointer(weight, X.shape(0), expected);
                nb::gil_scoped_release nogil;
                new (self) WeightedTree(X.data(), X.shape(0), X.shape(1), w);
            },
            "X"_a.noconvert(), "weight"_a.noconvert().none());
    m.def(
        "log_kernel_means",
        [](const WeightedTree &points, RowMajor<double> Q, int metric, double power, int kernel, double rate,
           double log_atol, double rtol, double left_out, int threads) {
            constexpr const char *expected =
                "log_kernel_means: expected Q (n, p) with the columns of the tree, a metric from 0 to 3, power >= "
                "1, a kernel from 0 to 5, rate > 0, rtol >= 0, left_out >= 0";
            require(Q.shape(1) == points.tree.cols() && rate > 0.0 && rate <= 1e300 && rtol >= 0.0 && left_out >= 0.0 &&
                        log_atol == log_atol,
                    expected);
            const int size = team(threads);
            const std::size_t n = Q.shape(0);
            std::vector<double> out(n);
            const DensityTolerance tolerance{log_atol, rtol};
            with_norm(metric, power, expected, [&](auto norm) {
                with_kernel(kernel, expected, [&](auto which) {
                    constexpr Metric M = decltype(metric_of(norm))::value;
                    constexpr DensityKernel K = decltype(which)::value;
                    const KernelOfDistance<M, K> of_distance{norm, rate};
                    nb::gil_scoped_release nogil;
                    log_kernel_means(points, of_distance, tolerance, left_out, Q.data(), n, out.data(), size,
                                     Interrupts{});
                });
            });
            return array_out(std::move(out));
        },
        "points"_a, "Q"_a.noconvert(), "metric"_a, "power"_a, "kernel"_a, "rate"_a, "log_atol"_a, "rtol"_a,
        "left_out"_a, "threads"_a,
        "Logarithms of the means of kernels at the rows of Q, up to a weight `left_out` of equal points left out.");
}

}  // namespace epicycle
