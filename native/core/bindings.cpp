// Bindings of the statistics that several families need: finite values, second moments, hashes and squares of rows.
#include "core/binding.hpp"
#include "core/finite.hpp"
#include "core/moments.hpp"
#include "core/simd.hpp"
#include "core/threads.hpp"

namespace epicycle {

void bind_core(nb::module_ &m) {
    m.def("max_threads", &max_threads, "Threads that OpenMP would use here.");
    m.def(
        "instruction_set",
        [] {
            constexpr const char *names[] = {"baseline", "avx2", "avx512"};
            return names[static_cast<int>(isa())];
        },
        "The instruction set that was chosen for the tiled kernels.");
    for_dense([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "all_finite",
            [](X table) {
                const auto x = view(table);
                nb::gil_scoped_release nogil;
                return all_finite(x);
            },
            "X"_a.noconvert());
    });
    for_rows([&](auto type) {
        using X = typename decltype(type)::type;
        m.def(
            "moments",
            [](X table, Matrix<double> Y, Weight weight, Vector<double> shift) {
                constexpr const char *expected = "moments: expected X (n, p) dense or a well-formed CSR matrix, Y (n, "
                                                 "k), weight (n,) or None, shift "
                                                 "(p + k,), zero for the columns of a CSR matrix";
                const auto x = view(table, expected);
                const auto y = view(Y);
                require(y.rows == x.rows && shift.shape(0) == x.cols + y.cols, expected);
                const double *s = checked_shift<X>(shift, x.cols, expected), *w = pointer(weight, x.rows, expected);
                const std::size_t d = x.cols + y.cols + 1;
                Buffer M(d * d);
                {
                    nb::gil_scoped_release nogil;
                    moments(x, y, w, s, M.data.get());
                }
                return matrix_out(M, d, d);
            },
            "X"_a.noconvert(), "Y"_a.noconvert(), "weight"_a.none(), "shift"_a);
        m.def(
            "row_hashes",
            [](X table, InOut1<std::uint64_t> out) {
                constexpr const char *expected = "row_hashes: expected rows (n, p), dense or CSR, out (n,)";
                auto rows = row_reader(table, expected);
                require(out.shape(0) == rows.rows(), expected);
                nb::gil_scoped_release nogil;
                row_hashes(rows, out.data());
            },
            "X"_a.noconvert(), "out"_a.noconvert());
        m.def(
            "row_squares",
            [](X table) {
                auto rows = row_reader(table, "row_squares: expected rows (n, p), dense or CSR");
                const std::size_t n = rows.rows();
                Buffer out(n);
                {
                    nb::gil_scoped_release nogil;
                    for (std::size_t i = 0; i < n; ++i) {
                        rows.select(i);
                        out.data[i] = row_square(rows);
                    }
                }
                return vector_out(out, n);
            },
            "X"_a.noconvert());
    });
}

}  // namespace epicycle
