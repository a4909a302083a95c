// Bindings of L1-penalised logistic regression.
#include "linear/logistic_l1.hpp"
#include "linear/options.hpp"

namespace epicycle {
namespace {

template <class T, class Solve>
bool with_columns(const Dense<T> &X, const std::int64_t *columns, std::size_t k, const double *centre, Solve solve) {
    DenseSet<T> set(X, columns, k, centre);
    solve(set);
    return true;
}
template <class T, class I, class Solve>
bool with_columns(const Csc<T, I> &X, const std::int64_t *columns, std::size_t k, const double *, Solve solve) {
    SparseSet set;
    if (!set.gather(X, columns, k)) return false;
    solve(set);
    return true;
}

template <class T>
bool column_major(const Dense<T> &X) {
    return X.rows > 0 && (X.row_stride == 1 || X.rows <= 1);
}
template <class T, class I>
bool column_major(const Csc<T, I> &) {
    return true;
}

}  // namespace

void bind_logistic(nb::module_ &m) {
    for_columns([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "logistic_descend",
            [](X table, Columns columns, Vector<double> y, Vector<double> v, const PenaltyArrays &penalty,
               bool intercept, Vector<double> centre, InOut1<double> w, InOut1<double> z, const Budget &budget) {
                constexpr const char *expected =
                    "logistic_descend: expected X (n, p), column-major with n > 0 or a well-formed CSC matrix of at "
                    "most 2^31 - 1 rows, k columns inside X, y, v and z (n,), centre, w and penalties (k,)";
                const auto x = view(table, expected);
                const std::size_t k = columns.shape(0), n = x.rows;
                require(column_major(x) && y.shape(0) == n && v.shape(0) == n && z.shape(0) == n, expected);
                require(centre.shape(0) == k && w.shape(0) == k, expected);
                const Penalty cost = penalty.view(k, expected);
                const std::int64_t *chosen = checked(columns, x.cols, expected);
                NewtonResult done;
                run_on_columns([&] {
                    return with_columns(x, chosen, k, centre.data(), [&](auto &set) {
                        done = proximal_newton(set, y.data(), v.data(), cost, intercept, centre.data(), w.data(),
                                               z.data(), budget.rounds, budget.target, budget.work);
                    });
                });
                return std::make_tuple(done.steps, done.gap, done.intercept);
            },
            "X"_a.noconvert(), "columns"_a, "y"_a, "v"_a, "penalty"_a, "intercept"_a, "centre"_a, "w"_a.noconvert(),
            "z"_a.noconvert(), "budget"_a);
    });
    m.def(
        "logistic_residual",
        [](Vector<double> z, Vector<double> y, Vector<double> v, InOut1<double> u) {
            const std::size_t n = z.shape(0);
            require(y.shape(0) == n && v.shape(0) == n && u.shape(0) == n,
                    "logistic_residual: expected z, y, v and u of one length");
            nb::gil_scoped_release nogil;
            std::vector<double> h(n);
            return residual_rows(z.data(), y.data(), v.data(), n, u.data(), h.data());
        },
        "z"_a, "y"_a, "v"_a, "u"_a.noconvert());
    m.def(
        "coin_divergence",
        [](Vector<double> margin, Vector<double> v, Vector<double> factor) {
            const std::size_t n = margin.shape(0);
            require(v.shape(0) == n && factor.shape(0) == n,
                    "coin_divergence: expected margin, v and factor of one length");
            nb::gil_scoped_release nogil;
            double sum = 0.0;
            for (std::size_t i = 0; i < n; ++i)
                sum += v.data()[i] * coin_divergence(margin.data()[i], factor.data()[i]);
            return sum;
        },
        "margin"_a, "v"_a, "factor"_a);
}

}  // namespace epicycle
