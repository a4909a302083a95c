// Learning with a model that is counted on the way: after each step, updates from the model alone.
//
// Dyna-Q (Sutton): updates of pairs that were seen, drawn at random, each with an outcome that is drawn from its
// counts. Prioritised sweeping (Moore and Atkeson): the pair whose value is furthest from its target
//     sum_s' n(s, a, s') / n(s, a) (r + discount max_b q(s', b))
// takes it over, and the pairs that lead to its state are looked at again.
#pragma once

#include <queue>

#include "rl/learner.hpp"

namespace epicycle {

// Outcomes of the pairs, in the order in which they were first seen, from which all else is built.
class TransitionModel {
public:
    struct Outcome {
        std::size_t pair, next;
        bool ended;
        double count, reward;  // reward: sum
    };
    TransitionModel(std::size_t n_states, std::size_t n_actions) : of_pair(n_states * n_actions), before(n_states) {}

    void see(std::size_t pair, std::size_t next, bool ended, double count, double reward) {
        require(pair < of_pair.size() && next < before.size(), "TransitionModel: an entry is out of range");
        for (const std::size_t e : of_pair[pair])
            if (all[e].next == next && all[e].ended == ended) {
                all[e].count += count, all[e].reward += reward;
                return;
            }
        if (of_pair[pair].empty()) seen.push_back(pair);
        of_pair[pair].push_back(all.size());
        if (!ended) before[next].push_back(pair);
        all.push_back({pair, next, ended, count, reward});
    }
    const std::vector<Outcome> &outcomes() const { return all; }
    const std::vector<std::size_t> &pairs_before(std::size_t state) const { return before[state]; }
    const std::vector<std::size_t> &pairs() const { return seen; }
    std::size_t n_pairs() const { return of_pair.size(); }
    std::size_t n_states() const { return before.size(); }

    const Outcome &draw(std::size_t pair, Random &rng) const {
        const std::vector<std::size_t> &some = of_pair[pair];
        if (some.size() == 1) return all[some[0]];
        double left = rng.uniform() * total(pair);
        for (const std::size_t e : some)
            if ((left -= all[e].count) < 0.0) return all[e];
        return all[some.back()];
    }
    double target(std::size_t pair, const Learner &m) const {
        double sum = 0.0;
        for (const std::size_t e : of_pair[pair]) {
            const Outcome &o = all[e];
            sum += o.reward + (o.ended ? 0.0 : o.count * m.discount * m.largest(m.q, o.next));
        }
        return sum / total(pair);
    }

private:
    std::vector<Outcome> all;
    std::vector<std::vector<std::size_t>> of_pair, before;
    std::vector<std::size_t> seen;

    double total(std::size_t pair) const {
        double n = 0.0;
        for (const std::size_t e : of_pair[pair]) n += all[e].count;
        return n;
    }
};

struct Planning {
    Learner &m;
    Position &at;
    Random rng;
    TransitionModel &model;
    std::size_t updates;  // from the model, after each step
    double threshold;     // of a change that is worth an update
    double *priority;     // pairs that wait, by the size of their change; null: pairs are drawn
    std::int64_t &made;   // updates of values so far, from steps and from the model
    using Waiting = std::pair<double, std::int64_t>;  // of equals the first pair comes first
    std::priority_queue<Waiting> queue = {};

    template <class World>
    std::size_t run(World &world, std::size_t steps, Episodes &episodes) {
        world.go_on(at.whole[Position::LENGTH]);
        if (priority != nullptr)
            for (std::size_t k = 0; k < model.n_pairs(); ++k)
                if (priority[k] > 0.0) queue.push({priority[k], -static_cast<std::int64_t>(k)});
        std::size_t i = 0;
        for (; i < steps && !episodes.full(); ++i) {
            if (at.whole[Position::RUNNING] == 0) {
                const std::size_t s = world.reset(rng);
                at.begin(s, m.value(s));
            }
            const std::size_t s = at.state();
            const auto t = static_cast<double>(at.whole[Position::STEPS]);
            const std::size_t a = m.choose(s, t, rng), key = m.key(s, a);
            const Transition now = world.step(s, a, rng);
            at.earn(now.reward, m.discount);
            ++m.visits[key];
            model.see(key, now.state, now.terminated, 1.0, now.reward);
            if (priority == nullptr) {
                learn(key, t, now.reward, now.state, now.terminated);
                draw_pairs(t);
            } else {
                look_at(key);
                sweep();
            }
            if (now.terminated || now.truncated) {
                episodes.record(at, m.exploration_at(s, t));
                at.whole[Position::RUNNING] = 0;
            } else {
                at.whole[Position::STATE] = static_cast<std::int64_t>(now.state);
            }
        }
        at.keep(rng);
        return i;
    }

private:
    void learn(std::size_t key, double t, double reward, std::size_t next, bool ended) {
        const double future = ended ? 0.0 : m.discount * m.largest(m.q, next);
        m.q[key] += m.rate.at(t, static_cast<double>(m.visits[key])) * (reward + future - m.q[key]);
        ++made;
    }
    void draw_pairs(double t) {
        const std::vector<std::size_t> &seen = model.pairs();
        for (std::size_t n = 0; n < updates; ++n) {
            const auto which = static_cast<std::size_t>(rng.uniform() * static_cast<double>(seen.size()));
            const TransitionModel::Outcome &o = model.draw(seen[std::min(which, seen.size() - 1)], rng);
            learn(o.pair, t, o.reward / o.count, o.next, o.ended);
        }
    }
    void look_at(std::size_t key) {
        const double change = std::abs(model.target(key, m) - m.q[key]);
        if (change <= threshold || change <= priority[key]) return;
        priority[key] = change;
        queue.push({change, -static_cast<std::int64_t>(key)});
    }
    void sweep() {
        for (std::size_t n = 0; n < updates && !queue.empty();) {
            const auto [change, negative] = queue.top();
            const auto key = static_cast<std::size_t>(-negative);
            queue.pop();
            if (priority[key] != change) continue;  // it came up with a larger change
            priority[key] = 0.0;
            m.q[key] = model.target(key, m);
            for (const std::size_t earlier : model.pairs_before(key / m.actions)) look_at(earlier);
            ++n, ++made;
        }
    }
};

}  // namespace epicycle
