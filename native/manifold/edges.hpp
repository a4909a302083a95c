// Attraction along the edges of a graph of neighbours:  a_i = sum_j p_ij (y_i - y_j) / (1 + |y_i - y_j|^2), in CSR.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/simd.hpp"

namespace epicycle::manifold {

struct Graph {
    const std::int64_t *first;
    const std::int32_t *other;
    const float *value;
    std::size_t n;
};

constexpr std::size_t WIDTH = 16;
typedef float Wide __attribute__((vector_size(WIDTH * sizeof(float))));

EPICYCLE_INLINE float total(Wide v) {
    float s = 0.0f;
    for (std::size_t l = 0; l < WIDTH / 2; ++l) s += v[l] + v[l + WIDTH / 2];
    return s;
}

// In the plane, in float32: points are pairs, read together.
EPICYCLE_CLONES inline void attract_plane(const Graph &graph, const float *points, std::size_t from, std::size_t to,
                                          float *pull) {
    for (std::size_t i = from; i < to; ++i) {
        const float xi = points[2 * i], yi = points[2 * i + 1];
        Wide sum_x{}, sum_y{};
        const auto first = static_cast<std::size_t>(graph.first[i]),
                   last = static_cast<std::size_t>(graph.first[i + 1]);
        for (std::size_t e = first; e < last; e += WIDTH) {
            alignas(64) float x[WIDTH], y[WIDTH];
            Wide p{};
            const std::size_t count = last - e < WIDTH ? last - e : WIDTH;
            if (count == WIDTH) {
                __builtin_memcpy(&p, graph.value + e, sizeof p);
                for (std::size_t l = 0; l < WIDTH; ++l) {
                    const float *at = points + 2 * static_cast<std::size_t>(graph.other[e + l]);
                    x[l] = at[0], y[l] = at[1];
                }
            } else {
                for (std::size_t l = 0; l < WIDTH; ++l) x[l] = xi, y[l] = yi;
                for (std::size_t l = 0; l < count; ++l) {
                    const float *at = points + 2 * static_cast<std::size_t>(graph.other[e + l]);
                    x[l] = at[0], y[l] = at[1], p[l] = graph.value[e + l];
                }
            }
            Wide dx, dy;
            __builtin_memcpy(&dx, x, sizeof dx);
            __builtin_memcpy(&dy, y, sizeof dy);
            dx = xi - dx, dy = yi - dy;
            const Wide w = p / (1.0f + dx * dx + dy * dy);
            sum_x += w * dx, sum_y += w * dy;
        }
        pull[2 * i] = total(sum_x), pull[2 * i + 1] = total(sum_y);
    }
}

// In any dimension, with freedom nu: (y_i - y_j) / (1 + d^2 / nu).
inline void attract(const Graph &graph, const double *points, std::size_t dim, double freedom, std::size_t i,
                    double *pull) {
    for (std::size_t k = 0; k < dim; ++k) pull[k] = 0.0;
    const double *a = points + i * dim;
    for (std::int64_t e = graph.first[i]; e < graph.first[i + 1]; ++e) {
        const double *b = points + static_cast<std::size_t>(graph.other[e]) * dim;
        double square = 0.0;
        for (std::size_t k = 0; k < dim; ++k) square += (a[k] - b[k]) * (a[k] - b[k]);
        const double w = graph.value[e] / (1.0 + square / freedom);
        for (std::size_t k = 0; k < dim; ++k) pull[k] += w * (a[k] - b[k]);
    }
}

// sum_j p_ij log(1 + d^2 / nu) for row i, which is at a.
inline double row_logarithms(const Graph &graph, const double *points, std::size_t dim, double freedom, std::size_t i,
                             const double *a) {
    double sum = 0.0;
    for (std::int64_t e = graph.first[i]; e < graph.first[i + 1]; ++e) {
        const double *b = points + static_cast<std::size_t>(graph.other[e]) * dim;
        double square = 0.0;
        for (std::size_t k = 0; k < dim; ++k) square += (a[k] - b[k]) * (a[k] - b[k]);
        sum += graph.value[e] * std::log1p(square / freedom);
    }
    return sum;
}

}  // namespace epicycle::manifold
