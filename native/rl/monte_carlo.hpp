// Monte Carlo: at the end of an episode the returns G = r + discount G', from the last step to the first, move the
// values of what was visited. Off the policy of the episode, the greedy one is learnt: a return counts with the weight
// W = prod 1 / b(a | s) of the steps after it, and none before the last step that was not greedy (Sutton and Barto,
// section 5.7).
#pragma once

#include "rl/learner.hpp"

namespace epicycle {

struct MonteCarlo {
    Learner &m;
    Position &at;
    Random rng;
    bool first_visit, off_policy;

    // Ends with an episode, the first that is over after `steps`; at most `most` steps are made, and an episode that
    // they cut off is not learnt from. Returns the number of steps.
    template <class World, class Poll>
    std::size_t run(World &world, std::size_t steps, std::size_t most, Episodes &episodes, Poll poll) {
        struct Step {
            std::size_t state, action;
            double reward, probability;
        };
        std::vector<Step> episode;
        std::vector<std::int64_t> seen(m.states * (m.by_state() ? 1 : m.actions), -1);
        std::size_t made = 0;
        while (made < steps && !episodes.full()) {
            episode.clear();
            std::size_t s = world.reset(rng);
            at.begin(s, m.value(s));
            bool ended = false;
            double tail = 0.0;
            for (; made < most && !ended; ++made) {
                const auto t = static_cast<double>(at.whole[Position::STEPS]);
                const std::size_t a = m.choose(s, t, rng);
                const double b = off_policy ? m.probabilities(s, t)[a] : 1.0;
                const Transition now = world.step(s, a, rng);
                at.earn(now.reward, m.discount);
                episode.push_back({s, a, now.reward, b});
                s = now.state;
                ended = now.terminated || now.truncated;
                if (now.truncated && !now.terminated) tail = m.value(s);
                if ((made & 0xffff) == 0xffff) poll();
            }
            at.whole[Position::RUNNING] = 0;
            if (!ended) break;
            if (first_visit)
                for (std::size_t i = episode.size(); i-- > 0;)
                    seen[m.key(episode[i].state, episode[i].action)] = static_cast<std::int64_t>(i);
            double sum = tail, weight = 1.0;
            for (std::size_t i = episode.size(); i-- > 0;) {
                const Step &step = episode[i];
                sum = step.reward + m.discount * sum;
                const std::size_t k = m.key(step.state, step.action);
                if (!first_visit || seen[k] == static_cast<std::int64_t>(i)) {
                    ++m.visits[k];
                    if (off_policy) {
                        m.second[k] += weight;
                        m.q[k] += weight / m.second[k] * (sum - m.q[k]);
                    } else {
                        const auto t = static_cast<double>(at.whole[Position::STEPS]);
                        m.q[k] += m.rate.at(t, static_cast<double>(m.visits[k])) * (sum - m.q[k]);
                    }
                }
                if (off_policy) {
                    if (m.q[k] < m.largest(m.q, step.state)) break;
                    weight /= step.probability;
                }
            }
            const Step &end = episode.back();
            episodes.record(at, m.exploration_at(end.state, static_cast<double>(at.whole[Position::STEPS])));
            at.keep(rng);
        }
        return made;
    }
};

}  // namespace epicycle
