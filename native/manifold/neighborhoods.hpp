// How well the neighbourhoods of rows agree in two tables, from the distances of some rows to all in both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

#include "core/simd.hpp"

namespace epicycle::neighborhoods {

// Order of rows seen from another: by distance, then by number.
struct Nearer {
    const double *d;
    bool operator()(std::int64_t a, std::int64_t b) const { return d[a] < d[b] || (d[a] == d[b] && a < b); }
};

// The k rows nearest to row `self`, without it, nearest first.
inline void nearest(const double *d, std::size_t n, std::size_t self, std::size_t k, std::vector<std::int64_t> &found) {
    const Nearer nearer{d};
    found.clear();
    for (std::size_t j = 0; j < n; ++j) {  // a heap with the farthest of the k on top
        if (j == self) continue;
        const auto row = static_cast<std::int64_t>(j);
        if (found.size() < k) {
            found.push_back(row);
            std::push_heap(found.begin(), found.end(), nearer);
        } else if (nearer(row, found.front())) {
            std::pop_heap(found.begin(), found.end(), nearer);
            found.back() = row;
            std::push_heap(found.begin(), found.end(), nearer);
        }
    }
    std::sort_heap(found.begin(), found.end(), nearer);
}

// How many of d[0], ..., d[n - 1] are below t, those equal to it among them with `ties`.
EPICYCLE_CLONES inline std::int64_t count_below(const double *d, std::size_t n, double t, bool ties) {
    std::int64_t count = 0;
    if (ties)
        for (std::size_t j = 0; j < n; ++j) count += d[j] <= t;
    else
        for (std::size_t j = 0; j < n; ++j) count += d[j] < t;
    return count;
}

// sum of max(0, rank - k) over rows that are neighbours in another table, with ranks 1, 2, ... by these distances: a
// pass over all distances for each of a few rows, one with a search among the rows for many.
inline std::int64_t excess(const double *d, std::size_t n, std::size_t self, std::size_t k,
                           std::vector<std::int64_t> &rows, std::vector<std::int64_t> &count) {
    constexpr std::size_t FEW = 24;
    const Nearer nearer{d};
    const auto beyond = [k](std::int64_t before) {
        return std::max<std::int64_t>(0, before + 1 - static_cast<std::int64_t>(k));
    };
    std::int64_t before = 0, sum = 0;
    if (rows.size() <= FEW) {
        for (const std::int64_t row : rows) {
            const auto at = static_cast<std::size_t>(row);
            before = count_below(d, at, d[at], true) + count_below(d + at + 1, n - at - 1, d[at], false);
            sum += beyond(before - static_cast<std::int64_t>(nearer(static_cast<std::int64_t>(self), row)));
        }
        return sum;
    }
    std::sort(rows.begin(), rows.end(), nearer);
    count.assign(rows.size() + 1, 0);
    const auto farthest = rows.back();
    for (std::size_t j = 0; j < n; ++j) {
        const auto row = static_cast<std::int64_t>(j);
        if (j == self || !nearer(row, farthest)) continue;
        const auto at = std::upper_bound(rows.begin(), rows.end(), row, nearer) - rows.begin();
        ++count[static_cast<std::size_t>(at)];  // lies before rows[at]
    }
    for (std::size_t r = 0; r < rows.size(); ++r) {
        before += count[r];
        sum += beyond(before);
    }
    return sum;
}

// For every query (a row of A and B): excess of the ranks in A of its k neighbours in B, the same the other way round,
// and the number of neighbours that are the same. A and B are (m, n); result is (m, 3).
inline void compare(const double *A, const double *B, std::size_t m, std::size_t n, const std::int64_t *query,
                    std::size_t k, int threads, std::int64_t *result) {
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        std::vector<std::int64_t> in_a, in_b, both, count;
#pragma omp for schedule(static)
        for (std::int64_t s = 0; s < static_cast<std::int64_t>(m); ++s) {
            const auto i = static_cast<std::size_t>(s);
            const auto self = static_cast<std::size_t>(query[i]);
            nearest(A + i * n, n, self, k, in_a);
            nearest(B + i * n, n, self, k, in_b);
            result[3 * i] = excess(A + i * n, n, self, k, in_b, count);
            result[3 * i + 1] = excess(B + i * n, n, self, k, in_a, count);
            std::sort(in_a.begin(), in_a.end());
            std::sort(in_b.begin(), in_b.end());
            both.clear();
            std::set_intersection(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), std::back_inserter(both));
            result[3 * i + 2] = static_cast<std::int64_t>(both.size());
        }
    }
}

}  // namespace epicycle::neighborhoods
