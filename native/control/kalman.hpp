// Kalman's filter and smoother of a linear Gaussian state-space model,
//
//     x(t + 1) = A x(t) + a(t) + w(t),   y(t) = C x(t) + c(t) + v(t),   w ~ N(0, W),  v ~ N(0, V),
//
// with observations of one time taken one after the other: V is factorised, V = L L', and the entries of L^-1 y have
// independent errors of variance one. A missing entry (NaN) leaves its row of C out. Smoothing goes backwards with the
// score r and its variance N (de Jong), so that no covariance of the state is ever inverted.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace epicycle {

// out = X Y, or X' Y, of square matrices of size n.
template <bool TRANSPOSED = false>
void product(const double *X, const double *Y, std::size_t n, double *out) {
    for (std::size_t a = 0; a < n; ++a)
        for (std::size_t c = 0; c < n; ++c) {
            double sum = 0.0;
            for (std::size_t k = 0; k < n; ++k) sum += X[TRANSPOSED ? k * n + a : a * n + k] * Y[k * n + c];
            out[a * n + c] = sum;
        }
}

// Matrices that stay (stride 0) or change with time (stride their size); row-major.
struct OverTime {
    const double *data;
    std::size_t stride;
    const double *at(std::size_t t) const { return data + t * stride; }
    bool constant() const { return stride == 0; }
};

struct StateSpace {
    std::size_t n, p, steps;
    OverTime A, C, W, V;
    const double *state_offset, *offset;  // a (steps, n) and c (steps, p)
    const double *mean, *cov;             // of x(0)
};

// What is stored for every time; pointers are null where it is not wanted.
struct FilterStore {
    double *predicted_mean, *predicted_cov, *filtered_mean, *filtered_cov, *log_likelihood;
};

class KalmanStep {
public:
    static constexpr bool settles = true;  // gains of one time serve for the next once covariances have settled

    explicit KalmanStep(const StateSpace &m)
        : m_(m), m0_(m.mean, m.mean + m.n), P_(m.cov, m.cov + m.n * m.n), work_(m.n * m.n), vec_(m.n) {}

    std::vector<double> &mean() { return m0_; }
    std::vector<double> &cov() { return P_; }
    const std::vector<double> &rows() const { return rows_; }    // L^-1 C of the entries that were seen
    const std::vector<double> &gains() const { return gains_; }  // P c / s for each of them
    const std::vector<double> &error() const { return error_; }
    const std::vector<double> &variance() const { return variance_; }
    std::size_t seen() const { return error_.size(); }

    // Conditions on y(t); returns its log-density, or NaN where V is not positive definite. With `repeat` the
    // covariances are known to be those of the time before, and only the mean moves.
    double observe(std::size_t t, const double *y, bool repeat) {
        if (!repeat && !whiten(t, y)) return std::numeric_limits<double>::quiet_NaN();
        const std::size_t n = m_.n;
        centre(t, y);
        double total = 0.0;
        const double *b = rows_.data();
        for (std::size_t i = 0; i < seen(); ++i, b += n) {
            double *K = gains_.data() + i * n, s = 1.0, e = residual_[i];
            if (!repeat) {
                for (std::size_t a = 0; a < n; ++a) {
                    double sum = 0.0;
                    for (std::size_t c = 0; c < n; ++c) sum += P_[a * n + c] * b[c];
                    vec_[a] = sum;
                }
                for (std::size_t a = 0; a < n; ++a) s += b[a] * vec_[a];
                for (std::size_t a = 0; a < n; ++a) K[a] = vec_[a] / s;
                for (std::size_t a = 0; a < n; ++a)
                    for (std::size_t c = 0; c <= a; ++c) P_[a * n + c] = P_[c * n + a] -= K[a] * vec_[c];
                variance_[i] = s;
            }
            s = variance_[i];
            for (std::size_t a = 0; a < n; ++a) e -= b[a] * m0_[a];
            for (std::size_t a = 0; a < n; ++a) m0_[a] += K[a] * e;
            error_[i] = e;
            total -= 0.5 * (std::log(s) + e * e / s);
        }
        return total - constants();
    }

    // x(t + 1) given what was seen up to t.
    void predict(std::size_t t, bool repeat) {
        const std::size_t n = m_.n;
        const double *A = m_.A.at(t), *W = m_.W.at(t);
        for (std::size_t a = 0; a < n; ++a) {
            double sum = m_.state_offset[t * n + a];
            for (std::size_t c = 0; c < n; ++c) sum += A[a * n + c] * m0_[c];
            vec_[a] = sum;
        }
        m0_ = vec_;
        if (repeat) return;
        product(A, P_.data(), n, work_.data());
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t c = 0; c <= a; ++c) {
                double sum = W[a * n + c];
                for (std::size_t k = 0; k < n; ++k) sum += work_[a * n + k] * A[c * n + k];
                P_[a * n + c] = P_[c * n + a] = sum;
            }
    }

protected:
    double constants() const {
        return log_scale_ + 0.5 * 1.8378770664093454836 * static_cast<double>(seen());  // log(2 pi)
    }

    // Rows and entries that are seen at time t, made independent; false where V has no Cholesky factor there.
    bool whiten(std::size_t t, const double *y) {
        const std::size_t n = m_.n, p = m_.p;
        index_.clear();
        for (std::size_t j = 0; j < p; ++j)
            if (!std::isnan(y[j])) index_.push_back(j);
        const std::size_t q = index_.size();
        L_.assign(q * q, 0.0);
        const double *V = m_.V.at(t);
        log_scale_ = 0.0;
        for (std::size_t i = 0; i < q; ++i)
            for (std::size_t j = 0; j <= i; ++j) {
                double sum = V[index_[i] * p + index_[j]];
                for (std::size_t k = 0; k < j; ++k) sum -= L_[i * q + k] * L_[j * q + k];
                if (i == j) {
                    if (!(sum > 0.0)) return false;
                    L_[i * q + i] = std::sqrt(sum);
                    log_scale_ += std::log(L_[i * q + i]);
                } else {
                    L_[i * q + j] = sum / L_[j * q + j];
                }
            }
        rows_.resize(q * n);
        const double *C = m_.C.at(t);
        for (std::size_t i = 0; i < q; ++i)
            for (std::size_t a = 0; a < n; ++a) {
                double sum = C[index_[i] * n + a];
                for (std::size_t k = 0; k < i; ++k) sum -= L_[i * q + k] * rows_[k * n + a];
                rows_[i * n + a] = sum / L_[i * q + i];
            }
        gains_.resize(q * n);
        error_.resize(q);
        residual_.resize(q);
        variance_.resize(q);
        return true;
    }

    void centre(std::size_t t, const double *y) {
        const std::size_t q = seen(), p = m_.p;
        for (std::size_t i = 0; i < q; ++i) {
            double sum = y[index_[i]] - m_.offset[t * p + index_[i]];
            for (std::size_t k = 0; k < i; ++k) sum -= L_[i * q + k] * residual_[k];
            residual_[i] = sum / L_[i * q + i];
        }
    }

    const StateSpace m_;
    std::vector<double> m0_, P_, work_, vec_, rows_, gains_, error_, residual_, variance_, L_;
    std::vector<std::size_t> index_;
    double log_scale_ = 0.0;
};

inline bool any_missing(const double *y, std::size_t p) {
    for (std::size_t j = 0; j < p; ++j)
        if (std::isnan(y[j])) return true;
    return false;
}

// The filter; returns the log-likelihood, NaN where a covariance of observations has no factor. Once the covariance
// of a model that does not change has settled to rounding, only means are computed.
template <class Step, class Poll>
double kalman_filter(const StateSpace &m, const double *y, const FilterStore &out, Poll poll) {
    const std::size_t n = m.n, p = m.p;
    Step step(m);
    const bool constant = Step::settles && m.A.constant() && m.C.constant() && m.W.constant() && m.V.constant();
    std::vector<double> last(n * n), settled(n * n);
    bool repeat = false, complete = false;
    double total = 0.0;
    for (std::size_t t = 0; t < m.steps; ++t) {
        const double *now = y + t * p;
        const bool gap = any_missing(now, p);
        if (repeat && gap) repeat = false;
        if (out.predicted_mean) std::copy(step.mean().begin(), step.mean().end(), out.predicted_mean + t * n);
        if (out.predicted_cov) std::copy(step.cov().begin(), step.cov().end(), out.predicted_cov + t * n * n);
        if (constant) last = step.cov();
        const double density = step.observe(t, now, repeat);
        if (repeat) step.cov() = settled;
        total += density;
        if (std::isnan(density)) return density;
        if (out.log_likelihood) out.log_likelihood[t] = density;
        if (out.filtered_mean) std::copy(step.mean().begin(), step.mean().end(), out.filtered_mean + t * n);
        if (out.filtered_cov) std::copy(step.cov().begin(), step.cov().end(), out.filtered_cov + t * n * n);
        if (constant && !repeat) settled = step.cov();
        step.predict(t, repeat);
        if (repeat) {
            step.cov() = last;
        } else if (constant && !gap && complete) {
            double change = 0.0, size = 0.0;
            for (std::size_t e = 0; e < n * n; ++e) {
                change = std::max(change, std::abs(step.cov()[e] - last[e]));
                size = std::max(size, std::abs(last[e]));
            }
            repeat = change <= 4 * std::numeric_limits<double>::epsilon() * size;
        }
        complete = !gap;
        if (t % 1024 == 0) poll();
    }
    return total;
}

// Smoothed means and covariances in place of the filter's predictions and, where wanted, cov(x(t + 1), x(t)) given
// everything in place of the filtered covariance of t. Each time's observation is taken again to have its gains; while
// the model, the predictions and N stay the same, only means are computed.
class KalmanSmoother {
public:
    KalmanSmoother(const StateSpace &m, const double *y, double *mean, double *predicted_cov, double *filtered_cov,
                   bool lagged)
        : m_(m), y_(y), mean_(mean), P_(predicted_cov), F_(filtered_cov), lagged_(lagged), r_(m.n, 0.0),
          N_(m.n * m.n, 0.0), last_(m.n * m.n, 0.0), work_(m.n * m.n), next_(m.n * m.n), P_after_(m.n * m.n),
          F_after_(m.n * m.n), vec_(m.n), step_(m),
          constant_(m.A.constant() && m.C.constant() && m.W.constant() && m.V.constant()) {}

    template <class Poll>
    void run(Poll poll) {
        const std::size_t n = m_.n, nn = n * n;
        bool settled = false, complete = false;
        for (std::size_t back = m_.steps; back-- > 0;) {
            double *P = P_ + back * nn, *F = F_ + back * nn;
            const bool last = back + 1 == m_.steps, gap = any_missing(y_ + back * m_.p, m_.p);
            const bool same = constant_ && !last && complete && !gap && std::equal(P, P + nn, P_after_.begin());
            const bool equal = std::equal(F, F + nn, F_after_.begin());
            settled = settled && same && equal;
            if (!equal) std::copy(F, F + nn, F_after_.begin());
            if (!last) {
                if (lagged_ && settled)
                    std::copy(F + nn, F + 2 * nn, F);
                else if (lagged_)
                    lag(back, F);
                move_back(m_.A.at(back), settled);
            }
            std::copy(mean_ + back * n, mean_ + (back + 1) * n, step_.mean().begin());
            if (!same) std::copy(P, P + nn, step_.cov().begin()), std::copy(P, P + nn, P_after_.begin());
            step_.observe(back, y_ + back * m_.p, same);
            for (std::size_t i = step_.seen(); i-- > 0;) take(i, settled);
            smooth_mean(P, mean_ + back * n);
            if (settled)
                std::copy(P + nn, P + 2 * nn, P);
            else
                smooth_cov(P);
            // The step before this one ended with the same N, and with that at back + 1 the lagged covariance is the
            // one that will come again.
            if (!settled)
                settled = same && back + 2 < m_.steps && change() <= 4 * std::numeric_limits<double>::epsilon();
            if (!settled) last_ = N_;
            complete = !gap;
            if (back % 1024 == 0) poll();
        }
    }

private:
    double change() const {
        double most = 0.0, size = std::numeric_limits<double>::min();
        for (std::size_t e = 0; e < N_.size(); ++e) {
            most = std::max(most, std::abs(N_[e] - last_[e]));
            size = std::max(size, std::abs(N_[e]));
        }
        return most / size;
    }

    // (I - P(t+1) N(t+1)) A P_filtered(t); N is that before the observation of t + 1.
    void lag(std::size_t t, double *out) {
        const std::size_t n = m_.n;
        product(m_.A.at(t), F_after_.data(), n, work_.data());
        product(N_.data(), work_.data(), n, next_.data());
        product(P_after_.data(), next_.data(), n, out);
        for (std::size_t e = 0; e < n * n; ++e) out[e] = work_[e] - out[e];
    }

    void move_back(const double *A, bool settled) {  // r = A' r, N = A' N A
        const std::size_t n = m_.n;
        for (std::size_t a = 0; a < n; ++a) {
            double sum = 0.0;
            for (std::size_t k = 0; k < n; ++k) sum += A[k * n + a] * r_[k];
            vec_[a] = sum;
        }
        r_ = vec_;
        if (settled) return;
        product(N_.data(), A, n, work_.data());
        product<true>(A, work_.data(), n, N_.data());
    }

    void take(std::size_t i, bool settled) {
        const std::size_t n = m_.n;
        const double *b = step_.rows().data() + i * n, *K = step_.gains().data() + i * n;
        const double e = step_.error()[i], s = step_.variance()[i];
        double Kr = 0.0, KNK = 0.0;
        for (std::size_t a = 0; a < n; ++a) Kr += K[a] * r_[a];
        for (std::size_t a = 0; a < n; ++a) r_[a] += b[a] * (e / s - Kr);
        if (settled) return;
        for (std::size_t a = 0; a < n; ++a) {
            double sum = 0.0;
            for (std::size_t k = 0; k < n; ++k) sum += N_[a * n + k] * K[k];
            vec_[a] = sum;  // N K
        }
        for (std::size_t a = 0; a < n; ++a) KNK += K[a] * vec_[a];
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t c = 0; c < n; ++c)
                N_[a * n + c] += b[a] * b[c] * (1.0 / s + KNK) - b[a] * vec_[c] - vec_[a] * b[c];
    }

    void smooth_mean(const double *P, double *mean) const {
        const std::size_t n = m_.n;
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t k = 0; k < n; ++k) mean[a] += P[a * n + k] * r_[k];
    }

    void smooth_cov(double *P) {  // P - P N P
        const std::size_t n = m_.n;
        product(N_.data(), P, n, work_.data());
        product(P, work_.data(), n, next_.data());
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t c = 0; c <= a; ++c) P[c * n + a] = P[a * n + c] -= next_[a * n + c];
    }

    const StateSpace m_;
    const double *y_;
    double *mean_, *P_, *F_;  // predicted, then smoothed; filtered, then lagged
    const bool lagged_;
    std::vector<double> r_, N_, last_, work_, next_, P_after_, F_after_, vec_;  // after: of the filter at back + 1
    KalmanStep step_;
    const bool constant_;
};

}  // namespace epicycle
