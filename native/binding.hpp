// What every binding file shares: array types, checks at the boundary, arrays handed over to Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <memory>
#include <optional>
#include <tuple>

#include "dense.hpp"

namespace epicycle {

namespace nb = nanobind;
using namespace nb::literals;

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

inline void require(bool condition, const char *message) {
    if (!condition) throw nb::value_error(message);
}

inline const double *pointer(const Weight &weight, std::size_t n, const char *message) {
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

inline Out1 vector_out(Buffer &b, std::size_t n) {
    double *p = b.data.get();
    return Out1(p, {n}, b.give());
}
inline Out2 matrix_out(Buffer &b, std::size_t rows, std::size_t cols) {
    double *p = b.data.get();
    return Out2(p, {rows, cols}, b.give());
}

}  // namespace epicycle
