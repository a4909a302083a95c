// Bindings of the robust regressions: products with shifted rows, simplex pivots, Huber's sums.
#include "core/binding.hpp"
#include "linear/huber.hpp"
#include "linear/quantile_regression.hpp"

namespace epicycle {
namespace {

template <class T, class I>
Csr<T, I> csr(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t cols,
              const char *message) {
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), message);
    Csr<T, I> X{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, cols};
    require(well_formed(X, data.shape(0)), message);
    return X;
}

struct Bounds {
    Vector<double> y, upper, lower, penalty, g, g2;
};

template <class Rows>
nb::tuple pivots(const Rows &X, const double *shift, const Vector<double> &inv_scale, const Bounds &b,
                 const InOut1<std::int64_t> &basis, const InOut2<double> &inverse, std::size_t limit,
                 const char *expected) {
    const std::size_t n = X.rows, d = X.cols + 1;
    require(inv_scale.shape(0) == X.cols && b.y.shape(0) == n && b.upper.shape(0) == n && b.lower.shape(0) == n,
            expected);
    require(b.penalty.shape(0) == d && b.g.shape(0) == d && b.g2.shape(0) == d, expected);
    require(basis.shape(0) == d && inverse.shape(0) == d && inverse.shape(1) == d, expected);
    std::vector<bool> taken(n + d, false);
    for (std::size_t k = 0; k < d; ++k) {
        const std::int64_t i = basis.data()[k];
        require(i >= 0 && static_cast<std::size_t>(i) < n + d && !taken[i], expected);
        taken[i] = true;
    }
    Buffer beta(d), residual(n), dual(n + d);
    std::size_t done = 0;
    Pivoting state;
    {
        nb::gil_scoped_release nogil;
        QuantileVertex<Rows> vertex{X,
                                    shift,
                                    inv_scale.data(),
                                    b.y.data(),
                                    b.upper.data(),
                                    b.lower.data(),
                                    b.penalty.data(),
                                    b.g.data(),
                                    b.g2.data(),
                                    n,
                                    d,
                                    basis.data(),
                                    inverse.data(),
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    {},
                                    {}};
        state = vertex.run(limit, done);
        std::copy(vertex.beta.begin(), vertex.beta.end(), beta.data.get());
        std::copy(vertex.r.begin(), vertex.r.begin() + n, residual.data.get());
        vertex.duals(dual.data.get());
    }
    return nb::make_tuple(static_cast<int>(state), done, vector_out(beta, d), vector_out(residual, n),
                          vector_out(dual, n + d));
}

template <class Rows>
nb::tuple huber(const Rows &X, const Vector<double> &y, const Weight &weight, const double *shift,
                const Vector<double> &coef, double intercept, double limit, const char *expected) {
    require(y.shape(0) == X.rows && coef.shape(0) == X.cols && limit >= 0.0, expected);
    const double *v = pointer(weight, X.rows, expected);
    const std::size_t p = X.cols;
    Buffer M((p + 2) * (p + 2)), o(p + 1);
    HuberTotals t;
    {
        nb::gil_scoped_release nogil;
        t = huber_sums(X, y.data(), v, shift, coef.data(), intercept, limit, M.data.get(), o.data.get());
    }
    return nb::make_tuple(matrix_out(M, p + 2, p + 2), vector_out(o, p + 1), t.weight, t.outlier_weight, t.outlier_sum,
                          t.outliers, t.largest_inlier);
}

template <class T>
void bind_dense(nb::module_ &m) {
    m.def(
        "shifted_product",
        [](Matrix<T> X, Vector<double> shift, Vector<double> coef, double intercept) {
            const auto x = view(X);
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
        [](Matrix<T> X, Vector<double> shift, Vector<double> r) {
            const auto x = view(X);
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
    m.def(
        "quantile_pivots",
        [](Matrix<T> X, Vector<double> shift, Vector<double> inv_scale, Vector<double> y, Vector<double> upper,
           Vector<double> lower, Vector<double> penalty, Vector<double> g, Vector<double> g2,
           InOut1<std::int64_t> basis, InOut2<double> inverse, std::size_t max_pivots) {
            constexpr const char *expected =
                "quantile_pivots: expected X (n, p), shift and inv_scale (p,), y, upper and lower (n,), penalty, g and "
                "g2 (p + 1,), basis (p + 1,) of different rows, inverse (p + 1, p + 1)";
            const auto x = view(X);
            require(shift.shape(0) == x.cols, expected);
            return pivots(x, shift.data(), inv_scale, Bounds{y, upper, lower, penalty, g, g2}, basis, inverse,
                          max_pivots, expected);
        },
        "X"_a.noconvert(), "shift"_a, "inv_scale"_a, "y"_a, "upper"_a, "lower"_a, "penalty"_a, "g"_a, "g2"_a,
        "basis"_a.noconvert(), "inverse"_a.noconvert(), "max_pivots"_a);
    m.def(
        "huber_sums",
        [](Matrix<T> X, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef, double intercept,
           double limit) {
            constexpr const char *expected =
                "huber_sums: expected X (n, p), y (n,), weight (n,) or None, shift and coef (p,), limit >= 0";
            const auto x = view(X);
            require(shift.shape(0) == x.cols, expected);
            return huber(x, y, weight, shift.data(), coef, intercept, limit, expected);
        },
        "X"_a.noconvert(), "y"_a, "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a, "limit"_a);
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def(
        "csr_quantile_pivots",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> inv_scale,
           Vector<double> y, Vector<double> upper, Vector<double> lower, Vector<double> penalty, Vector<double> g,
           Vector<double> g2, InOut1<std::int64_t> basis, InOut2<double> inverse, std::size_t max_pivots) {
            constexpr const char *expected =
                "csr_quantile_pivots: expected a well-formed CSR matrix (n, p), inv_scale (p,), y, upper and lower "
                "(n,), penalty, g and g2 (p + 1,), basis (p + 1,) of different rows, inverse (p + 1, p + 1)";
            const auto x = csr<T, I>(data, indices, indptr, n_columns, expected);
            return pivots(x, nullptr, inv_scale, Bounds{y, upper, lower, penalty, g, g2}, basis, inverse, max_pivots,
                          expected);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "inv_scale"_a, "y"_a,
        "upper"_a, "lower"_a, "penalty"_a, "g"_a, "g2"_a, "basis"_a.noconvert(), "inverse"_a.noconvert(),
        "max_pivots"_a);
    m.def(
        "csr_huber_sums",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> y, Weight weight,
           Vector<double> coef, double intercept, double limit) {
            constexpr const char *expected =
                "csr_huber_sums: expected a well-formed CSR matrix (n, p), y (n,), weight (n,) or None, coef (p,), "
                "limit >= 0";
            const auto x = csr<T, I>(data, indices, indptr, n_columns, expected);
            return huber(x, y, weight, nullptr, coef, intercept, limit, expected);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "y"_a, "weight"_a.none(),
        "coef"_a, "intercept"_a, "limit"_a);
}

}  // namespace

void bind_robust(nb::module_ &m) {
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}

}  // namespace epicycle
