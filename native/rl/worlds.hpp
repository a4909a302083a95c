// Environments with numbered states and actions: one that is a table, and one that is asked step by step.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bayes/random.hpp"

namespace epicycle {

struct Transition {
    std::size_t state;
    double reward;
    bool terminated, truncated;
};

// A finite decision process. Row k of the table lists what can follow pair k = state * actions + action; rows of pairs
// that do not exist are empty. A step draws from its row by an alias table (Vose): one number, one comparison.
class TableWorld {
public:
    // `start` holds cumulated probabilities of the first state; `max_steps` 0 never cuts an episode off.
    TableWorld(std::size_t n_states, std::size_t n_actions, const std::int64_t *row, const std::int64_t *next,
               const double *p, const double *reward, const bool *ends, const double *start, std::int64_t max_steps)
        : n_states(n_states), n_actions(n_actions), first(row, row + n_states * n_actions + 1),
          cumulated(start, start + n_states), max_steps(max_steps) {
        outcomes.resize(static_cast<std::size_t>(first.back()));
        for (std::size_t e = 0; e < outcomes.size(); ++e)
            outcomes[e] = {1.0, reward[e], static_cast<std::uint32_t>(next[e]), 0, ends[e]};
        for (std::size_t k = 0; k + 1 < first.size(); ++k)
            make_alias(p + first[k], &outcomes[static_cast<std::size_t>(first[k])],
                       static_cast<std::size_t>(first[k + 1] - first[k]));
    }

    std::size_t states() const { return n_states; }
    std::size_t actions() const { return n_actions; }

    std::size_t reset(Random &rng) {
        length = 0;
        const auto place = std::upper_bound(cumulated.begin(), cumulated.end(), rng.uniform());
        return std::min(static_cast<std::size_t>(place - cumulated.begin()), n_states - 1);
    }

    Transition step(std::size_t state, std::size_t action, Random &rng) {
        const std::size_t k = state * n_actions + action;
        const auto begin = static_cast<std::size_t>(first[k]), size = static_cast<std::size_t>(first[k + 1]) - begin;
        const Outcome *row = &outcomes[begin];
        std::size_t i = 0;
        if (size > 1) {
            const double u = rng.uniform() * static_cast<double>(size);
            i = std::min(static_cast<std::size_t>(u), size - 1);
            if (u - static_cast<double>(i) >= row[i].keep) i = row[i].other;
        }
        ++length;
        return {row[i].next, row[i].reward, row[i].ends, !row[i].ends && max_steps > 0 && length >= max_steps};
    }

    // An episode that has lasted so long goes on.
    void go_on(std::int64_t steps) { length = steps; }

private:
    std::int64_t length = 0;
    struct Outcome {
        double keep, reward;
        std::uint32_t next, other;
        bool ends;
    };
    std::size_t n_states, n_actions;
    std::vector<std::int64_t> first;
    std::vector<double> cumulated;
    std::vector<Outcome> outcomes;
    std::int64_t max_steps;

    static void make_alias(const double *p, Outcome *row, std::size_t n) {
        if (n < 2) return;
        double total = 0.0;
        for (std::size_t i = 0; i < n; ++i) total += p[i];
        std::vector<double> share(n);
        std::vector<std::size_t> small, large;
        for (std::size_t i = 0; i < n; ++i) {
            share[i] = p[i] / total * static_cast<double>(n);
            (share[i] < 1.0 ? small : large).push_back(i);
        }
        while (!small.empty() && !large.empty()) {
            const std::size_t s = small.back(), l = large.back();
            small.pop_back();
            row[s].keep = share[s];
            row[s].other = static_cast<std::uint32_t>(l);
            share[l] -= 1.0 - share[s];
            if (share[l] < 1.0) {
                large.pop_back();
                small.push_back(l);
            }
        }
        // What is left over is one up to rounding.
    }
};

}  // namespace epicycle
