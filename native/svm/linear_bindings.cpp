// Bindings of the linear support vector machines.
#include "core/binding.hpp"
#include "svm/crammer_singer.hpp"
#include "svm/linear_svm_dual.hpp"

namespace epicycle {
namespace {

constexpr std::size_t WORK_BETWEEN_LOOKS = 1 << 22;  // multiply-adds between two looks at the clock: a few milliseconds

template <class T>
DualDense<T> dual_rows(const Matrix<T> &X, const char *) {
    return DualDense<T>(view(X));
}
template <class T, class I>
DualSparse<T, I> dual_rows(const CsrMatrix<T, I> &X, const char *message) {
    return {view(X, message), X.data.shape(0)};
}

// Passes from the number `first` on, until the gap is at most `target` of the value or the report is full: a row a
// pass.
struct PassesArrays {
    std::uint64_t seed, first;
    double target;
    InOut2<double> report;
};

// Up to report.shape(0) passes; ends early when the estimated gap falls to target times the primal value. Gives the
// number of passes made.
template <class Pass>
std::size_t run_passes(Pass &pass, std::size_t cost, const PassesArrays &passes) {
    const auto &[seed, first, target, report] = passes;
    const std::size_t piece = std::max<std::size_t>(1, WORK_BETWEEN_LOOKS / cost);
    nb::gil_scoped_release nogil;
    const Interrupts interrupts;
    std::size_t done = 0;
    while (done < report.shape(0)) {
        double *facts = report.data() + DUAL_REPORTS * done;
        pass.begin(seed, first + done);
        while (pass.visit(piece)) interrupts();
        interrupts();
        pass.end(facts);
        ++done;
        if (facts[GAP] <= target * (facts[VALUE] + facts[GAP])) break;
    }
    return done;
}

}  // namespace

void bind_linear_svm(nb::module_ &m) {
    nb::class_<PassesArrays>(m, "Passes")
        .def(nb::init<std::uint64_t, std::uint64_t, double, InOut2<double>>(), "seed"_a, "first"_a, "target"_a,
             "report"_a.noconvert());
    nb::class_<MarginLoss>(m, "MarginLoss")
        .def(nb::init<bool, bool, double, double>(), nb::kw_only(), "regression"_a, "squared"_a, "epsilon"_a,
             "width"_a = 1.0);
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "margin_sums",
            [](X table, Vector<double> y, Weight bound, Vector<double> coef, double intercept, const MarginLoss &loss) {
                constexpr const char *expected =
                    "margin_sums: expected X (n, p) dense or a well-formed CSR matrix, y (n,), bound (n,) or None, "
                    "coef (p,), epsilon >= 0, width > 0 unless squared";
                const auto x = view(table, expected);
                require(y.shape(0) == x.rows && coef.shape(0) == x.cols, expected);
                require(loss.epsilon >= 0.0 && (loss.squared || loss.width > 0.0), expected);
                const double *c = pointer(bound, x.rows, expected);
                const std::size_t d = x.cols + 1;
                Buffer g(2 * d), H(d * d);
                MarginTotals t;
                {
                    nb::gil_scoped_release nogil;
                    t = margin_sums(x, y.data(), c, coef.data(), intercept, loss, g.data.get(), H.data.get());
                }
                return nb::make_tuple(t.loss, t.smooth, t.slack, t.violating, t.curved, matrix_out(g, 2, d),
                                      matrix_out(H, d, d));
            },
            "X"_a.noconvert(), "y"_a.noconvert(), "bound"_a.noconvert().none(), "coef"_a.noconvert(), "intercept"_a,
            "loss"_a);
        m.def(
            "dual_passes",
            [](X matrix, const MarginLoss &loss, double scale, InOut2<double> table, InOut1<double> w,
               InOut1<std::int64_t> order, InOut1<double> number, const PassesArrays &passes) {
                constexpr const char *expected =
                    "dual_passes: expected X (n, p) dense or a well-formed CSR matrix, table (n, 4) with columns y, "
                    "c > 0, |x|^2 > 0 and beta, w (p + 1,), order (m,) of rows in 0 .. n-1, number (3,) with "
                    "0 <= number[0] <= m, report (k, 4)";
                auto rows = dual_rows(matrix, expected);
                const std::size_t n = rows.size(), m = order.shape(0);
                require(table.shape(0) == n && table.shape(1) == DUAL_COLUMNS && w.shape(0) == rows.cols() + 1,
                        expected);
                require(number.shape(0) == DUAL_NUMBERS && passes.report.shape(1) == DUAL_REPORTS, expected);
                require(number.data()[ACTIVE] >= 0.0 && number.data()[ACTIVE] <= static_cast<double>(m), expected);
                require(all_below(order, n), expected);
                for (std::size_t k = 0; k < m; ++k) {
                    const double *row = table.data() + DUAL_COLUMNS * order.data()[k];
                    require(row[BOUND] > 0.0 && row[SQUARE] > 0.0, expected);
                }
                const DualProblem problem{loss, scale};
                DualPass pass(rows, problem, table.data(), w.data(), order.data(), number.data());
                return run_passes(pass, rows.cost(), passes);
            },
            "X"_a.noconvert(), "loss"_a, "scale"_a, "table"_a.noconvert(), "w"_a.noconvert(), "order"_a.noconvert(),
            "number"_a.noconvert(), "passes"_a);
        m.def(
            "crammer_singer_passes",
            [](X matrix, Vector<std::int64_t> code, Vector<double> bound, Vector<double> square, double scale,
               InOut2<double> alpha, InOut2<double> W, InOut1<std::int64_t> order, InOut1<double> number,
               const PassesArrays &passes) {
                constexpr const char *expected =
                    "crammer_singer_passes: expected X (n, p) dense or a well-formed CSR matrix, code (n,) in "
                    "0 .. K-1, bound (n,) and square (n,) > 0, alpha (n, K), W (p + 1, K), order (m,) of rows in "
                    "0 .. n-1, number (3,) with 0 <= number[0] <= m, report (k, 4)";
                auto rows = row_reader(matrix, expected);
                const std::size_t n = rows.rows(), m = order.shape(0), K = W.shape(1);
                require(K >= 1 && W.shape(0) == rows.cols() + 1 && alpha.shape(0) == n && alpha.shape(1) == K,
                        expected);
                require(code.shape(0) == n && bound.shape(0) == n && square.shape(0) == n, expected);
                require(number.shape(0) == DUAL_NUMBERS && passes.report.shape(1) == DUAL_REPORTS, expected);
                require(number.data()[ACTIVE] >= 0.0 && number.data()[ACTIVE] <= static_cast<double>(m), expected);
                require(all_below(order, n) && all_below(code, K), expected);
                for (std::size_t k = 0; k < m; ++k) {
                    const std::int64_t i = order.data()[k];
                    require(bound.data()[i] > 0.0 && square.data()[i] > 0.0, expected);
                }
                CrammerSingerPass pass(rows, code.data(), bound.data(), square.data(), scale, K, alpha.data(), W.data(),
                                       order.data(), number.data());
                return run_passes(pass, rows.cost() * K, passes);
            },
            "X"_a.noconvert(), "code"_a.noconvert(), "bound"_a.noconvert(), "square"_a.noconvert(), "scale"_a,
            "alpha"_a.noconvert(), "W"_a.noconvert(), "order"_a.noconvert(), "number"_a.noconvert(), "passes"_a);
        m.def(
            "dual_weights",
            [](X matrix, InOut2<double> table, double scale) {
                constexpr const char *expected =
                    "dual_weights: expected X (n, p) dense or a well-formed CSR matrix, table (n, 4)";
                auto rows = dual_rows(matrix, expected);
                require(table.shape(0) == rows.size() && table.shape(1) == DUAL_COLUMNS, expected);
                const std::size_t d = rows.cols() + 1;
                Buffer w(d);
                {
                    nb::gil_scoped_release nogil;
                    dual_weights(rows, table.data(), scale, w.data.get());
                }
                return vector_out(w, d);
            },
            "X"_a.noconvert(), "table"_a.noconvert(), "scale"_a);
    });
}

}  // namespace epicycle
