// What the lasso asks of the columns of X, dense in any memory order or CSC, without ever copying or centring X:
// means, lengths about the mean, correlations with a residual. Row weights v sum to one (null: 1/n each).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/sparse.hpp"
#include "linear/coordinate_descent.hpp"

namespace epicycle {

// Mean (0 without an intercept), |x - mean|^2 and (x - mean)'V y of one column each.
struct ColumnStatistics {
    double *mean, *square, *product;
};

// Columns that are worked on together where rows are contiguous: their part of X stays in the second-level cache.
inline std::size_t block_columns(std::size_t rows, std::size_t itemsize) {
    return std::clamp<std::size_t>((std::size_t{1} << 19) / std::max<std::size_t>(rows * itemsize, 1), 32, 1024);
}

template <class T>
EPICYCLE_INLINE void add_row_body(const T *x, double u, const double *mean, double *sum, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) sum[j] += u * (static_cast<double>(x[j]) - mean[j]);
}
template <class T>
EPICYCLE_INLINE void add_row_squares_body(const T *x, double v, double u, const double *mean, double *square,
                                          double *product, std::size_t n) {
    for (std::size_t j = 0; j < n; ++j) {
        const double d = static_cast<double>(x[j]) - mean[j];
        square[j] += v * d * d;
        product[j] += u * d;
    }
}
// sum_i v_i (x_i - mean)^2 in eight fixed partial sums; v null: 1 each.
template <class T>
EPICYCLE_INLINE double centred_square_body(const T *x, double mean, const double *v, std::size_t n) {
    constexpr std::size_t K = 16;
    double part[K] = {}, rest = 0.0;
    std::size_t i = 0;
    if (v) {
        for (; i + K <= n; i += K)
            for (std::size_t k = 0; k < K; ++k) {
                const double d = static_cast<double>(x[i + k]) - mean;
                part[k] += v[i + k] * d * d;
            }
    } else {
        for (; i + K <= n; i += K)
            for (std::size_t k = 0; k < K; ++k) {
                const double d = static_cast<double>(x[i + k]) - mean;
                part[k] += d * d;
            }
    }
    for (; i < n; ++i) {
        const double d = static_cast<double>(x[i]) - mean;
        rest += (v ? v[i] : 1.0) * d * d;
    }
    for (std::size_t width = K / 2; width > 0; width /= 2)
        for (std::size_t k = 0; k < width; ++k) part[k] += part[k + width];
    return part[0] + rest;
}
#define EPICYCLE_PER_TYPE(T)                                                                                        \
    EPICYCLE_CLONES inline void add_row(const T *x, double u, const double *mean, double *sum, std::size_t n) {     \
        add_row_body(x, u, mean, sum, n);                                                                           \
    }                                                                                                               \
    EPICYCLE_CLONES inline void add_row_squares(const T *x, double v, double u, const double *mean, double *square, \
                                                double *product, std::size_t n) {                                   \
        add_row_squares_body(x, v, u, mean, square, product, n);                                                    \
    }                                                                                                               \
    EPICYCLE_CLONES inline double centred_square(const T *x, double mean, const double *v, std::size_t n) {         \
        return centred_square_body(x, mean, v, n);                                                                  \
    }
EPICYCLE_PER_TYPE(double)
EPICYCLE_PER_TYPE(float)
#undef EPICYCLE_PER_TYPE

// A column of a strided matrix, made contiguous where it is not.
template <class T>
const T *contiguous(const Dense<T> &X, std::size_t j, std::vector<T> &buffer) {
    if (X.row_stride == 1) return X.col(j);
    buffer.resize(X.rows);
    for (std::size_t i = 0; i < X.rows; ++i) buffer[i] = X(i, j);
    return buffer.data();
}

// u = V y; columns from .. to.
template <class T>
bool column_statistics(const Dense<T> &X, const double *v, const double *u, bool centre, std::size_t from,
                       std::size_t to, ColumnStatistics out, int threads) {
    const std::size_t n = X.rows;
    const double each = 1.0 / static_cast<double>(n);
    const std::vector<double> ones(v ? 0 : n, 1.0);
    const std::size_t step = block_columns(n, sizeof(T));
    const std::int64_t blocks = static_cast<std::int64_t>((to - from + step - 1) / step);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t b = 0; b < blocks; ++b) {
        const std::size_t j0 = from + static_cast<std::size_t>(b) * step, width = std::min(step, to - j0);
        double *mean = out.mean + j0, *square = out.square + j0, *product = out.product + j0;
        std::fill(mean, mean + width, 0.0);
        if (X.col_stride == 1 && X.row_stride != 1) {
            std::vector<double> shift(width, 0.0), sum(width, 0.0);
            if (centre) {
                for (std::size_t j = 0; j < width; ++j) shift[j] = static_cast<double>(X(0, j0 + j));
                for (std::size_t i = 0; i < n; ++i)
                    add_row(X.row(i) + j0, v ? v[i] : each, shift.data(), sum.data(), width);
                for (std::size_t j = 0; j < width; ++j) mean[j] = shift[j] + sum[j];
            }
            std::fill(square, square + width, 0.0);
            std::fill(product, product + width, 0.0);
            for (std::size_t i = 0; i < n; ++i)
                add_row_squares(X.row(i) + j0, v ? v[i] : each, u[i], mean, square, product, width);
            continue;
        }
        std::vector<T> buffer;
        for (std::size_t j = 0; j < width; ++j) {
            const T *x = contiguous(X, j0 + j, buffer);
            if (centre) {
                const double x0 = static_cast<double>(x[0]);
                mean[j] = x0 + (v ? centred_dot(x, x0, v, n) : each * centred_dot(x, x0, ones.data(), n));
            }
            square[j] = centred_square(x, mean[j], v, n) * (v ? 1.0 : each);
            product[j] = centred_dot(x, mean[j], u, n);
        }
    }
    return true;
}

template <class T, class I>
bool column_statistics(const Csc<T, I> &X, const double *v, const double *u, bool centre, std::size_t from,
                       std::size_t to, ColumnStatistics out, int threads) {
    const double each = 1.0 / static_cast<double>(X.rows);
    double total = 0.0;
    for (std::size_t i = 0; i < X.rows; ++i) total += u[i];
    bool ok = true;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) reduction(&& : ok)
    for (std::int64_t column = static_cast<std::int64_t>(from); column < static_cast<std::int64_t>(to); ++column) {
        const std::size_t j = static_cast<std::size_t>(column);
        if (!X.well_formed(j)) {
            ok = false;
            continue;
        }
        double mean = 0.0, stored = 0.0, square = 0.0, product = 0.0;
        for (I a = X.indptr[j]; a < X.indptr[j + 1]; ++a) {
            const double vi = v ? v[X.indices[a]] : each;
            mean += vi * static_cast<double>(X.data[a]);
            stored += vi;
        }
        if (!centre) mean = 0.0;
        for (I a = X.indptr[j]; a < X.indptr[j + 1]; ++a) {
            const double x = static_cast<double>(X.data[a]), d = x - mean;
            square += (v ? v[X.indices[a]] : each) * d * d;
            product += x * u[X.indices[a]];
        }
        out.mean[j] = mean;
        // The zeros lie -mean from the mean. Their weight is what the stored rows leave of one, unless that is
        // rounding.
        const std::size_t count = static_cast<std::size_t>(X.indptr[j + 1] - X.indptr[j]);
        const double left = v ? 1.0 - stored : static_cast<double>(X.rows - std::min(count, X.rows)) * each;
        out.square[j] = square + (left > 1e-14 ? mean * mean * left : 0.0);
        out.product[j] = product - mean * total;
    }
    return ok;
}

// out_qj = sum_i (x_ij - mean_j) u_qi for j = columns[t], t = from .. to, or for all columns j = from .. to, and for
// the k rows of u (k x n): a column is read once for all of them. out is k x p.
template <class T>
bool correlations(const Dense<T> &X, const double *u, std::size_t k, const double *mean, const std::int64_t *columns,
                  std::size_t from, std::size_t to, double *out, int threads) {
    const bool by_row = X.col_stride == 1 && X.row_stride != 1;
    const std::size_t n = X.rows, p = X.cols, step = by_row ? 512 : block_columns(n, sizeof(T));
    const std::int64_t blocks = static_cast<std::int64_t>((to - from + step - 1) / step);
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1)
    for (std::int64_t b = 0; b < blocks; ++b) {
        const std::size_t t0 = from + static_cast<std::size_t>(b) * step, width = std::min(step, to - t0);
        if (by_row) {
            for (std::size_t q = 0; q < k; ++q) {
                const double *v = u + q * n;
                std::vector<double> sum(width, 0.0);
                if (columns)
                    for (std::size_t i = 0; i < n; ++i) {
                        const T *x = X.row(i);
                        for (std::size_t t = 0; t < width; ++t) {
                            const std::int64_t j = columns[t0 + t];
                            sum[t] += v[i] * (static_cast<double>(x[j]) - mean[j]);
                        }
                    }
                else
                    for (std::size_t i = 0; i < n; ++i) add_row(X.row(i) + t0, v[i], mean + t0, sum.data(), width);
                for (std::size_t t = 0; t < width; ++t) out[q * p + (columns ? columns[t0 + t] : t0 + t)] = sum[t];
            }
            continue;
        }
        std::vector<T> buffer;
        for (std::size_t t = t0; t < t0 + width; ++t) {
            const std::size_t j = columns ? static_cast<std::size_t>(columns[t]) : t;
            const T *x = contiguous(X, j, buffer);
            for (std::size_t q = 0; q < k; ++q) out[q * p + j] = centred_dot(x, mean[j], u + q * n, n);
        }
    }
    return true;
}

template <class T, class I>
bool correlations(const Csc<T, I> &X, const double *u, std::size_t k, const double *mean, const std::int64_t *columns,
                  std::size_t from, std::size_t to, double *out, int threads) {
    std::vector<double> total(k, 0.0);
    for (std::size_t q = 0; q < k; ++q)
        for (std::size_t i = 0; i < X.rows; ++i) total[q] += u[q * X.rows + i];
    bool ok = true;
#pragma omp parallel for schedule(static) num_threads(threads) if (threads > 1) reduction(&& : ok)
    for (std::int64_t s = static_cast<std::int64_t>(from); s < static_cast<std::int64_t>(to); ++s) {
        const std::size_t j = static_cast<std::size_t>(columns ? columns[s] : s);
        if (!X.well_formed(j)) {
            ok = false;
            continue;
        }
        for (std::size_t q = 0; q < k; ++q) {
            const double *v = u + q * X.rows;
            double even = 0.0, odd = 0.0;
            I a = X.indptr[j];
            const I end = X.indptr[j + 1];
            for (; a + 2 <= end; a += 2) {
                even += static_cast<double>(X.data[a]) * v[X.indices[a]];
                odd += static_cast<double>(X.data[a + 1]) * v[X.indices[a + 1]];
            }
            if (a < end) even += static_cast<double>(X.data[a]) * v[X.indices[a]];
            out[q * X.cols + j] = even + odd - mean[j] * total[q];
        }
    }
    return ok;
}

// r -= sum_t d_t (x_j - mean_j), j = columns[t].
template <class T>
bool subtract_columns(const Dense<T> &X, const double *mean, const std::int64_t *columns, const double *d,
                      std::size_t k, double *r) {
    if (X.col_stride == 1 && X.row_stride != 1) {
        for (std::size_t i = 0; i < X.rows; ++i) {
            const T *x = X.row(i);
            double sum = 0.0;
            for (std::size_t t = 0; t < k; ++t) sum += d[t] * (static_cast<double>(x[columns[t]]) - mean[columns[t]]);
            r[i] -= sum;
        }
        return true;
    }
    std::vector<T> buffer;
    for (std::size_t t = 0; t < k; ++t) {
        const std::size_t j = static_cast<std::size_t>(columns[t]);
        centred_move(contiguous(X, j, buffer), mean[j], d[t], nullptr, 1.0, r, X.rows);
    }
    return true;
}

template <class T, class I>
bool subtract_columns(const Csc<T, I> &X, const double *mean, const std::int64_t *columns, const double *d,
                      std::size_t k, double *r) {
    double shift = 0.0;
    for (std::size_t t = 0; t < k; ++t) {
        const std::size_t j = static_cast<std::size_t>(columns[t]);
        if (!X.well_formed(j)) return false;
        for (I a = X.indptr[j]; a < X.indptr[j + 1]; ++a) r[X.indices[a]] -= d[t] * static_cast<double>(X.data[a]);
        shift += d[t] * mean[j];
    }
    for (std::size_t i = 0; i < X.rows; ++i) r[i] += shift;
    return true;
}

// Columns about their means, times sqrt(v), one after the other in `out` (n x k, column-major).
template <class T>
void gather_columns(const Dense<T> &X, const double *v, const double *mean, const std::int64_t *columns, std::size_t k,
                    double *out) {
    const std::size_t n = X.rows;
    const double each = std::sqrt(1.0 / static_cast<double>(n));
    std::vector<double> root(v ? n : 0);
    for (std::size_t i = 0; i < root.size(); ++i) root[i] = std::sqrt(v[i]);
    constexpr std::size_t TILE = 64;  // rows and columns are walked in tiles, so that both orders of X are read in runs
    for (std::size_t t0 = 0; t0 < k; t0 += TILE)
        for (std::size_t i0 = 0; i0 < n; i0 += TILE)
            for (std::size_t t = t0; t < std::min(t0 + TILE, k); ++t) {
                const std::size_t j = static_cast<std::size_t>(columns[t]);
                for (std::size_t i = i0; i < std::min(i0 + TILE, n); ++i)
                    out[t * n + i] = (v ? root[i] : each) * (static_cast<double>(X(i, j)) - mean[j]);
            }
}

template <class T, class I>
bool gather_columns(const Csc<T, I> &X, const double *v, const double *r, const std::int64_t *columns, std::size_t k,
                    SparseProblem &out) {
    const double each = std::sqrt(1.0 / static_cast<double>(X.rows));
    out.root.assign(X.rows, each);
    if (v)
        for (std::size_t i = 0; i < X.rows; ++i) out.root[i] = std::sqrt(v[i]);
    out.R.resize(X.rows);
    for (std::size_t i = 0; i < X.rows; ++i) out.R[i] = out.root[i] * r[i];
    out.begin.assign(1, 0);
    std::size_t stored = 0;
    for (std::size_t t = 0; t < k; ++t) {
        const std::size_t j = static_cast<std::size_t>(columns[t]);
        if (!X.well_formed(j)) return false;
        stored += static_cast<std::size_t>(X.indptr[j + 1] - X.indptr[j]);
        out.begin.push_back(stored);
    }
    out.value.resize(stored);
    out.row.resize(stored);
    for (std::size_t t = 0; t < k; ++t) {
        std::size_t at = out.begin[t];
        const std::size_t j = static_cast<std::size_t>(columns[t]);
        for (I a = X.indptr[j]; a < X.indptr[j + 1]; ++a, ++at) {
            out.row[at] = static_cast<std::int32_t>(X.indices[a]);
            out.value[at] = out.root[static_cast<std::size_t>(X.indices[a])] * static_cast<double>(X.data[a]);
        }
    }
    return true;
}

}  // namespace epicycle
