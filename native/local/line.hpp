// Locally weighted regression on a line: points sorted by x, windows found by bisection.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "core/simd.hpp"
#include "local/local_fit.hpp"

namespace epicycle {

// Points sorted by x. `upto` holds sums of prior weights, upto[j] = sum of the first j; null means that all are one.
struct LocalLine {
    const double *x, *y, *c, *upto;
    std::size_t n;
};

// Points [first, second) lie within d of q. Distances are compared, not ends: the latter would be rounded.
inline std::pair<std::size_t, std::size_t> line_window(const LocalLine &P, double q, double d) {
    const double *end = P.x + P.n, *first = std::partition_point(P.x, end, [&](double x) { return q - x > d; });
    const double *last = std::partition_point(first, end, [&](double x) { return x - q <= d; });
    return {static_cast<std::size_t>(first - P.x), static_cast<std::size_t>(last - P.x)};
}

// Distance from q at which the prior weight around it first reaches `share` (or the farthest point).
inline double line_radius(const LocalLine &P, double q, double share) {
    if (!P.upto) {
        // Of the windows of k points the first whose right neighbour is no nearer than its leftmost point.
        const std::size_t k = std::min(P.n, static_cast<std::size_t>(std::max(share, 1.0)));
        std::size_t low = 0, high = P.n - k;
        while (low < high) {
            const std::size_t half = low + (high - low) / 2;
            if (q - P.x[half] <= P.x[half + k] - q)
                high = half;
            else
                low = half + 1;
        }
        return std::max(q - P.x[low], P.x[low + k - 1] - q);
    }
    const auto within = [&](double d) {
        const auto [first, last] = line_window(P, q, d);
        return P.upto[last] - P.upto[first];
    };
    const double enough = share * (1.0 - 1e-14);
    const auto middle = static_cast<std::size_t>(std::lower_bound(P.x, P.x + P.n, q) - P.x);
    double best = std::numeric_limits<double>::infinity();
    // On each side: the nearest point whose distance is enough.
    std::size_t low = 0, high = middle;  // points [0, middle) lie left of q, nearer ones have larger indices
    while (low < high) {
        const std::size_t half = low + (high - low) / 2;
        if (within(q - P.x[half]) >= enough)
            low = half + 1;
        else
            high = half;
    }
    if (low > 0) best = q - P.x[low - 1];
    low = middle, high = P.n;
    while (low < high) {
        const std::size_t half = low + (high - low) / 2;
        if (within(P.x[half] - q) >= enough)
            high = half;
        else
            low = half + 1;
    }
    if (low < P.n) best = std::min(best, P.x[low] - q);
    if (best < std::numeric_limits<double>::infinity()) return best;
    return std::max(q - P.x[0], P.x[P.n - 1] - q);
}

// Eight numbers at a time, spelt out: sums over a window keep eight partial sums each, whatever the instruction set.
constexpr std::size_t LANES = 8;
using Lanes = double __attribute__((vector_size(8 * sizeof(double))));

EPICYCLE_INLINE void load(const double *from, Lanes &to) { std::memcpy(&to, from, sizeof to); }

template <LocalKernel kernel>
EPICYCLE_INLINE void lane_weights(const Lanes &u, Lanes &k) {
    const Lanes d = u < 0.0 ? -u : u, one = Lanes{} + 1.0;
    if constexpr (kernel == LocalKernel::gaussian || kernel == LocalKernel::uniform) {
        for (std::size_t l = 0; l < LANES; ++l) k[l] = local_weight<kernel>(d[l]);
        return;
    }
    const Lanes e = d < 1.0 ? d : one;
    if constexpr (kernel == LocalKernel::triangular)
        k = one - e;
    else if constexpr (kernel == LocalKernel::tricube)
        k = one - e * e * e;
    else
        k = one - e * e;
    if constexpr (kernel == LocalKernel::biweight) k *= k;
    if constexpr (kernel == LocalKernel::tricube || kernel == LocalKernel::triweight) k *= k * k;
}

// Calls step(u, c, y) for the points [begin, end), eight at a time; the last ones are filled up with points of no
// weight.
template <class Step>
EPICYCLE_INLINE void over_window(const LocalLine &P, std::size_t begin, std::size_t end, double q, double inv,
                                 const Step &step) {
    Lanes x, c, y, u;
    std::size_t j = begin;
    for (; j + LANES <= end; j += LANES) {
        load(P.x + j, x);
        load(P.c + j, c);
        load(P.y + j, y);
        u = (x - q) * inv;
        step(u, c, y);
    }
    if (j == end) return;
    x = Lanes{} + q, c = Lanes{}, y = Lanes{};
    for (std::size_t l = 0; j < end; ++j, ++l) x[l] = P.x[j], c[l] = P.c[j], y[l] = P.y[j];
    u = (x - q) * inv;
    step(u, c, y);
}

EPICYCLE_INLINE double sum_of(const Lanes &v) {
    double total = 0.0;
    for (std::size_t l = 0; l < LANES; ++l) total += v[l];
    return total;
}

// S[i] = sum_j K_j c_j u_j^i for i <= 2 degree, T[i] = sum_j K_j c_j y_j u_j^i for i <= degree.
template <LocalKernel kernel, int degree>
EPICYCLE_INLINE void line_sums(const LocalLine &P, std::size_t begin, std::size_t end, double q, double inv, double *S,
                               double *T) {
    Lanes s[2 * degree + 1] = {}, t[degree + 1] = {};
    over_window(P, begin, end, q, inv, [&](const Lanes &u, const Lanes &c, const Lanes &y) EPICYCLE_INLINE_LAMBDA {
        Lanes k;
        lane_weights<kernel>(u, k);
        k *= c;
        Lanes ky = k * y;
        for (int i = 0; i <= 2 * degree; ++i) {
            s[i] += k;
            k *= u;
            if (i > degree) continue;
            t[i] += ky;
            ky *= u;
        }
    });
    for (int i = 0; i <= 2 * degree; ++i) S[i] = sum_of(s[i]);
    for (int i = 0; i <= degree; ++i) T[i] = sum_of(t[i]);
}

// sum_j K_j^2 c_j (a' phi_j)^2
template <LocalKernel kernel, int degree>
EPICYCLE_INLINE double line_squares(const LocalLine &P, std::size_t begin, std::size_t end, double q, double inv,
                                    const double *a) {
    Lanes s{};
    over_window(P, begin, end, q, inv, [&](const Lanes &u, const Lanes &c, const Lanes &) EPICYCLE_INLINE_LAMBDA {
        Lanes k, p = Lanes{} + a[degree];
        lane_weights<kernel>(u, k);
        for (int i = degree - 1; i >= 0; --i) p = p * u + a[i];
        p *= k;
        s += p * p * c;
    });
    return sum_of(s);
}

// The mean of the points nearest to q among those with weight.
inline LocalAnswer line_nearest(const LocalLine &P, double q) {
    std::size_t right = static_cast<std::size_t>(std::lower_bound(P.x, P.x + P.n, q) - P.x), left = right;
    while (left > 0 && P.c[left - 1] <= 0.0) --left;
    while (right < P.n && P.c[right] <= 0.0) ++right;
    const double infinity = std::numeric_limits<double>::infinity();
    const double to_left = left > 0 ? q - P.x[left - 1] : infinity, to_right = right < P.n ? P.x[right] - q : infinity;
    double total = 0.0, sum = 0.0;
    if (to_left <= to_right)
        for (std::size_t j = left; j-- > 0 && q - P.x[j] == to_left;) total += P.c[j], sum += P.c[j] * P.y[j];
    if (to_right <= to_left)
        for (std::size_t j = right; j < P.n && P.x[j] - q == to_right; ++j) total += P.c[j], sum += P.c[j] * P.y[j];
    return nearest_answer(total, sum);
}

template <LocalKernel kernel, int degree>
EPICYCLE_INLINE LocalAnswer line_answer(const LocalLine &P, double q, double h, bool squares, LocalWorkspace &ws) {
    constexpr std::size_t m = degree + 1;
    const double reach = h * local_reach(kernel);
    const auto [begin, end] = line_window(P, q, reach);
    // No neighbourhood at all, or one of a single place: its mean.
    if (begin == end || !(h > 0.0)) {
        LocalAnswer out = line_nearest(P, q);
        if (begin < end && degree > 0) out.status = LocalStatus::flat;
        return out;
    }
    const double inv = 1.0 / h;
    double S[2 * degree + 1], T[degree + 1], A[m * m], beta[m], a[m], work[m * m + m];
    line_sums<kernel, degree>(P, begin, end, q, inv, S, T);
    if (!(S[0] > 0.0)) return line_nearest(P, q);
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t k = 0; k < m; ++k) A[i * m + k] = S[i + k];
    LocalAnswer out;
    if (solve_local(A, T, m, beta, a, work)) {
        out.value = beta[0];
        out.own = a[0];
        out.error = backward_error(A, T, m, beta);
    } else {
        const std::size_t n = end - begin;
        ws.size_for(m);
        ws.phi.resize(n * m);
        ws.k.resize(n);
        ws.y.resize(n);
        for (std::size_t j = 0; j < n; ++j) {
            const double u = (P.x[begin + j] - q) * inv;
            ws.k[j] = local_weight<kernel>(std::abs(u)) * P.c[begin + j];
            ws.y[j] = P.y[begin + j];
            double power = 1.0;
            for (std::size_t i = 0; i < m; ++i, power *= u) ws.phi[j * m + i] = power;
        }
        out = solve_carefully(ws, n, m);
        std::copy(ws.a.begin(), ws.a.begin() + m, a);
    }
    if (squares) out.squares = line_squares<kernel, degree>(P, begin, end, q, inv, a);
    return out;
}

template <LocalKernel kernel>
EPICYCLE_INLINE LocalAnswer line_answer_of(const LocalLine &P, double q, double h, int degree, bool squares,
                                           LocalWorkspace &ws) {
    if (degree == 0) return line_answer<kernel, 0>(P, q, h, squares, ws);
    if (degree == 1) return line_answer<kernel, 1>(P, q, h, squares, ws);
    return line_answer<kernel, 2>(P, q, h, squares, ws);
}

EPICYCLE_INLINE void line_queries_body(const LocalLine &P, const double *queries, const double *h, std::size_t from,
                                       std::size_t to, LocalKernel kernel, int degree, bool squares, LocalWorkspace &ws,
                                       const LocalOutput &out) {
    for (std::size_t i = from; i < to; ++i)
        out.put(i, with_kernel(kernel, [&](auto k) EPICYCLE_INLINE_LAMBDA {
                    return line_answer_of<decltype(k)::value>(P, queries[i], h[i], degree, squares, ws);
                }));
}

EPICYCLE_V4 inline void line_queries_v4(const LocalLine &P, const double *queries, const double *h, std::size_t from,
                                        std::size_t to, LocalKernel kernel, int degree, bool squares,
                                        LocalWorkspace &ws, const LocalOutput &out) {
    line_queries_body(P, queries, h, from, to, kernel, degree, squares, ws, out);
}
EPICYCLE_V3 inline void line_queries_v3(const LocalLine &P, const double *queries, const double *h, std::size_t from,
                                        std::size_t to, LocalKernel kernel, int degree, bool squares,
                                        LocalWorkspace &ws, const LocalOutput &out) {
    line_queries_body(P, queries, h, from, to, kernel, degree, squares, ws, out);
}
inline void line_queries_plain(const LocalLine &P, const double *queries, const double *h, std::size_t from,
                               std::size_t to, LocalKernel kernel, int degree, bool squares, LocalWorkspace &ws,
                               const LocalOutput &out) {
    line_queries_body(P, queries, h, from, to, kernel, degree, squares, ws, out);
}

inline void line_queries(const LocalLine &P, const double *queries, const double *h, std::size_t from, std::size_t to,
                         LocalKernel kernel, int degree, bool squares, LocalWorkspace &ws, const LocalOutput &out) {
    switch (isa()) {
        case Isa::avx512:
            return line_queries_v4(P, queries, h, from, to, kernel, degree, squares, ws, out);
        case Isa::avx2:
            return line_queries_v3(P, queries, h, from, to, kernel, degree, squares, ws, out);
        default:
            return line_queries_plain(P, queries, h, from, to, kernel, degree, squares, ws, out);
    }
}

}  // namespace epicycle
