// Bindings of the statistics of linear models.
#include "core/binding.hpp"
#include "core/moments.hpp"
#include "core/sparse.hpp"
#include "linear/logistic.hpp"
#include "linear/multinomial.hpp"

namespace epicycle {
namespace {

template <class T>
void bind_dense(nb::module_ &m) {
    constexpr const char *expected = "logistic: expected X (n, p), y (n,), weight (n,) or None, shift (p,), coef (p,)";
    m.def(
        "logistic_gradient",
        [](Matrix<T> X, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef, double intercept) {
            const auto x = view(X);
            require(y.shape(0) == x.rows && shift.shape(0) == x.cols && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            Buffer g(x.cols + 1);
            double loss, curvature = 0.0;
            {
                nb::gil_scoped_release nogil;
                loss = logistic_gradient(x, y.data(), w, shift.data(), coef.data(), intercept, g.data.get(), curvature);
            }
            return std::make_tuple(loss, vector_out(g, x.cols + 1), curvature);
        },
        "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a);
    m.def(
        "logistic_hessian",
        [](Matrix<T> X, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef, double intercept) {
            const auto x = view(X);
            require(y.shape(0) == x.rows && shift.shape(0) == x.cols && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            const std::size_t d = x.cols + 1;
            Buffer g(d), H(d * d);
            double loss;
            {
                nb::gil_scoped_release nogil;
                loss =
                    logistic_hessian(x, y.data(), w, shift.data(), coef.data(), intercept, g.data.get(), H.data.get());
            }
            return std::make_tuple(loss, vector_out(g, d), matrix_out(H, d, d));
        },
        "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a);
    m.def(
        "multinomial_gradient",
        [](Matrix<T> X, Vector<std::int64_t> y, Weight weight, Vector<double> shift, RowMajor<double> params,
           bool curvature) {
            constexpr const char *expected = "multinomial_gradient: expected X (n, p), y (n,) with labels in 0 .. K-1, "
                                             "weight (n,) or None, shift (p,), params (K, p + 1)";
            const auto x = view(X);
            const std::size_t K = params.shape(0), d = x.cols + 1;
            require(y.shape(0) == x.rows && shift.shape(0) == x.cols && K >= 1 && params.shape(1) == d, expected);
            const double *w = pointer(weight, x.rows, expected);
            for (std::size_t i = 0; i < x.rows; ++i)
                require(y.data()[i] >= 0 && static_cast<std::size_t>(y.data()[i]) < K, expected);
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
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    constexpr const char *expected =
        "csr_logistic: expected a well-formed CSR matrix (n, p), y (n,), weight (n,) or None, coef (p,)";
    m.def(
        "csr_logistic_gradient",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> y, Weight weight,
           Vector<double> coef, double intercept) {
            const auto x = csr<T, I>(data, indices, indptr, n_columns, expected);
            require(y.shape(0) == x.rows && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            Buffer g(x.cols + 1);
            double loss, curvature = 0.0;
            {
                nb::gil_scoped_release nogil;
                loss = logistic(x, y.data(), w, coef.data(), intercept, g.data.get(), curvature, nullptr);
            }
            return std::make_tuple(loss, vector_out(g, x.cols + 1), curvature);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "y"_a.noconvert(),
        "weight"_a.none(), "coef"_a, "intercept"_a);
    m.def(
        "csr_logistic_hessian",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> y, Weight weight,
           Vector<double> coef, double intercept) {
            const auto x = csr<T, I>(data, indices, indptr, n_columns, expected);
            require(y.shape(0) == x.rows && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            const std::size_t d = x.cols + 1;
            Buffer g(d), H(d * d);
            double loss, curvature = 0.0;
            {
                nb::gil_scoped_release nogil;
                loss = logistic(x, y.data(), w, coef.data(), intercept, g.data.get(), curvature, H.data.get());
            }
            return std::make_tuple(loss, vector_out(g, d), matrix_out(H, d, d));
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "y"_a.noconvert(),
        "weight"_a.none(), "coef"_a, "intercept"_a);
}

}  // namespace

void bind_linear(nb::module_ &m) {
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}

}  // namespace epicycle
