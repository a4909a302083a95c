// Gradient descent of neighbour embeddings with momentum and a gain for every coordinate.
//
//     E = sum_ij w_i a_ij c log(1 + d_ij^2 / nu) + s log Z      or      + s Z,      Z = sum_i w_i phi_i,
//
// with c = (nu + 1) / 2, a_ij the attraction of a copy of row i by row j, and w_i the multiplicity of row i. A row
// moves by the gradient of one of its copies. (R. A. Jacobs, Increased rates of convergence through learning rate
// adaptation, Neural Networks 1, 1988.)
#pragma once

#include <cmath>
#include <vector>

#include "manifold/edges.hpp"
#include "manifold/repulsion.hpp"

namespace epicycle::manifold {

struct Energy {
    Graph graph;
    const double *weight;
    std::size_t dim;
    Kernel kernel;
    double attraction, repulsion;  // factors of the two parts
    bool normalised;               // log Z and not Z
};

constexpr double LONGEST = 5.0;  // step: a row that jumps farther may leave the reach of all others

struct Steps {
    double rate, momentum;
    std::size_t count;
};

struct Slopes {  // of one evaluation
    std::vector<double> phi, push, pull;
    std::vector<float> plane, plane_pull;
    double Z = 0.0;
    Slopes(std::size_t n, std::size_t dim) : phi(n), push(n * dim), pull(n * dim), plane(2 * n), plane_pull(2 * n) {}
};

// The gradient of E with respect to one copy of every row.
template <class Interrupt>
void gradient(const Energy &energy, Repulsion &repulsion, bool plane, const double *points, int threads,
              const Interrupt &interrupt, Slopes &out, double *g) {
    const std::size_t n = energy.graph.n, dim = energy.dim;
    repulsion(points, energy.weight, n, dim, interrupt, out.phi.data(), out.push.data());
    out.Z = 0.0;
    for (std::size_t i = 0; i < n; ++i) out.Z += energy.weight[i] * out.phi[i];
    const double nu = energy.kernel.freedom;
    const double a = 2.0 * (nu + 1.0) / nu * energy.attraction;
    const double r = 4.0 * energy.kernel.factor() * energy.repulsion / (energy.normalised ? out.Z : 1.0);
    if (plane)
        for (std::size_t k = 0; k < 2 * n; ++k) out.plane[k] = static_cast<float>(points[k]);
    in_pieces(0, (n + 63) / 64, interrupt, [&](std::size_t first, std::size_t last) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::size_t block = first; block < last; ++block) {
            const std::size_t from = block * 64, to = std::min(from + 64, n);
            if (plane) {
                attract_plane(energy.graph, out.plane.data(), from, to, out.plane_pull.data());
                for (std::size_t k = 2 * from; k < 2 * to; ++k) g[k] = a * out.plane_pull[k] - r * out.push[k];
            } else {
                for (std::size_t i = from; i < to; ++i) {
                    attract(energy.graph, points, dim, nu, i, out.pull.data() + i * dim);
                    for (std::size_t k = i * dim; k < (i + 1) * dim; ++k) g[k] = a * out.pull[k] - r * out.push[k];
                }
            }
        }
    });
}

// sum_ij w_i a_ij c log(1 + d_ij^2 / nu).
inline double attraction_energy(const Energy &energy, const double *points, int threads) {
    const std::size_t n = energy.graph.n;
    std::vector<double> rows(n);
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (std::size_t i = 0; i < n; ++i)
        rows[i] = energy.weight[i] *
                  row_logarithms(energy.graph, points, energy.dim, energy.kernel.freedom, i, points + i * energy.dim);
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += rows[i];
    return sum * (energy.kernel.freedom + 1.0) / 2.0;
}

// `steps.count` steps. Returns the squared norm of the gradient before the last one.
template <class Interrupt>
double descend(const Energy &energy, Repulsion &repulsion, bool plane, const Steps &steps, int threads,
               const Interrupt &interrupt, double *points, double *velocity, double *gains, Slopes &work) {
    const std::size_t size = energy.graph.n * energy.dim;
    std::vector<double> g(size);
    double norm = 0.0;
    for (std::size_t t = 0; t < steps.count; ++t) {
        gradient(energy, repulsion, plane, points, threads, interrupt, work, g.data());
        norm = 0.0;
        for (std::size_t k = 0; k < size; ++k) {
            norm += g[k] * g[k];
            gains[k] = velocity[k] * g[k] < 0.0 ? gains[k] + 0.2 : std::max(gains[k] * 0.8, 0.01);
            velocity[k] = steps.momentum * velocity[k] - steps.rate * gains[k] * g[k];
        }
        for (std::size_t i = 0; i < size; i += energy.dim) {
            double square = 0.0;
            for (std::size_t k = i; k < i + energy.dim; ++k) square += velocity[k] * velocity[k];
            const double shorter = square > LONGEST * LONGEST ? LONGEST / std::sqrt(square) : 1.0;
            for (std::size_t k = i; k < i + energy.dim; ++k) points[k] += velocity[k] *= shorter;
        }
        interrupt();
    }
    return norm;
}

}  // namespace epicycle::manifold
