// Complex Fourier transforms of several sequences at once: one lane of a vector register for each sequence, so that the
// arithmetic of a transform needs no shuffles. Stockham's order: no bit reversal. Lengths are products of 2, 3 and 5.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "core/simd.hpp"

namespace epicycle::manifold {

constexpr std::size_t LANES = 8;
typedef float Lanes __attribute__((vector_size(LANES * sizeof(float))));
struct alignas(LANES * sizeof(float))
    Reals {  // a type of its own: as an argument of a template Lanes loses its alignment
    Lanes v;
};
struct alignas(LANES * sizeof(float)) Element {  // the same entry of LANES complex sequences
    Lanes re, im;
};

// The smallest multiple of 2 LANES, at least `least`, whose other factors are 2, 3 and 5.
inline std::size_t smooth_size(std::size_t least) {
    for (std::size_t q = (least + 2 * LANES - 1) / (2 * LANES);; ++q) {
        std::size_t rest = q;
        for (std::size_t f : {2, 3, 5})
            while (rest % f == 0) rest /= f;
        if (rest == 1) return q * 2 * LANES;
    }
}

struct Transform {
    std::size_t length;
    std::vector<int> radices;
    std::vector<float> cosine, sine;  // of -2 pi t / length

    explicit Transform(std::size_t m) : length(m), cosine(m), sine(m) {
        for (int r : {5, 3, 4, 2})
            while (m % static_cast<std::size_t>(r) == 0) {
                radices.push_back(r);
                m /= static_cast<std::size_t>(r);
            }
        const double step = -2.0 * 3.14159265358979323846 / static_cast<double>(length);
        for (std::size_t t = 0; t < length; ++t) {
            cosine[t] = static_cast<float>(std::cos(step * static_cast<double>(t)));
            sine[t] = static_cast<float>(std::sin(step * static_cast<double>(t)));
        }
    }
};

EPICYCLE_INLINE Element operator+(const Element &a, const Element &b) { return {a.re + b.re, a.im + b.im}; }
EPICYCLE_INLINE Element operator-(const Element &a, const Element &b) { return {a.re - b.re, a.im - b.im}; }
EPICYCLE_INLINE Element turned(const Element &a, float c, float s) {  // a (c + i s)
    return {a.re * c - a.im * s, a.re * s + a.im * c};
}
EPICYCLE_INLINE Element scaled(const Element &a, float c) { return {a.re * c, a.im * c}; }
EPICYCLE_INLINE Element times_minus_i(const Element &a) { return {a.im, -a.re}; }

// One stage: for the remaining length n = r m with stride s, y[q + s(rp + k)] = w^(pk) sum_j x[q + s(p + mj)] u^(jk).
template <int R>
EPICYCLE_INLINE void stage(const Transform &plan, const Element *x, Element *y, std::size_t n, std::size_t s) {
    const std::size_t m = n / R;
    for (std::size_t p = 0; p < m; ++p) {
        float c[R], d[R];
        for (std::size_t k = 1; k < R; ++k) c[k] = plan.cosine[p * k * s], d[k] = plan.sine[p * k * s];
        for (std::size_t q = 0; q < s; ++q) {
            const Element *from = x + q + s * p;
            Element *to = y + q + s * R * p;
            const std::size_t step = s * m;
            if constexpr (R == 2) {
                const Element a = from[0], b = from[step];
                to[0] = a + b;
                to[s] = turned(a - b, c[1], d[1]);
            } else if constexpr (R == 3) {
                constexpr float half_root = 0.86602540378443864676f;
                const Element a = from[0], b = from[step], e = from[2 * step];
                const Element sum = b + e, middle = a - scaled(sum, 0.5f);
                const Element side = times_minus_i(scaled(b - e, half_root));
                to[0] = a + sum;
                to[s] = turned(middle + side, c[1], d[1]);
                to[2 * s] = turned(middle - side, c[2], d[2]);
            } else if constexpr (R == 4) {
                const Element a = from[0], b = from[step], e = from[2 * step], f = from[3 * step];
                const Element even = a + e, odd = a - e, sum = b + f, side = times_minus_i(b - f);
                to[0] = even + sum;
                to[s] = turned(odd + side, c[1], d[1]);
                to[2 * s] = turned(even - sum, c[2], d[2]);
                to[3 * s] = turned(odd - side, c[3], d[3]);
            } else {
                constexpr float c1 = 0.30901699437494742410f, c2 = -0.80901699437494742410f;
                constexpr float s1 = 0.95105651629515357212f, s2 = 0.58778525229247312917f;
                const Element a = from[0], b = from[step], e = from[2 * step], f = from[3 * step], g = from[4 * step];
                const Element p1 = b + g, m1 = b - g, p2 = e + f, m2 = e - f;
                const Element r1 = a + scaled(p1, c1) + scaled(p2, c2), r2 = a + scaled(p1, c2) + scaled(p2, c1);
                const Element i1 = times_minus_i(scaled(m1, s1) + scaled(m2, s2));
                const Element i2 = times_minus_i(scaled(m1, s2) - scaled(m2, s1));
                to[0] = a + p1 + p2;
                to[s] = turned(r1 + i1, c[1], d[1]);
                to[2 * s] = turned(r2 + i2, c[2], d[2]);
                to[3 * s] = turned(r2 - i2, c[3], d[3]);
                to[4 * s] = turned(r1 - i1, c[4], d[4]);
            }
        }
    }
}

// Transforms what is in x; the result is in the buffer that is returned, x or y.
EPICYCLE_INLINE Element *forward(const Transform &plan, Element *x, Element *y) {
    std::size_t n = plan.length, s = 1;
    for (int r : plan.radices) {
        if (r == 2)
            stage<2>(plan, x, y, n, s);
        else if (r == 3)
            stage<3>(plan, x, y, n, s);
        else if (r == 4)
            stage<4>(plan, x, y, n, s);
        else
            stage<5>(plan, x, y, n, s);
        n /= static_cast<std::size_t>(r);
        s *= static_cast<std::size_t>(r);
        std::swap(x, y);
    }
    return x;
}

}  // namespace epicycle::manifold
