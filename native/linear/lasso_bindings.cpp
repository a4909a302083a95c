// Bindings of the lasso: columns of X, coordinate descent, screening.
#include "core/binding.hpp"
#include "linear/coordinate_descent.hpp"
#include "linear/lasso_columns.hpp"
#include "linear/lasso_screening.hpp"

namespace epicycle {
namespace {

using Columns = Vector<std::int64_t>;
using OptionalColumns = std::optional<Columns>;

const std::int64_t *checked(const Columns &columns, std::size_t p, const char *message) {
    for (std::size_t t = 0; t < columns.shape(0); ++t)
        require(columns.data()[t] >= 0 && static_cast<std::size_t>(columns.data()[t]) < p, message);
    return columns.data();
}
const std::int64_t *checked(const OptionalColumns &columns, std::size_t p, const char *message) {
    return columns ? checked(*columns, p, message) : nullptr;
}

template <class T, class I>
Csc<T, I> csc(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t rows,
              const char *message) {
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), message);
    require(rows <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), message);
    return {data.data(), indices.data(), indptr.data(), rows, indptr.shape(0) - 1, data.shape(0)};
}

std::tuple<std::size_t, double, bool> report(const Descent &done) { return {done.epochs, done.gap, done.settled}; }

template <class T>
void bind_dense(nb::module_ &m) {
    m.def(
        "lasso_columns",
        [](Matrix<T> X, Weight weight, Vector<double> u, bool centre, std::size_t first, std::size_t last,
           InOut1<double> mean, InOut1<double> square, InOut1<double> product, int threads) {
            constexpr const char *expected = "lasso_columns: expected X (n, p), weight (n,) or None, u (n,), "
                                             "first <= last <= p, mean, square and product (p,), threads >= 1";
            const auto x = view(X);
            const double *v = pointer(weight, x.rows, expected);
            require(x.rows > 0 && u.shape(0) == x.rows && first <= last && last <= x.cols && threads >= 1, expected);
            require(mean.shape(0) == x.cols && square.shape(0) == x.cols && product.shape(0) == x.cols, expected);
            nb::gil_scoped_release nogil;
            column_statistics(x, v, u.data(), centre, first, last, {mean.data(), square.data(), product.data()},
                              threads);
        },
        "X"_a.noconvert(), "weight"_a.none(), "u"_a, "centre"_a, "first"_a, "last"_a, "mean"_a.noconvert(),
        "square"_a.noconvert(), "product"_a.noconvert(), "threads"_a);
    m.def(
        "lasso_correlations",
        [](Matrix<T> X, Vector<double> u, Vector<double> mean, OptionalColumns columns, std::size_t first,
           std::size_t last, InOut1<double> out, int threads) {
            constexpr const char *expected = "lasso_correlations: expected X (n, p), u (n,), mean (p,), columns inside "
                                             "X or None, first <= last <= their number, out (p,), threads >= 1";
            const auto x = view(X);
            require(u.shape(0) == x.rows && mean.shape(0) == x.cols && out.shape(0) == x.cols && threads >= 1,
                    expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            require(first <= last && last <= (columns ? columns->shape(0) : x.cols), expected);
            nb::gil_scoped_release nogil;
            correlations(x, u.data(), mean.data(), chosen, first, last, out.data(), threads);
        },
        "X"_a.noconvert(), "u"_a, "mean"_a, "columns"_a.none(), "first"_a, "last"_a, "out"_a.noconvert(), "threads"_a);
    m.def(
        "lasso_residual",
        [](Matrix<T> X, Vector<double> mean, Columns columns, Vector<double> coef, InOut1<double> r) {
            constexpr const char *expected =
                "lasso_residual: expected X (n, p), mean (p,), columns inside X, coef one for each, r (n,)";
            const auto x = view(X);
            require(mean.shape(0) == x.cols && coef.shape(0) == columns.shape(0) && r.shape(0) == x.rows, expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            nb::gil_scoped_release nogil;
            subtract_columns(x, mean.data(), chosen, coef.data(), columns.shape(0), r.data());
        },
        "X"_a.noconvert(), "mean"_a, "columns"_a, "coef"_a, "r"_a.noconvert());
    m.def(
        "lasso_gather",
        [](Matrix<T> X, Weight weight, Vector<double> mean, Columns columns,
           nb::ndarray<double, nb::ndim<2>, nb::f_contig, nb::device::cpu> out) {
            constexpr const char *expected = "lasso_gather: expected X (n, p), weight (n,) or None, mean (p,), columns "
                                             "inside X, out (n, number of columns) in Fortran order";
            const auto x = view(X);
            const double *v = pointer(weight, x.rows, expected);
            require(mean.shape(0) == x.cols && out.shape(0) == x.rows && out.shape(1) == columns.shape(0), expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            nb::gil_scoped_release nogil;
            gather_columns(x, v, mean.data(), chosen, columns.shape(0), out.data());
        },
        "X"_a.noconvert(), "weight"_a.none(), "mean"_a, "columns"_a, "out"_a.noconvert());
    m.def(
        "lasso_descend",
        [](Matrix<T> X, Weight weight, Columns columns, Vector<double> mean, Vector<double> square, Vector<double> l1,
           Vector<double> l2, bool positive, InOut1<double> w, InOut1<double> u, std::size_t max_epochs, double target,
           double max_work) {
            constexpr const char *expected =
                "lasso_descend: expected column-major X (n, p), weight (n,) or None, k columns inside X, mean, square, "
                "l1, l2 and w (k,), u (n,)";
            const auto x = view(X);
            const double *v = pointer(weight, x.rows, expected);
            const std::size_t k = columns.shape(0);
            require((x.row_stride == 1 || x.rows <= 1) && mean.shape(0) == k && square.shape(0) == k, expected);
            require(l1.shape(0) == k && l2.shape(0) == k && w.shape(0) == k && u.shape(0) == x.rows, expected);
            DenseProblem<T> problem{x, checked(columns, x.cols, expected), mean.data(), square.data(), v, u.data()};
            nb::gil_scoped_release nogil;
            return report(
                descend(problem, {l1.data(), l2.data(), positive}, w.data(), k, max_epochs, target, max_work, false));
        },
        "X"_a.noconvert(), "weight"_a.none(), "columns"_a, "mean"_a, "square"_a, "l1"_a, "l2"_a, "positive"_a,
        "w"_a.noconvert(), "u"_a.noconvert(), "max_epochs"_a, "target"_a, "max_work"_a);
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    constexpr const char *malformed = "lasso: the columns of X are not those of a well-formed CSC matrix";
    m.def(
        "csc_lasso_columns",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_rows, Weight weight, Vector<double> u,
           bool centre, std::size_t first, std::size_t last, InOut1<double> mean, InOut1<double> square,
           InOut1<double> product, int threads) {
            constexpr const char *expected =
                "csc_lasso_columns: expected a CSC matrix (n, p) of at most 2^31 - 1 rows, weight (n,) or None, "
                "u (n,), first <= last <= p, mean, square and product (p,), threads >= 1";
            const auto x = csc<T, I>(data, indices, indptr, n_rows, expected);
            const double *v = pointer(weight, x.rows, expected);
            require(u.shape(0) == x.rows && first <= last && last <= x.cols && threads >= 1, expected);
            require(mean.shape(0) == x.cols && square.shape(0) == x.cols && product.shape(0) == x.cols, expected);
            bool ok;
            {
                nb::gil_scoped_release nogil;
                ok = column_statistics(x, v, u.data(), centre, first, last,
                                       {mean.data(), square.data(), product.data()}, threads);
            }
            require(ok, malformed);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_rows"_a, "weight"_a.none(), "u"_a,
        "centre"_a, "first"_a, "last"_a, "mean"_a.noconvert(), "square"_a.noconvert(), "product"_a.noconvert(),
        "threads"_a);
    m.def(
        "csc_lasso_correlations",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_rows, Vector<double> u,
           Vector<double> mean, OptionalColumns columns, std::size_t first, std::size_t last, InOut1<double> out,
           int threads) {
            constexpr const char *expected =
                "csc_lasso_correlations: expected a CSC matrix (n, p), u (n,), mean (p,), columns inside X or None, "
                "first <= last <= their number, out (p,), threads >= 1";
            const auto x = csc<T, I>(data, indices, indptr, n_rows, expected);
            require(u.shape(0) == x.rows && mean.shape(0) == x.cols && out.shape(0) == x.cols && threads >= 1,
                    expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            require(first <= last && last <= (columns ? columns->shape(0) : x.cols), expected);
            bool ok;
            {
                nb::gil_scoped_release nogil;
                ok = correlations(x, u.data(), mean.data(), chosen, first, last, out.data(), threads);
            }
            require(ok, malformed);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_rows"_a, "u"_a, "mean"_a,
        "columns"_a.none(), "first"_a, "last"_a, "out"_a.noconvert(), "threads"_a);
    m.def(
        "csc_lasso_residual",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_rows, Vector<double> mean,
           Columns columns, Vector<double> coef, InOut1<double> r) {
            constexpr const char *expected =
                "csc_lasso_residual: expected a CSC matrix (n, p), mean (p,), columns inside X, coef one for each, "
                "r (n,)";
            const auto x = csc<T, I>(data, indices, indptr, n_rows, expected);
            require(mean.shape(0) == x.cols && coef.shape(0) == columns.shape(0) && r.shape(0) == x.rows, expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            bool ok;
            {
                nb::gil_scoped_release nogil;
                ok = subtract_columns(x, mean.data(), chosen, coef.data(), columns.shape(0), r.data());
            }
            require(ok, malformed);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_rows"_a, "mean"_a, "columns"_a,
        "coef"_a, "r"_a.noconvert());
    m.def(
        "csc_lasso_descend",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_rows, Weight weight, Columns columns,
           Vector<double> mean, Vector<double> square, Vector<double> l1, Vector<double> l2, bool positive,
           InOut1<double> w, Vector<double> r, std::size_t max_epochs, double target, double max_work) {
            constexpr const char *expected =
                "csc_lasso_descend: expected a CSC matrix (n, p), weight (n,) or None, k columns inside X, mean, "
                "square, l1, l2 and w (k,), r (n,)";
            const auto x = csc<T, I>(data, indices, indptr, n_rows, expected);
            const double *v = pointer(weight, x.rows, expected);
            const std::size_t k = columns.shape(0);
            require(mean.shape(0) == k && square.shape(0) == k && r.shape(0) == x.rows, expected);
            require(l1.shape(0) == k && l2.shape(0) == k && w.shape(0) == k, expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            SparseProblem problem;
            Descent done;
            bool ok;
            {
                nb::gil_scoped_release nogil;
                ok = gather_columns(x, v, r.data(), chosen, k, problem);
                problem.mean = mean.data(), problem.norm2 = square.data();
                if (ok)
                    done = descend(problem, {l1.data(), l2.data(), positive}, w.data(), k, max_epochs, target, max_work,
                                   false);
            }
            require(ok, malformed);
            return report(done);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_rows"_a, "weight"_a.none(),
        "columns"_a, "mean"_a, "square"_a, "l1"_a, "l2"_a, "positive"_a, "w"_a.noconvert(), "r"_a, "max_epochs"_a,
        "target"_a, "max_work"_a);
}

void bind_gram(nb::module_ &m) {
    m.def(
        "gram_lasso_descend",
        [](Matrix<double> G, Columns slots, Vector<double> square, Vector<double> xy, double yy, Vector<double> l1,
           Vector<double> l2, bool positive, InOut1<double> w, InOut1<double> q, std::size_t max_epochs, double target,
           double max_work, bool until_settled) {
            constexpr const char *expected =
                "gram_lasso_descend: expected G (m, m) with contiguous rows, k slots inside it, square, l1, l2 and w "
                "(k,), xy and q (m,)";
            const std::size_t size = G.shape(0), k = slots.shape(0);
            require(G.shape(1) == size && (G.stride(1) == 1 || size <= 1) && G.stride(0) >= 0, expected);
            require(xy.shape(0) == size && q.shape(0) == size && square.shape(0) == k, expected);
            require(l1.shape(0) == k && l2.shape(0) == k && w.shape(0) == k, expected);
            GramProblem problem{G.data(),
                                static_cast<std::size_t>(G.stride(0)),
                                size,
                                checked(slots, size, expected),
                                square.data(),
                                q.data(),
                                yy,
                                xy.data()};
            nb::gil_scoped_release nogil;
            return report(descend(problem, {l1.data(), l2.data(), positive}, w.data(), k, max_epochs, target, max_work,
                                  until_settled));
        },
        "G"_a.noconvert(), "slots"_a, "square"_a, "xy"_a, "yy"_a, "l1"_a, "l2"_a, "positive"_a, "w"_a.noconvert(),
        "q"_a.noconvert(), "max_epochs"_a, "target"_a, "max_work"_a, "until_settled"_a);
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
    m.def(
        "lasso_dual_point",
        [](Vector<double> c, Vector<double> slack, Vector<double> w, Vector<double> l1, Vector<double> l2,
           bool positive, Vector<std::uint8_t> alive, double rr) {
            const std::size_t p = c.shape(0);
            require(slack.shape(0) == p && w.shape(0) == p && l1.shape(0) == p && l2.shape(0) == p &&
                        alive.shape(0) == p,
                    "lasso_dual_point: expected arrays of one length");
            nb::gil_scoped_release nogil;
            const auto d = dual_point({c.data(), slack.data(), w.data(), nullptr, p}, {l1.data(), l2.data(), positive},
                                      alive.data(), rr);
            return std::make_tuple(d.primal, d.dual, d.scale);
        },
        "c"_a, "slack"_a, "w"_a, "l1"_a, "l2"_a, "positive"_a, "alive"_a, "rr"_a);
    m.def(
        "lasso_screen",
        [](Vector<double> c, Vector<double> slack, Vector<double> w, Vector<double> norm, Vector<double> l1,
           Vector<double> l2, bool positive, double scale, double radius, InOut1<std::uint8_t> alive,
           InOut1<double> score) {
            const std::size_t p = c.shape(0);
            require(slack.shape(0) == p && w.shape(0) == p && l1.shape(0) == p && l2.shape(0) == p &&
                        alive.shape(0) == p && norm.shape(0) == p && score.shape(0) == p,
                    "lasso_screen: expected arrays of one length");
            nb::gil_scoped_release nogil;
            return screen({c.data(), slack.data(), w.data(), norm.data(), p}, {l1.data(), l2.data(), positive}, scale,
                          radius, alive.data(), score.data());
        },
        "c"_a, "slack"_a, "w"_a, "norm"_a, "l1"_a, "l2"_a, "positive"_a, "scale"_a, "radius"_a, "alive"_a.noconvert(),
        "score"_a.noconvert());
}

}  // namespace

void bind_lasso(nb::module_ &m) {
    bind_gram(m);
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}

}  // namespace epicycle
