// Sines and cosines of lanes of numbers, and numbers that carry their derivatives.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/simd.hpp"

namespace epicycle {

template <class T>
struct SineCosine {
    T sin, cos;
};

// Both at once, branch-free so that loops over lanes vectorise; within 2 ulp. The quarter turns come off in three parts
// of pi/2 (Cody and Waite); their products with k are exact up to 2^20, beyond which the result is NaN.
EPICYCLE_INLINE SineCosine<double> sine_cosine(double x) {
    constexpr double two_over_pi = 6.36619772367581382433e-01, part1 = 1.57079632673412561417e+00,
                     part2 = 6.07710050630396597660e-11, part3 = 2.02226624871116645580e-21,
                     shift = 6755399441055744.0,  // 1.5 * 2^52 rounds to integer
        largest = 1.6e6;
    const double shifted = x * two_over_pi + shift, k = shifted - shift;
    const double r = ((x - k * part1) - k * part2) - k * part3, z = r * r;
    double s = 1.58969099521155010221e-10;  // fdlibm's polynomials on [-pi/4, pi/4]
    s = s * z - 2.50507602534068634195e-08;
    s = s * z + 2.75573137070700676789e-06;
    s = s * z - 1.98412698298579493134e-04;
    s = s * z + 8.33333333332248946124e-03;
    s = s * z - 1.66666666666666324348e-01;
    s = r + r * z * s;
    double c = -1.13596475577881948265e-11;
    c = c * z + 2.08757232129817482790e-09;
    c = c * z - 2.75573143513906633035e-07;
    c = c * z + 2.48015872894767294178e-05;
    c = c * z - 1.38888888888741095749e-03;
    c = c * z + 4.16666666666666019037e-02;
    c = (1.0 - 0.5 * z) + z * z * c;
    std::int64_t quarter;  // the low bits of `shifted` hold k in two's complement
    std::memcpy(&quarter, &shifted, sizeof quarter);
    const bool odd = (quarter & 1) != 0;
    const double sine = odd ? c : s, cosine = odd ? s : c;
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double whole = std::abs(x) <= largest ? 1.0 : nan;
    return {(quarter & 2) != 0 ? -sine * whole : sine * whole,
            ((quarter + 1) & 2) != 0 ? -cosine * whole : cosine * whole};
}

EPICYCLE_INLINE double value_of(double x) { return x; }
EPICYCLE_INLINE double square_root(double x) { return std::sqrt(x); }

// a + b e1 + c e2 + d e1 e2 with e1^2 = e2^2 = 0: arithmetic on it carries two first derivatives and the mixed second
// one, exactly.
struct Jet {
    double a = 0.0, b = 0.0, c = 0.0, d = 0.0;
    Jet() = default;
    Jet(double x) : a(x) {}  // NOLINT: constants enter formulas as they are
    Jet(double a_, double b_, double c_, double d_) : a(a_), b(b_), c(c_), d(d_) {}
};

// g(x) for a function of one number with the derivatives g', g''.
EPICYCLE_INLINE Jet chain(const Jet &x, double g, double first, double second) {
    return {g, first * x.b, first * x.c, first * x.d + second * x.b * x.c};
}
EPICYCLE_INLINE Jet operator+(const Jet &x, const Jet &y) { return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; }
EPICYCLE_INLINE Jet operator-(const Jet &x, const Jet &y) { return {x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d}; }
EPICYCLE_INLINE Jet operator-(const Jet &x) { return {-x.a, -x.b, -x.c, -x.d}; }
EPICYCLE_INLINE Jet operator*(const Jet &x, const Jet &y) {
    return {x.a * y.a, x.a * y.b + x.b * y.a, x.a * y.c + x.c * y.a, x.a * y.d + x.b * y.c + x.c * y.b + x.d * y.a};
}
EPICYCLE_INLINE Jet operator/(const Jet &x, const Jet &y) {
    const double i = 1.0 / y.a;
    return x * chain(y, i, -i * i, 2.0 * i * i * i);
}
EPICYCLE_INLINE double value_of(const Jet &x) { return x.a; }
EPICYCLE_INLINE Jet square_root(const Jet &x) {
    const double r = std::sqrt(x.a);
    return chain(x, r, 0.5 / r, -0.25 / (r * x.a));
}
EPICYCLE_INLINE SineCosine<Jet> sine_cosine(const Jet &x) {
    const auto [s, c] = sine_cosine(x.a);
    return {chain(x, s, c, -s), chain(x, c, -s, -c)};
}

}  // namespace epicycle
