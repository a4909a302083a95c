// Temporal differences, one step at a time. After a step from (s, a) with reward r to s' the value of (s, a) moves by
//
//     rate (r + discount B - q(s, a)),   B = q(s', a')               SARSA, a' the next action
//                                            sum_b pi(b | s') q(s', b)   expected SARSA
//                                            max_b q(s', b)              Q-learning
//                                            q2(s', argmax_b q(s', b))   double Q-learning, a coin swaps the tables
//                                            v(s')                       values of the states of a given policy
//
// over one step, over n steps (Sutton and Barto, chapter 7), or passed on along traces (chapter 12; Q-learning cuts
// them where an action is not greedy, Watkins). Nothing follows a terminal state; an episode that is cut off goes on in
// B.
#pragma once

#include "rl/learner.hpp"

namespace epicycle {

struct TemporalDifference {
    Learner &m;
    Position &at;
    Random rng;
    // n-step methods: the last n keys and rewards, a ring.
    std::int64_t *ring_key;
    double *ring_reward;
    std::size_t n_steps;
    // Traces of the keys, and the keys whose trace is not zero.
    double *trace;
    std::int64_t *active;
    double decay;  // lambda
    Trace kind;
    bool offline;  // changes wait in m.second for the end of the episode

    static constexpr double FORGOTTEN = 1e-12;

    // The last step is taken as cut off where `last` is set, so that nothing is left waiting.
    template <class World>
    std::size_t run(World &world, std::size_t steps, bool last, Episodes &episodes) {
        const bool ahead = m.target == Target::sarsa || (decay > 0.0 && !m.by_state());
        world.go_on(at.whole[Position::LENGTH]);
        std::size_t i = 0;
        for (; i < steps && !episodes.full(); ++i) {
            if (at.whole[Position::RUNNING] == 0) {
                const std::size_t s = world.reset(rng);
                at.begin(s, m.value(s));
            }
            const std::size_t s = at.state();
            const auto t = static_cast<double>(at.whole[Position::STEPS]);
            const std::size_t a = at.whole[Position::ACTION] >= 0 ? static_cast<std::size_t>(at.whole[Position::ACTION])
                                                                  : m.choose(s, t, rng);
            const Transition now = world.step(s, a, rng);
            at.earn(now.reward, m.discount);
            const std::size_t key = m.key(s, a);
            ++m.visits[key];
            const bool ended = now.terminated || now.truncated, over = ended || (last && i + 1 == steps);
            std::int64_t next = -1;
            bool off_policy = false;
            if (ahead && !now.terminated) {
                next = static_cast<std::int64_t>(m.choose(now.state, t + 1.0, rng));
                if (m.target == Target::q_learning)
                    off_policy = m.q[m.key(now.state, static_cast<std::size_t>(next))] < m.largest(m.q, now.state);
            }
            if (m.target == Target::double_q_learning)
                update_one_of_two(key, rate_of(key, t), now);
            else {
                const double future =
                    now.terminated ? 0.0 : follows(now.state, static_cast<std::size_t>(next), t + 1.0);
                if (decay > 0.0)
                    pass_on(key, t, now.reward + m.discount * future - m.q[key], over || off_policy);
                else if (n_steps > 1)
                    wait(key, t, now.reward, future, over);
                else
                    table()[key] += rate_of(key, t) * (now.reward + m.discount * future - m.q[key]);
            }
            if (over) {
                if (offline) apply();
                if (ended) episodes.record(at, m.exploration_at(s, t));
                at.whole[Position::RUNNING] = 0;
            } else {
                at.whole[Position::STATE] = static_cast<std::int64_t>(now.state);
                at.whole[Position::ACTION] = next;
            }
        }
        at.keep(rng);
        return i;
    }

private:
    double *table() { return offline ? m.second : m.q; }

    double follows(std::size_t s, std::size_t a, double t) {
        switch (m.target) {
            case Target::sarsa:
                return m.q[m.key(s, a)];
            case Target::expected_sarsa: {
                const std::vector<double> &p = m.probabilities(s, t);
                double sum = 0.0;
                for (std::size_t b = 0; b < m.actions; ++b)
                    if (p[b] > 0.0) sum += p[b] * m.q[s * m.actions + b];
                return sum;
            }
            case Target::state_values:
                return m.q[s];
            default:
                return m.largest(m.q, s);
        }
    }

    void update_one_of_two(std::size_t key, double rate, const Transition &now) {
        const bool first = rng.uniform() < 0.5;
        double *mine = first ? m.q : m.second;
        const double *other = first ? m.second : m.q;
        double future = 0.0;
        if (!now.terminated) {
            const std::size_t k = now.state * m.actions;
            m.choice.set_scores(mine + k, nullptr, m.allowed + k, nullptr, 0.0, m.actions);
            future = other[k + m.choice.greedy(rng)];
        }
        mine[key] += rate * (now.reward + m.discount * future - mine[key]);
    }

    double rate_of(std::size_t key, double t) const { return m.rate.at(t, static_cast<double>(m.visits[key])); }

    void pass_on(std::size_t key, double t, double difference, bool cut) {
        std::int64_t &count = at.whole[Position::ACTIVE];
        if (trace[key] == 0.0) active[count++] = static_cast<std::int64_t>(key);
        if (kind == Trace::replacing)
            trace[key] = 1.0;
        else
            trace[key] = (kind == Trace::dutch ? (1.0 - rate_of(key, t)) * trace[key] : trace[key]) + 1.0;
        double *to = table();
        const double fade = m.discount * decay;
        for (std::int64_t j = 0; j < count;) {
            const auto k = static_cast<std::size_t>(active[j]);
            to[k] += rate_of(k, t) * difference * trace[k];
            trace[k] *= fade;
            if (cut || trace[k] < FORGOTTEN) {
                trace[k] = 0.0;
                active[j] = active[--count];
            } else {
                ++j;
            }
        }
    }

    void wait(std::size_t key, double t, double reward, double future, bool over) {
        std::int64_t &oldest = at.whole[Position::OLDEST], &count = at.whole[Position::WAITING];
        const auto n = static_cast<std::int64_t>(n_steps);
        const std::int64_t place = (oldest + count) % n;
        ring_key[place] = static_cast<std::int64_t>(key);
        ring_reward[place] = reward;
        ++count;
        while (count == n || (over && count > 0)) {
            double sum = future;
            for (std::int64_t j = count; j-- > 0;) sum = ring_reward[(oldest + j) % n] + m.discount * sum;
            const auto k = static_cast<std::size_t>(ring_key[oldest]);
            table()[k] += rate_of(k, t) * (sum - m.q[k]);
            oldest = (oldest + 1) % n;
            --count;
        }
    }

    void apply() {
        for (std::size_t k = 0; k < m.states * (m.by_state() ? 1 : m.actions); ++k) {
            m.q[k] += m.second[k];
            m.second[k] = 0.0;
        }
    }
};

}  // namespace epicycle
