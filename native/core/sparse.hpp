// Views of matrices compressed by rows (CSR) or by columns (CSC), with 32- or 64-bit indices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace epicycle {

template <class T, class I>
struct Csr {
    const T *data;
    const I *indices, *indptr;
    std::size_t rows, cols;
};

// Defines something once for every type of entries and indices.
#define EPICYCLE_PER_SPARSE_TYPE(DEFINE) \
    DEFINE(double, std::int32_t)         \
    DEFINE(double, std::int64_t)         \
    DEFINE(float, std::int32_t)          \
    DEFINE(float, std::int64_t)

// Asks for the entries first .. last-1 ahead.
template <class T, class I>
void prefetch_entries(const Csr<T, I> &X, I first, I last) {
    for (I k = first; k < last; k += static_cast<I>(64 / sizeof(T))) __builtin_prefetch(X.data + k);
    for (I k = first; k < last; k += static_cast<I>(64 / sizeof(I))) __builtin_prefetch(X.indices + k);
}

template <class T, class I>
struct Csc {
    const T *data;
    const I *indices, *indptr;
    std::size_t rows, cols, stored;

    // Column j lies inside the arrays and its rows inside the matrix: checked before a kernel follows them.
    bool well_formed(std::size_t j) const {
        const I from = indptr[j], to = indptr[j + 1];
        if (from < 0 || to < from || static_cast<std::size_t>(to) > stored) return false;
        I low = 0, high = 0;
        for (I a = from; a < to; ++a) low = std::min(low, indices[a]), high = std::max(high, indices[a]);
        return low >= 0 && (to == from || static_cast<std::size_t>(high) < rows);
    }
};

// Every index inside the matrix and every row pointer in order: checked before a kernel follows them.
template <class T, class I>
bool well_formed(const Csr<T, I> &X, std::size_t nnz) {
    if (X.indptr[0] < 0 || static_cast<std::size_t>(X.indptr[X.rows]) > nnz) return false;
    for (std::size_t i = 0; i < X.rows; ++i)
        if (X.indptr[i] > X.indptr[i + 1]) return false;
    for (I a = X.indptr[0]; a < X.indptr[X.rows]; ++a)
        if (X.indices[a] < 0 || static_cast<std::size_t>(X.indices[a]) >= X.cols) return false;
    return true;
}

}  // namespace epicycle
