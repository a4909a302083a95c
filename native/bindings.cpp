// The only file that knows Python: checks shapes, dtypes and ranges, releases the GIL, calls the kernels.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "finite.hpp"
#include "logistic.hpp"
#include "moments.hpp"
#include "sparse.hpp"
#include "threads.hpp"

namespace nb = nanobind;
using namespace nb::literals;
using namespace epicycle;

namespace {

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Weight = std::optional<Vector<double>>;
using Out1 = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using Out2 = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

template <class T>
Dense<T> view(const Matrix<T> &X) {
    return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

const double *pointer(const Weight &weight, std::size_t n, const char *message) {
    if (!weight) return nullptr;
    require(weight->shape(0) == n, message);
    return weight->data();
}

struct Buffer {
    std::unique_ptr<double[]> data;
    explicit Buffer(std::size_t n) : data(new double[n]()) {}
    nb::capsule give() {
        return nb::capsule(data.release(), [](void *p) noexcept { delete[] static_cast<double *>(p); });
    }
};

Out1 vector_out(Buffer &b, std::size_t n) {
    double *p = b.data.get();
    return Out1(p, {n}, b.give());
}
Out2 matrix_out(Buffer &b, std::size_t n) {
    double *p = b.data.get();
    return Out2(p, {n, n}, b.give());
}

template <class T, class I>
Csr<T, I> csr(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t cols,
              const char *message) {
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), message);
    Csr<T, I> X{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, cols};
    require(well_formed(X, data.shape(0)), message);
    return X;
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
            constexpr const char *expected = "moments: expected X (n, p), Y (n, k), weight (n,) or None, shift (p + k,)";
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
            return matrix_out(M, d);
        },
        "X"_a.noconvert(), "Y"_a.noconvert(), "weight"_a.none(), "shift"_a);
    constexpr const char *expected =
        "logistic: expected X (n, p), y (n,), weight (n,) or None, shift (p,), coef (p,)";
    m.def(
        "logistic_gradient",
        [](Matrix<T> X, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef, double intercept) {
            const auto x = view(X);
            require(y.shape(0) == x.rows && shift.shape(0) == x.cols && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            Buffer g(x.cols + 1);
            double loss, curvature = 0.0;
            {
                nb::gil_scoped_release nogil;
                loss = logistic_gradient(x, y.data(), w, shift.data(), coef.data(), intercept, g.data.get(), curvature);
            }
            return std::make_tuple(loss, vector_out(g, x.cols + 1), curvature);
        },
        "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a);
    m.def(
        "logistic_hessian",
        [](Matrix<T> X, Vector<double> y, Weight weight, Vector<double> shift, Vector<double> coef, double intercept) {
            const auto x = view(X);
            require(y.shape(0) == x.rows && shift.shape(0) == x.cols && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            const std::size_t d = x.cols + 1;
            Buffer g(d), H(d * d);
            double loss;
            {
                nb::gil_scoped_release nogil;
                loss = logistic_hessian(x, y.data(), w, shift.data(), coef.data(), intercept, g.data.get(), H.data.get());
            }
            return std::make_tuple(loss, vector_out(g, d), matrix_out(H, d));
        },
        "X"_a.noconvert(), "y"_a.noconvert(), "weight"_a.none(), "shift"_a, "coef"_a, "intercept"_a);
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
            return matrix_out(M, d);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "Y"_a.noconvert(),
        "weight"_a.none(), "shift"_a);
    constexpr const char *expected =
        "csr_logistic: expected a well-formed CSR matrix (n, p), y (n,), weight (n,) or None, coef (p,)";
    m.def(
        "csr_logistic_gradient",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> y, Weight weight,
           Vector<double> coef, double intercept) {
            const auto x = csr<T, I>(data, indices, indptr, n_columns, expected);
            require(y.shape(0) == x.rows && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            Buffer g(x.cols + 1);
            double loss, curvature = 0.0;
            {
                nb::gil_scoped_release nogil;
                loss = logistic(x, y.data(), w, coef.data(), intercept, g.data.get(), curvature, nullptr);
            }
            return std::make_tuple(loss, vector_out(g, x.cols + 1), curvature);
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "y"_a.noconvert(),
        "weight"_a.none(), "coef"_a, "intercept"_a);
    m.def(
        "csr_logistic_hessian",
        [](Vector<T> data, Vector<I> indices, Vector<I> indptr, std::size_t n_columns, Vector<double> y, Weight weight,
           Vector<double> coef, double intercept) {
            const auto x = csr<T, I>(data, indices, indptr, n_columns, expected);
            require(y.shape(0) == x.rows && coef.shape(0) == x.cols, expected);
            const double *w = pointer(weight, x.rows, expected);
            const std::size_t d = x.cols + 1;
            Buffer g(d), H(d * d);
            double loss, curvature = 0.0;
            {
                nb::gil_scoped_release nogil;
                loss = logistic(x, y.data(), w, coef.data(), intercept, g.data.get(), curvature, H.data.get());
            }
            return std::make_tuple(loss, vector_out(g, d), matrix_out(H, d));
        },
        "data"_a.noconvert(), "indices"_a.noconvert(), "indptr"_a.noconvert(), "n_columns"_a, "y"_a.noconvert(),
        "weight"_a.none(), "coef"_a, "intercept"_a);
}

}  // namespace

NB_MODULE(_native, m) {
    m.doc() = "Compiled kernels: pure functions of arrays.";
    release_pool_before_fork();
    m.def("max_threads", &max_threads, "Threads that OpenMP would use here.");
    m.def(
        "instruction_set",
        [] { return isa() == Isa::avx512 ? "avx512" : isa() == Isa::avx2 ? "avx2" : "baseline"; },
        "The instruction set that was chosen for the tiled kernels.");
    bind_dense<double>(m);
    bind_dense<float>(m);
    bind_sparse<double, std::int32_t>(m);
    bind_sparse<double, std::int64_t>(m);
    bind_sparse<float, std::int32_t>(m);
    bind_sparse<float, std::int64_t>(m);
}
