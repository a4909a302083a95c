// The models that are sampled without a call into Python.
//
// Generalized linear models keep X in blocks of 32 rows, each by columns, so that a block is read from memory once for
// margins and gradient, and both are sums over full registers for any number of columns.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "bayes/dense_vectors.hpp"
#include "bayes/density.hpp"
#include "core/losses.hpp"
#include "core/simd.hpp"

namespace epicycle {

// N(mean, P^-1): log p = -1/2 (u - m)'P(u - m).
class NormalDensity : public Density {
public:
    NormalDensity(const double *mean, const double *precision, std::size_t n)
        : mean(mean, mean + n), precision(precision, n) {}
    std::size_t dimension() const override { return mean.size(); }
    double operator()(const double *u, double *g) const override {
        return -0.5 * quadratic_form(precision, mean, u, g);
    }

private:
    Vec mean;
    Symmetric precision;
};

// y ~ N(Xb, s^2), b_j ~ N(m_j, 1/q_j), s^2 ~ inverse gamma(a, r), in b and t = log s. The rows enter through X'X, the
// least squares solution and its sum of squares: nothing cancels, and a step costs the same for any number of rows.
class LinearDensity : public Density {
public:
    LinearDensity(const double *gram, const double *solution, double rss, double rows, const double *prior_mean,
                  const double *prior_precision, double shape, double rate, std::size_t k)
        : gram(gram, k), solution(solution, solution + k), prior_mean(prior_mean, prior_mean + k),
          prior_precision(prior_precision, prior_precision + k), rss(rss), rows(rows), shape(shape), rate(rate) {}
    std::size_t dimension() const override { return solution.size() + 1; }
    double operator()(const double *u, double *g) const override {
        const std::size_t k = solution.size();
        const double t = u[k], q = std::exp(-2.0 * t), squares = rss + quadratic_form(gram, solution, u, g);
        double value = -(rows + 2.0 * shape) * t - (0.5 * squares + rate) * q;
        for (std::size_t j = 0; j < k; ++j) {
            const double e = u[j] - prior_mean[j];
            value -= 0.5 * prior_precision[j] * e * e;
            g[j] = g[j] * q - prior_precision[j] * e;
        }
        g[k] = -(rows + 2.0 * shape) + (squares + 2.0 * rate) * q;
        return value;
    }

private:
    Symmetric gram;
    Vec solution, prior_mean, prior_precision;
    double rss, rows, shape, rate;
};

// Means of groups with known errors, non-centred: y_j ~ N(mu + tau e_j, s_j^2), e_j ~ N(0, 1), mu ~ N(m, v^2),
// tau ~ half-Cauchy(A), in mu, log tau and e.
class HierarchicalDensity : public Density {
public:
    HierarchicalDensity(const double *y, const double *s, std::size_t n, double mu_mean, double mu_scale,
                        double tau_scale)
        : y(y, y + n), weight(n), mu_mean(mu_mean), mu_precision(1.0 / (mu_scale * mu_scale)), tau_scale(tau_scale) {
        for (std::size_t j = 0; j < n; ++j) weight[j] = 1.0 / (s[j] * s[j]);
    }
    std::size_t dimension() const override { return y.size() + 2; }
    double operator()(const double *u, double *g) const override {
        const double mu = u[0], t = u[1], tau = std::exp(t), *e = u + 2;
        const double ratio = tau / tau_scale, d = mu - mu_mean;
        double value = t - std::log1p(ratio * ratio) - 0.5 * mu_precision * d * d, of_mu = 0.0, of_tau = 0.0;
        for (std::size_t j = 0; j < y.size(); ++j) {
            const double r = y[j] - mu - tau * e[j], wr = weight[j] * r;
            value -= 0.5 * (e[j] * e[j] + wr * r);
            of_mu += wr;
            of_tau += wr * e[j];
            g[2 + j] = wr * tau - e[j];
        }
        g[0] = of_mu - mu_precision * d;
        g[1] = 1.0 - 2.0 * ratio * ratio / (1.0 + ratio * ratio) + of_tau * tau;
        return value;
    }

private:
    Vec y, weight;
    double mu_mean, mu_precision, tau_scale;
};

// Rows in blocks of 32, each block by columns; the last is filled with rows of zeros.
struct RowBlocks {
    static constexpr std::size_t size = 32;
    RowBlocks(const double *X, std::size_t n, std::size_t p)
        : rows(n), cols(p), count((n + size - 1) / size), values(count * size * p) {
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < p; ++j) values[(i / size * p + j) * size + i % size] = X[i * p + j];
    }
    std::size_t rows, cols, count;
    Vec values;
};

EPICYCLE_INLINE void block_margins(const double *X, const double *w, std::size_t p, const double *offset, double *z) {
    Eight a, b, c, d, x;
    load(a, offset), load(b, offset + 8), load(c, offset + 16), load(d, offset + 24);
    for (std::size_t j = 0; j < p; ++j, X += 32) {
        const double v = w[j];
        load(x, X), a += x * v;
        load(x, X + 8), b += x * v;
        load(x, X + 16), c += x * v;
        load(x, X + 24), d += x * v;
    }
    store(z, a), store(z + 8, b), store(z + 16, c), store(z + 24, d);
}

// sums holds eight partial sums for every column.
EPICYCLE_INLINE void block_gradient(const double *X, const double *r, std::size_t p, double *sums) {
    Eight a, b, c, d, x, sum;
    load(a, r), load(b, r + 8), load(c, r + 16), load(d, r + 24);
    for (std::size_t j = 0; j < p; ++j, X += 32, sums += 8) {
        load(sum, sums);
        load(x, X), sum += x * a;
        load(x, X + 8), sum += x * b;
        load(x, X + 16), sum += x * c;
        load(x, X + 24), sum += x * d;
        store(sums, sum);
    }
}

// Adds the 32 numbers of a block to eight partial sums.
EPICYCLE_INLINE void add_block(const double *x, double *part) {
    for (std::size_t i = 0; i < 32; i += 8)
        for (std::size_t c = 0; c < 8; ++c) part[c] += x[i + c];
}

// sum_i log(1 + exp(-m_i)), m = s z with labels s = +-1; r = s / (1 + exp(m)). The logarithm is taken of the product
// of a lane, at most 2^4 in a block, and of all blocks' products as long as these stay far from overflow. Rows that
// fill the last block have the label 0 and the margin 0: their r is 0, and log 2 for each is taken off at the end.
EPICYCLE_CLONES inline double logistic_pass(const RowBlocks &rows, const double *sign, const double *w, double *sums) {
    constexpr std::size_t B = RowBlocks::size;
    const std::size_t p = rows.cols;
    double value = 0.0, product[8], linear[8] = {}, zero[B] = {}, z[B], r[B], u[B];
    for (double &x : product) x = 1.0;
    for (std::size_t block = 0; block < rows.count; ++block) {
        const double *X = rows.values.data() + block * B * p, *s = sign + block * B;
        block_margins(X, w, p, zero, z);
        for (std::size_t i = 0; i < B; ++i) z[i] *= s[i];
        for (std::size_t i = 0; i < B; ++i) u[i] = exp_nonpositive(-std::fabs(z[i]));
        for (std::size_t i = 0; i < B; ++i) {
            const double above = z[i] >= 0.0 ? u[i] : 1.0;
            u[i] += 1.0;
            r[i] = s[i] * above / u[i];
            z[i] = z[i] < 0.0 ? z[i] : 0.0;
        }
        add_block(z, linear);
        for (std::size_t i = 0; i < B; i += 8)
            for (std::size_t c = 0; c < 8; ++c) product[c] *= u[i + c];
        block_gradient(X, r, p, sums);
        if (block % 128 == 127 || block + 1 == rows.count)  // 2^512 at most
            for (double &x : product) value += std::log(x), x = 1.0;
    }
    for (const double x : linear) value -= x;
    return value - static_cast<double>(rows.count * B - rows.rows) * 0.69314718055994530942;
}

// sum_i exp(z_i) - y_i z_i with z = Xw + offset; r = y - exp(z).
EPICYCLE_CLONES inline double poisson_pass(const RowBlocks &rows, const double *y, const double *offset,
                                           const double *w, double *sums) {
    constexpr std::size_t B = RowBlocks::size;
    const std::size_t p = rows.cols;
    double part[8] = {}, z[B], r[B], mu[B];
    for (std::size_t block = 0; block < rows.count; ++block) {
        const double *X = rows.values.data() + block * B * p, *yb = y + block * B;
        block_margins(X, w, p, offset + block * B, z);
        for (std::size_t i = 0; i < B; ++i) mu[i] = exp_nonpositive(-std::fabs(z[i]));
        for (std::size_t i = 0; i < B; ++i) {
            mu[i] = z[i] > 0.0 ? 1.0 / mu[i] : mu[i];
            r[i] = yb[i] - mu[i];
            z[i] = mu[i] - yb[i] * z[i];
        }
        add_block(z, part);
        block_gradient(X, r, p, sums);
    }
    double value = 0.0;
    for (const double x : part) value += x;
    return value;
}

enum class Likelihood { logistic, poisson };

// Coefficients with independent priors N(0, 1 / q_j). y holds -1 and 1 (logistic) or counts (Poisson, with an offset).
class RegressionDensity : public Density {
public:
    RegressionDensity(Likelihood likelihood, const double *X, const double *target, const double *shift,
                      const double *prior_precision, std::size_t n, std::size_t p)
        : likelihood(likelihood), rows(X, n, p), y(rows.count * RowBlocks::size, 0.0),
          offset(rows.count * RowBlocks::size,
                 -1e300),  // the mean of a row that fills the last block is exp(-1e300) = 0
          prior_precision(prior_precision, prior_precision + p) {
        std::copy(target, target + n, y.begin());
        if (shift) std::copy(shift, shift + n, offset.begin());
    }
    std::size_t dimension() const override { return rows.cols; }
    double operator()(const double *u, double *g) const override {
        const std::size_t p = rows.cols;
        thread_local Vec sums;
        sums.assign(8 * p, 0.0);
        double value = likelihood == Likelihood::logistic
                           ? -logistic_pass(rows, y.data(), u, sums.data())
                           : -poisson_pass(rows, y.data(), offset.data(), u, sums.data());
        for (std::size_t j = 0; j < p; ++j) {
            const double *s = sums.data() + 8 * j;
            value -= 0.5 * prior_precision[j] * u[j] * u[j];
            g[j] = (((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))) - prior_precision[j] * u[j];
        }
        return value;
    }

private:
    Likelihood likelihood;
    RowBlocks rows;
    Vec y, offset, prior_precision;
};

}  // namespace epicycle
