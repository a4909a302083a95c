// Small triangular systems in place.
#pragma once

#include <cstddef>

namespace epicycle {

// x := (L L')^-1 x for the lower triangle of the first n rows of L, which are `stride` apart.
inline void solve_cholesky(const double *L, std::size_t stride, std::size_t n, double *x) {
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < i; ++j) x[i] -= L[i * stride + j] * x[j];
        x[i] /= L[i * stride + i];
    }
    for (std::size_t i = n; i-- > 0;) {
        for (std::size_t j = i + 1; j < n; ++j) x[i] -= L[j * stride + i] * x[j];
        x[i] /= L[i * stride + i];
    }
}

}  // namespace epicycle
