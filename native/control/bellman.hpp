// Bellman's operators of a finite Markov decision process. A pair is a state with one of its actions; the pairs of
// state s are first[s] to first[s + 1], a state without pairs is terminal and keeps its value. Row k of P holds the
// probabilities of the states that follow pair k; what is missing from one is the probability that the process ends.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "core/huge_pages.hpp"
#include "core/sparse.hpp"

namespace epicycle {

template <class I>
struct DecisionProcess {
    Csr<double, I> P;
    const double *reward;
    const std::int64_t *first;
    double discount;
    static constexpr std::size_t AHEAD = 80;  // entries, between asking for a value and its use

    std::size_t states() const { return P.cols; }

    // Whether the values fit into the caches next to a core. Where they do not, those of the rows to come are asked for
    // while these are added up.
    bool near() const { return states() <= std::size_t{1} << 16; }

    // R(k) + discount * sum_j P(k, j) v(j).
    double plain_backup(std::size_t k, const double *v) const {
        const auto begin = static_cast<std::size_t>(P.indptr[k]), end = static_cast<std::size_t>(P.indptr[k + 1]);
        double sum = 0.0;
        for (std::size_t e = begin; e < end; ++e) sum += P.data[e] * v[static_cast<std::size_t>(P.indices[e])];
        return reward[k] + discount * sum;
    }

    // The same, where the rows to come follow this one.
    double backup(std::size_t k, const double *v) const {
        if (near()) return plain_backup(k, v);
        const auto begin = static_cast<std::size_t>(P.indptr[k]), end = static_cast<std::size_t>(P.indptr[k + 1]);
        double sum = 0.0;
        const auto last = static_cast<std::size_t>(P.indptr[P.rows]) - 1;
        for (std::size_t e = begin; e < end; ++e) {
            __builtin_prefetch(v + static_cast<std::size_t>(P.indices[std::min(e + AHEAD, last)]));
            sum += P.data[e] * v[static_cast<std::size_t>(P.indices[e])];
        }
        return reward[k] + discount * sum;
    }

    // The best pair of state s, the first of equals, and its value.
    std::pair<std::int64_t, double> best(std::size_t s, const double *v) const {
        std::int64_t pair = first[s];
        double value = backup(static_cast<std::size_t>(pair), v);
        for (std::int64_t k = pair + 1; k < first[s + 1]; ++k) {
            const double other = backup(static_cast<std::size_t>(k), v);
            if (other > value) value = other, pair = k;
        }
        return {pair, value};
    }

    bool terminal(std::size_t s) const { return first[s] == first[s + 1]; }
};

// The least and the greatest change of a sweep.
struct Change {
    double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
    void take(double difference) {
        low = std::min(low, difference);
        high = std::max(high, difference);
    }
};

// Pairs that cannot be the best of their state for a while (temporary elimination, Hastings and van Nunen). If pair k
// is worse than the best one by g in some sweep, and the values then change by amounts in [low, high], it is worse by
// g - discount (high - low) at least in the next. So it is left out until the sum of these, `spent`, reaches `due`,
// which is what had been spent plus g. What is found is the same to the last bit: rounding is spent as well.
struct Elimination {
    std::vector<float> due;
    double spent = 0.0, rounding, reward = 0.0;
    bool ends;  // whether some values stay as they are, so that zero is one of the changes

    template <class I>
    Elimination(const DecisionProcess<I> &m, bool ends) : due(m.P.rows, 0.0f), ends(ends) {
        std::int64_t longest = 0;
        for (std::size_t k = 0; k < m.P.rows; ++k) {
            longest = std::max(longest, static_cast<std::int64_t>(m.P.indptr[k + 1] - m.P.indptr[k]));
            reward = std::max(reward, std::abs(m.reward[k]));
        }
        rounding = 8.0 * std::numeric_limits<double>::epsilon() * static_cast<double>(longest + 3);
    }

    bool out(std::size_t k) const { return static_cast<double>(due[k]) > spent; }
    void postpone(std::size_t k, double gap) {
        const double sum = spent + gap;
        due[k] = static_cast<float>(sum - 2e-7 * std::abs(sum));  // rounded down
    }
    // After a sweep that changed values of at most `size` by `step` times what is in [low, high].
    void spend(double low, double high, double size, double step) {
        if (ends) low = std::min(low, 0.0), high = std::max(high, 0.0);
        if (low <= high) spent += step * (high - low) + rounding * (reward + size);
    }
};

// out = v + relax (max_a (R + discount P v) - v), choice the pairs that attain the maximum, the first of equals;
// terminal states keep their value and choose -1. The change is that with relax = 1.
template <class I>
Change improve(const DecisionProcess<I> &m, const double *v, double *out, std::int64_t *choice, double relax,
               int threads, Elimination *elimination = nullptr) {
    constexpr std::size_t PIECE = 256;  // states whose pairs are listed before they are looked at
    const std::size_t n = m.states();
    const auto pieces = static_cast<std::ptrdiff_t>((n + PIECE - 1) / PIECE);
    double low = std::numeric_limits<double>::infinity(), high = -low, size = 0.0;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        std::vector<std::size_t> pairs;
        std::vector<double> q;
#pragma omp for schedule(static) reduction(min : low) reduction(max : high, size)
        for (std::ptrdiff_t piece = 0; piece < pieces; ++piece) {
            const std::size_t begin = static_cast<std::size_t>(piece) * PIECE, end = std::min(begin + PIECE, n);
            const auto all = static_cast<std::size_t>(m.first[begin]), stop = static_cast<std::size_t>(m.first[end]);
            pairs.resize(stop - all);
            q.resize(stop - all);
            std::size_t count = 0;
            for (std::size_t k = all; k < stop; ++k) {
                pairs[count] = k;
                count += elimination == nullptr || !elimination->out(k);
            }
            // Asking for values ahead pays where rows follow each other: of scattered ones the indices are not there
            // yet.
            const bool ahead = 4 * count > 3 * (stop - all);
            for (std::size_t i = 0; i < count; ++i) q[i] = ahead ? m.backup(pairs[i], v) : m.plain_backup(pairs[i], v);
            std::size_t i = 0;
            for (std::size_t s = begin; s < end; ++s) {
                if (m.terminal(s)) {
                    out[s] = v[s];
                    choice[s] = -1;
                    continue;
                }
                const std::size_t from = i, to = static_cast<std::size_t>(m.first[s + 1]);
                std::size_t best = i;
                for (; i < count && pairs[i] < to; ++i) best = q[i] > q[best] ? i : best;
                if (elimination != nullptr)
                    for (std::size_t j = from; j < i; ++j) elimination->postpone(pairs[j], q[best] - q[j]);
                const double value = q[best];
                choice[s] = static_cast<std::int64_t>(pairs[best]);
                out[s] = relax == 1.0 ? value : v[s] + relax * (value - v[s]);
                low = std::min(low, value - v[s]);
                high = std::max(high, value - v[s]);
                size = std::max(size, std::abs(value));
            }
        }
    }
    if (elimination != nullptr) elimination->spend(low, high, size, m.discount * relax);
    return {low, high};
}

// The same in place, state after state: later states see the new values of earlier ones.
template <class I>
Change improve_in_place(const DecisionProcess<I> &m, double *v, std::int64_t *choice) {
    Change change;
    for (std::size_t s = 0; s < m.states(); ++s) {
        choice[s] = -1;
        if (m.terminal(s)) continue;
        const auto [pair, value] = m.best(s, v);
        choice[s] = pair;
        change.take(value - v[s]);
        v[s] = value;
    }
    return change;
}

// The chain of one policy, its rows next to each other: sweeps over it read memory in order, which those over chosen
// rows of P do not. State s is pair s; a terminal one has an empty row and a reward that is its value.
template <class I>
struct Chain {
    HugeVector<I> indptr, indices;
    HugeVector<double> data, reward;

    Chain(const DecisionProcess<I> &m, const std::int64_t *choice, const double *v, int threads)
        : indptr(m.states() + 1), reward(m.states()) {
        const std::size_t n = m.states();
        for (std::size_t s = 0; s < n; ++s) {
            const auto k = static_cast<std::size_t>(choice[s]);
            indptr[s + 1] = choice[s] < 0 ? indptr[s] : indptr[s] + (m.P.indptr[k + 1] - m.P.indptr[k]);
        }
        indices.resize(static_cast<std::size_t>(indptr[n]));
        data.resize(indices.size());
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(n); ++i) {
            const auto s = static_cast<std::size_t>(i);
            reward[s] = choice[s] < 0 ? v[s] : m.reward[choice[s]];
            if (choice[s] < 0) continue;
            const auto from = static_cast<std::size_t>(m.P.indptr[choice[s]]);
            const auto size = static_cast<std::size_t>(indptr[s + 1] - indptr[s]);
            std::copy_n(m.P.indices + from, size, indices.begin() + indptr[s]);
            std::copy_n(m.P.data + from, size, data.begin() + indptr[s]);
        }
    }

    DecisionProcess<I> process(const DecisionProcess<I> &m) const {
        const std::size_t n = m.states();
        return {{data.data(), indices.data(), indptr.data(), n, n}, reward.data(), m.first, m.discount};
    }
};

// At most `sweeps` applications of the operator of one policy, v = R + discount P v over the chosen pairs, until the
// span of the change is at most `stop`, with zero in it if the process `ends` somewhere. The change is that of the last
// sweep.
template <class I, class Poll>
Change evaluate(const DecisionProcess<I> &m, const std::int64_t *choice, double *v, std::size_t sweeps, double stop,
                bool ends, int threads, Poll poll) {
    const auto n = static_cast<std::ptrdiff_t>(m.states());
    const Chain<I> chain(m, choice, v, threads);
    const DecisionProcess<I> policy = chain.process(m);
    HugeVector<double> other(m.states());
    const double least = ends ? 0.0 : std::numeric_limits<double>::infinity();
    double low = 0.0, high = 0.0;
    double *from = v, *to = other.data();
    for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
        low = least, high = -least;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : low) \
    reduction(max : high) if (threads > 1)
        for (std::ptrdiff_t s = 0; s < n; ++s) {
            to[s] = policy.backup(static_cast<std::size_t>(s), from);
            if (choice[s] < 0) continue;
            low = std::min(low, to[s] - from[s]);
            high = std::max(high, to[s] - from[s]);
        }
        std::swap(from, to);
        if (high - low <= stop) break;
        poll();
    }
    if (from != v) std::copy(from, from + n, v);
    return {low, high};
}

// Prioritised sweeping: the state whose value is furthest from its backup comes first, and passes its change on to the
// states that lead to it. `leads` lists, for every state, the pairs that can be followed by it, and `owner` the state
// of a pair. Ends when no known difference exceeds `tolerance` or after `limit` backups; returns the number of backups.
template <class I, class Poll>
std::size_t sweep_by_priority(const DecisionProcess<I> &m, const Csr<double, I> &leads, const std::int64_t *owner,
                              double *v, double tolerance, std::size_t limit, Poll poll) {
    const std::size_t n = m.states();
    std::vector<double> priority(n, 0.0);
    using Entry = std::pair<double, std::size_t>;
    const auto later = [](const Entry &a, const Entry &b) {
        return a.first < b.first || (a.first == b.first && a.second > b.second);  // equal: the first state
    };
    std::priority_queue<Entry, std::vector<Entry>, decltype(later)> queue(later);
    const auto difference = [&](std::size_t s) { return std::abs(m.best(s, v).second - v[s]); };
    for (std::size_t s = 0; s < n; ++s) {
        if (m.terminal(s)) continue;
        priority[s] = difference(s);
        if (priority[s] > tolerance) queue.push({priority[s], s});
    }
    std::size_t backups = 0;
    while (!queue.empty() && backups < limit) {
        const auto [known, s] = queue.top();
        queue.pop();
        if (known != priority[s]) continue;  // an entry that a later one replaced
        const double value = m.best(s, v).second, change = std::abs(value - v[s]);
        v[s] = value;
        priority[s] = 0.0;
        if (++backups % 1024 == 0) poll();
        const auto end = static_cast<std::size_t>(leads.indptr[s + 1]);
        for (auto e = static_cast<std::size_t>(leads.indptr[s]); e < end; ++e) {
            const auto from = static_cast<std::size_t>(owner[static_cast<std::size_t>(leads.indices[e])]);
            const double now = m.discount * leads.data[e] * change;  // at most so much more than what was known
            if (now == 0.0) continue;
            const double sum = priority[from] + now;
            if (sum > tolerance) queue.push({sum, from});
            priority[from] = sum;
        }
    }
    return backups;
}

}  // namespace epicycle
