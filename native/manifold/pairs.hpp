// The field of all points at some of them, pair by pair:  phi_i = sum_j w_j G(d_ij),  r_i = sum_j w_j G'(d_ij) (y_i -
// y_j) with G' the slope of the kernel. Coordinates lie one after the other, padded with points of weight zero.
#pragma once

#include <cstddef>
#include <vector>

#include "core/simd.hpp"
#include "manifold/repulsion_kernel.hpp"

namespace epicycle::manifold {

constexpr std::size_t DOUBLES = 8;
typedef double Doubles __attribute__((vector_size(DOUBLES * sizeof(double))));

struct Columns {  // coordinates and weights, each padded to `room` entries
    std::size_t n, room, dim;
    std::vector<double> values, weight;

    Columns(const double *points, const double *w, std::size_t rows, std::size_t d)
        : n(rows), room((rows + DOUBLES - 1) / DOUBLES * DOUBLES), dim(d), values(room * d), weight(room) {
        for (std::size_t i = 0; i < n; ++i) {
            weight[i] = w[i];
            for (std::size_t k = 0; k < d; ++k) values[k * room + i] = points[i * d + k];
        }
    }
};

EPICYCLE_INLINE double total(Doubles v) { return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7])); }

EPICYCLE_CLONES inline double student_pairs(const Columns &columns, const double *at, double *push) {
    const std::size_t dim = columns.dim, room = columns.room;
    Doubles sum{}, pushes[8] = {};
    for (std::size_t j = 0; j < room; j += DOUBLES) {
        Doubles square{}, w, b;
        for (std::size_t k = 0; k < dim; ++k) {
            __builtin_memcpy(&b, &columns.values[k * room + j], sizeof b);
            b = at[k] - b;
            square += b * b;
        }
        __builtin_memcpy(&w, &columns.weight[j], sizeof w);
        const Doubles g = 1.0 / (1.0 + square), u = w * g, v = u * g;
        sum += u;
        for (std::size_t k = 0; k < dim; ++k) {
            __builtin_memcpy(&b, &columns.values[k * room + j], sizeof b);
            pushes[k] += v * (at[k] - b);
        }
    }
    for (std::size_t k = 0; k < dim; ++k) push[k] = total(pushes[k]);
    return total(sum);
}

inline double pairs(const Columns &columns, const Kernel &kernel, const double *at, double *push) {
    if (!kernel.logarithmic && kernel.freedom == 1.0 && columns.dim <= 8) return student_pairs(columns, at, push);
    const std::size_t dim = columns.dim, room = columns.room;
    double sum = 0.0;
    for (std::size_t k = 0; k < dim; ++k) push[k] = 0.0;
    for (std::size_t j = 0; j < columns.n; ++j) {
        double square = 0.0;
        for (std::size_t k = 0; k < dim; ++k) {
            const double d = at[k] - columns.values[k * room + j];
            square += d * d;
        }
        sum += columns.weight[j] * kernel.value(square);
        const double v = columns.weight[j] * kernel.slope(square);
        for (std::size_t k = 0; k < dim; ++k) push[k] += v * (at[k] - columns.values[k * room + j]);
    }
    return sum;
}

}  // namespace epicycle::manifold
