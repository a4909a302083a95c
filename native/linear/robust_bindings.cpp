// Bindings of the robust regressions: products with shifted rows, simplex pivots, Huber's sums.
#include "core/binding.hpp"
#include "linear/huber.hpp"
#include "linear/quantile_regression.hpp"

namespace epicycle {
namespace {

// The linear programme of quantile regression over rows (x - shift) * inv_scale, 1.
struct QuantileProgramme {
    Vector<double> shift, inv_scale, y, upper, lower, penalty, g, g2;
};

}  // namespace

void bind_robust(nb::module_ &m) {
    using V = Vector<double>;
    nb::class_<QuantileProgramme>(m, "QuantileProgramme")
        .def(nb::init<V, V, V, V, V, V, V, V>(), nb::kw_only(), "shift"_a, "inv_scale"_a, "y"_a, "upper"_a, "lower"_a,
             "penalty"_a, "g"_a, "g2"_a);
    for_dense([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "shifted_product",
            [](X table, Vector<double> shift, Vector<double> coef, double intercept) {
                const auto x = view(table);
                require(shift.shape(0) == x.cols && coef.shape(0) == x.cols,
                        "shifted_product: expected X (n, p), shift (p,), coef (p,)");
                Buffer z(x.rows);
                {
                    nb::gil_scoped_release nogil;
                    all_margins(x, shift.data(), coef.data(), intercept, z.data.get());
                }
                return vector_out(z, x.rows);
            },
            "X"_a.noconvert(), "shift"_a, "coef"_a, "intercept"_a);
        m.def(
            "shifted_sums",
            [](X table, Vector<double> shift, Vector<double> r) {
                const auto x = view(table);
                require(shift.shape(0) == x.cols && r.shape(0) == x.rows,
                        "shifted_sums: expected X (n, p), shift (p,), r (n,)");
                Buffer g(x.cols + 1);
                {
                    nb::gil_scoped_release nogil;
                    all_gradient(x, shift.data(), r.data(), g.data.get());
                }
                return vector_out(g, x.cols + 1);
            },
            "X"_a.noconvert(), "shift"_a, "r"_a);
    });
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "quantile_pivots",
            [](X table, const QuantileProgramme &lp, InOut1<std::int64_t> basis, InOut2<double> inverse,
               std::size_t max_pivots) {
                constexpr const char *expected =
                    "quantile_pivots: expected X (n, p) dense or a well-formed CSR matrix, a programme with shift and "
                    "inv_scale (p,), y, upper and lower (n,), penalty, g and g2 (p + 1,), basis (p + 1,) of different "
                    "rows, inverse (p + 1, p + 1)";
                const auto x = view(table, expected);
                const std::size_t n = x.rows, d = x.cols + 1;
                require(lp.shift.shape(0) == x.cols && lp.inv_scale.shape(0) == x.cols, expected);
                const double *shift = checked_shift<X>(lp.shift, x.cols, expected);
                require(lp.y.shape(0) == n && lp.upper.shape(0) == n && lp.lower.shape(0) == n, expected);
                require(lp.penalty.shape(0) == d && lp.g.shape(0) == d && lp.g2.shape(0) == d, expected);
                require(basis.shape(0) == d && inverse.shape(0) == d && inverse.shape(1) == d, expected);
                std::vector<bool> taken(n + d, false);
                require(all_below(basis, n + d), expected);
                for (std::size_t k = 0; k < d; ++k) {
                    require(!taken[basis.data()[k]], expected);
                    taken[basis.data()[k]] = true;
                }
                Buffer beta(d), residual(n), dual(n + d);
                std::size_t done = 0;
                Pivoting state;
                {
                    nb::gil_scoped_release nogil;
                    QuantileVertex<decltype(x)> vertex{x,
                                                       shift,
                                                       lp.inv_scale.data(),
                                                       lp.y.data(),
                                                       lp.upper.data(),
                                                       lp.lower.data(),
                                                       lp.penalty.data(),
                                                       lp.g.data(),
                                                       lp.g2.data(),
                                                       n,
                                                       d,
                                                       basis.data(),
                                                       inverse.data()};
                    state = vertex.run(max_pivots, done);
                    std::copy(vertex.beta.begin(), vertex.beta.end(), beta.data.get());
                    std::copy(vertex.r.begin(), vertex.r.begin() + n, residual.data.get());
                    vertex.duals(dual.data.get());
                }
                return nb::make_tuple(static_cast<int>(state), done, vector_out(beta, d), vector_out(residual, n),
                                      vector_out(dual, n + d));
            },
            "X"_a.noconvert(), "programme"_a, "basis"_a.noconvert(), "inverse"_a.noconvert(), "max_pivots"_a);
        m.def(
            "huber_sums",
            [](X table, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef, double intercept,
               double limit) {
                constexpr const char *expected =
                    "huber_sums: expected X (n, p) dense or a well-formed CSR matrix, y (n,), weight (n,) or None, "
                    "shift (p,), zero for a CSR matrix, coef (p,), limit >= 0";
                const auto x = view(table, expected);
                require(y.shape(0) == x.rows && coef.shape(0) == x.cols && shift.shape(0) == x.cols && limit >= 0.0,
                        expected);
                const double *s = checked_shift<X>(shift, x.cols, expected), *v = pointer(weight, x.rows, expected);
                const std::size_t p = x.cols;
                Buffer M((p + 2) * (p + 2)), o(p + 1);
                HuberTotals t;
                {
                    nb::gil_scoped_release nogil;
                    t = huber_sums(x, y.data(), v, s, coef.data(), intercept, limit, M.data.get(), o.data.get());
                }
                return nb::make_tuple(matrix_out(M, p + 2, p + 2), vector_out(o, p + 1), t.weight, t.outlier_weight,
                                      t.outlier_sum, t.outliers, t.largest_inlier);
            },
            "X"_a.noconvert(), "y"_a, "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a, "limit"_a);
    });
}

}  // namespace epicycle
