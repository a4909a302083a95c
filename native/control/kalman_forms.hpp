// Two other forms of Kalman's filter with the same results. The square-root form carries S with P = S S': covariances
// cannot lose their sign to rounding, and S has half the digits to keep. The information form carries the inverse of P:
// observations add up, and it needs covariances that can be inverted.
#pragma once

#include "control/kalman.hpp"

namespace epicycle {

// L with L L' = M for a matrix without negative eigenvalues; columns that rounding leaves nothing of are zero.
inline void semidefinite_root(const double *M, std::size_t n, double *L) {
    std::fill(L, L + n * n, 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        double pivot = M[j * n + j];
        for (std::size_t k = 0; k < j; ++k) pivot -= L[j * n + k] * L[j * n + k];
        const double floor = static_cast<double>(n) * std::numeric_limits<double>::epsilon() * M[j * n + j];
        if (!(pivot > floor)) continue;
        L[j * n + j] = std::sqrt(pivot);
        for (std::size_t i = j + 1; i < n; ++i) {
            double sum = M[i * n + j];
            for (std::size_t k = 0; k < j; ++k) sum -= L[i * n + k] * L[j * n + k];
            L[i * n + j] = sum / L[j * n + j];
        }
    }
}

// The inverse of a square matrix by Gauss and Jordan with row exchanges, and the logarithm of its |determinant|; false
// where a pivot is zero.
inline bool inverse(const double *given, std::size_t n, double *out, double &log_det) {
    std::vector<double> M(given, given + n * n);
    std::fill(out, out + n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i) out[i * n + i] = 1.0;
    log_det = 0.0;
    for (std::size_t j = 0; j < n; ++j) {
        std::size_t best = j;
        for (std::size_t i = j + 1; i < n; ++i)
            if (std::abs(M[i * n + j]) > std::abs(M[best * n + j])) best = i;
        const double pivot = M[best * n + j];
        if (!(std::abs(pivot) > 0.0)) return false;
        log_det += std::log(std::abs(pivot));
        for (std::size_t k = 0; k < n; ++k) {
            std::swap(M[best * n + k], M[j * n + k]);
            std::swap(out[best * n + k], out[j * n + k]);
        }
        for (std::size_t k = 0; k < n; ++k) {
            M[j * n + k] /= pivot;
            out[j * n + k] /= pivot;
        }
        for (std::size_t i = 0; i < n; ++i) {
            const double factor = M[i * n + j];
            if (i == j || factor == 0.0) continue;
            for (std::size_t k = 0; k < n; ++k) {
                M[i * n + k] -= factor * M[j * n + k];
                out[i * n + k] -= factor * out[j * n + k];
            }
        }
    }
    return true;
}

class SquareRootStep : public KalmanStep {
public:
    static constexpr bool settles = true;

    explicit SquareRootStep(const StateSpace &m)
        : KalmanStep(m), S_(m.n * m.n), root_(m.n * m.n), stacked_(2 * m.n * m.n), phi_(m.n) {
        semidefinite_root(m.cov, m.n, S_.data());
        if (m.W.constant()) semidefinite_root(m.W.at(0), m.n, root_.data());
    }

    double observe(std::size_t t, const double *y, bool repeat) {
        if (repeat) return KalmanStep::observe(t, y, true);
        if (!whiten(t, y)) return std::numeric_limits<double>::quiet_NaN();
        const std::size_t n = m_.n;
        centre(t, y);
        double total = 0.0;
        const double *b = rows_.data();
        for (std::size_t i = 0; i < seen(); ++i, b += n) {
            double *K = gains_.data() + i * n, s = 1.0, e = residual_[i];
            for (std::size_t a = 0; a < n; ++a) {
                double sum = 0.0;
                for (std::size_t c = 0; c < n; ++c) sum += S_[c * n + a] * b[c];
                phi_[a] = sum;
                s += sum * sum;
            }
            for (std::size_t a = 0; a < n; ++a) {
                double sum = 0.0;
                for (std::size_t c = 0; c < n; ++c) sum += S_[a * n + c] * phi_[c];
                K[a] = sum / s;
            }
            const double part = s / (s + std::sqrt(s));  // Potter: S (I - phi phi' / (s + sqrt s))
            for (std::size_t a = 0; a < n; ++a)
                for (std::size_t c = 0; c < n; ++c) S_[a * n + c] -= part * K[a] * phi_[c];
            for (std::size_t a = 0; a < n; ++a) e -= b[a] * m0_[a];
            for (std::size_t a = 0; a < n; ++a) m0_[a] += K[a] * e;
            variance_[i] = s;
            error_[i] = e;
            total -= 0.5 * (std::log(s) + e * e / s);
        }
        square();
        return total - constants();
    }

    void predict(std::size_t t, bool repeat) {
        KalmanStep::predict(t, true);  // the mean
        if (repeat) return;
        const std::size_t n = m_.n;
        const double *A = m_.A.at(t);
        if (!m_.W.constant()) semidefinite_root(m_.W.at(t), n, root_.data());
        for (std::size_t a = 0; a < n; ++a)  // [(A S)'; root'], whose R' is the new root
            for (std::size_t c = 0; c < n; ++c) {
                double sum = 0.0;
                for (std::size_t k = 0; k < n; ++k) sum += A[c * n + k] * S_[k * n + a];
                stacked_[a * n + c] = sum;
                stacked_[(n + a) * n + c] = root_[c * n + a];
            }
        triangle();
        square();
    }

private:
    // Householder's reflections of the 2 n x n matrix; S = R'.
    void triangle() {
        const std::size_t n = m_.n, rows = 2 * n;
        for (std::size_t j = 0; j < n; ++j) {
            double norm = 0.0;
            for (std::size_t i = j; i < rows; ++i) norm += stacked_[i * n + j] * stacked_[i * n + j];
            norm = std::sqrt(norm);
            if (norm == 0.0) continue;
            const double head = stacked_[j * n + j], diagonal = head > 0.0 ? -norm : norm;
            stacked_[j * n + j] = head - diagonal;
            const double scale = -1.0 / (diagonal * stacked_[j * n + j]);
            for (std::size_t c = j + 1; c < n; ++c) {
                double sum = 0.0;
                for (std::size_t i = j; i < rows; ++i) sum += stacked_[i * n + j] * stacked_[i * n + c];
                sum *= scale;
                for (std::size_t i = j; i < rows; ++i) stacked_[i * n + c] -= sum * stacked_[i * n + j];
            }
            for (std::size_t i = j + 1; i < rows; ++i) stacked_[i * n + j] = 0.0;
            stacked_[j * n + j] = diagonal;
        }
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t c = 0; c < n; ++c) S_[a * n + c] = c <= a ? stacked_[c * n + a] : 0.0;
    }

    void square() {
        const std::size_t n = m_.n;
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t c = 0; c <= a; ++c) {
                double sum = 0.0;
                for (std::size_t k = 0; k < n; ++k) sum += S_[a * n + k] * S_[c * n + k];
                P_[a * n + c] = P_[c * n + a] = sum;
            }
    }

    std::vector<double> S_, root_, stacked_, phi_;
};

class InformationStep : public KalmanStep {
public:
    static constexpr bool settles = false;

    explicit InformationStep(const StateSpace &m) : KalmanStep(m), H_(m.n * m.n), shift_(m.n) {
        good_ = inverse(m.cov, m.n, H_.data(), log_det_);
        log_det_ = -log_det_;
    }

    double observe(std::size_t t, const double *y, bool) {
        if (!good_ || !whiten(t, y)) return std::numeric_limits<double>::quiet_NaN();
        const std::size_t n = m_.n;
        centre(t, y);
        std::fill(shift_.begin(), shift_.end(), 0.0);
        double squares = 0.0;
        const double *b = rows_.data();
        for (std::size_t i = 0; i < seen(); ++i, b += n) {
            double e = residual_[i];
            for (std::size_t a = 0; a < n; ++a) e -= b[a] * m0_[a];
            squares += e * e;
            for (std::size_t a = 0; a < n; ++a) {
                shift_[a] += b[a] * e;
                for (std::size_t c = 0; c < n; ++c) H_[a * n + c] += b[a] * b[c];
            }
        }
        double after = 0.0;
        good_ = inverse(H_.data(), n, P_.data(), after);
        if (!good_) return std::numeric_limits<double>::quiet_NaN();
        for (std::size_t a = 0; a < n; ++a) {
            double step = 0.0;
            for (std::size_t c = 0; c < n; ++c) step += P_[a * n + c] * shift_[c];
            squares -= shift_[a] * step;
            m0_[a] += step;
        }
        const double density = -0.5 * (squares + after - log_det_) - constants();
        symmetric(P_);
        return density;
    }

    void predict(std::size_t t, bool) {
        KalmanStep::predict(t, false);
        good_ = good_ && inverse(P_.data(), m_.n, H_.data(), log_det_);
        log_det_ = -log_det_;
        symmetric(H_);
    }

private:
    void symmetric(std::vector<double> &X) const {
        const std::size_t n = m_.n;
        for (std::size_t a = 0; a < n; ++a)
            for (std::size_t c = 0; c < a; ++c) X[a * n + c] = X[c * n + a] = 0.5 * (X[a * n + c] + X[c * n + a]);
    }

    std::vector<double> H_, shift_;
    double log_det_ = 0.0;  // of H before the observation
    bool good_ = true;
};

}  // namespace epicycle
