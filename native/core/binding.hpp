// What every binding file shares: array types, checks at the boundary, arrays handed over to Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <array>
#include <chrono>
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

template <class T>
Dense<T> view(const Matrix<T> &X) {
    return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

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

template <class T, class I>
Csr<T, I> csr(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t cols,
              const char *message) {
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), message);
    Csr<T, I> X{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, cols};
    require(well_formed(X, data.shape(0)), message);
    return X;
}

// Rows that are checked one at a time, when they are read.
template <class T, class I>
CsrRowReader<T, I> rows_of(const Vector<T> &data, const Vector<I> &indices, const Vector<I> &indptr, std::size_t cols,
                           const char *message) {
    require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), message);
    return {{data.data(), indices.data(), indptr.data(), indptr.shape(0) - 1, cols}, data.shape(0)};
}

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

// Looks for Ctrl-C at most ten times a second.
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
