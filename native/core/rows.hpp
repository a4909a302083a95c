// The rows of a dense or CSR matrix, one at a time: dot products, multiples added to a vector, hashes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "core/dense.hpp"
#include "core/simd.hpp"
#include "core/sparse.hpp"

namespace epicycle {

// sum_j x_j v_j with 16 fixed partial sums: the order of addition does not depend on the instruction set.
template <class T>
EPICYCLE_INLINE double dense_dot_body(const T *x, const double *v, std::size_t n) {
    constexpr std::size_t W = 16;
    double part[W] = {};
    std::size_t j = 0;
    for (; j + W <= n; j += W)
        for (std::size_t k = 0; k < W; ++k) part[k] += static_cast<double>(x[j + k]) * v[j + k];
    double rest = 0.0;
    for (; j < n; ++j) rest += static_cast<double>(x[j]) * v[j];
    for (std::size_t width = W / 2; width > 0; width /= 2)
        for (std::size_t k = 0; k < width; ++k) part[k] += part[k + width];
    return part[0] + rest;
}
#define EPICYCLE_PER_TYPE(T)                                                                                       \
    EPICYCLE_CLONES inline double dense_dot(const T *x, const double *v, std::size_t n) {                          \
        return dense_dot_body(x, v, n);                                                                            \
    }                                                                                                              \
    EPICYCLE_CLONES inline void dense_add(const T *x, double g, double *v, std::size_t n) {                        \
        for (std::size_t j = 0; j < n; ++j) v[j] += g * static_cast<double>(x[j]);                                 \
    }                                                                                                              \
    EPICYCLE_CLONES inline void dense_dots(const T *x, const double *v, std::size_t n, std::size_t K, double *z) { \
        for (std::size_t j = 0; j < n; ++j)                                                                        \
            for (std::size_t k = 0; k < K; ++k) z[k] += static_cast<double>(x[j]) * v[j * K + k];                  \
    }                                                                                                              \
    EPICYCLE_CLONES inline void dense_adds(const T *x, const double *g, double *v, std::size_t n, std::size_t K) { \
        for (std::size_t j = 0; j < n; ++j)                                                                        \
            for (std::size_t k = 0; k < K; ++k) v[j * K + k] += g[k] * static_cast<double>(x[j]);                  \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

template <class T>
struct DenseRowReader {
    Dense<T> X;
    std::vector<T> buffer;  // of a row whose elements are apart in memory
    const T *x = nullptr;

    explicit DenseRowReader(const Dense<T> &X) : X(X), buffer(X.col_stride == 1 ? 0 : X.cols) {}
    std::size_t rows() const { return X.rows; }
    std::size_t cols() const { return X.cols; }
    std::size_t cost() const { return X.cols; }
    void select(std::size_t i) {
        x = X.row(i);
        if (X.col_stride == 1) return;
        for (std::size_t j = 0; j < X.cols; ++j) buffer[j] = X(i, j);
        x = buffer.data();
    }
    void prefetch(const std::int64_t *, std::size_t, std::size_t) const {}
    double dot(const double *v) const { return dense_dot(x, v, X.cols); }
    void dots(const double *v, std::size_t K, double *z) const { dense_dots(x, v, X.cols, K, z); }
    void add(double g, double *v) const { dense_add(x, g, v, X.cols); }
    void adds(const double *g, double *v, std::size_t K) const { dense_adds(x, g, v, X.cols, K); }
    template <class F>
    void each(F f) const {
        for (std::size_t j = 0; j < X.cols; ++j) f(j, static_cast<double>(x[j]));
    }
};

// Whether the entries of a row can be followed: columns inside, numbers finite. One look while the row is in the cache.
template <class T, class I>
EPICYCLE_INLINE bool row_is_sound_body(const T *x, const I *at, std::size_t n, std::size_t p) {
    using U = std::conditional_t<sizeof(I) == 4, std::uint32_t, std::uint64_t>;
    U top = 0;  // a negative index is a large one
    for (std::size_t k = 0; k < n; ++k) top = std::max(top, static_cast<U>(at[k]));
    double part[8] = {};  // x - x is 0 for finite x and nan otherwise
    std::size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (std::size_t c = 0; c < 8; ++c) part[c] += static_cast<double>(x[k + c] - x[k + c]);
    for (; k < n; ++k) part[0] += static_cast<double>(x[k] - x[k]);
    for (std::size_t c = 1; c < 8; ++c) part[0] += part[c];
    return part[0] == 0.0 && (n == 0 || static_cast<std::uint64_t>(top) < p);
}
#define EPICYCLE_PER_TYPE(T, I)                                                                       \
    EPICYCLE_CLONES inline bool row_is_sound(const T *x, const I *at, std::size_t n, std::size_t p) { \
        return row_is_sound_body(x, at, n, p);                                                        \
    }
EPICYCLE_PER_SPARSE_TYPE(EPICYCLE_PER_TYPE)
#undef EPICYCLE_PER_TYPE

template <class T, class I>
struct CsrRowReader {
    Csr<T, I> X;
    std::size_t stored;  // entries in all
    const T *x = nullptr;
    const I *at = nullptr;
    std::size_t n = 0;

    CsrRowReader(const Csr<T, I> &X, std::size_t stored) : X(X), stored(stored) {}
    std::size_t rows() const { return X.rows; }
    std::size_t cols() const { return X.cols; }
    std::size_t cost() const { return stored / std::max<std::size_t>(X.rows, 1) + 1; }
    void select(std::size_t i) {
        const I first = X.indptr[i], last = X.indptr[i + 1];
        if (first < 0 || last < first || static_cast<std::size_t>(last) > stored)
            throw std::invalid_argument("expected a well-formed CSR matrix: row pointers in order");
        x = X.data + first;
        at = X.indices + first;
        n = static_cast<std::size_t>(last - first);
        if (!row_is_sound(x, at, n, X.cols))
            throw std::invalid_argument("expected a well-formed CSR matrix: columns inside it, finite entries");
    }
    // In a shuffled order the next rows are anywhere: their pointers, then their entries, are asked for ahead.
    void prefetch(const std::int64_t *order, std::size_t i, std::size_t end) const {
        if (i + 8 < end) __builtin_prefetch(X.indptr + order[i + 8]);
        if (i + 3 < end) {
            const I first = X.indptr[order[i + 3]], last = X.indptr[order[i + 3] + 1];
            if (first < 0 || last < first || static_cast<std::size_t>(last) > stored) return;  // select will say so
            prefetch_entries(X, first, last);
        }
    }
    double dot(const double *v) const {
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
        std::size_t k = 0;
        for (; k + 4 <= n; k += 4) {
            s0 += static_cast<double>(x[k]) * v[at[k]];
            s1 += static_cast<double>(x[k + 1]) * v[at[k + 1]];
            s2 += static_cast<double>(x[k + 2]) * v[at[k + 2]];
            s3 += static_cast<double>(x[k + 3]) * v[at[k + 3]];
        }
        for (; k < n; ++k) s0 += static_cast<double>(x[k]) * v[at[k]];
        return (s0 + s1) + (s2 + s3);
    }
    void dots(const double *v, std::size_t K, double *z) const {
        for (std::size_t c = 0; c < n; ++c) {
            const double xc = static_cast<double>(x[c]), *row = v + static_cast<std::size_t>(at[c]) * K;
            for (std::size_t k = 0; k < K; ++k) z[k] += xc * row[k];
        }
    }
    void add(double g, double *v) const {
        for (std::size_t k = 0; k < n; ++k) v[at[k]] += g * static_cast<double>(x[k]);
    }
    void adds(const double *g, double *v, std::size_t K) const {
        for (std::size_t c = 0; c < n; ++c) {
            const double xc = static_cast<double>(x[c]);
            double *row = v + static_cast<std::size_t>(at[c]) * K;
            for (std::size_t k = 0; k < K; ++k) row[k] += g[k] * xc;
        }
    }
    template <class F>
    void each(F f) const {
        for (std::size_t k = 0; k < n; ++k) f(static_cast<std::size_t>(at[k]), static_cast<double>(x[k]));
    }
};

template <class Rows>
double row_square(const Rows &rows) {
    double sum = 0.0;
    rows.each([&](std::size_t, double x) { sum += x * x; });
    return sum;
}

// A number for each row from its non-zero entries alone, the same for dense and sparse rows; equal rows get equal ones.
template <class Rows>
void row_hashes(Rows &rows, std::uint64_t *out) {
    for (std::size_t i = 0; i < rows.rows(); ++i) {
        rows.select(i);
        std::uint64_t sum = 0;
        rows.each([&](std::size_t j, double x) {
            if (x == 0.0) return;
            std::uint64_t h;
            std::memcpy(&h, &x, sizeof h);
            h ^= (static_cast<std::uint64_t>(j) + 1) * 0x9e3779b97f4a7c15ull;
            h = (h ^ (h >> 33)) * 0xff51afd7ed558ccdull;
            h = (h ^ (h >> 33)) * 0xc4ceb9fe1a85ec53ull;
            sum += h ^ (h >> 33);  // a sum: the order of the entries plays no part
        });
        out[i] = sum;
    }
}

}  // namespace epicycle
