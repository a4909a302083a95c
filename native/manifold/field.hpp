// The field of all points at all points of the plane, by quintic splines on a grid: points give their weights to 36
// nodes around them, the nodes are convolved with the kernel, and points read value and slope off the spline.
//
// An even kernel G that is smooth over a step h is met with an error of the order h^6 in value and h^5 in slope. What a
// point so receives from itself is known, a function of where it lies between the nodes, and is put right by a table.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "manifold/convolution.hpp"
#include "manifold/repulsion_kernel.hpp"

namespace epicycle::manifold {

typedef float Eight __attribute__((vector_size(32)));  // six weights and two zeros

constexpr std::size_t LEAST_NODES = 64, MOST_NODES = 2560;  // of an axis
constexpr double ROOM = 10.0;  // nodes beyond the points: the spline's own, two read in vain, and rounding
constexpr std::size_t POINTS_OF_BLOCK = 8192, MOST_BLOCKS = 16;

struct Spline {  // weights of six nodes, and their slopes in units of a step
    Eight weight, slope;
};
EPICYCLE_INLINE Spline spline(float f) {
    constexpr float u = 1.0f / 120;
    const Eight c0{1 * u, 26 * u, 66 * u, 26 * u, 1 * u, 0, 0, 0}, c1{-5 * u, -50 * u, 0, 50 * u, 5 * u, 0, 0, 0},
        c2{10 * u, 20 * u, -60 * u, 20 * u, 10 * u, 0, 0, 0}, c3{-10 * u, 20 * u, 0, -20 * u, 10 * u, 0, 0, 0},
        c4{5 * u, -20 * u, 30 * u, -20 * u, 5 * u, 0, 0, 0}, c5{-1 * u, 5 * u, -10 * u, 10 * u, -5 * u, 1 * u, 0, 0};
    return {c0 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * c5)))),
            c1 + f * (2.0f * c2 + f * (3.0f * c3 + f * (4.0f * c4 + f * (5.0f * c5))))};
}
EPICYCLE_INLINE float total(Eight v) { return (v[0] + v[4]) + (v[1] + v[5]) + (v[2] + v[3]); }

// What a point receives from itself, less what is right: value and slopes, at TABLE + 1 places along both axes.
constexpr std::size_t TABLE = 24;
struct Own {
    float value, slope_x, slope_y;
};

// Products of the weights of a point with themselves, by the distance of their nodes, and half their slopes.
struct WithItself {
    double weight[6], slope[6];
    explicit WithItself(const Spline &s) {
        for (std::size_t d = 0; d < 6; ++d) {
            weight[d] = slope[d] = 0.0;
            for (std::size_t i = 0; i + d < 6; ++i) {
                weight[d] += static_cast<double>(s.weight[i]) * s.weight[i + d] * (d ? 2.0 : 1.0);
                slope[d] += (static_cast<double>(s.slope[i]) * s.weight[i + d] +
                             static_cast<double>(s.weight[i]) * s.slope[i + d]) *
                            (d ? 1.0 : 0.5);
            }
        }
    }
};

struct Field {
    Kernel kernel;
    double finest;  // the longest step of the grid
    double step = 0.0, x0 = 0.0, y0 = 0.0;
    double constant = 0.0;  // what was taken off the kernel, so that a small field keeps its digits
    std::unique_ptr<Convolution> convolution;
    std::vector<float> grid, copies;
    std::vector<Own> own;  // empty for steps so short that nothing need be put right

    Field(Kernel k, double h) : kernel(k), finest(h) {}

    std::size_t size() const { return convolution->n; }

    // The step, and the nodes of an axis, of a grid for points that are `span` apart at most.
    double step_over(double span) const {
        return std::max(std::min(finest, span / (LEAST_NODES - ROOM)), span / (MOST_NODES - ROOM));
    }
    std::size_t nodes_over(double span) const {
        return smooth_size(static_cast<std::size_t>(std::ceil(span / step_over(span) + ROOM)));
    }

    // A grid that holds the points, with the kernel on it.
    void cover(const float *x, const float *y, std::size_t n, int threads) {
        float least_x = x[0], most_x = x[0], least_y = y[0], most_y = y[0];
        for (std::size_t i = 1; i < n; ++i) {
            least_x = std::min(least_x, x[i]), most_x = std::max(most_x, x[i]);
            least_y = std::min(least_y, y[i]), most_y = std::max(most_y, y[i]);
        }
        const double width = static_cast<double>(most_x) - least_x, height = static_cast<double>(most_y) - least_y;
        const double span = std::max({width, height, 1e-30}), h = step_over(span);
        const std::size_t nodes = nodes_over(span);
        x0 = (static_cast<double>(least_x) + most_x) / 2 - h * (static_cast<double>(nodes) - 1) / 2;
        y0 = (static_cast<double>(least_y) + most_y) / 2 - h * (static_cast<double>(nodes) - 1) / 2;
        const bool close = span < 8.0;
        if (convolution && size() == nodes && h == step && close == (constant != 0.0)) return;
        if (!convolution || size() != nodes) {
            convolution = std::make_unique<Convolution>(nodes);
            grid.resize(nodes * nodes);
        }
        step = h;
        constant = close ? kernel.value(0.0) : 0.0;
        std::vector<float> quadrant((nodes + 1) * (nodes + 1));
        for (std::size_t i = 0; i <= nodes; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                const double square = h * h * static_cast<double>(i * i + j * j);
                const double g = close ? kernel.drop(square) : kernel.value(square);
                quadrant[i * (nodes + 1) + j] = quadrant[j * (nodes + 1) + i] = static_cast<float>(g);
            }
        set_kernel(*convolution, quadrant, threads);
        own.clear();
        if (h > 0.2) tabulate(quadrant[0], threads);
    }

    // The kernel of the splines near zero is the answer to one node.
    void tabulate(float at_zero, int threads) {
        const std::size_t nodes = size(), middle = nodes / 2;
        std::fill(grid.begin(), grid.end(), 0.0f);
        grid[middle * nodes + middle] = 1.0f;
        convolve(*convolution, grid.data(), threads);
        own.resize((TABLE + 1) * (TABLE + 1));
        for (std::size_t r = 0; r <= TABLE; ++r)
            for (std::size_t c = 0; c <= TABLE; ++c) {
                const WithItself down(spline(static_cast<float>(r) / TABLE));
                const WithItself across(spline(static_cast<float>(c) / TABLE));
                double value = 0.0, x = 0.0, y = 0.0;
                for (std::size_t i = 0; i < 6; ++i)
                    for (std::size_t j = 0; j < 6; ++j) {
                        const double g = grid[(middle + i) * nodes + middle + j];
                        value += g * down.weight[i] * across.weight[j];
                        x += g * down.weight[i] * across.slope[j];
                        y += g * down.slope[i] * across.weight[j];
                    }
                own[r * (TABLE + 1) + c] = {static_cast<float>(value - at_zero), static_cast<float>(x / step),
                                            static_cast<float>(y / step)};
            }
    }

    EPICYCLE_INLINE Own own_at(float fx, float fy) const {
        const float u = fx * TABLE, v = fy * TABLE;
        const std::size_t c = static_cast<std::size_t>(u), r = static_cast<std::size_t>(v);
        const float a = u - static_cast<float>(c), b = v - static_cast<float>(r);
        const Own *at = own.data() + r * (TABLE + 1) + c, *below = at + TABLE + 1;
        const auto mix = [&](float p, float q, float s, float t) {
            return (1.0f - b) * ((1.0f - a) * p + a * q) + b * ((1.0f - a) * s + a * t);
        };
        return {mix(at[0].value, at[1].value, below[0].value, below[1].value),
                mix(at[0].slope_x, at[1].slope_x, below[0].slope_x, below[1].slope_x),
                mix(at[0].slope_y, at[1].slope_y, below[0].slope_y, below[1].slope_y)};
    }

    // The first of a point's six nodes, and where the point lies between the middle two.
    EPICYCLE_INLINE static std::size_t place(double value, double origin, double inverse, std::size_t nodes, float &f) {
        const double u = std::min(std::max((value - origin) * inverse, 2.0), static_cast<double>(nodes) - 6.001);
        const std::size_t i = static_cast<std::size_t>(u);
        f = std::min(static_cast<float>(u - static_cast<double>(i)), 0.9999999f);  // rounding may make it one
        return i - 2;
    }
};

EPICYCLE_CLONES inline void give(const Field &field, const float *x, const float *y, const float *weight,
                                 std::size_t from, std::size_t to, float *grid) {
    const std::size_t n = field.size();
    const double inverse = 1.0 / field.step;
    for (std::size_t i = from; i < to; ++i) {
        float fx, fy;
        const std::size_t column = Field::place(x[i], field.x0, inverse, n, fx);
        const std::size_t row = Field::place(y[i], field.y0, inverse, n, fy);
        const Eight across = spline(fx).weight * weight[i], down = spline(fy).weight;
        float *at = grid + row * n + column;
        for (std::size_t r = 0; r < 6; ++r, at += n) {
            Eight nodes;
            __builtin_memcpy(&nodes, at, sizeof nodes);
            nodes += across * down[r];
            __builtin_memcpy(at, &nodes, sizeof nodes);
        }
    }
}

// Value and slopes of the field at points; those that are in it have weights.
EPICYCLE_CLONES inline void receive(const Field &field, const float *x, const float *y, const float *weight,
                                    std::size_t from, std::size_t to, float *value, float *slope_x, float *slope_y) {
    const std::size_t n = field.size();
    const double inverse = 1.0 / field.step;
    const float per_step = static_cast<float>(inverse);
    for (std::size_t i = from; i < to; ++i) {
        float fx, fy;
        const std::size_t column = Field::place(x[i], field.x0, inverse, n, fx);
        const std::size_t row = Field::place(y[i], field.y0, inverse, n, fy);
        const Spline across = spline(fx), down = spline(fy);
        const float *at = field.grid.data() + row * n + column;
        Eight sum{}, change{};
        for (std::size_t r = 0; r < 6; ++r, at += n) {
            Eight nodes;
            __builtin_memcpy(&nodes, at, sizeof nodes);
            sum += nodes * down.weight[r];
            change += nodes * down.slope[r];
        }
        value[i] = total(sum * across.weight);
        slope_x[i] = total(sum * across.slope) * per_step;
        slope_y[i] = total(change * across.weight) * per_step;
        if (weight && !field.own.empty()) {
            const Own own = field.own_at(fx, fy);
            value[i] -= weight[i] * own.value;
            slope_x[i] -= weight[i] * own.slope_x;
            slope_y[i] -= weight[i] * own.slope_y;
        }
    }
}

EPICYCLE_CLONES inline void add_grids(const float *copies, std::size_t blocks, std::size_t size, std::size_t from,
                                      std::size_t to, float *grid) {
    for (std::size_t b = 0; b < blocks; ++b)
        for (std::size_t k = from; k < to; ++k) grid[k] += copies[b * size + k];
}

// Fills the grid with the field of weighted points.
inline void excite(Field &field, const float *x, const float *y, const float *weight, std::size_t n, int threads) {
    field.cover(x, y, n, threads);
    const std::size_t nodes = field.size(), size = nodes * nodes;
    // The number of blocks depends on the number of points alone: so do the bits of the sum.
    const std::size_t blocks = std::min(std::max<std::size_t>(n / POINTS_OF_BLOCK, 1), MOST_BLOCKS);
    std::fill(field.grid.begin(), field.grid.end(), 0.0f);
    if (blocks == 1) {
        give(field, x, y, weight, 0, n, field.grid.data());
    } else {
        if (field.copies.size() < blocks * size) field.copies.resize(blocks * size);
        float *copies = field.copies.data();
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
#pragma omp for schedule(static)
            for (std::size_t b = 0; b < blocks; ++b) {
                std::fill(copies + b * size, copies + (b + 1) * size, 0.0f);
                give(field, x, y, weight, n * b / blocks, n * (b + 1) / blocks, copies + b * size);
            }
#pragma omp for schedule(static)
            for (std::size_t r = 0; r < nodes; ++r)
                add_grids(copies, blocks, size, r * nodes, (r + 1) * nodes, field.grid.data());
        }
    }
    convolve(*field.convolution, field.grid.data(), threads);
}

}  // namespace epicycle::manifold
