// out += A'W(A V - 1 s') for sparse rows A, a few columns V and a shift s of their products, in one read of the rows:
// t = V'a - s, then a t' is added while the row and the rows of V and out that it meets are in the cache.
//
// V and out lie in panels of SCATTER_PANEL columns, one panel after the other, so that those of a hundred thousand
// columns of A stay in the cache. A panel is the work of one thread: no sum depends on how many there are.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/simd.hpp"
#include "core/sparse.hpp"

namespace epicycle {

constexpr std::size_t SCATTER_PANEL = 16;

template <class T, class I>
EPICYCLE_INLINE void scatter_panel_body(const Csr<T, I> &X, const double *weight, const double *shift, const double *V,
                                        double *out, double *sums) {
    constexpr std::size_t L = SCATTER_PANEL;
    constexpr I AHEAD = 8;
    for (std::size_t i = 0; i < X.rows; ++i) {
        const double w = weight ? weight[i] : 1.0;
        if (w == 0.0) continue;
        double t[L];
        for (std::size_t c = 0; c < L; ++c) t[c] = -shift[c];
        const I first = X.indptr[i], last = X.indptr[i + 1], end = X.indptr[X.rows];
        for (I a = first; a < last; ++a) {
            const double x = static_cast<double>(X.data[a]), *row = V + static_cast<std::size_t>(X.indices[a]) * L;
            if (a + AHEAD < end) {
                const std::size_t next = static_cast<std::size_t>(X.indices[a + AHEAD]) * L;
                __builtin_prefetch(V + next);
                __builtin_prefetch(V + next + L / 2);
            }
            for (std::size_t c = 0; c < L; ++c) t[c] += x * row[c];
        }
        for (std::size_t c = 0; c < L; ++c) t[c] *= w, sums[c] += t[c];
        for (I a = first; a < last; ++a) {
            const double x = static_cast<double>(X.data[a]);
            double *row = out + static_cast<std::size_t>(X.indices[a]) * L;
            if (a + AHEAD < last) {
                const std::size_t next = static_cast<std::size_t>(X.indices[a + AHEAD]) * L;
                __builtin_prefetch(out + next, 1);
                __builtin_prefetch(out + next + L / 2, 1);
            }
            for (std::size_t c = 0; c < L; ++c) row[c] += x * t[c];
        }
    }
}
#define EPICYCLE_PER_TYPE(T, I)                                                                              \
    EPICYCLE_CLONES inline void scatter_panel(const Csr<T, I> &X, const double *weight, const double *shift, \
                                              const double *V, double *out, double *sums) {                  \
        scatter_panel_body(X, weight, shift, V, out, sums);                                                  \
    }
EPICYCLE_PER_SPARSE_TYPE(EPICYCLE_PER_TYPE)
#undef EPICYCLE_PER_TYPE

}  // namespace epicycle
