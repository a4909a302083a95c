// Statistics of the rows of each class, and the scores of the classes that they lead to: naive Bayes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <vector>

#include "core/dense.hpp"
#include "core/rows.hpp"
#include "core/simd.hpp"
#include "core/sparse.hpp"

namespace epicycle {

// The rows of every class in their order: class k has order[first[k]], ..., order[first[k + 1] - 1].
struct RowsByClass {
    std::vector<std::size_t> first;
    std::vector<std::int64_t> order;

    RowsByClass(const std::int64_t *code, std::size_t n, std::size_t K) : first(K + 1), order(n) {
        for (std::size_t i = 0; i < n; ++i) ++first[static_cast<std::size_t>(code[i]) + 1];
        for (std::size_t k = 0; k < K; ++k) first[k + 1] += first[k];
        std::vector<std::size_t> next(first.begin(), first.end() - 1);
        for (std::size_t i = 0; i < n; ++i)
            order[next[static_cast<std::size_t>(code[i])]++] = static_cast<std::int64_t>(i);
    }
};

// sums[k] = sum_{i in class k} w_i x_i. The rows of a class are visited together, so that what is written to (one row
// of sums) stays in the cache however many columns and classes there are. Every class is cut into the same pieces
// whatever the number of threads, and pieces are added in order: the bits do not depend on it.
template <class Rows>
void class_sums(const Rows &prototype, const RowsByClass &rows, const double *weight, std::size_t K, int threads,
                double *sums) {
    const std::size_t p = prototype.cols(), pieces = std::max<std::size_t>(1, 8 / K);
    std::vector<double> extra(K * (pieces - 1) * p);
    const auto tasks = static_cast<std::int64_t>(K * pieces);
    std::exception_ptr failure;  // an exception must not leave a parallel region
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Rows reader = prototype;
#pragma omp for schedule(dynamic)
        for (std::int64_t t = 0; t < tasks; ++t) {
            const std::size_t k = static_cast<std::size_t>(t) / pieces, part = static_cast<std::size_t>(t) % pieces;
            double *out = part == 0 ? sums + k * p : extra.data() + (k * (pieces - 1) + part - 1) * p;
            const std::size_t n = rows.first[k + 1] - rows.first[k];
            const std::size_t from = rows.first[k] + n * part / pieces, to = rows.first[k] + n * (part + 1) / pieces;
            try {
                for (std::size_t a = from; a < to; ++a) {
                    reader.prefetch(rows.order.data(), a, to);
                    const auto i = static_cast<std::size_t>(rows.order[a]);
                    reader.select(i);
                    reader.add(weight ? weight[i] : 1.0, out);
                }
            } catch (...) {
#pragma omp critical
                failure = std::current_exception();
            }
        }
    }
    if (failure) std::rethrow_exception(failure);
    for (std::size_t k = 0; k < K; ++k)
        for (std::size_t part = 1; part < pieces; ++part) {
            const double *more = extra.data() + (k * (pieces - 1) + part - 1) * p;
            for (std::size_t j = 0; j < p; ++j) sums[k * p + j] += more[j];
        }
}

// Entries that are NaN are missing: they add nothing, neither to the sums nor to the weights.
#define EPICYCLE_PER_TYPE(T)                                                                                           \
    EPICYCLE_CLONES inline void add_present(const T *x, double w, double *weight, double *sum, std::size_t p) {        \
        for (std::size_t j = 0; j < p; ++j) {                                                                          \
            const double v = static_cast<double>(x[j]);                                                                \
            const bool present = v == v;                                                                               \
            weight[j] += present ? w : 0.0;                                                                            \
            sum[j] += present ? w * v : 0.0;                                                                           \
        }                                                                                                              \
    }                                                                                                                  \
    EPICYCLE_CLONES inline void add_squares(const T *x, double w, const double *mean, double *square, std::size_t p) { \
        for (std::size_t j = 0; j < p; ++j) {                                                                          \
            const double d = static_cast<double>(x[j]) - mean[j];                                                      \
            square[j] += d == d ? w * d * d : 0.0;                                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    /* sum_j (x_j - m_j)^2 q_j + l_j over the entries that are there, with 8 fixed partial sums */                     \
    EPICYCLE_CLONES inline double normal_distance(const T *x, const double *m, const double *q, const double *l,       \
                                                  std::size_t p) {                                                     \
        constexpr std::size_t W = 8;                                                                                   \
        double part[W] = {};                                                                                           \
        std::size_t j = 0;                                                                                             \
        for (; j + W <= p; j += W)                                                                                     \
            for (std::size_t c = 0; c < W; ++c) {                                                                      \
                const double d = static_cast<double>(x[j + c]) - m[j + c];                                             \
                part[c] += d == d ? d * d * q[j + c] + l[j + c] : 0.0;                                                 \
            }                                                                                                          \
        for (; j < p; ++j) {                                                                                           \
            const double d = static_cast<double>(x[j]) - m[j];                                                         \
            part[0] += d == d ? d * d * q[j] + l[j] : 0.0;                                                             \
        }                                                                                                              \
        return ((part[0] + part[1]) + (part[2] + part[3])) + ((part[4] + part[5]) + (part[6] + part[7]));              \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

// Weight, mean and sum of squares about the mean of every column in every class; all (K, p), zero on entry. Two passes:
// sums of squares about a point far from the mean would lose their digits.
template <class T>
void class_moments(const Dense<T> &X, const std::int64_t *code, const double *row_weight, std::size_t K, double *weight,
                   double *mean, double *square) {
    const std::size_t p = X.cols;
    DenseRowReader<T> rows(X);
    for (std::size_t i = 0; i < X.rows; ++i) {
        rows.select(i);
        const std::size_t at = static_cast<std::size_t>(code[i]) * p;
        add_present(rows.x, row_weight ? row_weight[i] : 1.0, weight + at, mean + at, p);
    }
    for (std::size_t a = 0; a < K * p; ++a) mean[a] = weight[a] > 0.0 ? mean[a] / weight[a] : 0.0;
    for (std::size_t i = 0; i < X.rows; ++i) {
        rows.select(i);
        const std::size_t at = static_cast<std::size_t>(code[i]) * p;
        add_squares(rows.x, row_weight ? row_weight[i] : 1.0, mean + at, square + at, p);
    }
}

// scores(i, k) = -1/2 sum_j (x_ij - m_kj)^2 q_kj + l_kj, without the entries that are missing.
template <class T>
void normal_scores(const Dense<T> &X, const double *mean, const double *precision, const double *log_norm,
                   std::size_t K, double *scores) {
    const std::size_t p = X.cols;
    DenseRowReader<T> rows(X);
    for (std::size_t i = 0; i < X.rows; ++i) {
        rows.select(i);
        for (std::size_t k = 0; k < K; ++k)
            scores[i * K + k] = -0.5 * normal_distance(rows.x, mean + k * p, precision + k * p, log_norm + k * p, p);
    }
}

}  // namespace epicycle
