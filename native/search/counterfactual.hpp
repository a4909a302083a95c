// Counterfactual regret minimisation over a game tree laid out in arrays (Zinkevich et al. 2007; Tammelin 2014; Brown
// and Sandholm 2019), and the best reply to a strategy.
//
// Nodes are in an order in which parents come before their children; the children of a node are consecutive. `player`
// is 0 or 1, CHANCE, or END; `set` numbers the information sets, whose actions lie at first_action[set]... .
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace epicycle {

struct ExtensiveTree {
    static constexpr int CHANCE = 2, END = 3;
    const std::int64_t *player, *first, *count, *set;  // of nodes
    const double *chance, *payoff;                     // probability of coming here from a chance node; for player 0
    const std::int64_t *first_action;                  // of information sets, and the number of all actions at the end
    std::size_t nodes, sets;
};

struct RegretRule {
    double positive, negative, average;  // discounts t^a / (t^a + 1) of regrets, (t / (t + 1))^g of strategies
    bool clip;                           // regrets below zero are forgotten
};

inline void match_regrets(const double *regret, double *strategy, std::size_t n) {
    double total = 0.0;
    for (std::size_t a = 0; a < n; ++a) total += std::max(regret[a], 0.0);
    for (std::size_t a = 0; a < n; ++a) strategy[a] = total > 0.0 ? std::max(regret[a], 0.0) / total : 1.0 / n;
}

class RegretMinimizer {
public:
    RegretMinimizer(const ExtensiveTree &tree, const RegretRule &rule, double *regret, double *total)
        : tree_(tree), rule_(rule), regret_(regret), total_(total), strategy_(actions()), gain_(actions()),
          reach_(2 * tree.nodes), value_(tree.nodes) {}

    // One iteration, its number counted from 1: the players take turns.
    void iterate(std::int64_t t) {
        for (int me = 0; me < 2; ++me) {
            for (std::size_t s = 0; s < tree_.sets; ++s) {
                const auto at = static_cast<std::size_t>(tree_.first_action[s]);
                match_regrets(regret_ + at, strategy_.data() + at, width(s));
            }
            go_down(me);
            go_up(me);
            update(me, static_cast<double>(t));
        }
    }

private:
    const ExtensiveTree &tree_;
    RegretRule rule_;
    double *regret_, *total_;
    std::vector<double> strategy_, gain_, reach_, value_;

    std::size_t actions() const { return static_cast<std::size_t>(tree_.first_action[tree_.sets]); }
    std::size_t width(std::size_t s) const {
        return static_cast<std::size_t>(tree_.first_action[s + 1] - tree_.first_action[s]);
    }
    std::size_t action_at(std::size_t node) const {
        return static_cast<std::size_t>(tree_.first_action[tree_.set[node]]);
    }

    // Probability of each node: what I do, and what chance and the other do.
    void go_down(int me) {
        reach_[0] = reach_[1] = 1.0;
        for (std::size_t h = 0; h < tree_.nodes; ++h) {
            const std::int64_t who = tree_.player[h];
            if (who == ExtensiveTree::END) continue;
            const auto first = static_cast<std::size_t>(tree_.first[h]);
            for (std::size_t k = 0; k < static_cast<std::size_t>(tree_.count[h]); ++k) {
                const double p = who == ExtensiveTree::CHANCE ? tree_.chance[first + k] : strategy_[action_at(h) + k];
                const bool mine = who == me;
                reach_[2 * (first + k)] = reach_[2 * h] * (mine ? p : 1.0);
                reach_[2 * (first + k) + 1] = reach_[2 * h + 1] * (mine ? 1.0 : p);
            }
        }
    }

    // Expected payoffs for me, and what each action gains over the strategy, weighted by what others do.
    void go_up(int me) {
        std::fill(gain_.begin(), gain_.end(), 0.0);
        const double sign = me == 0 ? 1.0 : -1.0;
        for (std::size_t h = tree_.nodes; h-- > 0;) {
            const std::int64_t who = tree_.player[h];
            if (who == ExtensiveTree::END) {
                value_[h] = sign * tree_.payoff[h];
                continue;
            }
            const auto first = static_cast<std::size_t>(tree_.first[h]), n = static_cast<std::size_t>(tree_.count[h]);
            double mean = 0.0;
            for (std::size_t k = 0; k < n; ++k)
                mean += value_[first + k] *
                        (who == ExtensiveTree::CHANCE ? tree_.chance[first + k] : strategy_[action_at(h) + k]);
            value_[h] = mean;
            if (who != me) continue;
            for (std::size_t k = 0; k < n; ++k)
                gain_[action_at(h) + k] += reach_[2 * h + 1] * (value_[first + k] - mean);
        }
    }

    void update(int me, double t) {
        const auto kept = [t](double power) {
            return std::isinf(power) ? (power > 0.0 ? 1.0 : 0.0) : std::pow(t, power) / (std::pow(t, power) + 1.0);
        };
        const double up = kept(rule_.positive), down = kept(rule_.negative),
                     older = std::pow(t / (t + 1.0), rule_.average);
        std::vector<double> mine(tree_.sets, 0.0);
        for (std::size_t h = 0; h < tree_.nodes; ++h)
            if (tree_.player[h] == me) {
                // With perfect recall my own part of the way is the same for all nodes of a set.
                mine[static_cast<std::size_t>(tree_.set[h])] = reach_[2 * h];
                seen_set(h, me);
            }
        for (std::size_t s = 0; s < tree_.sets; ++s) {
            if (owner_[s] != me) continue;
            for (std::size_t k = 0; k < width(s); ++k) {
                const std::size_t a = static_cast<std::size_t>(tree_.first_action[s]) + k;
                double &r = regret_[a];
                r += gain_[a];
                r = rule_.clip ? std::max(r, 0.0) : r * (r > 0.0 ? up : down);
                total_[a] = (total_[a] + mine[s] * strategy_[a]) * older;
            }
        }
    }

    std::vector<int> owner_ = std::vector<int>(tree_.sets, -1);
    void seen_set(std::size_t h, int me) { owner_[static_cast<std::size_t>(tree_.set[h])] = me; }
};

// The largest payoff of `me` against a strategy of the other, by the best action of each information set.
class BestReply {
public:
    BestReply(const ExtensiveTree &tree, const double *strategy, int me)
        : tree_(tree), strategy_(strategy), me_(me), reach_(tree.nodes, 1.0),
          value_(tree.nodes, std::numeric_limits<double>::quiet_NaN()), members_(tree.sets), action(tree.sets, -1) {
        for (std::size_t h = 0; h < tree.nodes; ++h) {
            const std::int64_t who = tree.player[h];
            if (who == me) members_[static_cast<std::size_t>(tree.set[h])].push_back(h);
            if (who == ExtensiveTree::END) continue;
            for (std::size_t k = 0; k < static_cast<std::size_t>(tree.count[h]); ++k)
                reach_[child(h, k)] = reach_[h] * (who == me ? 1.0 : weight(h, k));
        }
        value = value_at(0);
    }

private:
    const ExtensiveTree &tree_;
    const double *strategy_;
    int me_;
    std::vector<double> reach_, value_;
    std::vector<std::vector<std::size_t>> members_;

    std::size_t child(std::size_t h, std::size_t k) const { return static_cast<std::size_t>(tree_.first[h]) + k; }
    double weight(std::size_t h, std::size_t k) const {
        if (tree_.player[h] == ExtensiveTree::CHANCE) return tree_.chance[child(h, k)];
        return strategy_[static_cast<std::size_t>(tree_.first_action[tree_.set[h]]) + k];
    }
    double value_at(std::size_t h) {
        if (value_[h] == value_[h]) return value_[h];
        const std::int64_t who = tree_.player[h];
        if (who == ExtensiveTree::END) return value_[h] = me_ == 0 ? tree_.payoff[h] : -tree_.payoff[h];
        if (who == me_) return value_[h] = value_at(child(h, static_cast<std::size_t>(best_action(tree_.set[h]))));
        double mean = 0.0;
        for (std::size_t k = 0; k < static_cast<std::size_t>(tree_.count[h]); ++k)
            mean += weight(h, k) * value_at(child(h, k));
        return value_[h] = mean;
    }
    std::int64_t best_action(std::int64_t set) {
        const auto s = static_cast<std::size_t>(set);
        if (action[s] >= 0) return action[s];
        const auto n = static_cast<std::size_t>(tree_.first_action[s + 1] - tree_.first_action[s]);
        double highest = -std::numeric_limits<double>::infinity();
        for (std::size_t k = 0; k < n; ++k) {
            double sum = 0.0;
            for (const std::size_t h : members_[s]) sum += reach_[h] * value_at(child(h, k));
            if (sum > highest) highest = sum, action[s] = static_cast<std::int64_t>(k);
        }
        return action[s];
    }

public:
    double value = 0.0;
    std::vector<std::int64_t> action;  // of my sets that were reached; -1 elsewhere
};

}  // namespace epicycle
