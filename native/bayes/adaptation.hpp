// What the warm-up learns: the metric from the spread of the draws, in windows that double, and the step size by dual
// averaging. The schedule and all constants are Stan's (reference manual, "Automatic parameter tuning").
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "bayes/dense_vectors.hpp"
#include "bayes/random.hpp"

namespace epicycle {

// The metric M of the momenta p ~ N(0, M), held as its inverse: variances, or the covariance with its factor L L'.
class Metric {
public:
    explicit Metric(std::size_t n) : n(n), variance(n, 1.0), root(n, 1.0) {}

    bool dense() const { return is_dense; }

    // out = M^-1 p
    void velocity(const double *p, double *out) const {
        if (is_dense) return covariance.times(p, out);
        for (std::size_t i = 0; i < n; ++i) out[i] = variance[i] * p[i];
    }

    void draw_momentum(Random &random, double *p) const {
        for (std::size_t i = 0; i < n; ++i) p[i] = random.normal();
        if (!is_dense) {
            for (std::size_t i = 0; i < n; ++i) p[i] /= root[i];
            return;
        }
        for (std::size_t i = n; i-- > 0;) {  // L'p = z
            p[i] /= factor[i * n + i];
            for (std::size_t j = 0; j < i; ++j) p[j] -= factor[i * n + j] * p[i];
        }
    }

    // A step with the covariance M^-1.
    void draw_step(Random &random, double *step) const {
        for (std::size_t i = 0; i < n; ++i) step[i] = random.normal();
        for (std::size_t i = n; i-- > 0;) step[i] = is_dense ? dot(&factor[i * n], step, i + 1) : step[i] * root[i];
    }

    void set_diagonal(Vec variances) {
        is_dense = false;
        variance = std::move(variances);
        for (std::size_t i = 0; i < n; ++i) root[i] = std::sqrt(variance[i]);
    }
    void set_dense(Vec matrix) {
        is_dense = true;
        factor = matrix;
        cholesky(factor, n);
        covariance = Symmetric(matrix.data(), n);
        full = std::move(matrix);
    }

    // The variances, or the covariance row by row.
    Vec values(bool as_matrix) const {
        if (!as_matrix) return variance;
        if (is_dense) return full;
        Vec diagonal(n * n);
        for (std::size_t i = 0; i < n; ++i) diagonal[i * n + i] = variance[i];
        return diagonal;
    }

private:
    std::size_t n;
    bool is_dense = false;  // until there are draws enough for a covariance, variances serve
    Vec variance, root, factor, full;
    Symmetric covariance;
};

// Running mean and second moments (Welford).
class Spread {
public:
    Spread(std::size_t n, bool is_dense) : n(n), is_dense(is_dense), mean(n), delta(n), square(is_dense ? n * n : n) {}

    void add(const double *x) {
        ++count;
        for (std::size_t i = 0; i < n; ++i) {
            delta[i] = x[i] - mean[i];
            mean[i] += delta[i] / count;
        }
        if (!is_dense) {
            for (std::size_t i = 0; i < n; ++i) square[i] += delta[i] * (x[i] - mean[i]);
            return;
        }
        for (std::size_t i = 0; i < n; ++i) add_scaled(&square[i * n], x[i] - mean[i], delta.data(), n);
    }

    double size() const { return count; }

    // The covariance, drawn towards 1e-3 I by five draws' worth, goes into the metric; with fewer than two draws for
    // each dimension the variances alone.
    void set(Metric &metric) const {
        if (count < 2.0) return;
        const double keep = count / (count + 5.0) / (count - 1.0), small = 1e-3 * 5.0 / (count + 5.0);
        if (is_dense && count >= 2.0 * static_cast<double>(n)) {
            Vec result = square;
            for (double &x : result) x *= keep;
            shrink(result);
            for (std::size_t i = 0; i < n; ++i) result[i * n + i] += small;
            return metric.set_dense(std::move(result));
        }
        Vec variances(n);
        for (std::size_t i = 0; i < n; ++i) variances[i] = square[is_dense ? i * n + i : i] * keep + small;
        metric.set_diagonal(std::move(variances));
    }

    void restart() {
        count = 0.0;
        std::fill(mean.begin(), mean.end(), 0.0);
        std::fill(square.begin(), square.end(), 0.0);
    }

private:
    std::size_t n;
    bool is_dense;
    double count = 0.0;
    Vec mean, delta, square;

    // Correlations times 1 - s, with the s that makes their expected squared error least (Schaefer and Strimmer 2005):
    // sum var(r) / sum r^2.
    void shrink(Vec &covariance) const {
        double variances = 0.0, squares = 0.0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < i; ++j) {
                const double c = covariance[i * n + j], both = covariance[i * n + i] * covariance[j * n + j];
                const double r2 = both > 0.0 ? std::min(c * c / both, 1.0) : 0.0;
                variances += (1.0 - r2) * (1.0 - r2) / (count - 1.0);
                squares += r2;
            }
        const double kept = squares > 0.0 ? std::max(0.0, 1.0 - variances / squares) : 0.0;
        for (std::size_t i = 0; i < n; ++i)
            for (std::size_t j = 0; j < n; ++j)
                if (i != j) covariance[i * n + j] *= kept;
    }
};

// The phases of the warm-up: a fast start, windows of 25, 50, 100, ... draws for the metric, a fast end.
class Windows {
public:
    explicit Windows(std::size_t warmup) : warmup(warmup) {
        if (warmup < 20) {
            start = warmup, end = 0, width = 0;
        } else if (warmup < 150) {
            start = static_cast<std::size_t>(0.15 * static_cast<double>(warmup));
            end = static_cast<std::size_t>(0.1 * static_cast<double>(warmup));
            width = warmup - start - end;
        }
        next = start + width;
    }

    // Whether the draw of this iteration counts for the metric.
    bool collects(std::size_t iteration) const { return iteration >= start && iteration < warmup - end && width > 0; }

    // Whether a window ends with this iteration.
    bool closes(std::size_t iteration) {
        if (!collects(iteration) || iteration + 1 != next) return false;
        width *= 2;
        const std::size_t last = warmup - end;
        next = next + width;
        if (next + 2 * width > last) next = std::max(last, iteration + 1);  // no room for the one after: widen this one
        return true;
    }

private:
    std::size_t warmup, start = 75, end = 50, width = 25, next;
};

// Dual averaging of log(step) towards a mean acceptance (Hoffman and Gelman 2014, section 3.2).
class StepSize {
public:
    explicit StepSize(double target) : target(target) {}
    double now = 1.0;

    void restart() {
        centre = std::log(10.0 * now);
        count = sum = average = 0.0;
    }
    void learn(double acceptance) {
        acceptance = acceptance > 1.0 ? 1.0 : (acceptance == acceptance ? acceptance : 0.0);
        ++count;
        const double share = 1.0 / (count + 10.0);
        sum = (1.0 - share) * sum + share * (target - acceptance);
        const double x = centre - sum * std::sqrt(count) / 0.05, weight = std::pow(count, -0.75);
        average = (1.0 - weight) * average + weight * x;
        now = std::exp(x);
    }
    void settle() {
        if (count > 0.0) now = std::exp(average);
    }

private:
    double target, centre = 0.0, count = 0.0, sum = 0.0, average = 0.0;
};

}  // namespace epicycle
