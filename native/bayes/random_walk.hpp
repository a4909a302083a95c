// Samplers that need no gradient: random-walk Metropolis and univariate slices.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "bayes/adaptation.hpp"
#include "bayes/density.hpp"
#include "bayes/hamiltonian.hpp"
#include "bayes/random.hpp"

namespace epicycle {

// The log-density without its gradient; nan counts as no density at all.
inline double plain_value(const Density &density, const double *u, double *scratch) {
    const double value = density(u, scratch);
    return value == value ? value : -std::numeric_limits<double>::infinity();
}

// Proposals q + s N(0, C) with C learnt in windows and s by stochastic approximation of the acceptance (Roberts,
// Gelman and Gilks: 0.234 in many dimensions, 0.44 in one).
class Metropolis {
public:
    Metropolis(const Density &density, const double *start)
        : n(density.dimension()), metric(n), current(n), density(density), proposed(n), step(n) {
        std::copy(start, start + n, current.q.begin());
        current.log_density = plain_value(density, current.q.data(), current.g.data());
        restart();
    }
    std::size_t n;
    Metric metric;
    Position current;
    double scale = 1.0;

    void restart() {
        scale = 2.38 / std::sqrt(static_cast<double>(n));
        learnt = 0.0;
    }
    void learn(double acceptance) {
        const double target = n == 1 ? 0.44 : 0.234;
        scale *= std::exp((acceptance - target) * std::pow(++learnt, -0.6));
    }
    Statistics transition(Random &random) {
        metric.draw_step(random, step.data());
        for (std::size_t i = 0; i < n; ++i) proposed.q[i] = current.q[i] + scale * step[i];
        proposed.log_density = plain_value(density, proposed.q.data(), proposed.g.data());
        const double acceptance = std::min(1.0, std::exp(proposed.log_density - current.log_density));
        if (random.uniform() < acceptance) std::swap(current, proposed);
        return {current.log_density, acceptance, scale, 0.0, 1.0, 0.0, -current.log_density};
    }

private:
    const Density &density;
    Position proposed;
    Vec step;
    double learnt = 0.0;
};

// One coordinate after the other by a slice that steps out and shrinks (Neal 2003, figures 3 and 5). The widths are
// three times the mean distance of two draws, the length of a slice, which the warm-up learns.
class Slice {
public:
    Slice(const Density &density, const double *start)
        : n(density.dimension()), current(n), width(n, 1.0), density(density), moved(n) {
        std::copy(start, start + n, current.q.begin());
        current.log_density = plain_value(density, current.q.data(), current.g.data());
    }
    std::size_t n;
    Position current;
    Vec width;

    void learn() {
        ++learnt;
        const double share = 1.0 / std::min(learnt, 100.0);  // a running mean that forgets the way to the mode
        for (std::size_t i = 0; i < n; ++i) {
            const double wanted = width[i] + share * (3.0 * moved[i] - width[i]);
            if (wanted > 0.0 && std::isfinite(wanted)) width[i] = wanted;
        }
    }
    Statistics transition(Random &random) {
        evaluations = 0.0;
        for (std::size_t i = 0; i < n; ++i) update(i, random);
        return {current.log_density, 1.0, 0.0, 0.0, evaluations, 0.0, -current.log_density};
    }

private:
    const Density &density;
    Vec moved;
    double learnt = 0.0, evaluations = 0.0;

    double at(std::size_t i, double x) {
        current.q[i] = x;
        ++evaluations;
        return plain_value(density, current.q.data(), current.g.data());
    }
    void update(std::size_t i, Random &random) {
        constexpr int most = 100;  // widths on both sides together
        const double x = current.q[i], level = current.log_density - random.exponential();
        double left = x - width[i] * random.uniform(), right = left + width[i];
        int on_left = static_cast<int>(most * random.uniform()), on_right = most - 1 - on_left;
        while (on_left-- > 0 && at(i, left) > level) left -= width[i];
        while (on_right-- > 0 && at(i, right) > level) right += width[i];
        for (;;) {
            const double y = left + (right - left) * random.uniform(), value = at(i, y);
            if (value > level || !(right - left > 1e-14 * std::fabs(x))) {
                // An interval of no length is the point itself, whose density lies above the level.
                current.log_density = value > level ? value : at(i, x);
                moved[i] = std::fabs(current.q[i] - x);
                return;
            }
            (y < x ? left : right) = y;
        }
    }
};

}  // namespace epicycle
