// Bindings of the statistics of logistic regression.
#include "core/binding.hpp"
#include "linear/logistic.hpp"
#include "linear/multinomial.hpp"

namespace epicycle {

void bind_linear(nb::module_ &m) {
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        constexpr const char *expected =
            "logistic: expected X (n, p) dense or a well-formed CSR matrix, y (n,), weight (n,) or None, shift (p,), "
            "zero for a CSR matrix, coef (p,)";
        const auto checked = [](const X &table, const Vector<double> &y, const Vector<double> &shift,
                                const Vector<double> &coef) {
            const auto x = view(table, expected);
            require(y.shape(0) == x.rows && shift.shape(0) == x.cols && coef.shape(0) == x.cols, expected);
            return std::make_pair(x, checked_shift<X>(shift, x.cols, expected));
        };
        m.def(
            "logistic_gradient",
            [checked](X table, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef,
                      double intercept) {
                const auto [x, s] = checked(table, y, shift, coef);
                const double *w = pointer(weight, x.rows, expected);
                Buffer g(x.cols + 1);
                double loss, curvature = 0.0;
                {
                    nb::gil_scoped_release nogil;
                    loss = logistic_gradient(x, y.data(), w, s, coef.data(), intercept, g.data.get(), curvature);
                }
                return std::make_tuple(loss, vector_out(g, x.cols + 1), curvature);
            },
            "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a);
        m.def(
            "logistic_hessian",
            [checked](X table, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef,
                      double intercept) {
                const auto [x, s] = checked(table, y, shift, coef);
                const double *w = pointer(weight, x.rows, expected);
                const std::size_t d = x.cols + 1;
                Buffer g(d), H(d * d);
                double loss;
                {
                    nb::gil_scoped_release nogil;
                    loss = logistic_hessian(x, y.data(), w, s, coef.data(), intercept, g.data.get(), H.data.get());
                }
                return std::make_tuple(loss, vector_out(g, d), matrix_out(H, d, d));
            },
            "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a);
    });
    for_dense([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "multinomial_gradient",
            [](X table, Vector<std::int64_t> y, Weight weight, Vector<double> shift, RowMajor<double> params,
               bool curvature) {
                constexpr const char *expected =
                    "multinomial_gradient: expected X (n, p), y (n,) with labels in 0 .. K-1, weight (n,) or None, "
                    "shift (p,), params (K, p + 1)";
                const auto x = view(table);
                const std::size_t K = params.shape(0), d = x.cols + 1;
                require(y.shape(0) == x.rows && shift.shape(0) == x.cols && K >= 1 && params.shape(1) == d, expected);
                require(all_below(y, K), expected);
                const double *w = pointer(weight, x.rows, expected);
                Buffer g(K * d), in_b(K * K);
                double loss;
                {
                    nb::gil_scoped_release nogil;
                    loss = multinomial_gradient(x, y.data(), w, shift.data(), params.data(), K, g.data.get(),
                                                curvature ? in_b.data.get() : nullptr);
                }
                return std::make_tuple(loss, matrix_out(g, K, d), matrix_out(in_b, K, K));
            },
            "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none(), "shift"_a, "params"_a, "curvature"_a);
    });
    for_compressed<CsrMatrix>([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "multinomial_curvature",
            [](X table, Weight weight, RowMajor<double> P) {
                constexpr const char *expected = "multinomial_curvature: expected a well-formed CSR matrix (n, p), "
                                                 "weight (n,) or None, P (n, K) in C order";
                const auto x = view(table, expected);
                require(P.shape(0) == x.rows, expected);
                const double *w = pointer(weight, x.rows, expected);
                const std::size_t size = P.shape(1) * (x.cols + 1);
                Buffer H(size * size);
                {
                    nb::gil_scoped_release nogil;
                    multinomial_curvature(x, w, P.data(), P.shape(1), H.data.get());
                }
                return matrix_out(H, size, size);
            },
            "X"_a.noconvert(), "weight"_a.none(), "P"_a.noconvert());
    });
}

}  // namespace epicycle
