// Whether every number is finite. x - x is 0 for finite x and nan otherwise, so a sum of differences tells.
#pragma once

#include "core/dense.hpp"
#include "core/simd.hpp"

namespace epicycle {

template <class T>
EPICYCLE_INLINE bool run_is_finite(const T *x, std::size_t n, std::int64_t stride) {
    T sum[16] = {};
    std::size_t i = 0;
    if (stride == 1)
        for (; i + 16 <= n; i += 16)
            for (std::size_t k = 0; k < 16; ++k) sum[k] += x[i + k] - x[i + k];
    for (; i < n; ++i) {
        const T v = x[static_cast<std::int64_t>(i) * stride];
        sum[0] += v - v;
    }
    for (std::size_t k = 1; k < 16; ++k) sum[0] += sum[k];
    return sum[0] == T(0);
}

#define EPICYCLE_PER_TYPE(T)                                                                 \
    EPICYCLE_CLONES inline bool finite_run(const T *x, std::size_t n, std::int64_t stride) { \
        return run_is_finite(x, n, stride);                                                  \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

template <class T>
bool all_finite(const Dense<T> &X) {
    if (X.rows == 0 || X.cols == 0) return true;
    if (X.col_stride == 1 && X.row_stride == static_cast<std::int64_t>(X.cols))
        return finite_run(X.data, X.rows * X.cols, 1);
    const bool by_column = X.row_stride == 1;
    const std::size_t outer = by_column ? X.cols : X.rows;
    for (std::size_t o = 0; o < outer; ++o) {
        const bool ok = by_column ? finite_run(X.col(o), X.rows, 1) : finite_run(X.row(o), X.cols, X.col_stride);
        if (!ok) return false;
    }
    return true;
}

}  // namespace epicycle
