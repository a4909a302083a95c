// Instruction sets. EPICYCLE_CLONES marks a plain loop that the compiler clones for AVX-512, AVX2 and baseline and
// chooses at load time; kernels that tile registers by hand are instantiated per set and chosen by isa().
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(EPICYCLE_TARGET_CLONES)
#define EPICYCLE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#define EPICYCLE_V4 __attribute__((target("arch=x86-64-v4")))
#define EPICYCLE_V3 __attribute__((target("arch=x86-64-v3")))
#else
#define EPICYCLE_CLONES
#define EPICYCLE_V4
#define EPICYCLE_V3
#endif
#define EPICYCLE_INLINE inline __attribute__((always_inline))
#define EPICYCLE_INLINE_LAMBDA __attribute__((always_inline))

namespace epicycle {

enum class Isa { baseline, avx2, avx512 };

inline Isa isa() {
#if defined(EPICYCLE_TARGET_CLONES)
    static const Isa chosen = [] {
        __builtin_cpu_init();
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
            __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512cd"))
            return Isa::avx512;
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2"))
            return Isa::avx2;
        return Isa::baseline;
    }();
    return chosen;
#else
    return Isa::baseline;
#endif
}

// a_0 x^m + a_1 x^(m-1) + ... + a_m, multiplied out from the highest power, without a loop.
template <class T, class... Coefficients>
EPICYCLE_INLINE T horner(T x, T highest, Coefficients... lower) {
    ((highest = highest * x + lower), ...);
    return highest;
}

// exp(x) for x <= 0, branch-free so that loops over it vectorise. exp(x) = 2^k exp(r), |r| <= ln2/2, by a Taylor
// polynomial of degree 13 (relative error below 2 ulp); results below 2^-1022 are flushed to zero.
EPICYCLE_INLINE double exp_nonpositive(double x) {
    constexpr double log2e = 1.4426950408889634074, ln2_hi = 6.93147180369123816490e-01,
                     ln2_lo = 1.90821492927058770002e-10, shift = 6755399441055744.0;  // 1.5 * 2^52 rounds to integer
    const double bounded = x < -708.0 ? -708.0 : x;
    const double shifted = bounded * log2e + shift;
    const double k = shifted - shift;
    const double r = (bounded - k * ln2_hi) - k * ln2_lo;
    const double e =
        horner(r, 1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0,
               1.0 / 40320.0, 1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0);
    // The low bits of `shifted` hold k in two's complement; 2^k is assembled in the exponent field.
    std::uint64_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const std::uint64_t exponent = (bits + 1023) << 52;
    double scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    return x < -708.0 ? 0.0 : e * scale;
}

// log(1 + t) for 0 <= t <= 1 by the series of 2 atanh(s), s = t / (2 + t) <= 1/3; exact to about 1 ulp for small t too.
EPICYCLE_INLINE double log1p_unit(double t) {
    const double s = t / (2.0 + t), q = s * s;
    const double a = horner(q, 1.0 / 35.0, 1.0 / 33.0, 1.0 / 31.0, 1.0 / 29.0, 1.0 / 27.0, 1.0 / 25.0, 1.0 / 23.0,
                            1.0 / 21.0, 1.0 / 19.0, 1.0 / 17.0, 1.0 / 15.0, 1.0 / 13.0, 1.0 / 11.0, 1.0 / 9.0,
                            1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0);
    return 2.0 * s * a;
}

}  // namespace epicycle
