// The k nearest rows, exactly: candidates by inner products (in float32 where that is enough), distances in double.
//
// With c_j = |b_j|^2 / 2 the rows b_j nearest to a are those of the least score s_j = c_j - a'b_j. Scores come from a
// product of matrices and carry an error of at most `slack`: a row is among the k nearest only if its score is within
// 2 slack of the k-th least. What passes is kept in a short list for each query; its distances are computed again from
// the differences, in double, and ties go to the row that comes first.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "core/simd.hpp"
#include "core/sparse.hpp"
#include "spatial/metric.hpp"

namespace epicycle {

// sum |a - b|^q, or the largest difference, or 1 - cos, without the last root.
template <class T>
struct DenseDistances {
    const T *A, *B;
    std::size_t p;
    Metric metric;
    double power;

    double operator()(std::size_t i, std::size_t j) const {
        const T *a = A + i * p, *b = B + j * p;
        double sum = 0.0, aa = 0.0, bb = 0.0;
        switch (metric) {
            case Metric::euclidean:
                for (std::size_t k = 0; k < p; ++k) {
                    const double d = static_cast<double>(a[k]) - static_cast<double>(b[k]);
                    sum += d * d;
                }
                return sum;
            case Metric::manhattan:
                for (std::size_t k = 0; k < p; ++k)
                    sum += std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k]));
                return sum;
            case Metric::chebyshev:
                for (std::size_t k = 0; k < p; ++k)
                    sum = std::max(sum, std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k])));
                return sum;
            case Metric::minkowski:
                for (std::size_t k = 0; k < p; ++k)
                    sum += std::pow(std::abs(static_cast<double>(a[k]) - static_cast<double>(b[k])), power);
                return sum;
            case Metric::cosine:  // rows are of length one, or zero
                for (std::size_t k = 0; k < p; ++k) {
                    const double x = static_cast<double>(a[k]), y = static_cast<double>(b[k]);
                    sum += (x - y) * (x - y);
                    aa += x * x;
                    bb += y * y;
                }
                return aa > 0.0 && bb > 0.0 ? 0.5 * sum : 1.0;
            case Metric::given:
                break;
        }
        return 0.0;
    }
};

// The same for CSR rows with ascending columns.
template <class T, class I>
struct SparseDistances {
    Csr<T, I> A, B;
    Metric metric;
    double power;

    double operator()(std::size_t i, std::size_t j) const {
        I a = A.indptr[i], b = B.indptr[j];
        const I a_end = A.indptr[i + 1], b_end = B.indptr[j + 1];
        double sum = 0.0, aa = 0.0, bb = 0.0;
        while (a < a_end || b < b_end) {
            const bool left = a < a_end && (b == b_end || A.indices[a] <= B.indices[b]);
            const bool right = b < b_end && (a == a_end || B.indices[b] <= A.indices[a]);
            const double x = left ? static_cast<double>(A.data[a++]) : 0.0;
            const double y = right ? static_cast<double>(B.data[b++]) : 0.0;
            const double d = std::abs(x - y);
            switch (metric) {
                case Metric::manhattan:
                    sum += d;
                    break;
                case Metric::chebyshev:
                    sum = std::max(sum, d);
                    break;
                case Metric::minkowski:
                    sum += std::pow(d, power);
                    break;
                default:
                    sum += d * d;
                    aa += x * x;
                    bb += y * y;
            }
        }
        if (metric != Metric::cosine) return sum;
        return aa > 0.0 && bb > 0.0 ? 0.5 * sum : 1.0;
    }
};

// Distances that a block holds already.
struct GivenDistances {
    double operator()(std::size_t, std::size_t) const { return 0.0; }
};

template <class T>
EPICYCLE_INLINE std::size_t next_below_body(const T *G, const T *c, std::size_t from, std::size_t m, T limit) {
    constexpr std::size_t STEP = 64;
    std::size_t j = from;
    for (; j + STEP <= m; j += STEP) {
        int hits = 0;
        if (c)
            for (std::size_t k = 0; k < STEP; ++k) hits |= c[j + k] - G[j + k] <= limit;
        else
            for (std::size_t k = 0; k < STEP; ++k) hits |= G[j + k] <= limit;
        if (hits) break;
    }
    for (; j < m; ++j)
        if ((c ? c[j] - G[j] : G[j]) <= limit) return j;
    return m;
}

EPICYCLE_CLONES inline std::size_t next_below(const float *G, const float *c, std::size_t from, std::size_t m,
                                              float limit) {
    return next_below_body(G, c, from, m, limit);
}
EPICYCLE_CLONES inline std::size_t next_below(const double *G, const double *c, std::size_t from, std::size_t m,
                                              double limit) {
    return next_below_body(G, c, from, m, limit);
}

// The short list of one query: `room` places for scores and rows.
struct NeighborCandidates {
    double *score;
    std::int64_t *row;
    std::int64_t &count;
    double &limit;  // scores above this are out
    std::size_t room, k;

    // Keeps what is within 2 slack of the k-th score. Returns whether half of the room is free again.
    bool prune(double slack, std::vector<double> &work) {
        const auto n = static_cast<std::size_t>(count);
        work.assign(score, score + n);
        std::nth_element(work.begin(), work.begin() + static_cast<std::ptrdiff_t>(k - 1), work.end());
        limit = std::min(limit, work[k - 1] + 2.0 * slack);
        std::size_t kept = 0;
        for (std::size_t i = 0; i < n; ++i)
            if (score[i] <= limit) {
                score[kept] = score[i];
                row[kept++] = row[i];
            }
        count = static_cast<std::int64_t>(kept);
        return kept <= (room + k) / 2;
    }

    // Keeps the k nearest by exact distances, which are `base` + scale times their scores.
    template <class Exact>
    void settle(const Exact &exact, std::size_t query, double base, double scale, double slack,
                std::vector<std::pair<double, std::int64_t>> &work) {
        nearest(exact, query, work);
        for (std::size_t i = 0; i < work.size(); ++i) {
            score[i] = (work[i].first - base) / scale;
            row[i] = work[i].second;
        }
        count = static_cast<std::int64_t>(work.size());
        // The exact distance becomes a score again with an error of its own, well below the slack.
        limit = std::min(limit, score[k - 1] + 2.0 * slack);
    }

    // The k nearest by (distance, row), in that order.
    template <class Exact>
    void nearest(const Exact &exact, std::size_t query, std::vector<std::pair<double, std::int64_t>> &work) const {
        const auto n = static_cast<std::size_t>(count);
        work.clear();
        for (std::size_t i = 0; i < n; ++i) {
            double d = score[i];
            if constexpr (!std::is_same_v<Exact, GivenDistances>) d = exact(query, static_cast<std::size_t>(row[i]));
            work.emplace_back(d, row[i]);
        }
        const auto last = work.begin() + static_cast<std::ptrdiff_t>(std::min(k, n));
        std::partial_sort(work.begin(), last, work.end());
        work.erase(last, work.end());
    }
};

// Takes in a block of scores of queries 0 .. n-1 against rows first .. first+m-1. With c the scores are c - G.
// base, slack: for every query |a|^2 (the distance is base + 2 score) and the bound on the error of its scores.
template <class T, class Exact>
void take_in(const T *G, const T *c, std::size_t n, std::size_t m, std::size_t first, const Exact &exact,
             const double *base, const double *slack, double scale, std::size_t k, std::size_t room, double *score,
             std::int64_t *row, std::int64_t *count, double *limit) {
    std::vector<double> work;
    std::vector<std::pair<double, std::int64_t>> pairs;
    for (std::size_t i = 0; i < n; ++i) {
        NeighborCandidates list{score + i * room, row + i * room, count[i], limit[i], room, k};
        const T *g = G + i * m;
        const auto upwards = [](double x) {
            const T t = static_cast<T>(x);
            return static_cast<double>(t) < x ? std::nextafter(t, std::numeric_limits<T>::infinity()) : t;
        };
        for (std::size_t j = next_below(g, c, 0, m, upwards(list.limit)); j < m;
             j = next_below(g, c, j + 1, m, upwards(list.limit))) {
            const double s = static_cast<double>(c ? c[j] - g[j] : g[j]);
            list.score[list.count] = s;
            list.row[list.count++] = static_cast<std::int64_t>(first + j);
            if (static_cast<std::size_t>(list.count) == room && !list.prune(slack[i], work))
                list.settle(exact, i, base[i], scale, slack[i], pairs);
        }
    }
}

}  // namespace epicycle
