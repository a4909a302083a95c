// Medoids: k of n rows such that the sum of distances from the nearest is small, improved by single swaps.
//
// D(x, o) is the distance of row o from row x as a medoid. Swapping the medoid i for x changes the sum by
//     sum_o v_o (change of o if x is added)  +  sum_o v_o (what o loses if i goes, with x there),
// of which the second part is kept for every i at once: one look at all rows tells the best i for x (FasterPAM;
// E. Schubert and P. J. Rousseeuw, Information Systems 101, 2021). A swap is made as soon as it is found.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

// Whether any of 16 distances is below that to the second medoid: most blocks have none.
#define EPICYCLE_PER_TYPE(T)                                                                                 \
    EPICYCLE_CLONES inline std::size_t first_closer(const T *d, const double *second, std::size_t from,      \
                                                    std::size_t n) {                                         \
        for (; from + 16 <= n; from += 16) {                                                                 \
            unsigned any = 0;                                                                                \
            for (std::size_t l = 0; l < 16; ++l) any |= static_cast<double>(d[from + l]) < second[from + l]; \
            if (any) return from;                                                                            \
        }                                                                                                    \
        return from;                                                                                         \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

struct Swap {
    double change;
    std::size_t medoid;
};

struct SwapPass {
    std::size_t swaps = 0, last = 0;
    double value = 0.0, least = std::numeric_limits<double>::infinity();
};

template <class T>
class Medoids {
    const T *D;
    std::size_t n, k;
    const double *weight;
    std::int64_t *medoid;
    std::vector<std::int32_t> near, other;
    std::vector<double> first, second, loss;  // distances to the two nearest medoids; what the sum loses with each
    std::vector<char> chosen;

    double v(std::size_t o) const { return weight ? weight[o] : 1.0; }
    double d(std::size_t x, std::size_t o) const { return static_cast<double>(D[x * n + o]); }

public:
    double value = 0.0, rounding = 0.0;  // the sum, and what a change of it may be off by

    Medoids(const T *D, std::size_t n, std::size_t k, const double *weight, std::int64_t *medoid)
        : D(D), n(n), k(k), weight(weight), medoid(medoid), near(n), other(n), first(n), second(n), loss(k), chosen(n) {
        for (std::size_t i = 0; i < k; ++i) chosen[static_cast<std::size_t>(medoid[i])] = 1;
        for (std::size_t o = 0; o < n; ++o) look(o);
        sum();
    }

    bool is_medoid(std::size_t x) const { return chosen[x]; }

    // The medoid whose swap for x changes the sum by the least, and by how much; `delta` has room for k.
    Swap best_for(std::size_t x, double *delta) const {
        const T *dx = D + x * n;
        if (k == 1) {
            double change = 0.0;
            for (std::size_t o = 0; o < n; ++o) change += v(o) * (static_cast<double>(dx[o]) - first[o]);
            return {change, 0};
        }
        std::copy(loss.begin(), loss.end(), delta);
        double gain = 0.0;
        for (std::size_t from = 0; (from = first_closer(dx, second.data(), from, n)) < n;) {
            const std::size_t end = std::min(from + 16, n);
            for (; from < end; ++from) {
                const double at = static_cast<double>(dx[from]);
                if (at >= second[from]) continue;
                if (at < first[from]) {
                    gain += v(from) * (at - first[from]);
                    delta[near[from]] += v(from) * (first[from] - second[from]);
                } else {
                    delta[near[from]] += v(from) * (at - second[from]);
                }
            }
        }
        const std::size_t best = static_cast<std::size_t>(std::min_element(delta, delta + k) - delta);
        return {gain + delta[best], best};
    }

    void swap(std::size_t i, std::size_t x) {
        chosen[static_cast<std::size_t>(medoid[i])] = 0;
        chosen[x] = 1;
        medoid[i] = static_cast<std::int64_t>(x);
        const auto changed = static_cast<std::int32_t>(i);
        for (std::size_t o = 0; o < n; ++o) {
            const double at = d(x, o);
            if (near[o] == changed || other[o] == changed)
                look(o);
            else if (at < first[o])
                other[o] = near[o], second[o] = first[o], near[o] = changed, first[o] = at;
            else if (at < second[o])
                other[o] = changed, second[o] = at;
        }
        sum();
    }

private:
    // The two nearest medoids of a row.
    void look(std::size_t o) {
        first[o] = second[o] = std::numeric_limits<double>::infinity();
        near[o] = other[o] = 0;
        for (std::size_t i = 0; i < k; ++i) {
            const double at = d(static_cast<std::size_t>(medoid[i]), o);
            if (at < first[o])
                other[o] = near[o], second[o] = first[o], near[o] = static_cast<std::int32_t>(i), first[o] = at;
            else if (at < second[o])
                other[o] = static_cast<std::int32_t>(i), second[o] = at;
        }
    }
    void sum() {
        value = 0.0;
        std::fill(loss.begin(), loss.end(), 0.0);
        for (std::size_t o = 0; o < n; ++o) {
            value += v(o) * first[o];
            if (k > 1) loss[static_cast<std::size_t>(near[o])] += v(o) * (second[o] - first[o]);
        }
        rounding = value;
        for (const double part : loss) rounding += part;
        rounding *= 1e-15;
    }
};

// Looks at every row once as a new medoid, and swaps where that lowers the sum; ends early where all rows from `until`
// on are known to improve nothing and none did before. Several rows are looked at in advance by several threads; what
// they find before a swap is as if they had been looked at one after another.
template <class T>
SwapPass swap_pass(const T *D, std::size_t n, std::size_t k, const double *weight, std::int64_t *medoid,
                   std::size_t until, int threads) {
    Medoids<T> state(D, n, k, weight, medoid);
    SwapPass pass;
    const std::size_t most = threads > 1 ? 32 * static_cast<std::size_t>(threads) : 1;
    std::size_t ahead = 1;
    std::vector<Swap> found(most);
    std::vector<double> room(k * most);
    for (std::size_t x = 0; x < n && (pass.swaps > 0 || x < until);) {
        const std::size_t count = std::min(ahead, n - x);
#pragma omp parallel for schedule(static) num_threads(threads) if (count > 1)
        for (std::int64_t c = 0; c < static_cast<std::int64_t>(count); ++c) {
            const auto at = static_cast<std::size_t>(c);
            if (!state.is_medoid(x + at)) found[at] = state.best_for(x + at, room.data() + at * k);
        }
        std::size_t c = 0;
        bool swapped = false;
        for (; c < count && !swapped; ++c) {
            if (state.is_medoid(x + c)) continue;
            // A change within rounding is none: otherwise two equal sums could be swapped for ever.
            const double change = found[c].change;
            swapped = change < -1e-12 * state.value - state.rounding;
            if (!swapped) pass.least = std::min(pass.least, change < -state.rounding ? change : std::max(change, 0.0));
        }
        x += c;
        if (swapped) {
            state.swap(found[c - 1].medoid, x - 1);
            pass.swaps += 1;
            pass.last = x;
            pass.least = std::numeric_limits<double>::infinity();
            ahead = std::max<std::size_t>(1, ahead / 2);
        } else {
            ahead = std::min(most, 2 * ahead);
        }
    }
    pass.value = state.value;
    return pass;
}

// BUILD of Kaufman and Rousseeuw: every next medoid lowers the sum by the most; of equal ones the first.
template <class T>
void build_medoids(const T *D, std::size_t n, std::size_t k, const double *weight, std::int64_t *medoid, int threads) {
    std::vector<double> nearest(n, std::numeric_limits<double>::infinity()), sums(n);
    std::vector<char> chosen(n);
    for (std::size_t i = 0; i < k; ++i) {
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
        for (std::int64_t row = 0; row < static_cast<std::int64_t>(n); ++row) {
            const auto x = static_cast<std::size_t>(row);
            double sum = 0.0;
            for (std::size_t o = 0; o < n; ++o)
                sum += (weight ? weight[o] : 1.0) * std::min(nearest[o], static_cast<double>(D[x * n + o]));
            sums[x] = sum;
        }
        std::size_t best = n;
        for (std::size_t x = 0; x < n; ++x)
            if (!chosen[x] && (best == n || sums[x] < sums[best])) best = x;
        chosen[best] = 1;
        medoid[i] = static_cast<std::int64_t>(best);
        for (std::size_t o = 0; o < n; ++o) nearest[o] = std::min(nearest[o], static_cast<double>(D[best * n + o]));
    }
}

}  // namespace epicycle
