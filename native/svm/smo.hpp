// Sequential minimal optimisation on a dense matrix:
//
//     minimise  1/2 b'(K + D) b - z'b + e |b|_1,    lo <= b <= hi,    the sum over each group of variables is fixed.
//
// Signed variables b_t (for a classifier b_t = y_t alpha_t, for a regression alpha_t - alpha_t*) make every machine the
// same problem, without labels in the inner loops. With v = z - (K + D) b a variable may grow if it is below `hi` and
// then gains v + up, and may shrink if it is above `lo` and then loses v + low, where
//
//     up  = -e (b >= 0) or +e (b < 0), and -inf at hi;        low = -e (b > 0) or +e (b <= 0), and +inf at lo.
//
// The point is optimal where max(v + up) <= min(v + low) in every group. A step moves the pair that promises most by
// the second-order rule of Fan, Chen and Lin (2005).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "core/simd.hpp"

namespace epicycle {

constexpr double SMO_FLAT = 1e-12;  // curvature that takes the place of none or a negative one
constexpr std::size_t SMO_LANES = 8;

typedef double Lanes __attribute__((vector_size(64)));
typedef std::int64_t LaneIndex __attribute__((vector_size(64)));
typedef float HalfLanes __attribute__((vector_size(32)));

EPICYCLE_INLINE void load_lanes(const double *p, Lanes &x) { std::memcpy(&x, p, sizeof x); }
EPICYCLE_INLINE void load_lanes(const float *p, Lanes &x) {
    HalfLanes half;
    std::memcpy(&half, p, sizeof half);
    x = __builtin_convertvector(half, Lanes);
}

struct SmoPick {
    std::ptrdiff_t at = -1;  // the variable, or -1
    double value = 0.0;
};

// The largest v + up in [from, to), the last of equal ones as in LIBSVM: where steps are few, its first ones are ours.
EPICYCLE_INLINE void first_body(const double *v, const double *up, std::size_t from, std::size_t to, SmoPick &out) {
    const double none = -std::numeric_limits<double>::infinity();
    double best = none;
    std::ptrdiff_t at = -1;
    std::size_t t = from;
    if (to - from >= SMO_LANES) {
        Lanes top, a, b;
        LaneIndex where, index;
        for (std::size_t l = 0; l < SMO_LANES; ++l) {
            top[l] = none;
            where[l] = -1;
            index[l] = static_cast<std::int64_t>(from + l);
        }
        for (; t + SMO_LANES <= to; t += SMO_LANES, index += static_cast<std::int64_t>(SMO_LANES)) {
            load_lanes(v + t, a);
            load_lanes(up + t, b);
            a += b;
            const LaneIndex better = a >= top;
            top = better ? a : top;
            where = better ? index : where;
        }
        for (std::size_t l = 0; l < SMO_LANES; ++l)
            if (top[l] > best || (top[l] == best && where[l] > at)) best = top[l], at = where[l];
    }
    for (; t < to; ++t)
        if (v[t] + up[t] >= best) best = v[t] + up[t], at = static_cast<std::ptrdiff_t>(t);
    out = {best > none ? at : -1, best};
}

// Among the variables of [from, to) that may shrink the one with which a pair (i, t) promises most,
// (top - (v + low))^2 / (K_ii + K_tt - 2 K_it); fractions are compared without dividing. `least` is min(v + low).
template <class T>
EPICYCLE_INLINE void second_body(const double *v, const double *low, const T *row, const double *diagonal, double top,
                                 double kii, std::size_t from, std::size_t to, SmoPick &out, double &least) {
    double smallest = std::numeric_limits<double>::infinity(), best_square = 0.0, best_curve = 1.0;
    std::ptrdiff_t at = -1;
    std::size_t t = from;
    if (to - from >= SMO_LANES) {
        Lanes low_v, a, k, curve, square, bottom, lane_square, lane_curve;
        LaneIndex where, index;
        const Lanes zero = {}, flat = zero + SMO_FLAT;
        for (std::size_t l = 0; l < SMO_LANES; ++l) {
            bottom[l] = smallest;
            lane_square[l] = 0.0;
            lane_curve[l] = 1.0;
            where[l] = -1;
            index[l] = static_cast<std::int64_t>(from + l);
        }
        for (; t + SMO_LANES <= to; t += SMO_LANES, index += static_cast<std::int64_t>(SMO_LANES)) {
            load_lanes(v + t, a);
            load_lanes(low + t, low_v);
            a += low_v;
            bottom = a < bottom ? a : bottom;
            load_lanes(row + t, k);
            load_lanes(diagonal + t, curve);
            curve = (curve + kii) - 2.0 * k;
            curve = curve > flat ? curve : flat;
            a = top - a;
            square = a > zero ? a * a : zero;
            const LaneIndex better = square * lane_curve > lane_square * curve;
            lane_square = better ? square : lane_square;
            lane_curve = better ? curve : lane_curve;
            where = better ? index : where;
        }
        for (std::size_t l = 0; l < SMO_LANES; ++l) {
            smallest = std::min(smallest, bottom[l]);
            if (where[l] < 0) continue;
            const double mine = lane_square[l] * best_curve, other = best_square * lane_curve[l];
            if (mine > other || (mine == other && where[l] < at))
                best_square = lane_square[l], best_curve = lane_curve[l], at = where[l];
        }
    }
    for (; t < to; ++t) {
        const double a = v[t] + low[t];
        smallest = std::min(smallest, a);
        if (!(a < top)) continue;
        const double curve = std::max(diagonal[t] + kii - 2.0 * static_cast<double>(row[t]), SMO_FLAT);
        const double square = (top - a) * (top - a);
        if (square * best_curve > best_square * curve)
            best_square = square, best_curve = curve, at = static_cast<std::ptrdiff_t>(t);
    }
    out = {at, best_square / best_curve};
    least = smallest;
}

// v -= step (K_i - K_j).
template <class T>
EPICYCLE_INLINE void move_body(double *v, const T *row_i, const T *row_j, double step, std::size_t n) {
    for (std::size_t t = 0; t < n; ++t) v[t] -= step * (static_cast<double>(row_i[t]) - static_cast<double>(row_j[t]));
}

// out += sum_r coefficient_r K_r over a piece of the columns, the rows in their order.
template <class T>
EPICYCLE_INLINE void add_rows_body(const T *const *rows, const double *coefficient, std::size_t m, std::size_t from,
                                   std::size_t to, double *out) {
    std::size_t r = 0;
    for (; r + 4 <= m; r += 4) {
        const T *a = rows[r], *b = rows[r + 1], *c = rows[r + 2], *d = rows[r + 3];
        const double p = coefficient[r], q = coefficient[r + 1], s = coefficient[r + 2], u = coefficient[r + 3];
        for (std::size_t t = from; t < to; ++t)
            out[t] += (p * static_cast<double>(a[t]) + q * static_cast<double>(b[t])) +
                      (s * static_cast<double>(c[t]) + u * static_cast<double>(d[t]));
    }
    for (; r < m; ++r)
        for (std::size_t t = from; t < to; ++t) out[t] += coefficient[r] * static_cast<double>(rows[r][t]);
}

EPICYCLE_CLONES inline void smo_first(const double *v, const double *up, std::size_t from, std::size_t to,
                                      SmoPick &out) {
    first_body(v, up, from, to, out);
}

#define EPICYCLE_PER_TYPE(T)                                                                                         \
    EPICYCLE_CLONES inline void smo_second(const double *v, const double *low, const T *row, const double *diagonal, \
                                           double top, double kii, std::size_t from, std::size_t to, SmoPick &out,   \
                                           double &least) {                                                          \
        second_body(v, low, row, diagonal, top, kii, from, to, out, least);                                          \
    }                                                                                                                \
    EPICYCLE_CLONES inline void smo_move(double *v, const T *row_i, const T *row_j, double step, std::size_t n) {    \
        move_body(v, row_i, row_j, step, n);                                                                         \
    }                                                                                                                \
    EPICYCLE_CLONES inline void smo_add_rows(const T *const *rows, const double *coefficient, std::size_t m,         \
                                             std::size_t from, std::size_t to, double *out) {                        \
        add_rows_body(rows, coefficient, m, from, to, out);                                                          \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

struct SmoBox {
    const double *lo, *hi;
    double epsilon;
    double *b, *up, *low;

    void place(std::size_t t) const {
        const double inf = std::numeric_limits<double>::infinity();
        up[t] = b[t] >= hi[t] ? -inf : b[t] >= 0.0 ? -epsilon : epsilon;
        low[t] = b[t] <= lo[t] ? inf : b[t] > 0.0 ? -epsilon : epsilon;
    }
};

struct SmoOutcome {
    std::size_t steps = 0;
    double violation = 0.0;  // the largest max(v + up) - min(v + low) of a group
    double curvature = 0.0;  // the least K_ii + K_jj - 2 K_ij of a pair that was moved, where it was negative

    void add(const SmoOutcome &part) {
        steps += part.steps;
        violation = part.violation;
        curvature = std::min(curvature, part.curvature);
    }
};

// Steps until no group is violated by more than `tolerance`, at most `limit` of them. K is n x n with rows `ld` apart;
// `ridge` is D or null; group g is [bound[g], bound[g + 1]).
template <class T>
SmoOutcome smo(const T *K, std::size_t ld, const double *diagonal, const double *ridge, SmoBox box, double *v,
               const std::size_t *bound, std::size_t groups, double tolerance, std::size_t limit) {
    SmoOutcome found;
    const std::size_t n = bound[groups];
    for (std::size_t t = 0; t < n; ++t) box.place(t);
    for (;;) {
        double violation = 0.0, gain = 0.0;
        std::ptrdiff_t i = -1, j = -1;
        for (std::size_t g = 0; g < groups; ++g) {
            SmoPick first, second;
            smo_first(v, box.up, bound[g], bound[g + 1], first);
            if (first.at < 0) continue;
            double least = 0.0;
            smo_second(v, box.low, K + static_cast<std::size_t>(first.at) * ld, diagonal, first.value,
                       diagonal[first.at], bound[g], bound[g + 1], second, least);
            if (second.at < 0) continue;
            violation = std::max(violation, first.value - least);
            if (second.value > gain) gain = second.value, i = first.at, j = second.at;
        }
        found.violation = violation;
        if (violation <= tolerance || i < 0 || found.steps >= limit) return found;
        const T *row_i = K + static_cast<std::size_t>(i) * ld, *row_j = K + static_cast<std::size_t>(j) * ld;
        const double curve = diagonal[i] + diagonal[j] - 2.0 * static_cast<double>(row_i[j]);
        found.curvature = std::min(found.curvature, curve);
        const double top_i = box.epsilon > 0.0 && box.b[i] < 0.0 ? std::min(box.hi[i], 0.0) : box.hi[i];
        const double end_j = box.epsilon > 0.0 && box.b[j] > 0.0 ? std::max(box.lo[j], 0.0) : box.lo[j];
        const double room_i = top_i - box.b[i], room_j = box.b[j] - end_j;
        const double wanted = (v[i] + box.up[i] - v[j] - box.low[j]) / std::max(curve, SMO_FLAT);
        const double room = std::min(room_i, room_j);
        // Without any curvature the slope stays as it is: to the end at once, however far that is.
        const double step = curve == 0.0 && std::isfinite(room) ? room : std::min(wanted, room);
        // At the end of the room the variable is put there exactly: bounds are recognised by equality.
        box.b[i] = step == room_i ? top_i : box.b[i] + step;
        box.b[j] = step == room_j ? end_j : box.b[j] - step;
        smo_move(v, row_i, row_j, step, n);
        if (ridge) {
            v[i] -= step * ridge[i];
            v[j] += step * ridge[j];
        }
        box.place(static_cast<std::size_t>(i));
        box.place(static_cast<std::size_t>(j));
        ++found.steps;
    }
}

// The same without the fixed sums, one variable at a time: sweeps of exact steps in the order of the variables, until
// in one of them none was violated by more than `tolerance`.
template <class T>
SmoOutcome coordinate_sweeps(const T *K, std::size_t ld, const double *diagonal, const double *ridge, SmoBox box,
                             double *v, std::size_t n, double tolerance, std::size_t sweeps) {
    SmoOutcome found;
    for (std::size_t t = 0; t < n; ++t) box.place(t);
    for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
        found.violation = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const double grow = v[i] + box.up[i], shrink = v[i] + box.low[i];
            const double slope = grow > 0.0 ? grow : shrink < 0.0 ? shrink : 0.0;
            if (slope == 0.0) continue;
            found.violation = std::max(found.violation, std::abs(slope));
            const double curve = std::max(diagonal[i], SMO_FLAT);
            found.curvature = std::min(found.curvature, diagonal[i]);
            const double before = box.b[i];
            const double to = box.epsilon > 0.0 && before * slope < 0.0 ? 0.0 : slope > 0.0 ? box.hi[i] : box.lo[i];
            const double wanted = before + slope / curve;
            box.b[i] = slope > 0.0 ? std::min(wanted, to) : std::max(wanted, to);
            const double step = box.b[i] - before;
            const T *row = K + i * ld;
            const double minus = -step;
            smo_add_rows(&row, &minus, 1, 0, n, v);
            if (ridge) v[i] -= step * ridge[i];
            box.place(i);
            ++found.steps;
        }
        if (found.violation <= tolerance) break;
    }
    return found;
}

// exp(x) for x <= 0 in single precision: 2^k exp(r), |r| <= ln2/2, relative error below 2e-7; under 2^-126 zero.
EPICYCLE_INLINE float exp_nonpositive_single(float x) {
    constexpr float log2e = 1.44269504f, ln2_hi = 0.693359375f, ln2_lo = -2.12194440e-4f, shift = 12582912.0f;
    const float bounded = x < -87.0f ? -87.0f : x;
    const float shifted = bounded * log2e + shift;
    const float k = shifted - shift;
    const float r = (bounded - k * ln2_hi) - k * ln2_lo;
    const float e =
        horner(r, 1.0f / 5040.0f, 1.0f / 720.0f, 1.0f / 120.0f, 1.0f / 24.0f, 1.0f / 6.0f, 0.5f, 1.0f, 1.0f);
    std::uint32_t bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const std::uint32_t exponent = (bits + 127u) << 23;
    float scale;
    std::memcpy(&scale, &exponent, sizeof scale);
    return x < -87.0f ? 0.0f : e * scale;
}

EPICYCLE_CLONES inline void gaussian_single_row(const float *product, float square, const float *squares, std::size_t m,
                                                float *out) {
    for (std::size_t j = 0; j < m; ++j) {
        const float d = product[j] - 0.5f * (square + squares[j]);  // minus half the squared distance
        out[j] = exp_nonpositive_single(d < 0.0f ? d : 0.0f);
    }
}

// From G = A B' (n x m) to exp(-|a - b|^2 / 2) in single precision, row i to out[i], which may be that of G. Where
// |a|^2 + |b|^2 is so large that rounding would show in the exponent, the entries that are not negligible are computed
// from differences.
inline void gaussian_single(const float *G, std::size_t n, std::size_t m, const float *a_squares,
                            const float *b_squares, const float *A, const float *B, std::size_t p, float *const *out) {
    constexpr float LARGE = 64.0f, NEGLIGIBLE = 1e-9f;
    float largest = 0.0f;
    for (std::size_t j = 0; j < m; ++j) largest = std::max(largest, b_squares[j]);
    for (std::size_t i = 0; i < n; ++i) {
        float *row = out[i];
        gaussian_single_row(G + i * m, a_squares[i], b_squares, m, row);
        if (a_squares[i] + largest <= LARGE) continue;
        for (std::size_t j = 0; j < m; ++j) {
            if (row[j] < NEGLIGIBLE || a_squares[i] + b_squares[j] <= LARGE) continue;
            double sum = 0.0;
            for (std::size_t k = 0; k < p; ++k) {
                const double d = static_cast<double>(A[i * p + k]) - static_cast<double>(B[j * p + k]);
                sum += d * d;
            }
            row[j] = static_cast<float>(std::exp(-0.5 * sum));
        }
    }
}

}  // namespace epicycle
