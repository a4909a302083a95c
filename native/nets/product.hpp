// C += A B of matrices that stay in the cache, for either floating type, by tiles in registers.
//
// A(i, k) = a[i * ai + k * ak], so that a transpose costs nothing; rows of B and of C are a multiple of LANES numbers
// apart, and the columns between their width and that multiple hold anything.
#pragma once

#include <cstddef>

#include "core/simd.hpp"

namespace epicycle {

// Numbers in 64 bytes, the longest vector of any set.
template <class T>
constexpr std::size_t LANES = 64 / sizeof(T);

inline std::size_t padded(std::size_t n, std::size_t lanes) { return (n + lanes - 1) / lanes * lanes; }

// HEIGHT rows and W vectors of C; the accumulators stay in registers.
template <class T, int BYTES, int HEIGHT, int W>
EPICYCLE_INLINE void product_tile(const T *a, std::size_t ai, std::size_t ak, const T *b, std::size_t ldb,
                                  std::size_t n, T *c, std::size_t ldc) {
    typedef T V __attribute__((vector_size(BYTES)));
    constexpr std::size_t L = BYTES / sizeof(T);
    V acc[HEIGHT][W];
    for (int i = 0; i < HEIGHT; ++i)
        for (int w = 0; w < W; ++w) __builtin_memcpy(&acc[i][w], c + i * ldc + w * L, sizeof(V));
    for (std::size_t k = 0; k < n; ++k, a += ak, b += ldb) {
        V bk[W];
        for (int w = 0; w < W; ++w) __builtin_memcpy(&bk[w], b + w * L, sizeof(V));
        for (int i = 0; i < HEIGHT; ++i)
            for (int w = 0; w < W; ++w) acc[i][w] += a[i * ai] * bk[w];
    }
    for (int i = 0; i < HEIGHT; ++i)
        for (int w = 0; w < W; ++w) __builtin_memcpy(c + i * ldc + w * L, &acc[i][w], sizeof(V));
}

// All rows of W vectors of C.
template <class T, int BYTES, int HEIGHT, int W>
EPICYCLE_INLINE void product_columns(const T *a, std::size_t ai, std::size_t ak, const T *b, std::size_t ldb,
                                     std::size_t rows, std::size_t n, T *c, std::size_t ldc) {
    std::size_t i = 0;
    for (; i + HEIGHT <= rows; i += HEIGHT)
        product_tile<T, BYTES, HEIGHT, W>(a + i * ai, ai, ak, b, ldb, n, c + i * ldc, ldc);
    for (; i + 2 <= rows; i += 2) product_tile<T, BYTES, 2, W>(a + i * ai, ai, ak, b, ldb, n, c + i * ldc, ldc);
    if (i < rows) product_tile<T, BYTES, 1, W>(a + i * ai, ai, ak, b, ldb, n, c + i * ldc, ldc);
}

// C (rows x columns) += A (rows x n) B (n x columns).
template <class T, int BYTES, int HEIGHT>
EPICYCLE_INLINE void product(const T *a, std::size_t ai, std::size_t ak, const T *b, std::size_t ldb, std::size_t rows,
                             std::size_t n, std::size_t columns, T *c, std::size_t ldc) {
    constexpr std::size_t L = BYTES / sizeof(T);
    std::size_t j = 0;
    for (; j + L < columns; j += 2 * L)
        product_columns<T, BYTES, HEIGHT, 2>(a, ai, ak, b + j, ldb, rows, n, c + j, ldc);
    if (j < columns) product_columns<T, BYTES, HEIGHT, 1>(a, ai, ak, b + j, ldb, rows, n, c + j, ldc);
}

}  // namespace epicycle
