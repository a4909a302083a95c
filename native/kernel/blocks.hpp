// Blocks of kernel matrices: from inner products to functions of the distance, and sums over columns that no product of
// matrices gives.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

enum class Radial : int { squared, gaussian, matern12, matern32, matern52, rational };

// |a|^2 + |b|^2 - 2 a'b loses all digits where the distance is small against the lengths. Below this share of
// |a|^2 + |b|^2 the distance is computed again from the differences.
template <class T>
constexpr double CANCELLED = sizeof(T) == 8 ? 1e-5 : 1e-2;

template <class T>
EPICYCLE_INLINE void distances_body(T *row, double square, const double *squares, std::size_t m) {
    for (std::size_t j = 0; j < m; ++j) {
        const double d = square + squares[j] - 2.0 * static_cast<double>(row[j]);
        row[j] = static_cast<T>(d > 0.0 ? d : 0.0);
    }
}

template <class T>
EPICYCLE_INLINE std::size_t cancelled_body(const T *row, double square, const double *squares, std::size_t m) {
    std::size_t found = 0;
    for (std::size_t j = 0; j < m; ++j) found += static_cast<double>(row[j]) < CANCELLED<T> * (square + squares[j]);
    return found;
}

template <class T>
EPICYCLE_INLINE void radial_body(T *row, std::size_t m, Radial kind, double parameter) {
    constexpr double root3 = 1.7320508075688772935, root5 = 2.2360679774997896964;
    switch (kind) {
        case Radial::squared:
            return;
        case Radial::gaussian:
            for (std::size_t j = 0; j < m; ++j) row[j] = static_cast<T>(exp_nonpositive(-0.5 * row[j]));
            return;
        case Radial::matern12:
            for (std::size_t j = 0; j < m; ++j)
                row[j] = static_cast<T>(exp_nonpositive(-std::sqrt(static_cast<double>(row[j]))));
            return;
        case Radial::matern32:
            for (std::size_t j = 0; j < m; ++j) {
                const double r = root3 * std::sqrt(static_cast<double>(row[j]));
                row[j] = static_cast<T>((1.0 + r) * exp_nonpositive(-r));
            }
            return;
        case Radial::matern52:
            for (std::size_t j = 0; j < m; ++j) {
                const double r = root5 * std::sqrt(static_cast<double>(row[j]));
                row[j] = static_cast<T>((1.0 + r + r * r / 3.0) * exp_nonpositive(-r));
            }
            return;
        case Radial::rational:
            for (std::size_t j = 0; j < m; ++j)
                row[j] = static_cast<T>(std::exp(-parameter * std::log1p(row[j] / (2.0 * parameter))));
            return;
    }
}

#define EPICYCLE_PER_TYPE(T)                                                                                 \
    EPICYCLE_CLONES inline void distances_row(T *row, double square, const double *squares, std::size_t m) { \
        distances_body(row, square, squares, m);                                                             \
    }                                                                                                        \
    EPICYCLE_CLONES inline std::size_t cancelled_row(const T *row, double square, const double *squares,     \
                                                     std::size_t m) {                                        \
        return cancelled_body(row, square, squares, m);                                                      \
    }                                                                                                        \
    EPICYCLE_CLONES inline void radial_row(T *row, std::size_t m, Radial kind, double parameter) {           \
        radial_body(row, m, kind, parameter);                                                                \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

template <class T>
double squared_distance(const T *a, const T *b, std::size_t p) {
    double sum = 0.0;
    for (std::size_t k = 0; k < p; ++k) {
        const double d = static_cast<double>(a[k]) - static_cast<double>(b[k]);
        sum += d * d;
    }
    return sum;
}

// In place, from G = A B' (n x m) to a function of the squared distances. With A and B (n x p, m x p) the distances
// that cancellation has hit are computed again.
template <class T>
void radial_block(T *G, std::size_t n, std::size_t m, const double *a_squares, const double *b_squares, const T *A,
                  const T *B, std::size_t p, Radial kind, double parameter) {
    for (std::size_t i = 0; i < n; ++i) {
        T *row = G + i * m;
        distances_row(row, a_squares[i], b_squares, m);
        if (A && cancelled_row(row, a_squares[i], b_squares, m))
            for (std::size_t j = 0; j < m; ++j)
                if (static_cast<double>(row[j]) < CANCELLED<T> * (a_squares[i] + b_squares[j]))
                    row[j] = static_cast<T>(squared_distance(A + i * p, B + j * p, p));
        radial_row(row, m, kind, parameter);
    }
}

// Sums over columns of a function of two numbers. B comes transposed (p x m), so that the inner loop runs over rows of
// B and is not a reduction: the order of addition is that of the columns, whatever the instruction set.
enum class Columns : int { squared, absolute, largest, power, smaller, chi_square };

EPICYCLE_CLONES inline void add_columns(const double *a, const double *Bt, std::size_t p, std::size_t ld,
                                        std::size_t from, std::size_t to, Columns kind, double parameter, double *out) {
    for (std::size_t j = from; j < to; ++j) out[j] = 0.0;
    for (std::size_t k = 0; k < p; ++k) {
        const double x = a[k];
        const double *b = Bt + k * ld;
        switch (kind) {
            case Columns::squared:
                for (std::size_t j = from; j < to; ++j) out[j] += (x - b[j]) * (x - b[j]);
                break;
            case Columns::absolute:
                for (std::size_t j = from; j < to; ++j) out[j] += std::abs(x - b[j]);
                break;
            case Columns::largest:
                for (std::size_t j = from; j < to; ++j) {
                    const double d = std::abs(x - b[j]);
                    out[j] = d > out[j] ? d : out[j];
                }
                break;
            case Columns::power:
                for (std::size_t j = from; j < to; ++j) out[j] += std::pow(std::abs(x - b[j]), parameter);
                break;
            case Columns::smaller:
                for (std::size_t j = from; j < to; ++j) out[j] += x < b[j] ? x : b[j];
                break;
            case Columns::chi_square:
                for (std::size_t j = from; j < to; ++j) {
                    const double d = x - b[j], s = x + b[j];
                    out[j] += s > 0.0 ? d * d / s : 0.0;
                }
                break;
        }
    }
}

// out (n x m) = sum_k f(A[i, k], B[j, k]).
inline void columns_block(const double *A, std::size_t n, std::size_t p, const double *Bt, std::size_t m, Columns kind,
                          double parameter, double *out) {
    constexpr std::size_t WIDTH = 1024;  // of a piece of the row that stays in the first-level cache
    for (std::size_t from = 0; from < m; from += WIDTH)
        for (std::size_t i = 0; i < n; ++i)
            add_columns(A + i * p, Bt, p, m, from, std::min(m, from + WIDTH), kind, parameter, out + i * m);
}

}  // namespace epicycle
