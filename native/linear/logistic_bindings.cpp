// Bindings of L1-penalised logistic regression.
#include "core/binding.hpp"
#include "linear/logistic_l1.hpp"
#include "linear/multinomial.hpp"

namespace epicycle {
namespace {

using Columns = Vector<std::int64_t>;

const std::int64_t *checked(const Columns &columns, std::size_t p, const char *message) {
    for (std::size_t t = 0; t < columns.shape(0); ++t)
        require(columns.data()[t] >= 0 && static_cast<std::size_t>(columns.data()[t]) < p, message);
    return columns.data();
}

using Result = std::tuple<std::size_t, double, double>;
Result report(const NewtonResult &done) { return {done.steps, done.gap, done.intercept}; }

template <class T>
void bind_dense(nb::module_ &m) {
    m.def(
        "logistic_descend",
        [](Matrix<T> X, Columns columns, Vector<double> y, Vector<double> v, Vector<double> l1, Vector<double> l2,
           bool intercept, Vector<double> centre, InOut1<double> w, InOut1<double> z, std::size_t max_steps,
           double target, double max_work) {
            constexpr const char *expected =
                "logistic_descend: expected column-major X (n, p) with n > 0, k columns inside X, y, v and z (n,), l1, "
                "l2, centre and w (k,)";
            const auto x = view(X);
            const std::size_t k = columns.shape(0);
            require(x.rows > 0 && (x.row_stride == 1 || x.rows <= 1), expected);
            require(y.shape(0) == x.rows && v.shape(0) == x.rows && z.shape(0) == x.rows, expected);
            require(l1.shape(0) == k && l2.shape(0) == k && centre.shape(0) == k && w.shape(0) == k, expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            nb::gil_scoped_release nogil;
            DenseSet<T> set(x, chosen, k, centre.data());
            return report(proximal_newton(set, y.data(), v.data(), {l1.data(), l2.data(), false}, intercept,
                                          centre.data(), w.data(), z.data(), max_steps, target, max_work));
        },
        "X"_a.noconvert(), "columns"_a, "y"_a, "v"_a, "l1"_a, "l2"_a, "intercept"_a, "centre"_a, "w"_a.noconvert(),
        "z"_a.noconvert(), "max_steps"_a, "target"_a, "max_work"_a);
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def(
        "csc_logistic_descend",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_rows, Columns columns, Vector<double> y,
           Vector<double> v, Vector<double> l1, Vector<double> l2, bool intercept, Vector<double> centre,
           InOut1<double> w, InOut1<double> z, std::size_t max_steps, double target, double max_work) {
            constexpr const char *expected =
                "csc_logistic_descend: expected a well-formed CSC matrix (n, p) of at most 2^31 - 1 rows, k columns "
                "inside it, y, v and z (n,), l1, l2, centre and w (k,)";
            require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), expected);
            require(n_rows <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), expected);
            const Csc<T, I> x{data.data(), indices.data(), indptr.data(), n_rows, indptr.shape(0) - 1, data.shape(0)};
            const std::size_t k = columns.shape(0);
            require(y.shape(0) == n_rows && v.shape(0) == n_rows && z.shape(0) == n_rows, expected);
            require(l1.shape(0) == k && l2.shape(0) == k && centre.shape(0) == k && w.shape(0) == k, expected);
            const std::int64_t *chosen = checked(columns, x.cols, expected);
            NewtonResult done;
            bool ok;
            {
                nb::gil_scoped_release nogil;
                SparseSet set;
                ok = set.gather(x, chosen, k);
                if (ok)
                    done = proximal_newton(set, y.data(), v.data(), {l1.data(), l2.data(), false}, intercept,
                                           centre.data(), w.data(), z.data(), max_steps, target, max_work);
            }
            require(ok, expected);
            return report(done);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_rows"_a, "columns"_a, "y"_a, "v"_a,
        "l1"_a, "l2"_a, "intercept"_a, "centre"_a, "w"_a.noconvert(), "z"_a.noconvert(), "max_steps"_a, "target"_a,
        "max_work"_a);
}

template <class T, class I>
void bind_curvature(nb::module_ &m) {
    m.def(
        "csr_multinomial_curvature",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Weight weight,
           RowMajor<double> P) {
            constexpr const char *expected = "csr_multinomial_curvature: expected a well-formed CSR matrix (n, p), "
                                             "weight (n,) or None, P (n, K) in C order";
            require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), expected);
            const Csr<T, I> x{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, n_columns};
            require(well_formed(x, data.shape(0)) && P.shape(0) == x.rows, expected);
            const double *w = pointer(weight, x.rows, expected);
            const std::size_t size = P.shape(1) * (x.cols + 1);
            Buffer H(size * size);
            {
                nb::gil_scoped_release nogil;
                multinomial_curvature(x, w, P.data(), P.shape(1), H.data.get());
            }
            return matrix_out(H, size, size);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "weight"_a.none(),
        "P"_a.noconvert());
}

void bind_rows(nb::module_ &m) {
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

}  // namespace

void bind_logistic(nb::module_ &m) {
    bind_rows(m);
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_curvature<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_curvature<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_curvature<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
    bind_curvature<float, std::int64_t>(m);
}

}  // namespace epicycle
