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
#include <type_traits>
#include <utility>
#include <vector>

#include "core/simd.hpp"
#include "core/triangular.hpp"

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

// use(constant) with the kernel as a constant of the compiler.
template <class Use>
EPICYCLE_INLINE auto with_kernel(LocalKernel kernel, const Use &use) {
    switch (kernel) {
        case LocalKernel::tricube:
            return use(std::integral_constant<LocalKernel, LocalKernel::tricube>{});
        case LocalKernel::epanechnikov:
            return use(std::integral_constant<LocalKernel, LocalKernel::epanechnikov>{});
        case LocalKernel::biweight:
            return use(std::integral_constant<LocalKernel, LocalKernel::biweight>{});
        case LocalKernel::triweight:
            return use(std::integral_constant<LocalKernel, LocalKernel::triweight>{});
        case LocalKernel::triangular:
            return use(std::integral_constant<LocalKernel, LocalKernel::triangular>{});
        case LocalKernel::uniform:
            return use(std::integral_constant<LocalKernel, LocalKernel::uniform>{});
        default:
            return use(std::integral_constant<LocalKernel, LocalKernel::gaussian>{});
    }
}

inline double local_weight(LocalKernel kernel, double d) {
    return with_kernel(kernel, [d](auto k) { return local_weight<decltype(k)::value>(d); });
}

// What a query gives: the value, a_0 (so that an observation at q has the influence K(0) c a_0), the sum of l_j^2 /
// c_j, the backward error of the normal equations and the status.
struct LocalAnswer {
    double value = 0.0, own = 0.0, squares = 0.0, error = 0.0;
    LocalStatus status = LocalStatus::regular;
};

// The mean of the nearest points, of which `total` weighs c and `sum` is that of c y.
inline LocalAnswer nearest_answer(double total, double sum) {
    LocalAnswer out;
    out.status = LocalStatus::nearest;
    out.value = total > 0.0 ? sum / total : std::numeric_limits<double>::quiet_NaN();
    out.own = out.squares = total > 0.0 ? 1.0 / total : 0.0;
    return out;
}

struct LocalOutput {
    double *value, *own, *squares;  // of every query
    std::uint8_t *status;
    double *error;

    void put(std::size_t i, const LocalAnswer &answer) const {
        value[i] = answer.value;
        own[i] = answer.own;
        squares[i] = answer.squares;
        error[i] = answer.error;
        status[i] = static_cast<std::uint8_t>(answer.status);
    }
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
    for (std::size_t i = 0; i < m; ++i) {
        beta[i] = b[i] * scale[i];
        a[i] = i == 0 ? scale[0] : 0.0;
    }
    solve_cholesky(L, m, m, beta);
    solve_cholesky(L, m, m, a);
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

}  // namespace epicycle
