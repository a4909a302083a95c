// Bindings of least angle regression and forward stagewise regression.
#include <cstdint>
#include <limits>

#include "core/binding.hpp"
#include "linear/lars.hpp"
#include "linear/stagewise.hpp"

namespace epicycle {
namespace {

Factor factor(const InOut2<double> &L, std::size_t k, const char *message) {
    require(L.shape(0) == L.shape(1) && k <= L.shape(0), message);
    return {L.data(), L.shape(1)};
}

void bind_factor(nb::module_ &m) {
    m.def(
        "cholesky_append",
        [](InOut2<double> L, std::size_t k, Vector<double> products, double square, double least) {
            constexpr const char *expected =
                "cholesky_append: expected L (m, m) in C order, k < m, products (k,), least >= 0";
            const auto F = factor(L, k, expected);
            require(k < L.shape(0) && products.shape(0) == k && least >= 0.0, expected);
            nb::gil_scoped_release nogil;
            return cholesky_append(F, k, products.data(), square, least);
        },
        "L"_a.noconvert(), "k"_a, "products"_a, "square"_a, "least"_a);
    m.def(
        "cholesky_remove",
        [](InOut2<double> L, std::size_t k, std::size_t i) {
            constexpr const char *expected = "cholesky_remove: expected L (m, m) in C order, i < k <= m";
            const auto F = factor(L, k, expected);
            require(i < k, expected);
            nb::gil_scoped_release nogil;
            cholesky_remove(F, k, i);
        },
        "L"_a.noconvert(), "k"_a, "i"_a);
    m.def(
        "cholesky_solve",
        [](InOut2<double> L, InOut1<double> x) {
            constexpr const char *expected = "cholesky_solve: expected L (m, m) in C order, x (k,) with k <= m";
            const std::size_t k = x.shape(0);
            const auto F = factor(L, k, expected);
            nb::gil_scoped_release nogil;
            solve_lower(F, k, x.data());
            solve_upper(F, k, x.data());
        },
        "L"_a.noconvert(), "x"_a.noconvert());
}

void bind_stagewise(nb::module_ &m) {
    m.def(
        "stagewise",
        [](RowMajor<double> G, Vector<std::int64_t> row, Vector<double> square, double step, bool proportional,
           double level, InOut1<double> q, InOut1<double> w, InOut1<std::uint8_t> ways, InOut1<std::int32_t> moves,
           std::optional<InOut1<double>> sizes) {
            constexpr const char *expected =
                "stagewise: expected G (m, p) in C order, row (p,) inside it or -1, square, q, w and ways (p,), moves "
                "(b,), sizes (b,) or None, step > 0, level >= 0";
            const std::size_t p = G.shape(1);
            require(row.shape(0) == p && square.shape(0) == p && q.shape(0) == p && w.shape(0) == p, expected);
            require(ways.shape(0) == p && step > 0.0 && level >= 0.0 && (!sizes || sizes->shape(0) == moves.shape(0)),
                    expected);
            require(p < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), expected);
            for (std::size_t j = 0; j < p; ++j)
                require(row.data()[j] < static_cast<std::int64_t>(G.shape(0)), expected);
            const Stagewise problem{G.data(),     p,     p,        row.data(), square.data(), step,
                                    proportional, level, q.data(), w.data(),   ways.data()};
            StagewiseRun run;
            {
                nb::gil_scoped_release nogil;
                run = stagewise(problem, moves.shape(0), moves.data(), sizes ? sizes->data() : nullptr);
            }
            return std::make_tuple(run.moves, static_cast<int>(run.end), run.column, run.gained);
        },
        "G"_a.noconvert(), "row"_a, "square"_a, "step"_a, "proportional"_a, "level"_a, "q"_a.noconvert(),
        "w"_a.noconvert(), "ways"_a.noconvert(), "moves"_a.noconvert(), "sizes"_a.noconvert().none());
}

}  // namespace

void bind_lars(nb::module_ &m) {
    bind_factor(m);
    bind_stagewise(m);
}

}  // namespace epicycle
