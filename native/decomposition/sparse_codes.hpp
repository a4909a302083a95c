// Sparse codes w of a row x over the atoms of a dictionary, from G = DD', c = Dx and x'x alone:
//
//     lasso   minimise 1/2 w'Gw - c'w + alpha |w|_1, by coordinate descent and Newton steps until the duality gap is
//     small omp     the atom most correlated with the residual joins, then least squares on all that have joined lars
//     least angles: the active atoms keep equal correlations, until the next one catches up
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/triangular.hpp"

namespace epicycle {

struct Gram {
    const double *G;
    std::size_t k;
    const double *row(std::size_t t) const { return G + t * k; }
    double square(std::size_t t) const { return G[t * k + t]; }
};

// Cholesky's factor of the Gram matrix of atoms that join one by one.
class Joined {
public:
    // At most `most` of k atoms.
    Joined(std::size_t most, std::size_t k) : used(k, 0), most(most), L(most * most) { atoms.reserve(most); }
    std::vector<std::size_t> atoms;
    std::vector<char> used;  // those that have joined or depend on them

    // Joins the next independent atom in the order of the correlations q; false where none is left above the rounding
    // of the largest one at the start.
    bool join_next(const Gram &D, const double *q, double largest) {
        for (;;) {
            std::size_t best = D.k;
            for (std::size_t t = 0; t < D.k; ++t)
                if (!used[t] && (best == D.k || std::abs(q[t]) > std::abs(q[best]))) best = t;
            if (best == D.k || !(std::abs(q[best]) > 1e-14 * largest)) return false;
            used[best] = 1;
            if (join(D, best)) return true;
        }
    }

    // False where the atom depends on those before it.
    bool join(const Gram &D, std::size_t t) {
        const std::size_t n = atoms.size();
        double rest = D.square(t);
        double *row = L.data() + n * most;
        for (std::size_t i = 0; i < n; ++i) {
            double sum = D.row(t)[atoms[i]];
            for (std::size_t j = 0; j < i; ++j) sum -= row[j] * L[i * most + j];
            row[i] = sum / L[i * most + i];
            rest -= row[i] * row[i];
        }
        if (!(rest > 1e-10 * D.square(t))) return false;
        row[n] = std::sqrt(rest);
        atoms.push_back(t);
        return true;
    }
    void solve(std::vector<double> &x) const { solve_cholesky(L.data(), most, atoms.size(), x.data()); }

private:
    std::size_t most;
    std::vector<double> L;
};

constexpr std::int64_t SWEEPS_BETWEEN_STEPS = 16;

// w += length * step over these atoms, as far as signs hold and no farther than `most`; true where an atom has become
// zero.
inline bool move_along(const Gram &D, const std::vector<std::size_t> &atoms, const std::vector<double> &step,
                       double most, double *w, double *q) {
    const std::size_t n = atoms.size();
    std::size_t first = n;
    double length = most;
    for (std::size_t i = 0; i < n; ++i) {
        const double x = w[atoms[i]];
        if (step[i] * x < 0.0 && -x / step[i] < length) length = -x / step[i], first = i;
    }
    if (!std::isfinite(length)) return false;
    for (std::size_t i = 0; i < n; ++i) {
        double &x = w[atoms[i]];
        const double next = i == first ? 0.0 : x + length * step[i], moved = next - x;
        const double *row = D.row(atoms[i]);
        x = next;
        for (std::size_t s = 0; s < D.k; ++s) q[s] -= moved * row[s];
    }
    return first < n;
}

// Moves w to the minimiser of the lasso over its atoms with the signs they have; atoms whose signs do not hold go on
// the way, and the objective falls. Of atoms that depend on each other one goes before, along a combination that leaves
// D'w as it is. Sweeps alone take thousands where atoms resemble each other and the penalty is small.
inline void newton_step(const Gram &D, double alpha, double *w, double *q) {
    const auto downhill = [&](std::size_t t) { return q[t] - std::copysign(alpha, w[t]); };
    std::vector<double> step;
    for (bool again = true; again;) {
        again = false;
        const auto n = static_cast<std::size_t>(std::count_if(w, w + D.k, [](double x) { return x != 0.0; }));
        Joined joined(n, D.k);
        for (std::size_t t = 0; t < D.k && !again; ++t) {
            if (w[t] == 0.0 || joined.join(D, t)) continue;
            step.clear();
            for (const std::size_t atom : joined.atoms) step.push_back(D.row(t)[atom]);
            joined.solve(step);
            double slope = -downhill(t), curvature = D.square(t);
            for (std::size_t i = 0; i < step.size(); ++i) {
                slope += step[i] * downhill(joined.atoms[i]);
                curvature -= step[i] * D.row(t)[joined.atoms[i]];
            }
            step.push_back(-1.0);
            joined.atoms.push_back(t);
            if (slope < 0.0)
                for (double &x : step) x = -x;
            const double most = curvature > 0.0 ? std::abs(slope) / curvature : HUGE_VAL;
            if (!move_along(D, joined.atoms, step, most, w, q)) return;
            again = true;
        }
        if (again) continue;
        step.clear();
        for (const std::size_t atom : joined.atoms) step.push_back(downhill(atom));
        joined.solve(step);
        again = move_along(D, joined.atoms, step, 1.0, w, q);
    }
}

// Moves w, and leaves q = c - Gw; returns the duality gap at the end.
inline double lasso_code(const Gram &D, const double *c, double xx, double alpha, bool positive, std::int64_t sweeps,
                         double target, double *w, double *q) {
    const std::size_t k = D.k;
    std::copy(c, c + k, q);
    for (std::size_t t = 0; t < k; ++t)
        if (w[t] != 0.0)
            for (std::size_t s = 0; s < k; ++s) q[s] -= w[t] * D.row(t)[s];
    const auto gap = [&] {
        // r = x - D'w scaled into the dual set: s r with s |D r| <= alpha
        double wc = 0.0, wq = 0.0, size = 0.0, most = 0.0;
        for (std::size_t t = 0; t < k; ++t) {
            wc += w[t] * c[t], wq += w[t] * q[t], size += std::abs(w[t]);
            most = std::max(most, positive ? q[t] : std::abs(q[t]));
        }
        const double rr = std::max(xx - wc - wq, 0.0), rx = xx - wc;
        double s = rr > 0.0 ? rx / rr : 1.0;
        if (most > 0.0) s = std::min(s, alpha / most);
        if (!positive && most > 0.0) s = std::max(s, -alpha / most);
        s = std::max(s, 0.0);
        return std::max(0.5 * rr + alpha * size - s * rx + 0.5 * s * s * rr, 0.0);
    };
    double left = gap();
    for (std::int64_t sweep = 0; sweep < sweeps && left > target; ++sweep) {
        if (sweep % SWEEPS_BETWEEN_STEPS == SWEEPS_BETWEEN_STEPS - 1) newton_step(D, alpha, w, q);
        bool moved = false;
        for (std::size_t t = 0; t < k; ++t) {
            const double square = D.square(t);
            if (!(square > 0.0)) continue;
            const double at = q[t] + square * w[t];
            double next = 0.0;
            if (at > alpha)
                next = (at - alpha) / square;
            else if (at < -alpha && !positive)
                next = (at + alpha) / square;
            const double step = next - w[t];
            if (step == 0.0) continue;
            moved = true;
            w[t] = next;
            const double *row = D.row(t);
            for (std::size_t s = 0; s < k; ++s) q[s] -= step * row[s];
        }
        left = gap();
        if (!moved) break;  // rounding is all that is left
    }
    return left;
}

inline double largest_entry(const double *c, std::size_t k) {
    double largest = 0.0;
    for (std::size_t t = 0; t < k; ++t) largest = std::max(largest, std::abs(c[t]));
    return largest;
}

inline void omp_code(const Gram &D, const double *c, std::size_t count, double *w, double *q) {
    const std::size_t k = D.k;
    std::copy(c, c + k, q);
    std::fill(w, w + k, 0.0);
    Joined joined(count, k);
    std::vector<double> x;
    const double largest = largest_entry(c, k);
    while (joined.atoms.size() < count && joined.join_next(D, q, largest)) {
        x.assign(joined.atoms.size(), 0.0);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = c[joined.atoms[i]];
        joined.solve(x);
        std::copy(c, c + k, q);
        for (std::size_t i = 0; i < x.size(); ++i)
            for (std::size_t s = 0; s < k; ++s) q[s] -= x[i] * D.row(joined.atoms[i])[s];
    }
    for (std::size_t i = 0; i < joined.atoms.size(); ++i) w[joined.atoms[i]] = x[i];
}

inline void lars_code(const Gram &D, const double *c, std::size_t count, double *w, double *q) {
    const std::size_t k = D.k;
    std::copy(c, c + k, q);
    std::fill(w, w + k, 0.0);
    Joined joined(count, k);
    std::vector<double> x, along(k);
    const double largest = largest_entry(c, k);
    while (joined.atoms.size() < count && joined.join_next(D, q, largest)) {
        const double level = std::abs(q[joined.atoms.back()]);
        x.assign(joined.atoms.size(), 0.0);
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = q[joined.atoms[i]] > 0.0 ? 1.0 : -1.0;
        joined.solve(x);
        std::fill(along.begin(), along.end(), 0.0);  // how fast correlations change along x; 1 in the active atoms
        for (std::size_t i = 0; i < x.size(); ++i)
            for (std::size_t s = 0; s < k; ++s) along[s] += x[i] * D.row(joined.atoms[i])[s];
        double step = level;  // to the least squares of the active atoms
        for (std::size_t t = 0; t < k; ++t) {
            if (joined.used[t]) continue;
            for (const double side : {1.0, -1.0}) {
                const double rate = 1.0 - side * along[t];
                if (rate > 1e-12) step = std::min(step, std::max((level - side * q[t]) / rate, 0.0));
            }
        }
        for (std::size_t i = 0; i < x.size(); ++i) w[joined.atoms[i]] += step * x[i];
        for (std::size_t s = 0; s < k; ++s) q[s] -= step * along[s];
    }
}

}  // namespace epicycle
