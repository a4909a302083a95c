// Locally weighted regression: at every query q a polynomial in (x - q) is fitted to the points around it,
//
//     minimise  sum_j K(|x_j - q| / h) c_j (y_j - beta' phi((x_j - q) / h))^2,    phi(u) = (1, u, u u', ...),
//
// and its value at q is beta_0 = sum_j l_j y_j with l_j = K_j c_j (a' phi_j), A a = e_0, A = sum_j K_j c_j phi_j
// phi_j'. Queries are independent of each other, so that the result does not depend on the number of threads.
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

namespace epicycle {

enum class LocalKernel { tricube = 0, epanechnikov, biweight, triweight, triangular, uniform, gaussian };

// How a query was answered: by the polynomial that was asked for; by one that is flat in the directions in which the
// neighbourhood does not extend; by the nearest points, because nothing was in reach.
enum class LocalStatus : std::uint8_t { regular = 0, flat = 1, nearest = 2 };

// Beyond this multiple of h a Gaussian weight is below 1e-16.
constexpr double GAUSSIAN_REACH = 8.6;
// Scaled pivots of A below this send the query to the careful solution.
constexpr double SAFE_PIVOT = 1e-7;
// Directions with less than this share of the largest spread count as not extended.
constexpr double FLAT = 1e-10;

inline double local_reach(LocalKernel kernel) { return kernel == LocalKernel::gaussian ? GAUSSIAN_REACH : 1.0; }

template <LocalKernel kernel>
EPICYCLE_INLINE double local_weight(double d) {  // d >= 0, in units of h
    if constexpr (kernel == LocalKernel::gaussian) {
        return d <= GAUSSIAN_REACH ? exp_nonpositive(-0.5 * d * d) : 0.0;
    } else {
        // The farthest neighbour defines h and belongs to it, whatever the rounding of d.
        if constexpr (kernel == LocalKernel::uniform) return d <= 1.0 + 1e-14 ? 1.0 : 0.0;
        const double e = d < 1.0 ? d : 1.0;
        if constexpr (kernel == LocalKernel::triangular) return 1.0 - e;
        if constexpr (kernel == LocalKernel::tricube) {
            const double t = 1.0 - e * e * e;
            return t * t * t;
        }
        const double t = 1.0 - e * e;
        if constexpr (kernel == LocalKernel::epanechnikov) return t;
        if constexpr (kernel == LocalKernel::biweight) return t * t;
        return t * t * t;
    }
}

inline double local_weight(LocalKernel kernel, double d) {
    switch (kernel) {
        case LocalKernel::tricube:
            return local_weight<LocalKernel::tricube>(d);
        case LocalKernel::epanechnikov:
            return local_weight<LocalKernel::epanechnikov>(d);
        case LocalKernel::biweight:
            return local_weight<LocalKernel::biweight>(d);
        case LocalKernel::triweight:
            return local_weight<LocalKernel::triweight>(d);
        case LocalKernel::triangular:
            return local_weight<LocalKernel::triangular>(d);
        case LocalKernel::uniform:
            return local_weight<LocalKernel::uniform>(d);
        default:
            return local_weight<LocalKernel::gaussian>(d);
    }
}

// What a query gives: the value, a_0 (so that an observation at q has the influence K(0) c a_0), the sum of l_j^2 /
// c_j, the backward error of the normal equations and the status.
struct LocalAnswer {
    double value = 0.0, own = 0.0, squares = 0.0, error = 0.0;
    LocalStatus status = LocalStatus::regular;
};

// Cholesky of the m x m matrix A scaled to a unit diagonal; gives beta = A^-1 b and a = A^-1 e_0. False where a pivot
// is too small. `work` has room for m * m + m.
inline bool solve_local(const double *A, const double *b, std::size_t m, double *beta, double *a, double *work) {
    double *L = work, *scale = work + m * m;
    for (std::size_t i = 0; i < m; ++i) {
        if (!(A[i * m + i] > 0.0)) return false;
        scale[i] = 1.0 / std::sqrt(A[i * m + i]);
    }
    for (std::size_t i = 0; i < m; ++i) {
        for (std::size_t k = 0; k <= i; ++k) {
            double s = A[i * m + k] * scale[i] * scale[k];
            for (std::size_t l = 0; l < k; ++l) s -= L[i * m + l] * L[k * m + l];
            if (i == k) {
                if (!(s > SAFE_PIVOT)) return false;
                L[i * m + i] = std::sqrt(s);
            } else {
                L[i * m + k] = s / L[k * m + k];
            }
        }
    }
    const auto solve = [&](double *x) {  // in place, for the scaled system
        for (std::size_t i = 0; i < m; ++i) {
            for (std::size_t l = 0; l < i; ++l) x[i] -= L[i * m + l] * x[l];
            x[i] /= L[i * m + i];
        }
        for (std::size_t i = m; i-- > 0;) {
            for (std::size_t l = i + 1; l < m; ++l) x[i] -= L[l * m + i] * x[l];
            x[i] /= L[i * m + i];
        }
    };
    for (std::size_t i = 0; i < m; ++i) {
        beta[i] = b[i] * scale[i];
        a[i] = i == 0 ? scale[0] : 0.0;
    }
    solve(beta);
    solve(a);
    for (std::size_t i = 0; i < m; ++i) {
        beta[i] *= scale[i];
        a[i] *= scale[i];
    }
    return true;
}

inline double backward_error(const double *A, const double *b, std::size_t m, const double *beta) {
    double worst = 0.0;
    for (std::size_t i = 0; i < m; ++i) {
        double r = b[i], size = std::abs(b[i]);
        for (std::size_t k = 0; k < m; ++k) {
            const double term = A[i * m + k] * beta[k];
            r -= term;
            size += std::abs(term);
        }
        if (size > 0.0) worst = std::max(worst, std::abs(r) / size);
    }
    return worst;
}

// Eigenvalues and vectors (columns of V) of the symmetric k x k matrix C, which is overwritten: cyclic Jacobi.
inline void jacobi_eigen(double *C, std::size_t k, double *V, double *values) {
    for (std::size_t i = 0; i < k * k; ++i) V[i] = 0.0;
    for (std::size_t i = 0; i < k; ++i) V[i * k + i] = 1.0;
    for (int sweep = 0; sweep < 40; ++sweep) {
        double off = 0.0, diagonal = 0.0;
        for (std::size_t i = 0; i < k; ++i) {
            diagonal += C[i * k + i] * C[i * k + i];
            for (std::size_t j = 0; j < i; ++j) off += C[i * k + j] * C[i * k + j];
        }
        if (off <= 1e-32 * diagonal) break;
        for (std::size_t p = 0; p + 1 < k; ++p) {
            for (std::size_t q = p + 1; q < k; ++q) {
                const double apq = C[p * k + q];
                if (apq == 0.0) continue;
                const double theta = (C[q * k + q] - C[p * k + p]) / (2.0 * apq);
                const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::sqrt(theta * theta + 1.0));
                const double c = 1.0 / std::sqrt(t * t + 1.0), s = t * c;
                for (std::size_t i = 0; i < k; ++i) {
                    const double x = C[i * k + p], y = C[i * k + q];
                    C[i * k + p] = c * x - s * y;
                    C[i * k + q] = s * x + c * y;
                }
                for (std::size_t i = 0; i < k; ++i) {
                    const double x = C[p * k + i], y = C[q * k + i];
                    C[p * k + i] = c * x - s * y;
                    C[q * k + i] = s * x + c * y;
                }
                for (std::size_t i = 0; i < k; ++i) {
                    const double x = V[i * k + p], y = V[i * k + q];
                    V[i * k + p] = c * x - s * y;
                    V[i * k + q] = s * x + c * y;
                }
            }
        }
    }
    for (std::size_t i = 0; i < k; ++i) values[i] = C[i * k + i];
}

// Everything that one thread needs at a query; grows as it has to and is used again.
struct LocalWorkspace {
    std::vector<double> phi, k, y, A, b, beta, a, work, mean, V, C;
    std::vector<std::size_t> index;
    std::vector<std::pair<double, double>> order;  // (distance, weight)

    void size_for(std::size_t m) {
        A.resize(m * m);
        b.resize(m);
        beta.resize(m);
        a.resize(m);
        work.resize(m * m + 2 * m);
        mean.resize(m);
        V.resize(m * m);
        C.resize(m * m);
    }
};

// Weighted means of the terms but the constant, into ws.mean; the weight, and the mean of y.
inline std::pair<double, double> weighted_means(LocalWorkspace &ws, std::size_t n, std::size_t m) {
    const std::size_t d = m - 1;
    double total = 0.0, y_mean = 0.0;
    std::fill(ws.mean.begin(), ws.mean.end(), 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        total += ws.k[j];
        y_mean += ws.k[j] * ws.y[j];
        for (std::size_t i = 0; i < d; ++i) ws.mean[i] += ws.k[j] * ws.phi[j * m + i + 1];
    }
    for (std::size_t i = 0; i < d; ++i) ws.mean[i] /= total;
    return {total, y_mean / total};
}

// The fit at the query, where all terms but the constant are zero, from slopes about the means.
inline LocalAnswer at_the_query(LocalWorkspace &ws, double total, double y_mean, std::size_t kept, std::size_t d) {
    LocalAnswer out;
    out.value = y_mean;
    out.own = 1.0 / total;
    for (std::size_t i = 0; i < d; ++i) {
        out.value -= ws.mean[i] * ws.beta[i];
        out.own -= ws.mean[i] * ws.a[i + 1];
    }
    ws.a[0] = out.own;
    out.status = kept < d ? LocalStatus::flat : LocalStatus::regular;
    return out;
}

// The careful solution from the rows (k_j, phi_j, y_j), j < n, phi_j[0] = 1: about the weighted mean, and of minimum
// norm in the directions in which the rows do not extend.
inline LocalAnswer solve_carefully(LocalWorkspace &ws, std::size_t n, std::size_t m) {
    const std::size_t d = m - 1;
    const auto [total, y_mean] = weighted_means(ws, n, m);
    std::fill(ws.C.begin(), ws.C.end(), 0.0);
    std::fill(ws.b.begin(), ws.b.end(), 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t i = 0; i < d; ++i) {
            const double left = ws.k[j] * (ws.phi[j * m + i + 1] - ws.mean[i]);
            ws.b[i] += left * (ws.y[j] - y_mean);
            for (std::size_t l = 0; l <= i; ++l) ws.C[i * d + l] += left * (ws.phi[j * m + l + 1] - ws.mean[l]);
        }
    }
    for (std::size_t i = 0; i < d; ++i)
        for (std::size_t l = 0; l < i; ++l) ws.C[l * d + i] = ws.C[i * d + l];
    jacobi_eigen(ws.C.data(), d, ws.V.data(), ws.work.data());
    const double *values = ws.work.data();
    double largest = 0.0;
    for (std::size_t i = 0; i < d; ++i) largest = std::max(largest, values[i]);
    std::fill(ws.beta.begin(), ws.beta.end(), 0.0);
    std::fill(ws.a.begin(), ws.a.end(), 0.0);
    std::size_t kept = 0;
    for (std::size_t e = 0; e < d; ++e) {
        // Spread that is no more than the rounding of the coordinates is none.
        if (!(values[e] > FLAT * largest) || !(values[e] > 1e-28 * total)) continue;
        ++kept;
        double along_b = 0.0, along_mean = 0.0;
        for (std::size_t i = 0; i < d; ++i) {
            along_b += ws.V[i * d + e] * ws.b[i];
            along_mean += ws.V[i * d + e] * ws.mean[i];
        }
        for (std::size_t i = 0; i < d; ++i) {
            ws.beta[i] += ws.V[i * d + e] * along_b / values[e];
            ws.a[i + 1] -= ws.V[i * d + e] * along_mean / values[e];
        }
    }
    return at_the_query(ws, total, y_mean, kept, d);
}

// The same for fewer points than terms, from the n x n products of the points: with Z the weighted centred rows,
// Z Z' = U S U' and Z'Z has the eigenvectors Z'U S^-1/2, of the same eigenvalues.
inline LocalAnswer solve_few(LocalWorkspace &ws, std::size_t n, std::size_t m) {
    const std::size_t d = m - 1;
    const auto [total, y_mean] = weighted_means(ws, n, m);
    std::vector<double> Z(n * d), r(n), z_mean(n, 0.0), along(n), along_mean(n);
    for (std::size_t j = 0; j < n; ++j) {
        const double root = std::sqrt(ws.k[j]);
        r[j] = root * (ws.y[j] - y_mean);
        for (std::size_t i = 0; i < d; ++i) {
            Z[j * d + i] = root * (ws.phi[j * m + i + 1] - ws.mean[i]);
            z_mean[j] += Z[j * d + i] * ws.mean[i];
        }
    }
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t l = 0; l <= j; ++l) {
            double sum = 0.0;
            for (std::size_t i = 0; i < d; ++i) sum += Z[j * d + i] * Z[l * d + i];
            ws.C[j * n + l] = ws.C[l * n + j] = sum;
        }
    jacobi_eigen(ws.C.data(), n, ws.V.data(), ws.work.data());
    const double *values = ws.work.data();
    const double largest = std::max(0.0, *std::max_element(values, values + n));
    std::fill(along.begin(), along.end(), 0.0);
    std::fill(along_mean.begin(), along_mean.end(), 0.0);
    std::size_t kept = 0;
    for (std::size_t e = 0; e < n; ++e) {
        if (!(values[e] > FLAT * largest) || !(values[e] > 1e-28 * total)) continue;
        ++kept;
        double by_r = 0.0, by_mean = 0.0;
        for (std::size_t j = 0; j < n; ++j) {
            by_r += ws.V[j * n + e] * r[j];
            by_mean += ws.V[j * n + e] * z_mean[j];
        }
        for (std::size_t j = 0; j < n; ++j) {
            along[j] += ws.V[j * n + e] * by_r / values[e];
            along_mean[j] += ws.V[j * n + e] * by_mean / (values[e] * values[e]);
        }
    }
    std::fill(ws.beta.begin(), ws.beta.end(), 0.0);
    std::fill(ws.a.begin(), ws.a.end(), 0.0);
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < d; ++i) {
            ws.beta[i] += Z[j * d + i] * along[j];
            ws.a[i + 1] -= Z[j * d + i] * along_mean[j];
        }
    return at_the_query(ws, total, y_mean, kept, d);
}

// ------------------------------------------------------------------------------------------------ one column

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

#define EPICYCLE_INLINE_LAMBDA __attribute__((always_inline))

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
    LocalAnswer out;
    out.status = LocalStatus::nearest;
    out.value = total > 0.0 ? sum / total : std::numeric_limits<double>::quiet_NaN();
    out.own = total > 0.0 ? 1.0 / total : 0.0;
    out.squares = out.own;
    return out;
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

struct LocalOutput {
    double *value, *own, *squares;  // of every query
    std::uint8_t *status;
    double *error;
};

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
    for (std::size_t i = from; i < to; ++i) {
        LocalAnswer answer;
        switch (kernel) {
            case LocalKernel::tricube:
                answer = line_answer_of<LocalKernel::tricube>(P, queries[i], h[i], degree, squares, ws);
                break;
            case LocalKernel::epanechnikov:
                answer = line_answer_of<LocalKernel::epanechnikov>(P, queries[i], h[i], degree, squares, ws);
                break;
            case LocalKernel::biweight:
                answer = line_answer_of<LocalKernel::biweight>(P, queries[i], h[i], degree, squares, ws);
                break;
            case LocalKernel::triweight:
                answer = line_answer_of<LocalKernel::triweight>(P, queries[i], h[i], degree, squares, ws);
                break;
            case LocalKernel::triangular:
                answer = line_answer_of<LocalKernel::triangular>(P, queries[i], h[i], degree, squares, ws);
                break;
            case LocalKernel::uniform:
                answer = line_answer_of<LocalKernel::uniform>(P, queries[i], h[i], degree, squares, ws);
                break;
            default:
                answer = line_answer_of<LocalKernel::gaussian>(P, queries[i], h[i], degree, squares, ws);
        }
        out.value[i] = answer.value;
        out.own[i] = answer.own;
        out.squares[i] = answer.squares;
        out.error[i] = answer.error;
        out.status[i] = static_cast<std::uint8_t>(answer.status);
    }
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
