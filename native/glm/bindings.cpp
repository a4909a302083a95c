// Bindings of generalized linear models.
#include "core/binding.hpp"
#include "glm/designs.hpp"

namespace epicycle {
namespace {

using Index = Vector<std::int64_t>;
using Passed = std::tuple<double, double, double, double, Out1, Out2>;
// Codes (n, k) of the type of X; for each column of them its first coefficient, its levels, and how many are skipped.
template <class T>
using CategoryColumns = std::optional<std::tuple<Matrix<T>, Index, Index, Index>>;

// A family with its link and parameters, and whether curvature is the expected one.
struct Family {
    int kind;
    double a, b;
    bool expected;
};

// The rows of X and its codes, dense columns first; d counts the coefficients and an intercept.
template <class T>
struct DenseDesign {
    Dense<T> X;
    Codes<T> codes;
    const double *shift;
    std::size_t d;

    DenseDesign(const Matrix<T> &table, const CategoryColumns<T> &categories, const Vector<double> &s,
                const char *message)
        : X(view(table)), codes{{nullptr, X.rows, 0, 0, 0}, nullptr, nullptr, nullptr}, shift(s.data()) {
        require(s.shape(0) == X.cols, message);
        std::int64_t next = static_cast<std::int64_t>(X.cols);
        if (categories) {
            const auto &[table_of_codes, first, levels, skip] = *categories;
            codes = {view(table_of_codes), first.data(), levels.data(), skip.data()};
            const std::size_t k = codes.values.cols;
            require(codes.values.rows == X.rows && first.shape(0) == k && levels.shape(0) == k && skip.shape(0) == k,
                    message);
            for (std::size_t c = 0; c < k; ++c) {
                const std::int64_t l = levels.data()[c], s = skip.data()[c];
                require(first.data()[c] == next && s >= 0 && l >= s && l <= (std::int64_t{1} << 40), message);
                next += l - s;
            }
        }
        d = static_cast<std::size_t>(next) + 1;
    }
    template <class Rows>
    GlmTotals sums(const Rows &rows, const double *coef, double b, const double *metric, double *g, double *H) const {
        return glm_sums(X, codes, rows, shift, coef, b, metric, d, g, H);
    }
};

template <class T, class I>
struct SparseDesign {
    Csr<T, I> X;
    std::size_t d;

    SparseDesign(const CsrMatrix<T, I> &table, const CategoryColumns<T> &categories, const Vector<double> &s,
                 const char *message)
        : X(view(table, message)), d(X.cols + 1) {
        checked_shift<CsrMatrix<T, I>>(s, X.cols, message);
        require(!categories, message);
    }
    template <class Rows>
    GlmTotals sums(const Rows &rows, const double *coef, double b, const double *metric, double *g, double *H) const {
        return glm_sums(X, rows, coef, b, metric, g, H);
    }
};

template <class T>
DenseDesign<T> design(const Matrix<T> &X, const CategoryColumns<T> &categories, const Vector<double> &shift,
                      const char *message) {
    return {X, categories, shift, message};
}
template <class T, class I>
SparseDesign<T, I> design(const CsrMatrix<T, I> &X, const CategoryColumns<T> &categories, const Vector<double> &shift,
                          const char *message) {
    return {X, categories, shift, message};
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

}  // namespace

void bind_glm(nb::module_ &m) {
    nb::class_<Family>(m, "Family")
        .def(nb::init<int, double, double, bool>(), nb::kw_only(), "kind"_a, "a"_a, "b"_a, "expected"_a);
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        using T = Scalar<X>;
        m.def(
            "evaluate",
            [](X table, CategoryColumns<T> categories, Vector<double> y, Weight weight, Weight offset,
               Vector<double> shift, Vector<double> coef, double intercept, Weight metric, const Family &family,
               bool hessian) {
                constexpr const char *message =
                    "glm.evaluate: expected X (n, p), with categories (codes (n, k), first, levels and skip (k,)) or "
                    "None, or a well-formed CSR matrix without, y (n,), weight and offset (n,) or None, shift (p,), "
                    "coef (p + levels,), metric of one more or None, a known family";
                const auto x = design(table, categories, shift, message);
                const std::size_t n = x.X.rows;
                require(coef.shape(0) + 1 == x.d && y.shape(0) == n, message);
                require(family_rows(static_cast<LossId>(family.kind)) != nullptr, message);
                const FamilyRows rows{static_cast<LossId>(family.kind),
                                      family.a,
                                      family.b,
                                      family.expected,
                                      y.data(),
                                      pointer(weight, n, message),
                                      pointer(offset, n, message)};
                const double *scale = pointer(metric, x.d, message);
                return passed(x.d, hessian,
                              [&](double *g, double *H) { return x.sums(rows, coef.data(), intercept, scale, g, H); });
            },
            "X"_a.noconvert(), "categories"_a.noconvert().none(), "y"_a.noconvert(), "weight"_a.none(),
            "offset"_a.none(), "shift"_a, "coef"_a, "intercept"_a, "metric"_a.none(), "family"_a, "hessian"_a);
        m.def(
            "accumulate",
            [](X table, CategoryColumns<T> categories, Vector<double> shift, Vector<double> r, Weight h,
               Weight metric) {
                constexpr const char *message =
                    "glm.accumulate: expected X (n, p), with categories (codes (n, k), first, levels and skip (k,)) or "
                    "None, or a well-formed CSR matrix without, shift (p,), r (n,), h (n,) or None, none of h below "
                    "zero, metric of as many as g or None";
                const auto x = design(table, categories, shift, message);
                require(r.shape(0) == x.X.rows, message);
                const double *curvature = pointer(h, x.X.rows, message), *scale = pointer(metric, x.d, message);
                return passed(x.d, curvature != nullptr, [&](double *g, double *H) {
                    return x.sums(GivenTerms{r.data(), curvature}, nullptr, 0.0, scale, g, H);
                });
            },
            "X"_a.noconvert(), "categories"_a.noconvert().none(), "shift"_a, "r"_a.noconvert(), "h"_a.none(),
            "metric"_a.none());
    });
}

}  // namespace epicycle
