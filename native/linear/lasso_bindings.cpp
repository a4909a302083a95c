// Bindings of the lasso: columns of X, coordinate descent, screening.
#include "linear/lasso_columns.hpp"
#include "linear/lasso_screening.hpp"
#include "linear/multi_task.hpp"
#include "linear/options.hpp"

namespace epicycle {
namespace {

std::tuple<std::size_t, double, bool> report(const Descent &done) { return {done.epochs, done.gap, done.settled}; }

template <class Problem>
Descent run_descent(Problem &problem, const Penalty &penalty, double *w, std::size_t k, const Budget &budget,
                    bool until_settled = false) {
    return descend(problem, penalty, w, k, budget.rounds, budget.target, budget.work, until_settled);
}

// Sums over the columns of X, dense or CSC.
void bind_columns(nb::module_ &m) {
    for_columns([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "lasso_columns",
            [](X table, Weight weight, Vector<double> u, bool centre, std::size_t first, std::size_t last,
               InOut1<double> mean, InOut1<double> square, InOut1<double> product, int threads) {
                constexpr const char *expected =
                    "lasso_columns: expected X (n, p) dense or CSC of at most 2^31 - 1 rows, weight (n,) or None, u "
                    "(n,), first <= last <= p, mean, square and product (p,), threads >= 1";
                const auto x = view(table, expected);
                const double *v = pointer(weight, x.rows, expected);
                require(is_compressed<X> || x.rows > 0, expected);
                require(u.shape(0) == x.rows && first <= last && last <= x.cols && threads >= 1, expected);
                require(mean.shape(0) == x.cols && square.shape(0) == x.cols && product.shape(0) == x.cols, expected);
                run_on_columns([&] {
                    return column_statistics(x, v, u.data(), centre, first, last,
                                             {mean.data(), square.data(), product.data()}, threads);
                });
            },
            "X"_a.noconvert(), "weight"_a.none(), "u"_a, "centre"_a, "first"_a, "last"_a, "mean"_a.noconvert(),
            "square"_a.noconvert(), "product"_a.noconvert(), "threads"_a);
        m.def(
            "lasso_correlations",
            [](X table, nb::ndarray<const double, nb::c_contig, nb::device::cpu> u, Vector<double> mean,
               std::optional<Columns> columns, std::size_t first, std::size_t last,
               nb::ndarray<double, nb::c_contig, nb::device::cpu> out, int threads) {
                constexpr const char *expected =
                    "lasso_correlations: expected X (n, p) dense or CSC, u (n,) or (k, n), mean (p,), columns inside X "
                    "or None, first <= last <= their number, out (p,) or (k, p), threads >= 1";
                const auto x = view(table, expected);
                const std::size_t d = u.ndim(), k = d == 2 ? u.shape(0) : 1;
                require((d == 1 || d == 2) && out.ndim() == d && (d == 1 || out.shape(0) == k), expected);
                require(u.shape(d - 1) == x.rows && out.shape(d - 1) == x.cols, expected);
                require(mean.shape(0) == x.cols && threads >= 1, expected);
                const std::int64_t *chosen = columns ? checked(*columns, x.cols, expected) : nullptr;
                require(first <= last && last <= (columns ? columns->shape(0) : x.cols), expected);
                run_on_columns([&] {
                    return correlations(x, u.data(), k, mean.data(), chosen, first, last, out.data(), threads);
                });
            },
            "X"_a.noconvert(), "u"_a, "mean"_a, "columns"_a.none(), "first"_a, "last"_a, "out"_a.noconvert(),
            "threads"_a);
        m.def(
            "lasso_residual",
            [](X table, Vector<double> mean, Columns columns, Vector<double> coef, InOut1<double> r) {
                constexpr const char *expected = "lasso_residual: expected X (n, p) dense or CSC, mean (p,), columns "
                                                 "inside X, coef one for each, r (n,)";
                const auto x = view(table, expected);
                require(mean.shape(0) == x.cols && coef.shape(0) == columns.shape(0) && r.shape(0) == x.rows, expected);
                const std::int64_t *chosen = checked(columns, x.cols, expected);
                run_on_columns(
                    [&] { return subtract_columns(x, mean.data(), chosen, coef.data(), columns.shape(0), r.data()); });
            },
            "X"_a.noconvert(), "mean"_a, "columns"_a, "coef"_a, "r"_a.noconvert());
    });
}

// Descent on the columns themselves: dense ones where they are, sparse ones gathered for the call.
void bind_descent(nb::module_ &m) {
    for_dense([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "lasso_gather",
            [](X table, Weight weight, Vector<double> mean, Columns columns,
               nb::ndarray<double, nb::ndim<2>, nb::f_contig, nb::device::cpu> out) {
                constexpr const char *expected =
                    "lasso_gather: expected X (n, p), weight (n,) or None, mean (p,), columns inside X, out (n, number "
                    "of columns) in Fortran order";
                const auto x = view(table);
                const double *v = pointer(weight, x.rows, expected);
                require(mean.shape(0) == x.cols && out.shape(0) == x.rows && out.shape(1) == columns.shape(0),
                        expected);
                const std::int64_t *chosen = checked(columns, x.cols, expected);
                nb::gil_scoped_release nogil;
                gather_columns(x, v, mean.data(), chosen, columns.shape(0), out.data());
            },
            "X"_a.noconvert(), "weight"_a.none(), "mean"_a, "columns"_a, "out"_a.noconvert());
        m.def(
            "lasso_descend",
            [](X table, Weight weight, Columns columns, Vector<double> mean, Vector<double> square,
               const PenaltyArrays &penalty, InOut1<double> w, InOut1<double> u, const Budget &budget) {
                constexpr const char *expected =
                    "lasso_descend: expected column-major X (n, p), weight (n,) or None, k columns inside X, mean, "
                    "square, w and penalties (k,), u (n,)";
                const auto x = view(table);
                const double *v = pointer(weight, x.rows, expected);
                const std::size_t k = columns.shape(0);
                require((x.row_stride == 1 || x.rows <= 1) && mean.shape(0) == k && square.shape(0) == k, expected);
                require(w.shape(0) == k && u.shape(0) == x.rows, expected);
                const Penalty cost = penalty.view(k, expected);
                DenseProblem<Scalar<X>> problem{
                    x, checked(columns, x.cols, expected), mean.data(), square.data(), v, u.data()};
                nb::gil_scoped_release nogil;
                return report(run_descent(problem, cost, w.data(), k, budget));
            },
            "X"_a.noconvert(), "weight"_a.none(), "columns"_a, "mean"_a, "square"_a, "penalty"_a, "w"_a.noconvert(),
            "u"_a.noconvert(), "budget"_a);
    });
    for_compressed<CscMatrix>([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "csc_lasso_descend",
            [](X table, Weight weight, Columns columns, Vector<double> mean, Vector<double> square,
               const PenaltyArrays &penalty, InOut1<double> w, Vector<double> r, const Budget &budget) {
                constexpr const char *expected =
                    "csc_lasso_descend: expected a CSC matrix (n, p), weight (n,) or None, k columns inside X, mean, "
                    "square, w and penalties (k,), r (n,)";
                const auto x = view(table, expected);
                const double *v = pointer(weight, x.rows, expected);
                const std::size_t k = columns.shape(0);
                require(mean.shape(0) == k && square.shape(0) == k && w.shape(0) == k && r.shape(0) == x.rows,
                        expected);
                const Penalty cost = penalty.view(k, expected);
                const std::int64_t *chosen = checked(columns, x.cols, expected);
                Descent done;
                run_on_columns([&] {
                    SparseProblem problem;
                    if (!gather_columns(x, v, r.data(), chosen, k, problem)) return false;
                    problem.mean = mean.data(), problem.norm2 = square.data();
                    done = run_descent(problem, cost, w.data(), k, budget);
                    return true;
                });
                return report(done);
            },
            "X"_a.noconvert(), "weight"_a.none(), "columns"_a, "mean"_a, "square"_a, "penalty"_a, "w"_a.noconvert(),
            "r"_a, "budget"_a);
    });
}

void bind_gram(nb::module_ &m) {
    m.def(
        "gram_lasso_descend",
        [](Matrix<double> G, Columns slots, Vector<double> square, Vector<double> xy, double yy,
           const PenaltyArrays &penalty, InOut1<double> w, InOut1<double> q, const Budget &budget, bool until_settled) {
            constexpr const char *expected =
                "gram_lasso_descend: expected G (m, m) with contiguous rows, k slots inside it, square, w and "
                "penalties (k,), xy and q (m,)";
            const std::size_t size = G.shape(0), k = slots.shape(0);
            require(G.shape(1) == size && (G.stride(1) == 1 || size <= 1) && G.stride(0) >= 0, expected);
            require(xy.shape(0) == size && q.shape(0) == size && square.shape(0) == k && w.shape(0) == k, expected);
            const Penalty cost = penalty.view(k, expected);
            GramProblem problem{G.data(),
                                static_cast<std::size_t>(G.stride(0)),
                                size,
                                checked(slots, size, expected),
                                square.data(),
                                q.data(),
                                yy,
                                xy.data()};
            nb::gil_scoped_release nogil;
            return report(run_descent(problem, cost, w.data(), k, budget, until_settled));
        },
        "G"_a.noconvert(), "slots"_a, "square"_a, "xy"_a, "yy"_a, "penalty"_a, "w"_a.noconvert(), "q"_a.noconvert(),
        "budget"_a, "until_settled"_a);
    m.def(
        "gram_lasso_move",
        [](Matrix<double> G, Columns slots, Vector<double> step, InOut1<double> q) {
            constexpr const char *expected =
                "gram_lasso_move: expected G (m, m) with contiguous rows, k slots inside it, step (k,), q (m,)";
            const std::size_t size = G.shape(0), k = slots.shape(0);
            require(G.shape(1) == size && (G.stride(1) == 1 || size <= 1) && G.stride(0) >= 0, expected);
            require(q.shape(0) == size && step.shape(0) == k, expected);
            const std::int64_t *chosen = checked(slots, size, expected);
            nb::gil_scoped_release nogil;
            for (std::size_t t = 0; t < k; ++t)
                subtract_multiple(q.data(), G.data() + chosen[t] * G.stride(0), step.data()[t], size);
        },
        "G"_a.noconvert(), "slots"_a, "step"_a, "q"_a.noconvert());
}

void bind_multi_task(nb::module_ &m) {
    m.def(
        "multi_task_descend",
        [](RowMajor<double> G, const PenaltyArrays &penalty, InOut2<double> W, InOut2<double> Q, double square,
           const Budget &budget) {
            constexpr const char *expected =
                "multi_task_descend: expected G (m, m), penalties (m,), W and Q (m, k), all in C order";
            const std::size_t size = G.shape(0), k = W.shape(1);
            require(G.shape(1) == size && W.shape(0) == size && Q.shape(0) == size && Q.shape(1) == k, expected);
            const Penalty cost = penalty.view(size, expected);
            MultiTask problem{G.data(), size, size, k, cost.l1, cost.l2, W.data(), Q.data(), square};
            nb::gil_scoped_release nogil;
            const Descent done = multi_task_descend(problem, budget.rounds, budget.target, budget.work);
            return std::make_tuple(done.epochs, done.gap, problem.square);
        },
        "G"_a.noconvert(), "penalty"_a, "W"_a.noconvert(), "Q"_a.noconvert(), "square"_a, "budget"_a);
}

void bind_screening(nb::module_ &m) {
    m.def(
        "lasso_dual_point",
        [](Vector<double> c, Vector<double> slack, Vector<double> w, const PenaltyArrays &penalty,
           Vector<std::uint8_t> alive, double rr) {
            constexpr const char *expected = "lasso_dual_point: expected arrays of one length";
            const std::size_t p = c.shape(0);
            require(slack.shape(0) == p && w.shape(0) == p && alive.shape(0) == p, expected);
            const Penalty cost = penalty.view(p, expected);
            nb::gil_scoped_release nogil;
            const auto d = dual_point({c.data(), slack.data(), w.data(), nullptr, p}, cost, alive.data(), rr);
            return std::make_tuple(d.primal, d.dual, d.scale);
        },
        "c"_a, "slack"_a, "w"_a, "penalty"_a, "alive"_a, "rr"_a);
    m.def(
        "lasso_screen",
        [](Vector<double> c, Vector<double> slack, Vector<double> w, Vector<double> norm, const PenaltyArrays &penalty,
           double scale, double radius, InOut1<std::uint8_t> alive, InOut1<double> score) {
            constexpr const char *expected = "lasso_screen: expected arrays of one length";
            const std::size_t p = c.shape(0);
            require(slack.shape(0) == p && w.shape(0) == p && alive.shape(0) == p, expected);
            require(norm.shape(0) == p && score.shape(0) == p, expected);
            const Penalty cost = penalty.view(p, expected);
            nb::gil_scoped_release nogil;
            return screen({c.data(), slack.data(), w.data(), norm.data(), p}, cost, scale, radius, alive.data(),
                          score.data());
        },
        "c"_a, "slack"_a, "w"_a, "norm"_a, "penalty"_a, "scale"_a, "radius"_a, "alive"_a.noconvert(),
        "score"_a.noconvert());
}

}  // namespace

void bind_lasso(nb::module_ &m) {
    nb::class_<PenaltyArrays>(m, "Penalty")
        .def(nb::init<Vector<double>, Vector<double>, bool>(), "l1"_a, "l2"_a, "positive"_a = false);
    nb::class_<Budget>(m, "Budget")
        .def(nb::init<std::size_t, double, double>(), nb::kw_only(), "rounds"_a, "target"_a, "work"_a);
    bind_columns(m);
    bind_descent(m);
    bind_gram(m);
    bind_multi_task(m);
    bind_screening(m);
}

}  // namespace epicycle
