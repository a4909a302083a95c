// Bindings of the statistics that several families need: finite values, second moments, hashes and squares of rows.
#include "core/binding.hpp"
#include "core/finite.hpp"
#include "core/moments.hpp"
#include "core/simd.hpp"
#include "core/threads.hpp"

namespace epicycle {
namespace {

template <class Rows>
void hashes(Rows rows, InOut1<std::uint64_t> &out) {
    require(out.shape(0) == rows.rows(), "row_hashes: expected sound rows (n, p), out (n,)");
    nb::gil_scoped_release nogil;
    row_hashes(rows, out.data());
}

template <class Rows>
Out1 squares(Rows rows) {
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
}

template <class T>
void bind_dense(nb::module_ &m) {
    m.def(
        "all_finite",
        [](Matrix<T> X) {
            const auto x = view(X);
            nb::gil_scoped_release nogil;
            return all_finite(x);
        },
        "X"_a.noconvert());
    m.def(
        "moments",
        [](Matrix<T> X, Matrix<double> Y, Weight weight, Vector<double> shift) {
            constexpr const char *expected =
                "moments: expected X (n, p), Y (n, k), weight (n,) or None, shift (p + k,)";
            const auto x = view(X);
            const auto y = view(Y);
            require(y.rows == x.rows && shift.shape(0) == x.cols + y.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            const std::size_t d = x.cols + y.cols + 1;
            Buffer M(d * d);
            {
                nb::gil_scoped_release nogil;
                moments(x, y, w, shift.data(), M.data.get());
            }
            return matrix_out(M, d, d);
        },
        "X"_a.noconvert(), "Y"_a.noconvert(), "weight"_a.none(), "shift"_a);
    m.def(
        "row_hashes", [](Matrix<T> X, InOut1<std::uint64_t> out) { hashes(DenseRowReader<T>(view(X)), out); },
        "X"_a.noconvert(), "out"_a.noconvert());
    m.def("row_squares", [](Matrix<T> X) { return squares(DenseRowReader<T>(view(X))); }, "X"_a.noconvert());
}

template <class T, class I>
void bind_sparse(nb::module_ &m) {
    m.def(
        "csr_moments",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Matrix<double> Y, Weight weight,
           Vector<double> shift) {
            constexpr const char *expected =
                "csr_moments: expected a well-formed CSR matrix (n, p), Y (n, k), weight (n,) or None, shift (k,)";
            const auto x = csr<T, I>(data, indices, indptr, n_columns, expected);
            const auto y = view(Y);
            require(y.rows == x.rows && shift.shape(0) == y.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            const std::size_t d = x.cols + y.cols + 1;
            Buffer M(d * d);
            {
                nb::gil_scoped_release nogil;
                moments(x, y, w, shift.data(), M.data.get());
            }
            return matrix_out(M, d, d);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "Y"_a.noconvert(),
        "weight"_a.none(), "shift"_a);
    m.def(
        "csr_row_hashes",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, InOut1<std::uint64_t> out) {
            const auto X =
                rows_of<T, I>(data, indices, indptr, n_columns, "csr_row_hashes: expected a CSR matrix (n, p)");
            hashes(X, out);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "out"_a.noconvert());
    m.def(
        "csr_row_squares",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns) {
            const auto X =
                rows_of<T, I>(data, indices, indptr, n_columns, "csr_row_squares: expected a CSR matrix (n, p)");
            return squares(X);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a);
}

}  // namespace

void bind_core(nb::module_ &m) {
    m.def("max_threads", &max_threads, "Threads that OpenMP would use here.");
    m.def(
        "instruction_set",
        [] {
            constexpr const char *names[] = {"baseline", "avx2", "avx512"};
            return names[static_cast<int>(isa())];
        },
        "The instruction set that was chosen for the tiled kernels.");
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}

}  // namespace epicycle
