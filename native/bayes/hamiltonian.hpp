// Hamiltonian Monte Carlo: H(q, p) = -log p(q) + 1/2 p'M^-1 p, integrated by leapfrog steps; one transition by the
// no-U-turn sampler or along a trajectory of fixed time.
//
// NUTS: Hoffman and Gelman (2014), with states drawn by their weight in the trajectory and U-turns judged by the sum of
// the momenta (Betancourt 2017), also across the seam of any two neighbouring subtrees, as in Stan.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "bayes/adaptation.hpp"
#include "bayes/density.hpp"
#include "bayes/random.hpp"

namespace epicycle {

struct Position {
    Vec q, g;
    double log_density = 0.0, energy = 0.0;
    explicit Position(std::size_t n) : q(n), g(n) {}
};

// What is recorded of every draw.
struct Statistics {
    double log_density = 0.0, acceptance = 0.0, step_size = 0.0, depth = 0.0, steps = 0.0, divergent = 0.0,
           energy = 0.0;
};

inline double log_add(double a, double b) {
    const double high = std::max(a, b);
    return high == -std::numeric_limits<double>::infinity() ? high : high + std::log1p(std::exp(std::min(a, b) - high));
}

class Hamiltonian {
public:
    static constexpr double infinity = std::numeric_limits<double>::infinity();
    static constexpr double max_energy_error = 1000.0;  // beyond it a trajectory has diverged

    Hamiltonian(const Density &density, const double *start, int max_depth, double integration_time)
        : n(density.dimension()), metric(n), current(n), density(density), max_depth(max_depth),
          integration_time(integration_time), z(n), p(n), velocity(n), pull(n), proposal(n), sides{Side(n), Side(n)},
          rho(n) {
        std::copy(start, start + n, current.q.begin());
        current.log_density = density(current.q.data(), current.g.data());
        for (int depth = 0; depth <= max_depth; ++depth) levels.emplace_back(n);
    }

    std::size_t n;
    Metric metric;
    Position current;

    // Doubles or halves the step until the acceptance of one crosses 0.8.
    double reasonable_step(double step, Random &random) {
        for (int direction = 0; step > 1e-300 && step < 1e7;) {
            set_off(random);
            const double before = energy();
            leapfrog(step);
            const double change = before - energy();  // nan counts as rejected
            const int wanted = change > std::log(0.8) ? 1 : -1;
            if (direction == 0) direction = wanted;
            if (wanted != direction) break;
            step *= direction == 1 ? 2.0 : 0.5;
        }
        return step;
    }

    Statistics fixed_time(double step, Random &random) {
        constexpr double most = 10000.0;
        const auto steps = static_cast<int>(std::clamp(std::round(integration_time / step), 1.0, most));
        set_off(random);
        const double before = energy();
        int taken = 0;
        double after = before;
        while (taken < steps && after - before <= max_energy_error) {
            leapfrog(step);
            after = energy();
            ++taken;
        }
        const bool divergent = !(after - before <= max_energy_error);
        const double acceptance = divergent ? 0.0 : std::min(1.0, std::exp(before - after));
        const bool accepted = random.uniform() < acceptance;
        if (accepted) std::swap(current, z);
        return {
            current.log_density,      acceptance, step, 0.0, static_cast<double>(taken), static_cast<double>(divergent),
            accepted ? after : before};
    }

    Statistics no_u_turn(double step, Random &random);

private:
    // The ends of a subtree: momenta and velocities there, and the sum of all momenta.
    struct End {
        Vec p, v;
        explicit End(std::size_t n) : p(n), v(n) {}
    };
    // One end of the whole trajectory, to go on from, and what lies at the seam of its two last parts.
    struct Side {
        Position z;
        End outer, inner;
        Vec rho, pull;
        explicit Side(std::size_t n) : z(n), outer(n), inner(n), rho(n), pull(n) {}
    };
    // What one level of the recursion keeps between its two halves.
    struct Level {
        End inner_first, inner_second;
        Vec rho_first, rho_second;
        Position proposal;
        explicit Level(std::size_t n) : inner_first(n), inner_second(n), rho_first(n), rho_second(n), proposal(n) {}
    };

    const Density &density;
    int max_depth;
    double integration_time;
    // Where the trajectory is: position, momentum p, velocity M^-1 p and, with a dense metric, M^-1 times the gradient.
    Position z;
    Vec p, velocity, pull;
    Position proposal;
    std::vector<Level> levels;
    Side sides[2];
    Vec rho;
    // Of the transition that is under way.
    double start_energy = 0.0, signed_step = 0.0, sum_acceptance = 0.0;
    int steps = 0;
    bool divergent = false;

    double energy() const {
        const double h = -z.log_density + 0.5 * dot(p.data(), velocity.data(), n);
        return h == h ? h : infinity;
    }

    // From the current draw, with a new momentum.
    void set_off(Random &random) {
        metric.draw_momentum(random, p.data());
        z = current;
        metric.velocity(p.data(), velocity.data());
        if (metric.dense()) metric.velocity(z.g.data(), pull.data());
    }

    void leapfrog(double step) {
        kick(0.5 * step);
        add_scaled(z.q.data(), step, velocity.data(), n);
        z.log_density = density(z.q.data(), z.g.data());
        if (metric.dense()) metric.velocity(z.g.data(), pull.data());
        kick(0.5 * step);
    }

    // p += t g. A dense metric multiplies the gradient once for the two kicks that it gives, and the velocity follows.
    void kick(double t) {
        add_scaled(p.data(), t, z.g.data(), n);
        if (metric.dense())
            add_scaled(velocity.data(), t, pull.data(), n);
        else
            metric.velocity(p.data(), velocity.data());
    }

    bool goes_on(const Vec &v_begin, const Vec &v_end, const Vec &rho) const {
        return dot(v_begin.data(), rho.data(), n) > 0.0 && dot(v_end.data(), rho.data(), n) > 0.0;
    }
    // The same with the sum rho + q of the momenta on both sides of a seam.
    bool goes_on(const Vec &v_begin, const Vec &v_end, const Vec &rho, const Vec &q) const {
        return dot(v_begin.data(), rho.data(), n) + dot(v_begin.data(), q.data(), n) > 0.0 &&
               dot(v_end.data(), rho.data(), n) + dot(v_end.data(), q.data(), n) > 0.0;
    }

    bool build(int depth, Position &chosen, End &begin, End &end, Vec &momenta, double &log_weight, Random &random);
};

// A subtree of 2^depth steps from z on; false where it turns back or diverges. The sum of its momenta is returned
// in `momenta`.
inline bool Hamiltonian::build(int depth, Position &chosen, End &begin, End &end, Vec &momenta, double &log_weight,
                               Random &random) {
    if (depth == 0) {
        leapfrog(signed_step);
        ++steps;
        const double h = energy(), change = start_energy - h;
        divergent = !(-change <= max_energy_error);
        log_weight = log_add(log_weight, change);
        sum_acceptance += change > 0.0 ? 1.0 : std::exp(change);
        if (divergent) return false;
        z.energy = h;
        chosen = z;
        begin.p = p;
        begin.v = velocity;
        if (&end != &begin) end = begin;
        momenta = p;
        return true;
    }
    Level &level = levels[static_cast<std::size_t>(depth)];
    double weight_first = -infinity, weight_second = -infinity;
    if (!build(depth - 1, chosen, begin, level.inner_first, level.rho_first, weight_first, random)) return false;
    if (!build(depth - 1, level.proposal, level.inner_second, end, level.rho_second, weight_second, random))
        return false;
    const double weight = log_add(weight_first, weight_second);
    log_weight = log_add(log_weight, weight);
    if (random.uniform() < std::exp(weight_second - weight)) std::swap(chosen, level.proposal);
    for (std::size_t i = 0; i < n; ++i) momenta[i] = level.rho_first[i] + level.rho_second[i];
    return goes_on(begin.v, end.v, momenta) &&
           goes_on(begin.v, level.inner_second.v, level.rho_first, level.inner_second.p) &&
           goes_on(level.inner_first.v, end.v, level.rho_second, level.inner_first.p);
}

inline Statistics Hamiltonian::no_u_turn(double step, Random &random) {
    set_off(random);
    start_energy = energy();
    z.energy = start_energy;
    current.energy = start_energy;
    sum_acceptance = 0.0;
    steps = 0;
    divergent = false;
    for (Side &side : sides) {
        side.z = z;
        side.outer.p = side.inner.p = side.rho = p;
        side.outer.v = side.inner.v = velocity;
        side.pull = pull;
    }
    rho = p;
    double log_weight = 0.0;
    int depth = 0;
    while (depth < max_depth) {
        const bool forward = random.uniform() > 0.5;
        Side &side = sides[forward], &other = sides[!forward];
        // What was the whole trajectory is the other part now, and its end on this side lies at the seam.
        other.rho = rho;
        other.inner = side.outer;
        z = side.z;
        p = side.outer.p;
        velocity = side.outer.v;
        pull = side.pull;
        signed_step = forward ? step : -step;
        double weight = -infinity;
        const bool valid = build(depth, proposal, side.inner, side.outer, side.rho, weight, random);
        side.z = z;
        side.pull = pull;
        if (!valid) break;
        ++depth;
        // Biased towards the new part: it is taken with its full weight against that of the old.
        if (random.uniform() < std::exp(weight - log_weight)) std::swap(current, proposal);
        log_weight = log_add(log_weight, weight);
        for (std::size_t i = 0; i < n; ++i) rho[i] = sides[0].rho[i] + sides[1].rho[i];
        if (!goes_on(sides[0].outer.v, sides[1].outer.v, rho) ||
            !goes_on(sides[0].outer.v, sides[1].inner.v, sides[0].rho, sides[1].inner.p) ||
            !goes_on(sides[0].inner.v, sides[1].outer.v, sides[1].rho, sides[0].inner.p))
            break;
    }
    return {current.log_density,        sum_acceptance / std::max(steps, 1), step,          static_cast<double>(depth),
            static_cast<double>(steps), static_cast<double>(divergent),      current.energy};
}

}  // namespace epicycle
