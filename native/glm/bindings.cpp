// Bindings of generalized linear models.
#include "core/binding.hpp"
#include "glm/designs.hpp"

namespace epicycle {
namespace {

using Index = Vector<std::int64_t>;
using Passed = std::tuple<double, double, double, double, Out1, Out2>;

// d, once the tables of codes are known to stay inside p dense columns, the levels, and an intercept.
template <class T>
std::size_t checked_size(const Matrix<T> &codes, std::size_t p, const Index &first, const Index &levels,
                         const Index &skip, const char *message) {
    const std::size_t k = codes.shape(1);
    require(first.shape(0) == k && levels.shape(0) == k && skip.shape(0) == k, message);
    std::int64_t next = static_cast<std::int64_t>(p);
    for (std::size_t c = 0; c < k; ++c) {
        const std::int64_t l = levels.data()[c], s = skip.data()[c];
        require(first.data()[c] == next && s >= 0 && l >= s && l <= (std::int64_t{1} << 40), message);
        next += l - s;
    }
    return static_cast<std::size_t>(next) + 1;
}

FamilyRows family_rows(int kind, double a, double b, bool expected, const Vector<double> &y, const Weight &weight,
                       const Weight &offset, std::size_t n, const char *message) {
    require(kind >= 0 && kind < static_cast<int>(GlmKind::count) && y.shape(0) == n, message);
    return {static_cast<GlmKind>(kind), a, b, expected, y.data(), pointer(weight, n, message),
            pointer(offset, n, message)};
}

template <class Pass>
Passed passed(std::size_t d, bool hessian, Pass pass) {
    const std::size_t size = hessian ? d : 0;
    Buffer g(d), H(size * size);
    GlmTotals totals;
    {
        nb::gil_scoped_release nogil;
        totals = pass(g.data.get(), hessian ? H.data.get() : nullptr);
    }
    return {totals.loss, totals.pearson, totals.least, totals.reach, vector_out(g, d), matrix_out(H, size, size)};
}

template <class T>
void bind_dense(nb::module_ &m) {
    m.def(
        "evaluate",
        [](Matrix<T> X, Matrix<T> codes, Index first, Index levels, Index skip, Vector<double> y, Weight weight,
           Weight offset, Vector<double> shift, Vector<double> coef, double intercept, Weight metric, int kind,
           double a, double b, bool expected, bool hessian) {
            constexpr const char *message =
                "glm.evaluate: expected X (n, p), codes (n, k), first, levels and skip (k,), y (n,), weight and offset "
                "(n,) or None, shift (p,), coef (p + levels,), metric of one more or None, a known kind";
            const auto x = view(X);
            require(codes.shape(0) == x.rows, message);
            const std::size_t d = checked_size(codes, x.cols, first, levels, skip, message);
            require(shift.shape(0) == x.cols && coef.shape(0) + 1 == d, message);
            const auto rows = family_rows(kind, a, b, expected, y, weight, offset, x.rows, message);
            const double *scale = pointer(metric, d, message);
            const Codes<T> c{view(codes), first.data(), levels.data(), skip.data()};
            return passed(d, hessian, [&](double *g, double *H) {
                return glm_sums(x, c, rows, shift.data(), coef.data(), intercept, scale, d, g, H);
            });
        },
        "X"_a.noconvert(), "codes"_a.noconvert(), "first"_a, "levels"_a, "skip"_a, "y"_a.noconvert(), "weight"_a.none(),
        "offset"_a.none(), "shift"_a, "coef"_a, "intercept"_a, "metric"_a.none(), "kind"_a, "a"_a, "b"_a, "expected"_a,
        "hessian"_a);
    m.def(
        "accumulate",
        [](Matrix<T> X, Matrix<T> codes, Index first, Index levels, Index skip, Vector<double> shift, Vector<double> r,
           Weight h, Weight metric) {
            constexpr const char *message =
                "glm.accumulate: expected X (n, p), codes (n, k), first, levels and skip (k,), "
                "shift (p,), r (n,), h (n,) or None, none of h below zero, metric of as many as g or None";
            const auto x = view(X);
            require(codes.shape(0) == x.rows && r.shape(0) == x.rows && shift.shape(0) == x.cols, message);
            const std::size_t d = checked_size(codes, x.cols, first, levels, skip, message);
            const double *curvature = pointer(h, x.rows, message);
            const double *scale = pointer(metric, d, message);
            const Codes<T> c{view(codes), first.data(), levels.data(), skip.data()};
            return passed(d, curvature != nullptr, [&](double *g, double *H) {
                return glm_sums(x, c, GivenRows{r.data(), curvature}, shift.data(), nullptr, 0.0, scale, d, g, H);
            });
        },
        "X"_a.noconvert(), "codes"_a.noconvert(), "first"_a, "levels"_a, "skip"_a, "shift"_a, "r"_a.noconvert(),
        "h"_a.none(), "metric"_a.none());
}

template <class T, class I>
Csr<T, I> csr(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t cols,
              const char *message) {
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), message);
    Csr<T, I> X{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, cols};
    require(well_formed(X, data.shape(0)), message);
    return X;
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def(
        "csr_evaluate",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> y, Weight weight,
           Weight offset, Vector<double> coef, double intercept, Weight metric, int kind, double a, double b,
           bool expected, bool hessian) {
            constexpr const char *message = "glm.csr_evaluate: expected a well-formed CSR matrix (n, p), y (n,), "
                                            "weight and offset (n,) or None, coef "
                                            "(p,), metric (p + 1,) or None, a known kind";
            const auto x = csr<T, I>(data, indices, indptr, n_columns, message);
            require(coef.shape(0) == x.cols, message);
            const auto rows = family_rows(kind, a, b, expected, y, weight, offset, x.rows, message);
            const double *scale = pointer(metric, x.cols + 1, message);
            return passed(x.cols + 1, hessian,
                          [&](double *g, double *H) { return glm_sums(x, rows, coef.data(), intercept, scale, g, H); });
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "y"_a.noconvert(),
        "weight"_a.none(), "offset"_a.none(), "coef"_a, "intercept"_a, "metric"_a.none(), "kind"_a, "a"_a, "b"_a,
        "expected"_a, "hessian"_a);
    m.def(
        "csr_accumulate",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> r, Weight h,
           Weight metric) {
            constexpr const char *message =
                "glm.csr_accumulate: expected a well-formed CSR matrix (n, p), r (n,), h (n,) "
                "or None, none of h below zero";
            const auto x = csr<T, I>(data, indices, indptr, n_columns, message);
            require(r.shape(0) == x.rows, message);
            const double *curvature = pointer(h, x.rows, message);
            const double *scale = pointer(metric, x.cols + 1, message);
            return passed(x.cols + 1, curvature != nullptr, [&](double *g, double *H) {
                return glm_sums(x, GivenRows{r.data(), curvature}, nullptr, 0.0, scale, g, H);
            });
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "r"_a.noconvert(),
        "h"_a.none(), "metric"_a.none());
}

}  // namespace

void bind_glm(nb::module_ &m) {
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}

}  // namespace epicycle
