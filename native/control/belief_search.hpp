// Heuristic search value iteration: trials from the first belief along the action of the highest upper bound and the
// observation of the widest gap, with backups of both bounds on the way back.
#pragma once

#include "control/belief.hpp"

namespace epicycle {

struct LowerBound {
    std::size_t states;
    std::vector<double> vectors;
    std::vector<std::int64_t> actions;

    std::size_t count() const { return actions.size(); }
    double operator()(const double *b) const { return best_vector(vectors.data(), count(), b, states).value; }

    void add(const double *vector, std::size_t action) {
        vectors.insert(vectors.end(), vector, vector + states);
        actions.push_back(static_cast<std::int64_t>(action));
    }

    // Keeps the vectors that are best at one of the beliefs, and the first `fixed`.
    void prune(const std::vector<double> &beliefs, std::size_t fixed) {
        std::vector<char> used(count(), 0);
        std::fill(used.begin(), used.begin() + static_cast<std::ptrdiff_t>(std::min(fixed, count())), 1);
        for (std::size_t at = 0; at < beliefs.size(); at += states)
            used[best_vector(vectors.data(), count(), beliefs.data() + at, states).index] = 1;
        std::size_t kept = 0;
        for (std::size_t k = 0; k < count(); ++k) {
            if (!used[k]) continue;
            std::copy(vectors.begin() + static_cast<std::ptrdiff_t>(k * states),
                      vectors.begin() + static_cast<std::ptrdiff_t>((k + 1) * states),
                      vectors.begin() + static_cast<std::ptrdiff_t>(kept * states));
            actions[kept++] = actions[k];
        }
        vectors.resize(kept * states);
        actions.resize(kept);
    }
};

class BeliefSearch {
public:
    BeliefSearch(const BeliefProcess &m, LowerBound low, UpperBound high)
        : m_(m), low_(std::move(low)), high_(std::move(high)), fixed_(low_.count()), room_(m), value_(m.actions),
          vector_(m.states), next_(m.states), pruned_at_(low_.count()), thinned_at_(0) {}

    const LowerBound &low() const { return low_; }
    const UpperBound &high() const { return high_; }
    double gap(const double *b) const { return high_(b) - low_(b); }

    // One trial that wants the gap at b down to `width`; at most `depth` steps, `most` vectors or points.
    void trial(const double *b, double width, std::size_t depth) {
        const std::size_t n = m_.states;
        path_.assign(b, b + n);
        double wanted = width;
        for (std::size_t t = 0; t + 1 < depth; ++t) {
            if (gap(path_.data() + t * n) <= wanted) break;
            wanted /= std::max(m_.discount, 1e-300);
            if (!descend(path_.data() + t * n, wanted)) break;
            path_.insert(path_.end(), next_.begin(), next_.end());
        }
        for (std::size_t t = path_.size() / n; t-- > 0;) update(path_.data() + t * n);
        visited_.insert(visited_.end(), path_.begin(), path_.end());
        if (low_.count() > pruned_at_ + pruned_at_ / 4 + 32) {
            low_.prune(visited_, fixed_);
            pruned_at_ = low_.count();
        }
        if (high_.points.size() > thinned_at_ + thinned_at_ / 4 + 32) {
            high_.prune(room_.future);
            thinned_at_ = high_.points.size();
        }
        if (visited_.size() > 4096 * n)  // the latest beliefs tell best which vectors are needed
            visited_.erase(visited_.begin(), visited_.begin() + static_cast<std::ptrdiff_t>(2048 * n));
    }

private:
    // The belief after the action of the highest upper bound whose observation has the widest gap; false if none can
    // follow.
    bool descend(const double *b, double wanted) {
        const std::size_t n = m_.states;
        lookahead(m_, high_, b, value_.data(), room_);
        const auto a = static_cast<std::size_t>(std::max_element(value_.begin(), value_.end()) - value_.begin());
        m_.move(b, a, room_.moved.data());
        double widest = 0.0;
        for (std::size_t o = 0; o < m_.observations; ++o) {
            double mass = 0.0;
            for (std::size_t s = 0; s < n; ++s) mass += room_.part[s] = room_.moved[s] * m_.seen(a, s)[o];
            if (mass <= 0.0) continue;
            const double excess = high_(room_.part.data()) - low_(room_.part.data()) - mass * wanted;
            if (excess > widest) {
                widest = excess;
                for (std::size_t s = 0; s < n; ++s) next_[s] = room_.part[s] / mass;
            }
        }
        return widest > 0.0;
    }

    void update(const double *b) {
        const double before = low_(b);
        const Best found = backup(m_, low_.vectors.data(), low_.count(), b, vector_.data(), room_);
        if (found.value > before) low_.add(vector_.data(), found.index);
        lookahead(m_, high_, b, value_.data(), room_);
        high_.add(b, *std::max_element(value_.begin(), value_.end()));
    }

    const BeliefProcess m_;
    LowerBound low_;
    UpperBound high_;
    const std::size_t fixed_;
    BackupRoom room_;
    std::vector<double> value_, vector_, next_, path_, visited_;
    std::size_t pruned_at_, thinned_at_;
};

}  // namespace epicycle
