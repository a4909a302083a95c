// Coordinate descent on many small quadratics over w >= 0 that share their curvature:
//
//     minimise  1/2 w_i'G w_i - (c_i - l1)'w_i   for every row i,
//
// where c_i is given, or is x_i F of a sparse row. A row stays in the first-level cache for all of its sweeps, and a
// coordinate that does not move costs nothing but its test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/simd.hpp"
#include "core/sparse.hpp"

namespace epicycle {

constexpr int AHEAD = 6;  // entries of a sparse row whose factors are fetched ahead

struct Quadratics {
    std::size_t k;
    const double *G;            // (k, k), symmetric
    const std::int64_t *order;  // in which coordinates are visited
    double l1;
    std::int64_t sweeps;  // at most
    double share;         // a row ends when a sweep finds this share of the violation that the first one found
};

// y += a x
EPICYCLE_INLINE void add_multiple(const double *__restrict x, double a, std::size_t k, double *__restrict y) {
    for (std::size_t s = 0; s < k; ++s) y[s] += a * x[s];
}

// Takes the products c of a row for its gradient and moves w; returns the sum of |projected gradient| at the start.
EPICYCLE_INLINE double descend_row(const Quadratics &q, double *w, double *c) {
    const std::size_t k = q.k;
    for (std::size_t t = 0; t < k; ++t) c[t] = q.l1 - c[t];
    for (std::size_t t = 0; t < k; ++t)
        if (w[t] != 0.0) add_multiple(q.G + t * k, w[t], k, c);
    double start = 0.0;
    for (std::size_t t = 0; t < k; ++t) start += w[t] > 0.0 ? std::abs(c[t]) : std::max(-c[t], 0.0);
    for (std::int64_t sweep = 0; sweep < q.sweeps; ++sweep) {
        double found = 0.0;
        for (std::size_t at = 0; at < k; ++at) {
            const std::size_t t = static_cast<std::size_t>(q.order[at]);
            const double curvature = q.G[t * k + t];
            if (!(curvature > 0.0) || (w[t] == 0.0 && c[t] >= 0.0)) continue;
            const double moved = std::max(w[t] - c[t] / curvature, 0.0), step = moved - w[t];
            if (step == 0.0) continue;
            found += std::abs(c[t]);
            w[t] = moved;
            add_multiple(q.G + t * k, step, k, c);
        }
        if (found <= q.share * start) break;
    }
    return start;
}

// What the kernels return: the weighted sum of |projected gradients| at the start, and of c_i'w_i at the end.
struct FactorDescent {
    double violation = 0.0, cross = 0.0;
};

EPICYCLE_INLINE void add_row(const Quadratics &q, const double *c, double *gradient, double *w, double v,
                             FactorDescent &sums) {
    std::copy(c, c + q.k, gradient);
    sums.violation += v * descend_row(q, w, gradient);
    double product = 0.0;
    for (std::size_t t = 0; t < q.k; ++t) product += c[t] * w[t];
    sums.cross += v * product;
}

// Rows from:to of given products C.
EPICYCLE_INLINE void descend_given(const Quadratics &q, const double *C, double *W, const double *weight,
                                   double *gradient, std::size_t from, std::size_t to, FactorDescent &sums) {
    for (std::size_t i = from; i < to; ++i)
        add_row(q, C + i * q.k, gradient, W + i * q.k, weight ? weight[i] : 1.0, sums);
}

// Rows from:to of products x_i F of a sparse matrix with factors F (p, k); `c` has room for 2 k numbers.
template <class T, class I>
EPICYCLE_INLINE void descend_sparse(const Quadratics &q, const Csr<T, I> &X, const double *F, double *W,
                                    const double *weight, double *c, std::size_t from, std::size_t to,
                                    FactorDescent &sums) {
    for (std::size_t i = from; i < to; ++i) {
        std::fill(c, c + q.k, 0.0);
        const I last = X.indptr[i + 1] - 1;
        for (I a = X.indptr[i]; a <= last; ++a) {
            const double *next = F + static_cast<std::size_t>(X.indices[std::min<I>(a + AHEAD, last)]) * q.k;
            for (std::size_t s = 0; s < q.k; s += 8) __builtin_prefetch(next + s);  // F is larger than the near caches
            add_multiple(F + static_cast<std::size_t>(X.indices[a]) * q.k, static_cast<double>(X.data[a]), q.k, c);
        }
        add_row(q, c, c + q.k, W + i * q.k, weight ? weight[i] : 1.0, sums);
    }
}

// (W F')_ij at the stored entries of rows from:to, in eight partial sums.
template <class T, class I>
EPICYCLE_INLINE void products_at(const Csr<T, I> &X, const double *W, const double *F, std::size_t k, std::size_t from,
                                 std::size_t to, double *out) {
    constexpr std::size_t K = 8;
    for (std::size_t i = from; i < to; ++i) {
        const double *w = W + i * k;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) {
            const double *f = F + static_cast<std::size_t>(X.indices[a]) * k;
            double part[K] = {}, rest = 0.0;
            std::size_t t = 0;
            for (; t + K <= k; t += K)
                for (std::size_t s = 0; s < K; ++s) part[s] += w[t + s] * f[t + s];
            for (; t < k; ++t) rest += w[t] * f[t];
            out[a - X.indptr[0]] =
                ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7])) + rest;
        }
    }
}

// One copy of a loop for each instruction set.
template <class Work>
EPICYCLE_V4 void run_avx512(const Work &work, std::size_t from, std::size_t to) {
    work(from, to);
}
template <class Work>
EPICYCLE_V3 void run_avx2(const Work &work, std::size_t from, std::size_t to) {
    work(from, to);
}
template <class Work, class Interrupt>
void run_rows(std::size_t n, const Work &work, const Interrupt &interrupt) {
    constexpr std::size_t PIECE = 64;
    for (std::size_t from = 0; from < n; from += PIECE) {
        interrupt();
        const std::size_t to = std::min(from + PIECE, n);
        if (isa() == Isa::avx512)
            run_avx512(work, from, to);
        else if (isa() == Isa::avx2)
            run_avx2(work, from, to);
        else
            work(from, to);
    }
}

}  // namespace epicycle
