// Products of a block of dense rows about a shift: margins of a linear model, and sums of rows.
#pragma once

#include "core/dense.hpp"
#include "core/simd.hpp"

namespace epicycle {

// margins z_i = b + (x_i - shift)'w of rows i0 .. i0+n.
template <class T>
EPICYCLE_INLINE void margins_body(const Dense<T> &X, std::size_t i0, std::size_t n, const double *shift,
                                  const double *w, double b, double *z) {
    const std::size_t p = X.cols;
    if (X.col_stride == 1) {
        for (std::size_t i = 0; i < n; ++i) {
            const T *x = X.row(i0 + i);
            // Eight fixed partial sums: the order of addition does not depend on the instruction set's width.
            double part[8] = {};
            std::size_t j = 0;
            for (; j + 8 <= p; j += 8)
                for (std::size_t k = 0; k < 8; ++k)
                    part[k] += (static_cast<double>(x[j + k]) - shift[j + k]) * w[j + k];
            double rest = 0.0;
            for (; j < p; ++j) rest += (static_cast<double>(x[j]) - shift[j]) * w[j];
            z[i] = b +
                   ((((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]))) + rest);
        }
        return;
    }
    for (std::size_t i = 0; i < n; ++i) z[i] = b;
    for (std::size_t j = 0; j < p; ++j) {
        const T *x = X.col(j) + static_cast<std::int64_t>(i0) * X.row_stride;
        const double wj = w[j], c = shift[j];
        for (std::size_t i = 0; i < n; ++i)
            z[i] += (static_cast<double>(x[static_cast<std::int64_t>(i) * X.row_stride]) - c) * wj;
    }
}

// g += sum_i r_i (x_i - shift).
template <class T>
EPICYCLE_INLINE void gradient_body(const Dense<T> &X, std::size_t i0, std::size_t n, const double *shift,
                                   const double *r, double *g) {
    const std::size_t p = X.cols;
    if (X.col_stride == 1) {
        for (std::size_t i = 0; i < n; ++i) {
            const T *x = X.row(i0 + i);
            for (std::size_t j = 0; j < p; ++j) g[j] += r[i] * (static_cast<double>(x[j]) - shift[j]);
        }
        return;
    }
    for (std::size_t j = 0; j < p; ++j) {
        const T *x = X.col(j) + static_cast<std::int64_t>(i0) * X.row_stride;
        double sum = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            sum += r[i] * (static_cast<double>(x[static_cast<std::int64_t>(i) * X.row_stride]) - shift[j]);
        g[j] += sum;
    }
}

#define EPICYCLE_PER_TYPE(T)                                                                                        \
    EPICYCLE_CLONES inline void margins(const Dense<T> &X, std::size_t i0, std::size_t n, const double *shift,      \
                                        const double *w, double b, double *z) {                                     \
        margins_body(X, i0, n, shift, w, b, z);                                                                     \
    }                                                                                                               \
    EPICYCLE_CLONES inline void add_gradient(const Dense<T> &X, std::size_t i0, std::size_t n, const double *shift, \
                                             const double *r, double *g) {                                          \
        gradient_body(X, i0, n, shift, r, g);                                                                       \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

}  // namespace epicycle
