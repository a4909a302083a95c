// What all learners over numbered states and actions share: their tables, the choice of actions, records of episodes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bayes/random.hpp"
#include "rl/action_choice.hpp"
#include "rl/schedule.hpp"
#include "rl/worlds.hpp"

namespace epicycle {

enum class Target : std::int64_t { q_learning, sarsa, expected_sarsa, double_q_learning, state_values };
enum class Trace : std::int64_t { accumulating, replacing, dutch };

// A view on the arrays of an agent. A key is a pair state * actions + action, or a state where values of states are
// learnt.
struct Learner {
    std::size_t states, actions;
    double *q, *second;  // second: the other table of double Q-learning, pending changes, or sums of weights
    std::int64_t *visits;
    const std::uint8_t *allowed;  // pairs
    const double *policy;         // cumulated probabilities of a policy that is given, (states, actions)
    double discount;
    Target target;
    Exploration exploration;
    Schedule rate, explore;
    ActionChoice choice;

    bool by_state() const { return target == Target::state_values; }
    std::size_t key(std::size_t s, std::size_t a) const { return by_state() ? s : s * actions + a; }

    double state_visits(std::size_t s) const {
        std::int64_t n = 0;
        for (std::size_t a = 0; a < actions; ++a) n += visits[s * actions + a];
        return static_cast<double>(n);
    }
    double exploration_at(std::size_t s, double t) const {
        return explore.at(t, explore.kind == Schedule::visits && !by_state() ? state_visits(s) + 1.0 : 1.0);
    }
    void score(std::size_t s, double bonus = 0.0, bool counts = false) {
        const std::size_t k = s * actions;
        choice.set_scores(q + k, target == Target::double_q_learning ? second + k : nullptr, allowed + k,
                          counts ? visits + k : nullptr, bonus, actions);
    }

    std::size_t choose(std::size_t s, double t, Random &rng) {
        if (exploration == Exploration::fixed) {
            const double *row = policy + s * actions, u = rng.uniform();
            std::size_t a = 0;
            while (a + 1 < actions && row[a] <= u) ++a;
            return a;
        }
        const double amount = exploration_at(s, t);
        if (exploration == Exploration::epsilon_greedy) {
            score(s);
            return rng.uniform() < amount ? choice.any(rng, allowed + s * actions) : choice.greedy(rng);
        }
        score(s, amount, exploration == Exploration::ucb);
        return exploration == Exploration::softmax ? choice.from_softmax(rng, amount) : choice.greedy(rng);
    }

    // Probabilities with which `choose` takes the actions.
    const std::vector<double> &probabilities(std::size_t s, double t) {
        const double amount = exploration_at(s, t);
        const bool counts = exploration == Exploration::ucb;
        score(s, amount, counts);
        if (exploration == Exploration::softmax)
            choice.set_softmax(amount);
        else
            choice.set_epsilon_greedy(counts ? 0.0 : amount, allowed + s * actions);
        return choice.probabilities();
    }

    double largest(const double *table, std::size_t s) const {
        double best = -std::numeric_limits<double>::infinity();
        for (std::size_t k = s * actions; k < (s + 1) * actions; ++k)
            if (allowed[k] != 0) best = std::max(best, table[k]);
        return best;
    }
    double value(std::size_t s) const {
        if (by_state()) return q[s];
        if (target != Target::double_q_learning) return largest(q, s);
        double best = -std::numeric_limits<double>::infinity();
        for (std::size_t k = s * actions; k < (s + 1) * actions; ++k)
            if (allowed[k] != 0) best = std::max(best, (q[k] + second[k]) / 2);
        return best;
    }
};

// Where a run stands; in arrays of Python, so that a file can hold it.
struct Position {
    enum Whole { SEED, STEPS = 4, RUNNING, STATE, ACTION, LENGTH, OLDEST, WAITING, ACTIVE, WHOLES };
    enum Real { RETURN, DISCOUNTED, FACTOR, VALUE, REALS };
    std::int64_t *whole;
    double *real;

    Random random() const {
        std::array<std::uint64_t, 4> words;
        for (std::size_t i = 0; i < 4; ++i) words[i] = static_cast<std::uint64_t>(whole[SEED + i]);
        return Random(words);
    }
    void keep(const Random &rng) {
        for (std::size_t i = 0; i < 4; ++i) whole[SEED + i] = static_cast<std::int64_t>(rng.words()[i]);
    }
    std::size_t state() const { return static_cast<std::size_t>(whole[STATE]); }

    void begin(std::size_t state, double value) {
        whole[RUNNING] = 1;
        whole[STATE] = static_cast<std::int64_t>(state);
        whole[ACTION] = -1;
        whole[LENGTH] = whole[OLDEST] = whole[WAITING] = whole[ACTIVE] = 0;
        real[RETURN] = real[DISCOUNTED] = 0.0;
        real[FACTOR] = 1.0;
        real[VALUE] = value;
    }
    void earn(double reward, double discount) {
        ++whole[STEPS];
        ++whole[LENGTH];
        real[RETURN] += reward;
        real[DISCOUNTED] += real[FACTOR] * reward;
        real[FACTOR] *= discount;
    }
};

// One row for each episode: steps in all at its end, return, length, discounted return, value at its start,
// exploration at its end.
struct Episodes {
    static constexpr std::size_t COLUMNS = 6;
    double *rows;
    std::size_t capacity, count = 0;

    bool full() const { return count == capacity; }
    void record(const Position &at, double exploration) {
        double *row = rows + COLUMNS * count++;
        row[0] = static_cast<double>(at.whole[Position::STEPS]);
        row[1] = at.real[Position::RETURN];
        row[2] = static_cast<double>(at.whole[Position::LENGTH]);
        row[3] = at.real[Position::DISCOUNTED];
        row[4] = at.real[Position::VALUE];
        row[5] = exploration;
    }
};

}  // namespace epicycle
