// Bindings of the linear support vector machines.
#include "core/binding.hpp"
#include "svm/linear_svm_dual.hpp"

namespace epicycle {
namespace {

constexpr std::size_t WORK_BETWEEN_LOOKS = 1 << 22;  // multiply-adds: a few milliseconds

template <class T, class I>
Csr<T, I> csr(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t cols,
              const char *message) {
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), message);
    Csr<T, I> X{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, cols};
    require(well_formed(X, data.shape(0)), message);
    return X;
}

template <class Rows>
nb::tuple sums(const Rows &X, const Vector<double> &y, const Weight &bound, const Vector<double> &coef,
               double intercept, const MarginLoss &loss, const char *expected) {
    require(y.shape(0) == X.rows && coef.shape(0) == X.cols, expected);
    require(loss.epsilon >= 0.0 && (loss.squared || loss.width > 0.0), expected);
    const double *c = pointer(bound, X.rows, expected);
    const std::size_t d = X.cols + 1;
    Buffer g(2 * d), H(d * d);
    MarginTotals t;
    {
        nb::gil_scoped_release nogil;
        t = margin_sums(X, y.data(), c, coef.data(), intercept, loss, g.data.get(), H.data.get());
    }
    return nb::make_tuple(t.loss, t.smooth, t.slack, t.violating, t.curved, matrix_out(g, 2, d), matrix_out(H, d, d));
}

constexpr const char *PASSES =
    "dual_passes: expected X (n, p), table (n, 4) with columns y, c > 0, |x|^2 > 0 and beta, w (p + 1,), order (m,) of "
    "rows in 0 .. n-1, number (3,) with 0 <= number[0] <= m, report (k, 4)";

// Up to report.shape(0) passes; ends early when the estimated gap falls to target times the primal value. Gives the
// number of passes made.
template <class Rows>
std::size_t passes(Rows rows, const DualProblem &problem, InOut2<double> &table, InOut1<double> &w,
                   InOut1<std::int64_t> &order, InOut1<double> &number, std::uint64_t seed, std::uint64_t first,
                   double target, InOut2<double> &report) {
    const std::size_t n = rows.size(), m = order.shape(0);
    require(table.shape(0) == n && table.shape(1) == DUAL_COLUMNS && w.shape(0) == rows.cols() + 1, PASSES);
    require(number.shape(0) == DUAL_NUMBERS && report.shape(1) == DUAL_REPORTS, PASSES);
    require(number.data()[ACTIVE] >= 0.0 && number.data()[ACTIVE] <= static_cast<double>(m), PASSES);
    for (std::size_t k = 0; k < m; ++k) {
        require(order.data()[k] >= 0 && static_cast<std::size_t>(order.data()[k]) < n, PASSES);
        const double *row = table.data() + DUAL_COLUMNS * order.data()[k];
        require(row[BOUND] > 0.0 && row[SQUARE] > 0.0, PASSES);
    }
    DualPass<Rows> pass(rows, problem, table.data(), w.data(), order.data(), number.data());
    const std::size_t piece = std::max<std::size_t>(1, WORK_BETWEEN_LOOKS / rows.cost());
    std::size_t done = 0;
    while (done < report.shape(0)) {
        double *facts = report.data() + DUAL_REPORTS * done;
        pass.begin(seed, first + done);
        for (bool more = true; more;) {
            {
                nb::gil_scoped_release nogil;
                more = pass.visit(piece);
            }
            if (PyErr_CheckSignals() != 0) throw nb::python_error();
        }
        pass.end(facts);
        ++done;
        if (facts[GAP] <= target * (facts[VALUE] + facts[GAP])) break;
    }
    return done;
}

template <class Rows>
Out1 weights(Rows rows, const InOut2<double> &table, double scale) {
    require(table.shape(0) == rows.size() && table.shape(1) == DUAL_COLUMNS,
            "dual_weights: expected X (n, p), table (n, 4)");
    const std::size_t d = rows.cols() + 1;
    Buffer w(d);
    {
        nb::gil_scoped_release nogil;
        dual_weights(rows, table.data(), scale, w.data.get());
    }
    return vector_out(w, d);
}

constexpr const char *SUMS =
    "margin_sums: expected X (n, p), y (n,), bound (n,) or None, coef (p,), epsilon >= 0, width > 0 unless squared";

template <class T>
void bind_dense(nb::module_ &m) {
    m.def(
        "margin_sums",
        [](Matrix<T> X, Vector<double> y, Weight bound, Vector<double> coef, double intercept, bool regression,
           bool squared, double epsilon, double width) {
            return sums(view(X), y, bound, coef, intercept, {regression, squared, epsilon, width}, SUMS);
        },
        "X"_a.noconvert(), "y"_a.noconvert(), "bound"_a.noconvert().none(), "coef"_a.noconvert(), "intercept"_a,
        "regression"_a, "squared"_a, "epsilon"_a, "width"_a);
    m.def(
        "dual_passes",
        [](Matrix<T> X, bool regression, bool squared, double epsilon, double scale, InOut2<double> table,
           InOut1<double> w, InOut1<std::int64_t> order, InOut1<double> number, std::uint64_t seed, std::uint64_t first,
           double target, InOut2<double> report) {
            return passes(DualDense<T>(view(X)), {{regression, squared, epsilon, 1.0}, scale}, table, w, order, number,
                          seed, first, target, report);
        },
        "X"_a.noconvert(), "regression"_a, "squared"_a, "epsilon"_a, "scale"_a, "table"_a.noconvert(),
        "w"_a.noconvert(), "order"_a.noconvert(), "number"_a.noconvert(), "seed"_a, "first"_a, "target"_a,
        "report"_a.noconvert());
    m.def(
        "dual_weights",
        [](Matrix<T> X, InOut2<double> table, double scale) { return weights(DualDense<T>(view(X)), table, scale); },
        "X"_a.noconvert(), "table"_a.noconvert(), "scale"_a);
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def(
        "csr_margin_sums",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> y, Weight bound,
           Vector<double> coef, double intercept, bool regression, bool squared, double epsilon, double width) {
            const auto X = csr<T, I>(data, indices, indptr, n_columns, "csr_margin_sums: expected a CSR matrix (n, p)");
            return sums(X, y, bound, coef, intercept, {regression, squared, epsilon, width}, SUMS);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "y"_a.noconvert(),
        "bound"_a.noconvert().none(), "coef"_a.noconvert(), "intercept"_a, "regression"_a, "squared"_a, "epsilon"_a,
        "width"_a);
    m.def(
        "csr_dual_passes",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, bool regression, bool squared,
           double epsilon, double scale, InOut2<double> table, InOut1<double> w, InOut1<std::int64_t> order,
           InOut1<double> number, std::uint64_t seed, std::uint64_t first, double target, InOut2<double> report) {
            const auto X = csr<T, I>(data, indices, indptr, n_columns, "csr_dual_passes: expected a CSR matrix (n, p)");
            return passes(DualSparse<T, I>(X, data.shape(0)), {{regression, squared, epsilon, 1.0}, scale}, table, w,
                          order, number, seed, first, target, report);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "regression"_a,
        "squared"_a, "epsilon"_a, "scale"_a, "table"_a.noconvert(), "w"_a.noconvert(), "order"_a.noconvert(),
        "number"_a.noconvert(), "seed"_a, "first"_a, "target"_a, "report"_a.noconvert());
    m.def(
        "csr_dual_weights",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, InOut2<double> table,
           double scale) {
            const auto X =
                csr<T, I>(data, indices, indptr, n_columns, "csr_dual_weights: expected a CSR matrix (n, p)");
            return weights(DualSparse<T, I>(X, data.shape(0)), table, scale);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "table"_a.noconvert(),
        "scale"_a);
}

}  // namespace

void bind_linear_svm(nb::module_ &m) {
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}

}  // namespace epicycle
