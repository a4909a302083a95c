// Sets of vectors whose maximum over the simplex of beliefs is a value function: which of them are needed is decided by
// linear programs, and incremental pruning makes the next set out of one.
#pragma once

#include <numeric>

#include "control/belief.hpp"

namespace epicycle {

// max over beliefs b of min_i b'(x - y_i), the value of a matrix game. Shifted to be positive it is 1 / sum z of
//     max sum z   subject to   sum_i (x - y_i + shift)(s) z_i <= 1 for all s,  z >= 0,
// whose slack basis is feasible; the prices of the constraints are b. A tableau of S rows suffices for any number of y.
class BeliefGame {
public:
    explicit BeliefGame(std::size_t states) : n_(states), b_(states) {}

    const std::vector<double> &belief() const { return b_; }

    // Margin at the best belief found; it is attained there whatever rounding did to the tableau.
    double solve(const double *x, const std::vector<const double *> &others) {
        const std::size_t m = others.size(), width = m + n_ + 1;
        double low = std::numeric_limits<double>::infinity(), high = -low;
        for (const double *y : others)
            for (std::size_t s = 0; s < n_; ++s) {
                low = std::min(low, x[s] - y[s]);
                high = std::max(high, x[s] - y[s]);
            }
        const double size = std::max(high - low, std::max(std::abs(low), std::abs(high)));
        const double scale = size > 0.0 ? 1.0 / size : 1.0, shift = 1.0 - low * scale;
        table_.assign((n_ + 1) * width, 0.0);
        for (std::size_t s = 0; s < n_; ++s) {
            double *row = table_.data() + s * width;
            for (std::size_t i = 0; i < m; ++i) row[i] = (x[s] - others[i][s]) * scale + shift;
            row[m + s] = 1.0;
            row[width - 1] = 1.0;
        }
        double *cost = table_.data() + n_ * width;
        std::fill(cost, cost + m, -1.0);
        pivots(m, width);
        double total = 0.0;
        for (std::size_t s = 0; s < n_; ++s) total += b_[s] = std::max(cost[m + s], 0.0);
        for (double &weight : b_) weight = total > 0.0 ? weight / total : 1.0 / static_cast<double>(n_);
        double margin = std::numeric_limits<double>::infinity();
        const double own = inner(x, b_.data(), n_);
        for (const double *y : others) margin = std::min(margin, own - inner(y, b_.data(), n_));
        return margin;
    }

private:
    void pivots(std::size_t m, std::size_t width) {
        double *cost = table_.data() + n_ * width;
        const std::size_t most = 50 * (n_ + m) + 100, careful = 10 * n_ + 50;
        for (std::size_t step = 0; step < most; ++step) {
            std::size_t enter = width;
            double steepest = -1e-12;
            for (std::size_t j = 0; j + 1 < width; ++j)
                if (cost[j] < steepest) {
                    enter = j;
                    if (step > careful) break;  // Bland's rule cannot cycle
                    steepest = cost[j];
                }
            if (enter == width) return;
            std::size_t leave = n_;
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t r = 0; r < n_; ++r) {
                const double entry = table_[r * width + enter];
                if (entry <= 1e-12) continue;
                const double ratio = table_[r * width + width - 1] / entry;
                if (ratio < least) least = ratio, leave = r;
            }
            if (leave == n_) return;
            double *row = table_.data() + leave * width;
            const double pivot = row[enter];
            for (std::size_t j = 0; j < width; ++j) row[j] /= pivot;
            for (std::size_t r = 0; r <= n_; ++r) {
                double *other = table_.data() + r * width;
                const double factor = other[enter];
                if (r == leave || factor == 0.0) continue;
                for (std::size_t j = 0; j < width; ++j) other[j] -= factor * row[j];
            }
        }
    }

    const std::size_t n_;
    std::vector<double> table_, b_;
};

// Vectors with a tag each.
struct VectorSet {
    std::size_t states;
    std::vector<double> data;
    std::vector<std::int64_t> tag;

    std::size_t size() const { return tag.size(); }
    const double *operator[](std::size_t k) const { return data.data() + k * states; }
    void add(const double *x, std::int64_t t) {
        data.insert(data.end(), x, x + states);
        tag.push_back(t);
    }
};

// The vectors that are best somewhere by more than `tolerance` (Lark's filter): the maximum of those that are kept is
// nowhere lower than that of all by more than it.
template <class Poll>
VectorSet pruned(const VectorSet &given, double tolerance, Poll poll) {
    const std::size_t n = given.states;
    std::vector<std::size_t> open(given.size());
    std::iota(open.begin(), open.end(), std::size_t{0});
    VectorSet kept{n, {}, {}};
    if (open.empty()) return kept;
    const auto better = [&](std::size_t i, std::size_t j) {  // of equals at a belief, the lexicographically larger
        return std::lexicographical_compare(given[j], given[j] + n, given[i], given[i] + n);
    };
    std::vector<const double *> rows;
    const auto take = [&](const double *b) {
        std::size_t at = 0;
        double value = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 0; i < open.size(); ++i) {
            const double own = inner(given[open[i]], b, n);
            if (own > value || (own == value && better(open[i], open[at]))) value = own, at = i;
        }
        rows.push_back(given[open[at]]);
        kept.add(given[open[at]], given.tag[open[at]]);
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(at));
    };
    std::vector<double> corner(n);
    for (std::size_t s = 0; s < n && !open.empty(); ++s) {  // cheap witnesses first
        std::fill(corner.begin(), corner.end(), 0.0);
        corner[s] = 1.0;
        double have = -std::numeric_limits<double>::infinity(), best = have;
        for (const double *row : rows) have = std::max(have, row[s]);
        for (const std::size_t i : open) best = std::max(best, given[i][s]);
        if (best > have + tolerance || rows.empty()) take(corner.data());
    }
    BeliefGame game(n);
    while (!open.empty()) {
        poll();
        const double *x = given[open.back()];
        bool dominated = false;
        for (const double *row : rows) {
            dominated = true;
            for (std::size_t s = 0; s < n && dominated; ++s) dominated = x[s] <= row[s] + tolerance;
            if (dominated) break;
        }
        if (dominated || game.solve(x, rows) <= tolerance)
            open.pop_back();
        else
            take(game.belief().data());
    }
    return kept;
}

// max over beliefs of max_k x_k'b - max_i y_i'b, the most by which one value function exceeds another.
template <class Poll>
double largest_excess(const VectorSet &x, const VectorSet &y, Poll poll) {
    std::vector<const double *> rows(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) rows[i] = y[i];
    BeliefGame game(x.states);
    double most = -std::numeric_limits<double>::infinity();
    for (std::size_t k = 0; k < x.size(); ++k) {
        most = std::max(most, game.solve(x[k], rows));
        poll();
    }
    return most;
}

// The next value function, exact but for `tolerance` at each pruning: vectors of every action and observation, sums
// over observations pruned one by one, and the union over actions; tags are actions. Empty when more than `most`
// vectors would be needed at some point.
template <class Poll>
VectorSet incremental_pruning(const BeliefProcess &m, const VectorSet &values, double tolerance, std::size_t most,
                              Poll poll) {
    const std::size_t n = m.states;
    VectorSet all{n, {}, {}};
    std::vector<double> g(n), x(n);
    for (std::size_t a = 0; a < m.actions; ++a) {
        VectorSet sum{n, {}, {}};
        for (std::size_t o = 0; o < m.observations; ++o) {
            VectorSet part{n, {}, {}};
            for (std::size_t k = 0; k < values.size(); ++k) {
                for (std::size_t s = 0; s < n; ++s) g[s] = m.seen(a, s)[o] * values[k][s];
                m.back(a, g.data(), x.data());
                for (std::size_t s = 0; s < n; ++s) x[s] -= m.reward[a * n + s];
                part.add(x.data(), 0);
            }
            part = pruned(part, tolerance, poll);
            if (o == 0) {
                sum = std::move(part);
                continue;
            }
            if (sum.size() * part.size() > most) return {n, {}, {}};
            VectorSet cross{n, {}, {}};
            for (std::size_t i = 0; i < sum.size(); ++i)
                for (std::size_t j = 0; j < part.size(); ++j) {
                    for (std::size_t s = 0; s < n; ++s) x[s] = sum[i][s] + part[j][s];
                    cross.add(x.data(), 0);
                }
            sum = pruned(cross, tolerance, poll);
        }
        for (std::size_t k = 0; k < sum.size(); ++k) {
            for (std::size_t s = 0; s < n; ++s) x[s] = sum[k][s] + m.reward[a * n + s];
            all.add(x.data(), static_cast<std::int64_t>(a));
        }
    }
    return pruned(all, tolerance, poll);
}

}  // namespace epicycle
