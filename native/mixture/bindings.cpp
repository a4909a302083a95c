// Bindings of mixtures.
#include "mixture/gaussian.hpp"

#include "core/binding.hpp"

namespace epicycle {

namespace {

NormalComponents components(const Vector<double> &constants, const RowMajor<double> &means,
                            const RowMajor<double> &factors, bool diagonal, std::size_t p, const char *expected) {
    const std::size_t k = constants.shape(0), m = factors.shape(0);
    require(k > 0 && p > 0 && means.shape(0) == k && means.shape(1) == p && factors.shape(1) == p, expected);
    require(diagonal ? m == k || m == 1 : m == k * p || m == p, expected);
    return {k, p, constants.data(), means.data(), factors.data(), diagonal, k > 1 && m == (diagonal ? 1 : p)};
}

}  // namespace

void bind_mixture(nb::module_ &m) {
    for_dense([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "normal_sums",
            [](X table, Weight weight, Vector<double> constants, RowMajor<double> means, RowMajor<double> factors,
               bool diagonal, bool pooled) {
                constexpr const char *expected =
                    "normal_sums: expected X (n, p), weight (n,) or None, constants (k,), means (k, p), factors "
                    "(k * p, p) or (p, p), for diagonal ones (k, p) or (1, p)";
                const auto rows = view(table);
                const std::size_t p = rows.cols;
                const auto c = components(constants, means, factors, diagonal, p, expected);
                const double *w = pointer(weight, rows.rows, expected);
                const std::size_t height = diagonal ? c.k : pooled ? p : c.k * p;
                Buffer counts(c.k), sums(c.k * p), scatter(height * p);
                double value = 0.0;
                {
                    nb::gil_scoped_release nogil;
                    value = normal_sums(rows, w, c, pooled, counts.data.get(), sums.data.get(), scatter.data.get());
                }
                return std::make_tuple(value, vector_out(counts, c.k), matrix_out(sums, c.k, p),
                                       matrix_out(scatter, height, p));
            },
            "X"_a.noconvert(), "weight"_a.none(), "constants"_a, "means"_a, "factors"_a, "diagonal"_a, "pooled"_a);
        m.def(
            "normal_log_joint",
            [](X table, Vector<double> constants, RowMajor<double> means, RowMajor<double> factors, bool diagonal) {
                constexpr const char *expected =
                    "normal_log_joint: expected X (n, p), constants (k,), means (k, p), factors (k * p, p) or (p, p), "
                    "for diagonal ones (k, p) or (1, p)";
                const auto rows = view(table);
                const auto c = components(constants, means, factors, diagonal, rows.cols, expected);
                Buffer out(rows.rows * c.k);
                {
                    nb::gil_scoped_release nogil;
                    normal_log_joint(rows, c, out.data.get());
                }
                return matrix_out(out, rows.rows, c.k);
            },
            "X"_a.noconvert(), "constants"_a, "means"_a, "factors"_a, "diagonal"_a);
    });
}

}  // namespace epicycle
