// Coordinate descent on the dual of linear support vector machines (Hsieh et al. 2008, Ho and Lin 2012).
//
// With rows x (a constant s as their last feature where there is an intercept), w = sum_i beta_i x_i and
//
//     D(beta) = sum_i y_i beta_i - epsilon |beta_i| - d_i beta_i^2 / 2  -  |w|^2 / 2 ,
//
// classification has 0 <= y_i beta_i <= c_i and epsilon = 0, regression |beta_i| <= c_i; squared losses have no upper
// bound, and d_i = 1 / (2 c_i). One visit of a row gives its beta the best value, the others fixed. Rows that are at a
// bound, and that the derivative pushes there by more than the worst violation of the last pass, are set aside.
//
// What a row contributes to the duality gap, loss_i - (y beta - epsilon |beta| - d beta^2 / 2) + beta z >= 0, is known
// at its visit for nothing; the sum over a pass estimates the gap, and says when to measure it.
#pragma once

#include <utility>

#include "core/splitmix.hpp"
#include "online/sgd.hpp"
#include "svm/linear_svm.hpp"

namespace epicycle {

// What is kept of a row, in one half of a cache line: y, c, |x|^2 + d, beta.
enum DualColumn : int { TARGET, BOUND, SQUARE, BETA, DUAL_COLUMNS };
// Numbers carried from pass to pass.
enum DualNumber : int { ACTIVE, WORST, DUAL, DUAL_NUMBERS };
// What a pass reports.
enum DualReport : int { GAP, VALUE, KEPT, VIOLATION, DUAL_REPORTS };

// Rows by number, dense.
template <class T>
struct DualDense {
    DenseRowReader<T> rows;
    explicit DualDense(const Dense<T> &X) : rows(X) {}
    std::size_t size() const { return rows.rows(); }
    std::size_t cols() const { return rows.cols(); }
    std::size_t cost() const { return rows.cost(); }
    void select(std::size_t i) { rows.select(i); }
    void announce(std::size_t) const {}
    void prefetch(std::size_t i) const {
        if (rows.X.col_stride != 1) return;
        const T *x = rows.X.row(i);
        for (std::size_t j = 0; j < rows.X.cols; j += 64 / sizeof(T)) __builtin_prefetch(x + j);
    }
    double dot(const double *w) const { return rows.dot(w); }
    void add(double g, double *w) const { rows.add(g, w); }
};

// sum_k x_k w[at_k] with eight fixed partial sums: the order of addition does not depend on the instruction set.
template <class T, class I>
EPICYCLE_INLINE double gathered_dot_body(const T *x, const I *at, const double *w, std::size_t n) {
    double part[8] = {};
    std::size_t k = 0;
    for (; k + 8 <= n; k += 8)
        for (std::size_t c = 0; c < 8; ++c) part[c] += static_cast<double>(x[k + c]) * w[at[k + c]];
    double rest = 0.0;
    for (; k < n; ++k) rest += static_cast<double>(x[k]) * w[at[k]];
    return (((part[0] + part[4]) + (part[1] + part[5])) + ((part[2] + part[6]) + (part[3] + part[7]))) + rest;
}
#define EPICYCLE_PER_TYPE(T, I)                                                                           \
    EPICYCLE_CLONES inline double gathered_dot(const T *x, const I *at, const double *w, std::size_t n) { \
        return gathered_dot_body(x, at, w, n);                                                            \
    }
EPICYCLE_PER_SPARSE_TYPE(EPICYCLE_PER_TYPE)
#undef EPICYCLE_PER_TYPE

// Rows by number, sparse; well-formed by now.
template <class T, class I>
struct DualSparse {
    Csr<T, I> X;
    std::size_t stored;
    const T *x = nullptr;
    const I *at = nullptr;
    std::size_t n = 0;

    DualSparse(const Csr<T, I> &X, std::size_t stored) : X(X), stored(stored) {}
    std::size_t size() const { return X.rows; }
    std::size_t cols() const { return X.cols; }
    std::size_t cost() const { return stored / std::max<std::size_t>(X.rows, 1) + 1; }
    void select(std::size_t i) {
        x = X.data + X.indptr[i];
        at = X.indices + X.indptr[i];
        n = static_cast<std::size_t>(X.indptr[i + 1] - X.indptr[i]);
    }
    // In a shuffled order the next rows are anywhere: their pointers, then their entries, are asked for ahead.
    void announce(std::size_t i) const { __builtin_prefetch(X.indptr + i); }
    void prefetch(std::size_t i) const { prefetch_entries(X, X.indptr[i], X.indptr[i + 1]); }
    double dot(const double *w) const { return gathered_dot(x, at, w, n); }
    void add(double g, double *w) const {
        for (std::size_t k = 0; k < n; ++k) w[at[k]] += g * static_cast<double>(x[k]);
    }
};

struct DualProblem {
    MarginLoss loss;
    double scale;  // s, the feature of the intercept; 0 without
};

// A stream of numbers fixed by a seed and the number of the pass.
struct PassRandom : SplitMix {
    PassRandom(std::uint64_t seed, std::uint64_t pass) : SplitMix{seed ^ (pass * 0xd1342543de82ef95ull)} { next(); }
    std::size_t below(std::size_t n) {
        return n < (std::size_t{1} << 32) ? ((next() >> 32) * n) >> 32 : static_cast<std::size_t>(next() % n);
    }
};

// One pass over the rows that are not set aside, in an order drawn from the seed; it may be made in pieces: begin(),
// then visit() of the machine until it says that all rows were seen, then end().
class ShrinkingPass {
public:
    void begin(std::uint64_t seed, std::uint64_t pass) {
        active = static_cast<std::size_t>(number[ACTIVE]);
        next = 0;
        gap = violation = 0.0;
        PassRandom random(seed, pass);
        for (std::size_t k = 0; k + 1 < active; ++k) std::swap(order[k], order[k + random.below(active - k)]);
    }

    // The estimate of the gap, D, rows that are left, the worst violation.
    void end(double *report) {
        number[ACTIVE] = static_cast<double>(active);
        number[WORST] = violation > 0.0 ? violation : std::numeric_limits<double>::infinity();
        report[GAP] = gap;
        report[VALUE] = number[DUAL];
        report[KEPT] = number[ACTIVE];
        report[VIOLATION] = violation;
    }

protected:
    ShrinkingPass(std::int64_t *order, double *number) : order(order), number(number) {}

    void set_aside() {
        --active;
        std::swap(order[next], order[active]);
        --next;  // another row stands here now
    }

    std::int64_t *order;
    double *number;
    std::size_t active = 0, next = 0;
    double gap = 0.0, violation = 0.0;
};

template <class Rows>
class DualPass : public ShrinkingPass {
public:
    DualPass(Rows &rows, const DualProblem &problem, double *table, double *w, std::int64_t *order, double *number)
        : ShrinkingPass(order, number), rows(rows), problem(problem), table(table), w(w) {}

    bool visit(std::size_t count) {
        const MarginLoss &loss = problem.loss;
        const double e = loss.epsilon, s = problem.scale, inf = std::numeric_limits<double>::infinity();
        const std::size_t p = rows.cols(), until = next + count;
        for (; next < active && next < until; ++next) {
            if (next + 4 < active) rows.prefetch(static_cast<std::size_t>(order[next + 4]));
            if (next + 8 < active) {
                rows.announce(static_cast<std::size_t>(order[next + 8]));
                __builtin_prefetch(table + DUAL_COLUMNS * order[next + 8]);
            }
            const std::size_t i = static_cast<std::size_t>(order[next]);
            double *row = table + DUAL_COLUMNS * i;
            const double y = row[TARGET], c = row[BOUND], Q = row[SQUARE], beta = row[BETA];
            rows.select(i);
            const double z = rows.dot(w) + s * w[p], d = loss.squared ? 0.5 / c : 0.0;
            const double most = loss.squared ? inf : c;
            const double low = loss.regression ? -most : y > 0.0 ? 0.0 : -most;
            const double high = loss.regression ? most : y > 0.0 ? most : 0.0;
            const double G = z - y + d * beta;
            double sign;
            const double v = std::max(loss.violation(z, y, sign), 0.0);
            gap += c * (loss.squared ? v * v : v) - y * beta + e * std::fabs(beta) + 0.5 * d * beta * beta + beta * z;
            // The derivatives to the right and to the left of beta; the former is to be >= 0 and the latter <= 0.
            const double right = G + (beta >= 0.0 ? e : -e), left = G + (beta > 0.0 ? e : -e);
            const bool at_low = beta <= low, at_high = beta >= high;
            const double worst = number[WORST];
            const bool held = at_low    ? right > worst
                              : at_high ? left < -worst
                                        : beta == 0.0 && right > worst && left < -worst;
            if (held) {
                set_aside();
                continue;
            }
            if (!at_high) violation = std::max(violation, -right);
            if (!at_low) violation = std::max(violation, left);
            double best = beta - G / Q;
            if (e > 0.0) best = best > e / Q ? best - e / Q : best < -e / Q ? best + e / Q : 0.0;
            best = std::min(std::max(best, low), high);
            const double step = best - beta;
            if (step == 0.0) continue;
            row[BETA] = best;
            number[DUAL] -= step * (G + 0.5 * Q * step) + e * (std::fabs(best) - std::fabs(beta));
            rows.add(step, w);
            w[p] += s * step;
        }
        return next < active;
    }

private:
    Rows &rows;
    const DualProblem &problem;
    double *table, *w;
};

// w = sum_i beta_i x_i, the last entry that of the constant s; zero on entry.
template <class Rows>
void dual_weights(Rows &rows, const double *table, double scale, double *w) {
    const std::size_t p = rows.cols();
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const double beta = table[DUAL_COLUMNS * i + BETA];
        if (beta == 0.0) continue;
        rows.select(i);
        rows.add(beta, w);
        w[p] += scale * beta;
    }
}

}  // namespace epicycle
