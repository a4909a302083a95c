// Cholesky's factor of a Gram matrix whose columns come and go, as least angle regression needs it: G = L L', L lower
// triangular, stored by rows with leading dimension `ld`.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/simd.hpp"

namespace epicycle {

// sum_i a_i b_i with 16 fixed partial sums: the order of addition does not depend on the instruction set.
EPICYCLE_CLONES inline double row_dot(const double *a, const double *b, std::size_t n) {
    constexpr std::size_t K = 16;
    double part[K] = {}, rest = 0.0;
    std::size_t i = 0;
    for (; i + K <= n; i += K)
        for (std::size_t k = 0; k < K; ++k) part[k] += a[i + k] * b[i + k];
    for (; i < n; ++i) rest += a[i] * b[i];
    for (std::size_t width = K / 2; width > 0; width /= 2)
        for (std::size_t k = 0; k < width; ++k) part[k] += part[k + width];
    return part[0] + rest;
}
EPICYCLE_CLONES inline void row_axpy(double a, const double *x, double *y, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) y[i] += a * x[i];
}

struct Factor {
    double *L;
    std::size_t ld;
    double *row(std::size_t i) const { return L + i * ld; }
};

// x <- L^-1 x
inline void solve_lower(const Factor &F, std::size_t k, double *x) {
    for (std::size_t i = 0; i < k; ++i) x[i] = (x[i] - row_dot(F.row(i), x, i)) / F.row(i)[i];
}
// x <- L^-T x
inline void solve_upper(const Factor &F, std::size_t k, double *x) {
    for (std::size_t i = k; i-- > 0;) {
        x[i] /= F.row(i)[i];
        row_axpy(-x[i], F.row(i), x, i);
    }
}

// Takes a column in: `products` are its inner products with the k columns that are there, `square` its own length
// squared. Returns what is left of `square` beyond the span of the others. Where that is at most `least`, the column
// depends on them and the factor stays of size k.
inline double cholesky_append(const Factor &F, std::size_t k, const double *products, double square, double least) {
    double *row = F.row(k);
    std::copy(products, products + k, row);
    solve_lower(F, k, row);
    const double left = square - row_dot(row, row, k);
    if (left > least) row[k] = std::sqrt(left);
    return left;
}

// Takes column i of k out: its row goes, and rotations of neighbouring columns make what is left triangular again.
inline void cholesky_remove(const Factor &F, std::size_t k, std::size_t i) {
    for (std::size_t r = i; r + 1 < k; ++r) std::copy(F.row(r + 1), F.row(r + 1) + r + 2, F.row(r));
    for (std::size_t r = i; r + 1 < k; ++r) {
        const double a = F.row(r)[r], b = F.row(r)[r + 1], length = std::hypot(a, b);
        const double cosine = a / length, sine = b / length;  // b, an old diagonal element, is positive
        for (std::size_t s = r; s + 1 < k; ++s) {
            double *row = F.row(s);
            const double x = row[r], y = row[r + 1];
            row[r] = cosine * x + sine * y;
            row[r + 1] = cosine * y - sine * x;
        }
    }
}

}  // namespace epicycle
