// The few operations on short vectors and small matrices that samplers need. Sums have eight partial sums of a fixed
// shape, so that they do not depend on the width of the registers.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

using Vec = std::vector<double>;

// A vector of eight numbers: two registers or four where they are shorter. Memory is read through copies, which the
// compiler turns into loads that need no alignment.
typedef double Eight __attribute__((vector_size(64)));
EPICYCLE_INLINE void load(Eight &v, const double *x) { std::memcpy(&v, x, sizeof v); }
EPICYCLE_INLINE void store(double *x, const Eight &v) { std::memcpy(x, &v, sizeof v); }

EPICYCLE_CLONES inline double dot(const double *a, const double *b, std::size_t n) {
    double part[8] = {};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (std::size_t c = 0; c < 8; ++c) part[c] += a[i + c] * b[i + c];
    for (; i < n; ++i) part[i % 8] += a[i] * b[i];
    return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));
}

EPICYCLE_CLONES inline void add_scaled(double *out, double a, const double *x, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) out[i] += a * x[i];
}

// A symmetric matrix whose rows are padded with zeros to a multiple of eight, for products with vectors.
class Symmetric {
public:
    Symmetric() = default;
    Symmetric(const double *values, std::size_t n) : n(n), stride((n + 7) / 8 * 8), a(stride * n) {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j) a[i * stride + j] = values[i * n + j];
    }

    // out = A x; x has n entries, out room for n.
    void times(const double *x, double *out) const { product(a.data(), stride, n, x, out); }

    std::size_t n = 0, stride = 0;
    Vec a;

private:
    // 8 K entries of the result stay in registers while the rows of A go by: with A = A', out = sum x_j a_j.
    template <std::size_t K>
    EPICYCLE_INLINE static void part(const double *a, std::size_t stride, std::size_t n, const double *x,
                                     double *result) {
        Eight sum[K] = {}, v;
        for (std::size_t j = 0; j < n; ++j, a += stride)
            for (std::size_t k = 0; k < K; ++k) load(v, a + 8 * k), sum[k] += v * x[j];
        for (std::size_t k = 0; k < K; ++k) store(result + 8 * k, sum[k]);
    }

    // Parts of equal length as far as they go: one with a single register would wait for its own sums.
    EPICYCLE_CLONES static void product(const double *a, std::size_t stride, std::size_t n, const double *x,
                                        double *out) {
        constexpr std::size_t most = 6;  // twelve registers of AVX2
        double result[8 * most];
        std::size_t left = stride / 8;
        for (std::size_t parts = (left + most - 1) / most, i = 0; parts > 0; --parts) {
            const std::size_t k = (left + parts - 1) / parts;
            switch (k) {
                case 1:
                    part<1>(a + i, stride, n, x, result);
                    break;
                case 2:
                    part<2>(a + i, stride, n, x, result);
                    break;
                case 3:
                    part<3>(a + i, stride, n, x, result);
                    break;
                case 4:
                    part<4>(a + i, stride, n, x, result);
                    break;
                case 5:
                    part<5>(a + i, stride, n, x, result);
                    break;
                default:
                    part<6>(a + i, stride, n, x, result);
            }
            std::memcpy(out + i, result, std::min<std::size_t>(8 * k, n - i) * sizeof(double));
            i += 8 * k;
            left -= k;
        }
    }
};

// (a - u)'P (a - u), and g = P (a - u).
inline double quadratic_form(const Symmetric &P, const Vec &a, const double *u, double *g) {
    const std::size_t n = a.size();
    thread_local Vec d;
    d.resize(n);
    for (std::size_t i = 0; i < n; ++i) d[i] = a[i] - u[i];
    P.times(d.data(), g);
    return dot(d.data(), g, n);
}

// The lower Cholesky factor of a row-major matrix, in place; throws where it is not positive definite.
inline void cholesky(Vec &a, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
        const double pivot = a[j * n + j] - dot(&a[j * n], &a[j * n], j);
        if (!(pivot > 0.0)) throw std::domain_error("the covariance of the warm-up is not positive definite");
        const double root = a[j * n + j] = std::sqrt(pivot);
        for (std::size_t i = j + 1; i < n; ++i) a[i * n + j] = (a[i * n + j] - dot(&a[i * n], &a[j * n], j)) / root;
    }
}

}  // namespace epicycle
