// New points among fixed ones: each minimises  E(y) = sum_j p_j c log(1 + |y - y_j|^2 / nu) + log phi(y)  on its own.
// The logarithms lie below their tangents in d^2, which are quadratics: their minimum, with phi's slope kept, is the
// next point; the step is halved until E falls.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "manifold/edges.hpp"
#include "manifold/field.hpp"
#include "manifold/pairs.hpp"
#include "manifold/tree.hpp"

namespace epicycle::manifold {

constexpr int MOST_STEPS = 200, MOST_HALVINGS = 20;
constexpr std::size_t MOST_DIMENSIONS = 64;

// A grid around fixed points, which new ones do not leave.
struct GridAround {
    Field field;
    double constant, low[2], high[2];

    GridAround(const double *points, const double *weight, std::size_t n, const Kernel &kernel, double step,
               int threads)
        : field(kernel, step) {
        std::vector<float> x(n + 2), y(n + 2), w(n + 2);
        double everything = 0.0;
        for (int k = 0; k < 2; ++k) low[k] = high[k] = points[k];
        for (std::size_t i = 0; i < n; ++i) {
            x[i] = static_cast<float>(points[2 * i]), y[i] = static_cast<float>(points[2 * i + 1]);
            w[i] = static_cast<float>(weight[i]);
            everything += weight[i];
            for (int k = 0; k < 2; ++k) {
                low[k] = std::min(low[k], points[2 * i + static_cast<std::size_t>(k)]);
                high[k] = std::max(high[k], points[2 * i + static_cast<std::size_t>(k)]);
            }
        }
        const double span = std::max(high[0] - low[0], high[1] - low[1]);
        for (int k = 0; k < 2; ++k) low[k] -= 0.05 * span + 2.0, high[k] += 0.05 * span + 2.0;
        // Two points without weight make the grid as large as the box.
        x[n] = static_cast<float>(low[0]), y[n] = static_cast<float>(low[1]);
        x[n + 1] = static_cast<float>(high[0]), y[n + 1] = static_cast<float>(high[1]);
        excite(field, x.data(), y.data(), w.data(), n + 2, threads);
        constant = field.constant * everything;
    }

    double operator()(double *at, double *push) const {
        for (int k = 0; k < 2; ++k) at[k] = std::min(std::max(at[k], low[k]), high[k]);
        float x = static_cast<float>(at[0]), y = static_cast<float>(at[1]), value, sx, sy;
        receive(field, &x, &y, nullptr, 0, 1, &value, &sx, &sy);
        push[0] = -0.5 / field.kernel.factor() * static_cast<double>(sx);
        push[1] = -0.5 / field.kernel.factor() * static_cast<double>(sy);
        return std::max(static_cast<double>(value) + constant, 1e-300);
    }
};

struct PairsAround {
    Columns columns;
    Kernel kernel;
    double operator()(double *at, double *push) const { return std::max(pairs(columns, kernel, at, push), 1e-300); }
};

// `shares` of log phi, or of phi itself where the energy is not normalised.
template <class Around>
void place(const Around &around, const Graph &graph, const double *fixed, std::size_t dim, const Kernel &kernel,
           double attraction, double repulsion, bool normalised, std::size_t i, double *y) {
    const double nu = kernel.freedom, c = (nu + 1.0) / 2.0 * attraction;
    double push[MOST_DIMENSIONS], target[MOST_DIMENSIONS], trial[MOST_DIMENSIONS], trial_push[MOST_DIMENSIONS];
    const auto logarithms = [&](const double *at) { return c * row_logarithms(graph, fixed, dim, nu, i, at); };
    const auto share = [&](double phi) { return repulsion * (normalised ? std::log(phi) : phi); };
    double phi = around(y, push), energy = logarithms(y) + share(phi);
    for (int step = 0; step < MOST_STEPS; ++step) {
        double mass = 0.0;
        std::fill(target, target + dim, 0.0);
        for (std::int64_t e = graph.first[i]; e < graph.first[i + 1]; ++e) {
            const double *b = fixed + static_cast<std::size_t>(graph.other[e]) * dim;
            double square = 0.0;
            for (std::size_t k = 0; k < dim; ++k) square += (y[k] - b[k]) * (y[k] - b[k]);
            const double w = graph.value[e] * c / (nu + square);
            mass += w;
            for (std::size_t k = 0; k < dim; ++k) target[k] += w * b[k];
        }
        if (!(mass > 0.0)) return;
        const double r = kernel.factor() * repulsion / (normalised ? phi : 1.0);
        double length = 0.0;
        for (std::size_t k = 0; k < dim; ++k) {
            target[k] = (target[k] + r * push[k]) / mass;
            length = std::max(length, std::abs(target[k] - y[k]));
        }
        if (!(length > 1e-7)) return;
        double share_of_step = 1.0;
        bool lower = false;
        for (int halving = 0; halving < MOST_HALVINGS && !lower; ++halving, share_of_step *= 0.5) {
            for (std::size_t k = 0; k < dim; ++k) trial[k] = y[k] + share_of_step * (target[k] - y[k]);
            const double trial_phi = around(trial, trial_push), now = logarithms(trial) + share(trial_phi);
            if (now < energy) {
                lower = true;
                energy = now, phi = trial_phi;
                std::copy(trial, trial + dim, y);
                std::copy(trial_push, trial_push + dim, push);
            }
        }
        if (!lower) return;
    }
}

}  // namespace epicycle::manifold
