// Proximal Newton steps for logistic regression with an L1 (and L2) penalty over a few columns (a working set):
//
//     F(w, b) = sum_i v_i log(1 + exp(-s_i)) + sum_j l1_j |w_j| + 1/2 sum_j l2_j w_j^2,   s_i = (2 y_i - 1) z_i,
//
// with row weights v that sum to one and z = b + Xw + whatever the caller has added to it. At each point F is replaced
// by its quadratic model, a least-squares problem with row weights h_i = v_i p_i (1 - p_i) and residuals u_i / h_i,
// u_i = v_i (y_i - p_i); coordinate descent of coordinate_descent.hpp solves that one, with b eliminated by centring.
//
// The dual point. With q_i the probability of the other class, theta_i = k_i q_i for any 0 <= k_i <= 1 lies in the box
// of the dual problem. An unpenalised b asks for sum_i v_i (2 y_i - 1) theta_i = 0: the k_i of the side whose residuals
// add up to more are lowered to make both sides equal, and a common factor brings the correlations into |c_j| <= l1_j.
// By Fenchel and Young the duality gap is then a sum of terms none of which is negative,
//
//     sum_i v_i KL(k_i q_i | q_i) + sum_j [l1_j |w_j| + l2_j w_j^2 / 2 - w_j c_j + (|c_j| - l1_j)_+^2 / (2 l2_j)],
//
// with KL the divergence between two coins; there is no cancellation in it.
#pragma once

#include "linear/lasso_columns.hpp"
#include "linear/logistic.hpp"

namespace epicycle {

// KL(k q | q) for q = 1 / (1 + e^s), e = 1 - k: k q log k + (1 - k q) log(1 + e q / (1 - q)), and q / (1 - q) = e^-s.
inline double coin_divergence(double s, double k) {
    const double e = 1.0 - k;
    if (e <= 0.0) return 0.0;
    const double t = std::exp(-std::fabs(s)), q = s >= 0.0 ? t / (1.0 + t) : 1.0 / (1.0 + t);
    const double odds = s >= 0.0 ? std::log1p(e * t) : t > 1e-290 ? std::log1p(e / t) : std::log(e) - s;
    const double logk = k > 0.0 ? k * std::log(k) : 0.0;
    return std::max(q * logk + (1.0 - k * q) * odds, 0.0);
}

// u = v (y - p) and h = v p (1 - p) from z; returns the loss.
inline double residual_rows(const double *z, const double *y, const double *v, std::size_t n, double *u, double *h) {
    double loss = 0.0;
    for (std::size_t i = 0; i < n; i += ROWS)
        loss += logistic_rows(z + i, y + i, v + i, std::min(ROWS, n - i), u + i, h + i);
    for (std::size_t i = 0; i < n; ++i) u[i] = -u[i];
    return loss;
}

// The factors that make the residuals of the two sides add up to the same: (of y = 0, of y = 1).
struct Balance {
    double low = 1.0, high = 1.0;
    bool possible = true;
    Balance() = default;
    Balance(const double *u, const double *y, std::size_t n) {
        double up = 0.0, down = 0.0;
        for (std::size_t i = 0; i < n; ++i) (y[i] > 0.5 ? up : down) += u[i];
        down = -down;
        possible = up > 0.0 && down > 0.0;
        if (!possible) return;
        if (up > down)
            high = down / up;
        else
            low = up / down;
    }
    double of(double y) const { return y > 0.5 ? high : low; }
};

// sum_i v_i KL(k_i q_i | q_i) with k_i = scale times the factor of the side of row i.
inline double divergence(const double *z, const double *y, const double *v, std::size_t n, const Balance &balance,
                         double scale) {
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i)
        sum += v[i] * coin_divergence(y[i] > 0.5 ? z[i] : -z[i], scale * balance.of(y[i]));
    return sum;
}

// The part of the gap that the columns have, at correlations scale * c.
inline double column_gap(double w, double c, double l1, double l2, double scale) {
    return l1 * std::fabs(w) + 0.5 * l2 * w * w - scale * w * c + dual_penalty(scale, c, l1, l2, false);
}

// ------------------------------------------------------------------------------------------------- working sets

struct SparseSet {
    SparseProblem problem;
    std::vector<double> raw, mean, square;
    std::size_t rows, size;

    template <class T, class I>
    bool gather(const Csc<T, I> &X, const std::int64_t *columns, std::size_t k) {
        rows = X.rows, size = k;
        mean.assign(k, 0.0), square.assign(k, 0.0);
        problem.begin.assign(1, 0);
        for (std::size_t t = 0; t < k; ++t) {
            const std::size_t j = static_cast<std::size_t>(columns[t]);
            if (!X.well_formed(j)) return false;
            problem.begin.push_back(problem.begin.back() + static_cast<std::size_t>(X.indptr[j + 1] - X.indptr[j]));
        }
        const std::size_t stored = problem.begin.back();
        raw.resize(stored), problem.value.resize(stored), problem.row.resize(stored);
        for (std::size_t t = 0, at = 0; t < k; ++t) {
            const std::size_t j = static_cast<std::size_t>(columns[t]);
            for (I a = X.indptr[j]; a < X.indptr[j + 1]; ++a, ++at) {
                problem.row[at] = static_cast<std::int32_t>(X.indices[a]);
                raw[at] = static_cast<double>(X.data[a]);
            }
        }
        problem.mean = mean.data(), problem.norm2 = square.data();
        return true;
    }
    double work() const { return static_cast<double>(raw.size() + 4 * size); }
    // Sparse columns are taken about zero: most of their entries are there.
    double dot(std::size_t j, const double *u) const {
        double even = 0.0, odd = 0.0;
        std::size_t a = problem.begin[j];
        const std::size_t end = problem.begin[j + 1];
        for (; a + 2 <= end; a += 2) {
            even += raw[a] * u[problem.row[a]];
            odd += raw[a + 1] * u[problem.row[a + 1]];
        }
        if (a < end) even += raw[a] * u[problem.row[a]];
        return even + odd;
    }
    void add(std::size_t j, double d, double *z) const {
        for (std::size_t a = problem.begin[j]; a < problem.begin[j + 1]; ++a) z[problem.row[a]] += d * raw[a];
    }
    double origin(std::size_t) const { return 0.0; }
    // Least squares with row weights v (which sum to one) and residuals r.
    void model(const std::vector<double> &v, const std::vector<double> &r, bool centre) {
        problem.root.resize(rows), problem.R.resize(rows);
        for (std::size_t i = 0; i < rows; ++i) {
            problem.root[i] = std::sqrt(v[i]);
            problem.R[i] = problem.root[i] * r[i];
        }
        problem.delta = 0.0;
        for (std::size_t j = 0; j < size; ++j) {
            double sum = 0.0, squares = 0.0, weight = 0.0;
            for (std::size_t a = problem.begin[j]; a < problem.begin[j + 1]; ++a) {
                const double root = problem.root[static_cast<std::size_t>(problem.row[a])], x = root * raw[a];
                problem.value[a] = x;
                sum += root * x, squares += x * x, weight += root * root;
            }
            mean[j] = centre ? sum : 0.0;
            // About the mean. Where that cancels, the squares are summed again, entry by entry.
            double about = squares - mean[j] * mean[j];
            if (about < 1e-3 * squares) {
                about = std::max(1.0 - weight, 0.0) * mean[j] * mean[j];
                for (std::size_t a = problem.begin[j]; a < problem.begin[j + 1]; ++a) {
                    const double root = problem.root[static_cast<std::size_t>(problem.row[a])];
                    const double x = root * (raw[a] - mean[j]);
                    about += x * x;
                }
            }
            square[j] = about;
        }
    }
};

template <class T>
struct DenseSet {
    DenseProblem<T> problem;
    std::vector<double> mean, square, u;
    const double *centre;  // columns are taken about these, so that data far from zero keeps its digits
    std::size_t rows, size;

    DenseSet(const Dense<T> &X, const std::int64_t *columns, std::size_t k, const double *about)
        : problem{X, columns, nullptr, nullptr, nullptr, nullptr}, mean(k), square(k), u(X.rows), centre(about),
          rows(X.rows), size(k) {
        problem.mean = mean.data(), problem.norm2 = square.data(), problem.u = u.data();
    }
    double work() const { return static_cast<double>(rows * size); }
    const T *column(std::size_t j) const { return problem.X.col(static_cast<std::size_t>(problem.column[j])); }
    double dot(std::size_t j, const double *of) const { return centred_dot(column(j), centre[j], of, rows); }
    void add(std::size_t j, double d, double *z) const {
        centred_move(column(j), centre[j], -d, nullptr, 1.0, z, rows);
    }
    double origin(std::size_t j) const { return centre[j]; }
    void model(const std::vector<double> &v, const std::vector<double> &r, bool about_mean) {
        problem.v = v.data();
        for (std::size_t i = 0; i < rows; ++i) u[i] = v[i] * r[i];
        for (std::size_t j = 0; j < size; ++j) {
            const double x0 = static_cast<double>(column(j)[0]);
            mean[j] = about_mean ? x0 + centred_dot(column(j), x0, v.data(), rows) : 0.0;
            square[j] = centred_square(column(j), mean[j], v.data(), rows);
        }
    }
};

// ------------------------------------------------------------------------------------------------- Newton's method

struct NewtonResult {
    std::size_t steps = 0;
    double gap = std::numeric_limits<double>::infinity();  // over these columns
    double intercept = 0.0;                                // what b has moved by
};

// Steps until the gap over the columns of `set` is at most `target`, at most `max_steps` or about `max_work`
// multiply-adds. w and z are moved in place. b is the intercept of columns about `centre`.
template <class Set>
NewtonResult proximal_newton(Set &set, const double *y, const double *v, const Penalty &penalty, bool intercept,
                             const double *centre, double *w, double *z, std::size_t max_steps, double target,
                             double max_work) {
    // Rows that are far on the wrong side have next to no curvature; a floor keeps their residuals u / h in range, and
    // only ever raises the model.
    constexpr double FLOOR = 1e-4, INNER = 0.1;
    constexpr std::size_t EPOCHS = 50;
    const std::size_t n = set.rows, k = set.size;
    std::vector<double> u(n), h(n), r(n), dz(n), trial(n), trial_u(n), trial_h(n), c(k), fresh(k), l1(k), l2(k);
    NewtonResult done;
    double work = 0.0;
    double loss = residual_rows(z, y, v, n, u.data(), h.data());
    const auto penalty_at = [&](const double *at) {
        double sum = 0.0;
        for (std::size_t j = 0; j < k; ++j)
            sum += penalty.l1[j] * std::fabs(at[j]) + 0.5 * penalty.l2[j] * at[j] * at[j];
        return sum;
    };
    for (;; ++done.steps) {
        const Balance balance = intercept ? Balance(u.data(), y, n) : Balance();
        if (balance.possible) {
            for (std::size_t i = 0; i < n; ++i) r[i] = u[i] * balance.of(y[i]);
            DualScale scale;
            for (std::size_t j = 0; j < k; ++j) {
                c[j] = set.dot(j, r.data());
                scale.column(c[j], w[j], penalty.l1[j], penalty.l2[j], false);
            }
            work += set.work();
            done.gap = std::numeric_limits<double>::infinity();
            for (const double s : {scale.tight, scale.loose}) {
                double gap = 0.0;
                for (std::size_t j = 0; j < k; ++j) gap += column_gap(w[j], c[j], penalty.l1[j], penalty.l2[j], s);
                if (gap < done.gap) gap += divergence(z, y, v, n, balance, s);
                done.gap = std::min(done.gap, gap);
                if (scale.tight == scale.loose) break;
            }
        }
        if (done.gap <= target || done.steps >= max_steps || work >= max_work) return done;

        double total = 0.0;
        for (std::size_t i = 0; i < n; ++i) total += h[i] = std::max(h[i], FLOOR * std::fabs(u[i]));
        if (!(total > 0.0)) return done;
        double step_b = 0.0;
        if (intercept)
            for (std::size_t i = 0; i < n; ++i) step_b += u[i];
        step_b /= total;
        for (std::size_t i = 0; i < n; ++i) {
            r[i] = h[i] > 0.0 ? u[i] / h[i] - step_b : -step_b;
            h[i] /= total;
        }
        set.model(h, r, intercept);
        for (std::size_t j = 0; j < k; ++j) l1[j] = penalty.l1[j] / total, l2[j] = penalty.l2[j] / total;
        std::copy(w, w + k, fresh.begin());
        // The model is solved to a tenth of what is missing: more would be lost on the difference between it and F.
        const double aim = std::max(INNER * std::min(done.gap, loss), 0.3 * target) / total;
        const Descent descent =
            descend(set.problem, {l1.data(), l2.data(), false}, fresh.data(), k, EPOCHS, aim, max_work - work, false);
        work += set.work() * (2.0 + static_cast<double>(descent.epochs));

        // b is eliminated about set.mean; it is kept about `centre`, and z moves about the origin of the set.
        double step_z = step_b;
        for (std::size_t j = 0; j < k; ++j) {
            step_z -= (fresh[j] - w[j]) * (set.mean[j] - set.origin(j));
            step_b -= (fresh[j] - w[j]) * (set.mean[j] - centre[j]);
        }
        std::fill(dz.begin(), dz.end(), intercept ? step_z : 0.0);
        bool moved = intercept && step_z != 0.0;
        for (std::size_t j = 0; j < k; ++j)
            if (fresh[j] != w[j]) set.add(j, fresh[j] - w[j], dz.data()), moved = true;
        if (!moved) return done;
        const double before = penalty_at(w);
        double slope = penalty_at(fresh.data()) - before;
        for (std::size_t i = 0; i < n; ++i) slope -= u[i] * dz[i];
        // Below the rounding of F no slope and no change says anything. The gap, which is of first order in the
        // residuals, still shrinks there, so the step to the minimum of the model is taken as it is.
        const double rounding = 1e-14 * (loss + before);
        if (!(slope < rounding)) return done;
        double t = 1.0;
        for (int halvings = 0;; ++halvings, t *= 0.5) {
            for (std::size_t i = 0; i < n; ++i) trial[i] = z[i] + t * dz[i];
            if (t < 1.0)
                for (std::size_t j = 0; j < k; ++j) fresh[j] = w[j] + 0.5 * (fresh[j] - w[j]);
            const double trial_loss = residual_rows(trial.data(), y, v, n, trial_u.data(), trial_h.data());
            const double change = (trial_loss - loss) + (penalty_at(fresh.data()) - before);
            if (change <= 1e-3 * t * slope + rounding) {
                std::copy(trial.begin(), trial.end(), z);
                std::copy(fresh.begin(), fresh.end(), w);
                u.swap(trial_u), h.swap(trial_h);
                loss = trial_loss;
                done.intercept += intercept ? t * step_b : 0.0;
                break;
            }
            if (halvings == 40) return done;
        }
    }
}

}  // namespace epicycle
