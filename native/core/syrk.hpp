// C += Z'Z on packed panels, the core of every second-moment statistic.
//
// Z is a block of at most ROWS rows of d columns, packed in panels of PANEL columns: panel q holds, row after row,
// columns PANEL*q .. PANEL*q + PANEL - 1 (zeros beyond d). A panel of ROWS rows stays in the first-level cache, the
// block in the second. Only tiles that touch the lower triangle (row index >= column index of C) are computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t PANEL = 16, ROWS = 256;

inline std::size_t panels(std::size_t d) { return (d + PANEL - 1) / PANEL; }

// One tile: C (HEIGHT x WIDTH) += A B with A(i, k) = a[i * ai + k * ak] and rows of B `ldb` apart, over k < n.
// V is a vector of L doubles; the accumulators stay in registers (16 of 32 for 8 x PANEL with AVX-512).
template <class V, int L, int HEIGHT, int WIDTH>
EPICYCLE_INLINE void tile(const double *a, std::size_t ai, std::size_t ak, const double *b, std::size_t ldb,
                          std::size_t n, double *c, std::size_t ldc) {
    constexpr int W = WIDTH / L;
    V acc[HEIGHT][W] = {};
    for (std::size_t k = 0; k < n; ++k, a += ak, b += ldb) {
        V bk[W];
        for (int w = 0; w < W; ++w) __builtin_memcpy(&bk[w], b + w * L, sizeof(V));
        for (int i = 0; i < HEIGHT; ++i)
            for (int w = 0; w < W; ++w) acc[i][w] += a[i * ai] * bk[w];
    }
    for (int i = 0; i < HEIGHT; ++i)
        for (int w = 0; w < W; ++w) {
            V old;
            __builtin_memcpy(&old, c + i * ldc + w * L, sizeof(V));
            old += acc[i][w];
            __builtin_memcpy(c + i * ldc + w * L, &old, sizeof(V));
        }
}

template <class V, int L, int HEIGHT>
EPICYCLE_INLINE void syrk_body(const double *packed, std::size_t n, std::size_t d, double *c) {
    const std::size_t q = panels(d), ldc = q * PANEL;
    for (std::size_t bi = 0; bi < q; ++bi)
        for (std::size_t ai = bi; ai < q; ++ai) {  // the lower triangle: rows of C come from panel ai >= bi
            const double *a = packed + ai * ROWS * PANEL, *b = packed + bi * ROWS * PANEL;
            for (std::size_t r = 0; r < PANEL && ai * PANEL + r < d; r += HEIGHT) {
                double *out = c + (ai * PANEL + r) * ldc + bi * PANEL;
                if (ai == bi && r + HEIGHT <= PANEL / 2)  // above the diagonal on the right half: not needed
                    tile<V, L, HEIGHT, PANEL / 2>(a + r, 1, PANEL, b, PANEL, n, out, ldc);
                else
                    tile<V, L, HEIGHT, PANEL>(a + r, 1, PANEL, b, PANEL, n, out, ldc);
            }
        }
}

typedef double v8d __attribute__((vector_size(64)));
typedef double v4d __attribute__((vector_size(32)));
typedef double v2d __attribute__((vector_size(16)));

EPICYCLE_V4 inline void syrk_v4(const double *packed, std::size_t n, std::size_t d, double *c) {
    syrk_body<v8d, 8, 8>(packed, n, d, c);
}
EPICYCLE_V3 inline void syrk_v3(const double *packed, std::size_t n, std::size_t d, double *c) {
    syrk_body<v4d, 4, 2>(packed, n, d, c);
}
inline void syrk_plain(const double *packed, std::size_t n, std::size_t d, double *c) {
    syrk_body<v2d, 2, 1>(packed, n, d, c);
}

// c: (panels(d)*PANEL) squared, row-major, accumulated into; its lower triangle is meaningful.
inline void syrk(const double *packed, std::size_t n, std::size_t d, double *c) {
    switch (isa()) {
        case Isa::avx512:
            return syrk_v4(packed, n, d, c);
        case Isa::avx2:
            return syrk_v3(packed, n, d, c);
        default:
            return syrk_plain(packed, n, d, c);
    }
}

// Vectors that start on a cache line: a 64-byte load then never touches two.
template <class T>
struct CacheAligned {
    using value_type = T;
    CacheAligned() = default;
    template <class U>
    CacheAligned(const CacheAligned<U> &) {}
    T *allocate(std::size_t n) { return static_cast<T *>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T *p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    friend bool operator==(CacheAligned, CacheAligned) { return true; }
    friend bool operator!=(CacheAligned, CacheAligned) { return false; }
};

// A block of at most ROWS rows, packed in panels.
struct PackedRows {
    std::vector<double, CacheAligned<double>> packed;

    PackedRows() = default;
    explicit PackedRows(std::size_t d) : packed(panels(d) * PANEL * ROWS) {}
    double *column(std::size_t j) { return packed.data() + (j / PANEL) * ROWS * PANEL + j % PANEL; }
};

// A packed block and the padded accumulator. Each thread keeps the one it used last: blocks of one data set are alike.
struct SyrkWorkspace : PackedRows {
    std::size_t d = 0;
    std::vector<double, CacheAligned<double>> c;

    static SyrkWorkspace &of_thread(std::size_t d) {
        static thread_local SyrkWorkspace ws;
        const std::size_t padded = panels(d) * PANEL;
        constexpr std::size_t kept = std::size_t{1} << 20;  // more than 8 MiB is not held on to
        if (ws.c.capacity() > kept && padded * padded < kept) ws = SyrkWorkspace();
        ws.d = d;
        ws.packed.resize(padded * ROWS);
        ws.c.assign(padded * padded, 0.0);
        return ws;
    }

    void accumulate(std::size_t n) { syrk(packed.data(), n, d, c.data()); }
    // The full symmetric d x d matrix.
    void symmetric(double *out) const {
        const std::size_t ldc = panels(d) * PANEL;
        for (std::size_t i = 0; i < d; ++i)
            for (std::size_t j = 0; j <= i; ++j) out[i * d + j] = out[j * d + i] = c[i * ldc + j];
    }
};

}  // namespace epicycle
