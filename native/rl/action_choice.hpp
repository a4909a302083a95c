// How actions are chosen from estimates of their values.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "bayes/random.hpp"

namespace epicycle {

enum class Exploration : std::int64_t { epsilon_greedy, softmax, ucb, fixed };

// The policy of one state. Actions that are not allowed have probability zero; equal values share.
class ActionChoice {
public:
    explicit ActionChoice(std::size_t n_actions) : score(n_actions), p(n_actions) {}

    // Scores of the actions: values, with `bonus` c sqrt(log N / n) for each; what was never tried comes first.
    void set_scores(const double *q, const double *second, const std::uint8_t *allowed, const std::int64_t *visits,
                    double bonus, std::size_t n) {
        constexpr double infinity = std::numeric_limits<double>::infinity();
        double total = 0.0;
        if (visits != nullptr)
            for (std::size_t a = 0; a < n; ++a) total += static_cast<double>(visits[a]);
        best = -infinity;
        ties = count = 0;
        for (std::size_t a = 0; a < n; ++a) {
            if (allowed[a] == 0) {
                score[a] = -infinity;
                continue;
            }
            ++count;
            double value = second == nullptr ? q[a] : q[a] + second[a];
            if (visits != nullptr)
                value = visits[a] == 0 ? infinity
                                       : value + bonus * std::sqrt(std::log(total) / static_cast<double>(visits[a]));
            score[a] = value;
            if (value > best) {
                best = value;
                ties = 1;
            } else if (value == best) {
                ++ties;
            }
        }
    }

    // One of the best actions, each with the same probability.
    std::size_t greedy(Random &rng) const {
        std::size_t skip = ties > 1 ? draw(rng, ties) : 0;
        for (std::size_t a = 0;; ++a)
            if (score[a] == best && skip-- == 0) return a;
    }

    // Any allowed action.
    std::size_t any(Random &rng, const std::uint8_t *allowed) const {
        std::size_t skip = draw(rng, count);
        if (count == score.size()) return skip;
        for (std::size_t a = 0;; ++a)
            if (allowed[a] != 0 && skip-- == 0) return a;
    }

    std::size_t from_softmax(Random &rng, double temperature) {
        set_softmax(temperature);
        double u = rng.uniform();
        std::size_t last = 0;
        for (std::size_t a = 0; a < p.size(); ++a) {
            if (p[a] <= 0.0) continue;
            last = a;
            if ((u -= p[a]) < 0.0) return a;
        }
        return last;
    }

    void set_softmax(double temperature) {
        double total = 0.0;
        for (std::size_t a = 0; a < p.size(); ++a) total += p[a] = std::exp((score[a] - best) / temperature);
        for (double &x : p) x /= total;
    }

    void set_epsilon_greedy(double epsilon, const std::uint8_t *allowed) {
        for (std::size_t a = 0; a < p.size(); ++a)
            p[a] = allowed[a] == 0 ? 0.0
                                   : epsilon / static_cast<double>(count) +
                                         (score[a] == best ? (1.0 - epsilon) / static_cast<double>(ties) : 0.0);
    }

    bool is_best(std::size_t a) const { return score[a] == best; }
    double best_value() const { return best; }
    const std::vector<double> &probabilities() const { return p; }

private:
    std::vector<double> score, p;
    double best = 0.0;
    std::size_t ties = 0, count = 0;

    static std::size_t draw(Random &rng, std::size_t n) {
        return std::min(static_cast<std::size_t>(rng.uniform() * static_cast<double>(n)), n - 1);
    }
};

}  // namespace epicycle
