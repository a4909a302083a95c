// What the bindings of trees share: arrays that are written to, arrays handed over, threads, interrupts.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "binding.hpp"

namespace epicycle {

template <class T>
using Writable1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Writable2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using Rows2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline int team(int threads) {
    require(threads >= 1, "threads: expected at least 1");
    return std::min(threads, 1024);
}

// A copy of the values as an array of this shape, by default a vector.
template <class T, class... Sizes>
auto array_out(const std::vector<T> &values, Sizes... shape) {
    constexpr std::size_t dimensions = std::max<std::size_t>(sizeof...(shape), 1);
    T *copy = new T[std::max<std::size_t>(values.size(), 1)];
    std::copy(values.begin(), values.end(), copy);
    nb::capsule owner(copy, [](void *p) noexcept { delete[] static_cast<T *>(p); });
    std::array<std::size_t, dimensions> sizes{shape...};
    if (sizeof...(shape) == 0) sizes[0] = values.size();
    return nb::ndarray<nb::numpy, T, nb::ndim<dimensions>>(copy, dimensions, sizes.data(), owner);
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
