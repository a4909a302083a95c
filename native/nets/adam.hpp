// One step of Adam (Kingma and Ba 2015) on arrays:
//
//   g += decay w  (Adam)   or   w *= 1 - rate decay  (AdamW, Loshchilov and Hutter 2019)
//   m += (1 - b1) (g - m),  v = b2 v + (1 - b2) g^2,  w -= rate / (1 - b1^t) m / (sqrt(v / (1 - b2^t)) + eps)
#pragma once

#include <cmath>
#include <cstddef>

#include "core/simd.hpp"

namespace epicycle {

struct AdamStep {
    double rate, decay, beta_1, beta_2, epsilon, step;
    bool decoupled;  // AdamW
};

template <class T>
EPICYCLE_INLINE void adam_body(const AdamStep &o, std::size_t n, T *w, const T *g, T *m, T *v) {
    const T first = static_cast<T>(1.0 - o.beta_1), second = static_cast<T>(1.0 - o.beta_2);
    const T kept = static_cast<T>(o.beta_2), epsilon = static_cast<T>(o.epsilon);
    const T rate = static_cast<T>(o.rate / (1.0 - std::pow(o.beta_1, o.step)));
    const T root = static_cast<T>(std::sqrt(1.0 - std::pow(o.beta_2, o.step)));
    const T added = static_cast<T>(o.decoupled ? 0.0 : o.decay);
    const T shrunk = static_cast<T>(o.decoupled ? 1.0 - o.rate * o.decay : 1.0);
    for (std::size_t i = 0; i < n; ++i) {
        const T x = shrunk * w[i], d = g[i] + added * x;
        m[i] += first * (d - m[i]);
        v[i] = kept * v[i] + second * d * d;
        w[i] = x - rate * m[i] / (std::sqrt(v[i]) / root + epsilon);
    }
}

template <class T>
EPICYCLE_V4 void adam_v4(const AdamStep &o, std::size_t n, T *w, const T *g, T *m, T *v) {
    adam_body(o, n, w, g, m, v);
}
template <class T>
EPICYCLE_V3 void adam_v3(const AdamStep &o, std::size_t n, T *w, const T *g, T *m, T *v) {
    adam_body(o, n, w, g, m, v);
}

template <class T>
void adam(const AdamStep &o, std::size_t n, T *w, const T *g, T *m, T *v) {
    switch (isa()) {
        case Isa::avx512:
            return adam_v4(o, n, w, g, m, v);
        case Isa::avx2:
            return adam_v3(o, n, w, g, m, v);
        default:
            return adam_body(o, n, w, g, m, v);
    }
}

}  // namespace epicycle
