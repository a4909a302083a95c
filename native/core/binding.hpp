// What every binding file shares: array types, checks at the boundary, arrays handed over to Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <vector>

#include "core/dense.hpp"
#include "core/rows.hpp"
#include "core/sparse.hpp"

namespace epicycle {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
template <class T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using RowMajor = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// Arrays that a kernel writes to: bound with noconvert(), since a converted copy would take the update and be lost.
template <class T>
using InOut1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using InOut2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Weight = std::optional<Vector<double>>;
using Out1 = nb::ndarray<nb::numpy, double, nb::ndim<1>>;
using Out2 = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

inline void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

// Every entry in [0, bound).
template <class Indices>
bool all_below(const Indices &x, std::size_t bound) {
    using U = std::make_unsigned_t<std::remove_const_t<typename Indices::Scalar>>;
    U largest = 0;  // a negative index is a large one
    for (std::size_t i = 0; i < x.shape(0); ++i) largest = std::max(largest, static_cast<U>(x.data()[i]));
    return x.shape(0) == 0 || largest < bound;
}

inline int team(int threads) {
    require(threads >= 1, "threads: expected at least 1");
    return std::min(threads, 1024);
}

inline const double *pointer(const Weight &weight, std::size_t n, const char *message) {
    if (!weight) return nullptr;
    require(weight->shape(0) == n, message);
    return weight->data();
}

// ------------------------------------------------------------------------------------------------- matrices

// A compressed matrix of SciPy, by rows (CSR) or by columns (CSC). Its arrays are taken as they are, never converted.
template <class T, class I, bool BY_ROWS>
struct Compressed {
    using Scalar = const T;
    Vector<T> data;
    Vector<I> indices, indptr;
    std::size_t rows = 0, cols = 0;

    bool sizes_fit() const {
        return indptr.shape(0) == (BY_ROWS ? rows : cols) + 1 && indices.shape(0) == data.shape(0);
    }
};
template <class T, class I>
using CsrMatrix = Compressed<T, I, true>;
template <class T, class I>
using CscMatrix = Compressed<T, I, false>;

template <class X>
constexpr bool is_compressed = false;
template <class T, class I, bool BY_ROWS>
constexpr bool is_compressed<Compressed<T, I, BY_ROWS>> = true;

// The type of the entries of a matrix.
template <class X>
using Scalar = std::remove_const_t<typename X::Scalar>;

// What a kernel reads. A compressed matrix is checked first, entry by entry where it is given by rows; the kernels of
// columns check those that they read.
template <class T>
Dense<T> view(const Matrix<T> &X, const char * = nullptr) {
    return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}
template <class T, class I>
Csr<T, I> view(const CsrMatrix<T, I> &X, const char *message) {
    require(X.sizes_fit(), message);
    const Csr<T, I> x{X.data.data(), X.indices.data(), X.indptr.data(), X.rows, X.cols};
    require(well_formed(x, X.data.shape(0)), message);
    return x;
}
template <class T, class I>
Csc<T, I> view(const CscMatrix<T, I> &X, const char *message) {
    require(X.sizes_fit() && X.rows <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), message);
    return {X.data.data(), X.indices.data(), X.indptr.data(), X.rows, X.cols, X.data.shape(0)};
}

// Rows that are read, and checked, one at a time.
template <class T>
DenseRowReader<T> row_reader(const Matrix<T> &X, const char *) {
    return DenseRowReader<T>(view(X));
}
template <class T, class I>
CsrRowReader<T, I> row_reader(const CsrMatrix<T, I> &X, const char *message) {
    require(X.sizes_fit(), message);
    return {{X.data.data(), X.indices.data(), X.indptr.data(), X.rows, X.cols}, X.data.shape(0)};
}

// Sparse rows are not shifted, most of their entries are zero: the shift of a CSR matrix has to be zero.
template <class X>
const double *checked_shift(const Vector<double> &shift, std::size_t p, const char *message) {
    require(shift.shape(0) >= p, message);
    if constexpr (is_compressed<X>)
        for (std::size_t j = 0; j < p; ++j) require(shift.data()[j] == 0.0, message);
    return shift.data();
}

// Binds a function once for every type that a matrix can have: bind(Type<X>{}) defines the overload for X.
template <class X>
struct Type {
    using type = X;
};
template <class Bind>
void for_dense(Bind bind) {
    bind(Type<Matrix<double>>{});
    bind(Type<Matrix<float>>{});
}
template <template <class, class> class Sparse, class Bind>
void for_compressed(Bind bind) {
    bind(Type<Sparse<double, std::int32_t>>{});
    bind(Type<Sparse<double, std::int64_t>>{});
    bind(Type<Sparse<float, std::int32_t>>{});
    bind(Type<Sparse<float, std::int64_t>>{});
}
template <class Bind>
void for_rows(Bind bind) {  // dense or CSR
    for_dense(bind);
    for_compressed<CsrMatrix>(bind);
}
template <class Bind>
void for_columns(Bind bind) {  // dense or CSC
    for_dense(bind);
    for_compressed<CscMatrix>(bind);
}

// ------------------------------------------------------------------------------------------------- results

struct Buffer {
    std::unique_ptr<double[]> data;
    explicit Buffer(std::size_t n) : data(new double[n]()) {}
    nb::capsule give() {
        return nb::capsule(data.release(), [](void *p) noexcept { delete[] static_cast<double *>(p); });
    }
};

inline Out1 vector_out(Buffer &b, std::size_t n) {
    double *p = b.data.get();
    return Out1(p, {n}, b.give());
}
inline Out2 matrix_out(Buffer &b, std::size_t rows, std::size_t cols) {
    double *p = b.data.get();
    return Out2(p, {rows, cols}, b.give());
}

// Hands a vector over to Python as an array of this shape, by default a vector.
template <class T, class... Sizes>
auto array_out(std::vector<T> values, Sizes... shape) {
    constexpr std::size_t dimensions = std::max<std::size_t>(sizeof...(shape), 1);
    auto *held = new std::vector<T>(std::move(values));
    nb::capsule owner(held, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); });
    std::array<std::size_t, dimensions> sizes{static_cast<std::size_t>(shape)...};
    if (sizeof...(shape) == 0) sizes[0] = held->size();
    return nb::ndarray<nb::numpy, T, nb::ndim<dimensions>>(held->data(), dimensions, sizes.data(), owner);
}

// A new array of this shape for Python, its entries not yet written: for large results, of which each is written once.
template <class T, class... Sizes>
auto new_array(Sizes... shape) {
    const std::array<std::size_t, sizeof...(shape)> sizes{static_cast<std::size_t>(shape)...};
    T *held = new T[(static_cast<std::size_t>(shape) * ...)];
    nb::capsule owner(held, [](void *p) noexcept { delete[] static_cast<T *>(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<sizeof...(shape)>>(held, sizes.size(), sizes.data(), owner);
}

// Looks for Ctrl-C at most ten times a second, from a kernel that runs without the GIL.
struct Interrupts {
    using Clock = std::chrono::steady_clock;
    mutable Clock::time_point last = Clock::now();
    void operator()() const {
        const auto now = Clock::now();
        if (now - last < std::chrono::milliseconds(100)) return;
        last = now;
        nb::gil_scoped_acquire gil;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
};

}  // namespace epicycle

namespace nanobind::detail {

template <class T, class I, bool BY_ROWS>
struct type_caster<epicycle::Compressed<T, I, BY_ROWS>> {
    using Matrix = epicycle::Compressed<T, I, BY_ROWS>;
    NB_TYPE_CASTER(Matrix, const_name("scipy.sparse.") + const_name<BY_ROWS>("csr_array", "csc_array"))

    bool from_python(handle src, std::uint8_t, cleanup_list *) noexcept {
        object format, shape;
        return take(src, "format", format, true) && PyUnicode_Check(format.ptr()) &&
               PyUnicode_CompareWithASCIIString(format.ptr(), BY_ROWS ? "csr" : "csc") == 0 &&
               take(src, "data", value.data, false) && take(src, "indices", value.indices, false) &&
               take(src, "indptr", value.indptr, false) && take(src, "shape", shape, true) &&
               PyTuple_Check(shape.ptr()) && PyTuple_Size(shape.ptr()) == 2 &&
               try_cast(handle(PyTuple_GetItem(shape.ptr(), 0)), value.rows) &&
               try_cast(handle(PyTuple_GetItem(shape.ptr(), 1)), value.cols);
    }

private:
    template <class Out>
    static bool take(handle src, const char *name, Out &out, bool convert) noexcept {
        const object found = steal(PyObject_GetAttrString(src.ptr(), name));
        if (!found.is_valid()) PyErr_Clear();
        return found.is_valid() && try_cast(found, out, convert);
    }
};

}  // namespace nanobind::detail
