// Bindings of non-negative factors and of sparse codes.
#include "core/binding.hpp"
#include "decomposition/coordinate_descent.hpp"
#include "decomposition/sparse_codes.hpp"

namespace epicycle {

namespace {

#define EPICYCLE_LOOP [&](std::size_t from, std::size_t to) __attribute__((always_inline))

Quadratics quadratics(const RowMajor<double> &G, const Vector<std::int64_t> &order, double l1, std::int64_t sweeps,
                      double share, const char *expected) {
    const std::size_t k = G.shape(0);
    require(k > 0 && G.shape(1) == k && order.shape(0) == k && all_below(order, k) && sweeps >= 0, expected);
    return {k, G.data(), order.data(), l1, sweeps, share};
}

}  // namespace

void bind_factors(nb::module_ &m) {
    m.def(
        "descend_products",
        [](RowMajor<double> C, RowMajor<double> G, double l1, Vector<std::int64_t> order, std::int64_t sweeps,
           double share, Weight weight, InOut2<double> W) {
            constexpr const char *expected =
                "descend_products: expected C (n, k), G (k, k), order (k,), sweeps >= 0, weight (n,) or None, W (n, k)";
            const Quadratics q = quadratics(G, order, l1, sweeps, share, expected);
            const std::size_t n = C.shape(0);
            require(C.shape(1) == q.k && W.shape(0) == n && W.shape(1) == q.k, expected);
            const double *v = pointer(weight, n, expected);
            FactorDescent sums;
            std::vector<double> room(q.k);
            {
                nb::gil_scoped_release nogil;
                run_rows(
                    n, EPICYCLE_LOOP { descend_given(q, C.data(), W.data(), v, room.data(), from, to, sums); },
                    Interrupts{});
            }
            return std::make_tuple(sums.violation, sums.cross);
        },
        "C"_a, "G"_a, "l1"_a, "order"_a, "sweeps"_a, "share"_a, "weight"_a.none(), "W"_a.noconvert());
    for_compressed<CsrMatrix>([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "descend_sparse",
            [](X table, RowMajor<double> F, RowMajor<double> G, double l1, Vector<std::int64_t> order,
               std::int64_t sweeps, double share, Weight weight, InOut2<double> W) {
                constexpr const char *expected =
                    "descend_sparse: expected a CSR matrix X (n, p), F (p, k), G (k, k), order (k,), sweeps >= 0, "
                    "weight (n,) or None, W (n, k)";
                const Quadratics q = quadratics(G, order, l1, sweeps, share, expected);
                const auto rows = view(table, expected);
                require(F.shape(0) == rows.cols && F.shape(1) == q.k && W.shape(0) == rows.rows && W.shape(1) == q.k,
                        expected);
                const double *v = pointer(weight, rows.rows, expected);
                FactorDescent sums;
                std::vector<double> room(2 * q.k);
                {
                    nb::gil_scoped_release nogil;
                    run_rows(
                        rows.rows,
                        EPICYCLE_LOOP { descend_sparse(q, rows, F.data(), W.data(), v, room.data(), from, to, sums); },
                        Interrupts{});
                }
                return std::make_tuple(sums.violation, sums.cross);
            },
            "X"_a, "F"_a, "G"_a, "l1"_a, "order"_a, "sweeps"_a, "share"_a, "weight"_a.none(), "W"_a.noconvert());
        m.def(
            "products_at",
            [](X table, RowMajor<double> W, RowMajor<double> F) {
                constexpr const char *expected = "products_at: expected a CSR matrix X (n, p), W (n, k), F (p, k)";
                const auto rows = view(table, expected);
                const std::size_t k = W.shape(1);
                require(W.shape(0) == rows.rows && F.shape(0) == rows.cols && F.shape(1) == k, expected);
                const std::size_t stored = table.indices.shape(0);
                Buffer out(stored);
                {
                    nb::gil_scoped_release nogil;
                    run_rows(
                        rows.rows,
                        EPICYCLE_LOOP { products_at(rows, W.data(), F.data(), k, from, to, out.data.get()); },
                        Interrupts{});
                }
                return vector_out(out, stored);
            },
            "X"_a, "W"_a, "F"_a);
    });
    m.def(
        "lasso_codes",
        [](RowMajor<double> G, RowMajor<double> C, Vector<double> squares, double alpha, bool positive,
           std::int64_t sweeps, double tol, InOut2<double> W) {
            constexpr const char *expected =
                "lasso_codes: expected G (k, k), C (n, k), squares (n,), alpha >= 0, sweeps >= 0, W (n, k)";
            const std::size_t n = C.shape(0), k = C.shape(1);
            require(G.shape(0) == k && G.shape(1) == k && squares.shape(0) == n && W.shape(0) == n && W.shape(1) == k &&
                        alpha >= 0.0 && sweeps >= 0,
                    expected);
            Buffer gaps(n);
            std::vector<double> q(k);
            {
                nb::gil_scoped_release nogil;
                const Interrupts interrupt;
                for (std::size_t i = 0; i < n; ++i) {
                    interrupt();
                    const double xx = squares.data()[i];
                    gaps.data[i] = lasso_code({G.data(), k}, C.data() + i * k, xx, alpha, positive, sweeps,
                                              0.5 * tol * xx, W.data() + i * k, q.data());
                }
            }
            return vector_out(gaps, n);
        },
        "G"_a, "C"_a, "squares"_a, "alpha"_a, "positive"_a, "sweeps"_a, "tol"_a, "W"_a.noconvert());
    m.def(
        "greedy_codes",
        [](RowMajor<double> G, RowMajor<double> C, std::size_t count, bool by_angle) {
            constexpr const char *expected = "greedy_codes: expected G (k, k), C (n, k), 1 <= count <= k";
            const std::size_t n = C.shape(0), k = C.shape(1);
            require(G.shape(0) == k && G.shape(1) == k && count >= 1 && count <= k, expected);
            Buffer W(n * k);
            std::vector<double> q(k);
            {
                nb::gil_scoped_release nogil;
                const Interrupts interrupt;
                for (std::size_t i = 0; i < n; ++i) {
                    interrupt();
                    const auto code = by_angle ? lars_code : omp_code;
                    code({G.data(), k}, C.data() + i * k, count, W.data.get() + i * k, q.data());
                }
            }
            return matrix_out(W, n, k);
        },
        "G"_a, "C"_a, "count"_a, "by_angle"_a);
}

}  // namespace epicycle
