// The field at the points themselves, by pairs, by Barnes and Hut's tree or by a grid.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <variant>
#include <vector>

#include "core/threads.hpp"
#include "manifold/field.hpp"
#include "manifold/pairs.hpp"
#include "manifold/tree.hpp"

namespace epicycle::manifold {

enum class Method { pairs = 0, tree = 1, grid = 2 };

class Repulsion {
public:
    Repulsion(Method method, Kernel kernel, double angle, double step, int threads)
        : method_(method), kernel_(kernel), angle_(angle), threads_(threads), field_(kernel, step) {}

    // phi_i less the point's own share, and push_i = sum_j w_j G'(d_ij) (y_i - y_j); points is n x dim.
    template <class Interrupt>
    void operator()(const double *points, const double *weight, std::size_t n, std::size_t dim,
                    const Interrupt &interrupt, double *phi, double *push) {
        if (method_ == Method::grid && !few(points, n))
            by_grid(points, weight, n, phi, push);
        else if (method_ != Method::tree || dim > 3)
            by_pairs(points, weight, n, dim, interrupt, phi, push);
        else if (dim == 1)
            by_tree<1>(points, weight, n, interrupt, phi, push);
        else if (dim == 2)
            by_tree<2>(points, weight, n, interrupt, phi, push);
        else
            by_tree<3>(points, weight, n, interrupt, phi, push);
        const double own = kernel_.value(0.0);
        for (std::size_t i = 0; i < n; ++i) phi[i] -= own;
    }

private:
    // Whether all pairs cost no more than the nodes of a grid: for few points, or for points far apart.
    bool few(const double *points, std::size_t n) const {
        double least[2] = {points[0], points[1]}, most[2] = {points[0], points[1]};
        for (std::size_t i = 1; i < n; ++i)
            for (std::size_t j = 0; j < 2; ++j) {
                least[j] = std::min(least[j], points[2 * i + j]);
                most[j] = std::max(most[j], points[2 * i + j]);
            }
        const double span = std::max({most[0] - least[0], most[1] - least[1], 1e-30});
        return span < 1e30 && field_.nodes_over(span) >= n;
    }

    template <class Interrupt>
    void by_pairs(const double *points, const double *weight, std::size_t n, std::size_t dim,
                  const Interrupt &interrupt, double *phi, double *push) const {
        const Columns columns(points, weight, n, dim);
        in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(threads_) schedule(static) if (threads_ > 1)
            for (std::size_t i = from; i < to; ++i) phi[i] = pairs(columns, kernel_, points + i * dim, push + i * dim);
        });
    }

    template <std::size_t D, class Interrupt>
    void by_tree(const double *points, const double *weight, std::size_t n, const Interrupt &interrupt, double *phi,
                 double *push) const {
        const Tree<D> tree(points, weight, n);
        in_pieces(0, n, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(threads_) schedule(dynamic, 64) if (threads_ > 1)
            for (std::size_t i = from; i < to; ++i) phi[i] = tree.field(kernel_, points + i * D, angle_, push + i * D);
        });
    }

    void by_grid(const double *points, const double *weight, std::size_t n, double *phi, double *push) {
        if (x_.size() != n) x_.resize(n), y_.resize(n), w_.resize(n), value_.resize(n), sx_.resize(n), sy_.resize(n);
        double everything = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            x_[i] = static_cast<float>(points[2 * i]), y_[i] = static_cast<float>(points[2 * i + 1]);
            w_[i] = static_cast<float>(weight[i]);
            everything += weight[i];
        }
        excite(field_, x_.data(), y_.data(), w_.data(), n, threads_);
        const double constant = field_.constant * everything, half = -0.5 / kernel_.factor();
#pragma omp parallel for num_threads(threads_) schedule(static) if (threads_ > 1)
        for (std::size_t block = 0; block < (n + 1023) / 1024; ++block) {
            const std::size_t from = block * 1024, to = std::min(from + 1024, n);
            receive(field_, x_.data(), y_.data(), w_.data(), from, to, value_.data(), sx_.data(), sy_.data());
            for (std::size_t i = from; i < to; ++i) {
                phi[i] = static_cast<double>(value_[i]) + constant;
                push[2 * i] = half * static_cast<double>(sx_[i]);
                push[2 * i + 1] = half * static_cast<double>(sy_[i]);
            }
        }
    }

    Method method_;
    Kernel kernel_;
    double angle_;
    int threads_;
    Field field_;
    std::vector<float> x_, y_, w_, value_, sx_, sy_;
};

}  // namespace epicycle::manifold
