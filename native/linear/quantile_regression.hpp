// Simplex pivots for  min_beta f(beta) = sum_i u_i max(r_i, 0) + l_i max(-r_i, 0) - g'beta,  r = y - A beta.
//
// Row i < n of A is ((x_i - shift) * inv_scale, 1); rows n .. n + d - 1 are the unit rows of the coordinates (their y
// is 0, so r = -beta_j), with bounds `penalty`: 0 where a coordinate is free, finite for an L1 penalty, infinite where
// it is held at zero. A vertex is d rows B with zero residuals. With d_i = u_i or -l_i by the sign of r_i outside of B
// and c = g + sum d_i a_i, it is optimal when d_B = -B^-T c lies within [-l, u]; otherwise f falls along the edge on
// which the residual of one offending row k leaves zero, down to the row where the slope turns: that row replaces k
// (Barrodale and Roberts 1973).
//
// Ties. Residuals are pairs r + eps q with fixed generic q, compared in that order, so that several rows through one
// vertex cannot make the pivots cycle. Where f has a flat of minima, the one that is lowest in -g2'beta is taken: the
// solution is then a function of f alone, whatever the order or the repetition of rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/sparse.hpp"
#include "linear/logistic.hpp"

namespace epicycle {

// z_i = b + (x_i - shift)'w for all rows; sparse rows are not shifted.
template <class T>
void all_margins(const Dense<T> &X, const double *shift, const double *w, double b, double *z) {
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS) margins(X, i0, std::min(ROWS, X.rows - i0), shift, w, b, z + i0);
}
template <class T, class I>
void all_margins(const Csr<T, I> &X, const double *, const double *w, double b, double *z) {
    for (std::size_t i = 0; i < X.rows; ++i) {
        double sum = b;
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) sum += static_cast<double>(X.data[a]) * w[X.indices[a]];
        z[i] = sum;
    }
}

// g = sum_i r_i (x_i - shift, 1), of p + 1 entries, zero on entry.
template <class T>
void all_gradient(const Dense<T> &X, const double *shift, const double *r, double *g) {
    for (std::size_t i0 = 0; i0 < X.rows; i0 += ROWS)
        add_gradient(X, i0, std::min(ROWS, X.rows - i0), shift, r + i0, g);
    for (std::size_t i = 0; i < X.rows; ++i) g[X.cols] += r[i];
}
template <class T, class I>
void all_gradient(const Csr<T, I> &X, const double *, const double *r, double *g) {
    for (std::size_t i = 0; i < X.rows; ++i) {
        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a) g[X.indices[a]] += r[i] * static_cast<double>(X.data[a]);
        g[X.cols] += r[i];
    }
}

// out = (x_i - shift) * inv_scale, 1.
template <class T>
void scaled_row(const Dense<T> &X, std::size_t i, const double *shift, const double *inv_scale, double *out) {
    for (std::size_t j = 0; j < X.cols; ++j) out[j] = (static_cast<double>(X(i, j)) - shift[j]) * inv_scale[j];
    out[X.cols] = 1.0;
}
template <class T, class I>
void scaled_row(const Csr<T, I> &X, std::size_t i, const double *, const double *inv_scale, double *out) {
    std::fill(out, out + X.cols, 0.0);
    for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a)
        out[X.indices[a]] += static_cast<double>(X.data[a]) * inv_scale[X.indices[a]];
    out[X.cols] = 1.0;
}

enum class Pivoting { optimal, out_of_pivots, singular, unbounded };

template <class Rows>
struct QuantileVertex {
    const Rows &X;
    const double *shift, *inv_scale, *y, *upper, *lower, *penalty, *g, *g2;
    std::size_t n, d;
    std::int64_t *basis;  // d rows, in-out
    double *inverse;      // d x d, row-major, of B (row k of B is row basis[k] of A), in-out

    std::vector<double> beta{}, r{}, q{}, h{}, c{}, edge{}, unscaled{}, row{}, dual{}, dual2{};
    std::vector<signed char> side{};  // of the residual; 0 in the basis and for rows that are not there
    struct Crossing {
        double t, s;
        std::size_t i;
        bool operator<(const Crossing &o) const { return t != o.t ? t > o.t : s > o.s; }  // a heap of the smallest
    };
    std::vector<Crossing> crossings{};

    double bound_up(std::size_t i) const { return i < n ? upper[i] : penalty[i - n]; }
    double bound_low(std::size_t i) const { return i < n ? lower[i] : penalty[i - n]; }
    double target(std::size_t i) const { return i < n ? y[i] : 0.0; }

    void load_row(std::size_t i) {
        if (i < n) return scaled_row(X, i, shift, inv_scale, row.data());
        std::fill(row.begin(), row.end(), 0.0);
        row[i - n] = 1.0;
    }
    // out_i = a_i'v for all rows.
    void products(const double *v, double *out) {
        for (std::size_t j = 0; j + 1 < d; ++j) unscaled[j] = v[j] * inv_scale[j];
        all_margins(X, shift, unscaled.data(), v[d - 1], out);
        std::copy(v, v + d, out + n);
    }
    // out = B^-1 v, once refined.
    void solve(const double *v, double *out) {
        std::vector<double> rest(d);
        std::fill(out, out + d, 0.0);
        for (int sweep = 0; sweep < 2; ++sweep) {
            for (std::size_t k = 0; k < d; ++k) {
                load_row(basis[k]);
                double sum = v[k];
                for (std::size_t j = 0; j < d; ++j) sum -= row[j] * out[j];
                rest[k] = sum;
            }
            for (std::size_t j = 0; j < d; ++j)
                for (std::size_t k = 0; k < d; ++k) out[j] += inverse[j * d + k] * rest[k];
        }
    }

    // Generic and fixed: the fractional part of a multiple of the golden ratio, in [1, 2).
    static double generic(std::size_t i) {
        const double v = static_cast<double>(i + 1) * 0.6180339887498949;
        return 1.0 + (v - std::floor(v));
    }

    void residuals() {
        std::vector<double> v(d), eta(d), size(d, 0.0);  // size: of the terms that beta is the sum of
        for (std::size_t k = 0; k < d; ++k) v[k] = target(basis[k]);
        solve(v.data(), beta.data());
        for (std::size_t j = 0; j < d; ++j)
            for (std::size_t k = 0; k < d; ++k) size[j] += std::fabs(inverse[j * d + k] * v[k]);
        for (std::size_t k = 0; k < d; ++k) v[k] = generic(basis[k]);
        solve(v.data(), eta.data());
        products(beta.data(), r.data());
        products(eta.data(), q.data());
        for (std::size_t i = 0; i < n + d; ++i) {
            // What is left of y by cancellation alone is a tie.
            double magnitude = std::fabs(target(i));
            load_row(i);
            for (std::size_t j = 0; j < d; ++j) magnitude += std::fabs(row[j]) * size[j];
            r[i] = target(i) - r[i];
            if (std::fabs(r[i]) <= 32 * std::numeric_limits<double>::epsilon() * magnitude) r[i] = 0.0;
            q[i] = generic(i) - q[i];
            const bool there = bound_up(i) + bound_low(i) > 0.0;
            side[i] = !there ? 0 : r[i] != 0.0 ? (r[i] > 0.0 ? 1 : -1) : q[i] >= 0.0 ? 1 : -1;
        }
        for (std::size_t k = 0; k < d; ++k) r[basis[k]] = q[basis[k]] = 0.0, side[basis[k]] = 0;
    }

    void gather() {  // c = g + sum of d_i a_i outside of the basis
        std::vector<double> bound(n), sums(d, 0.0);
        for (std::size_t i = 0; i < n; ++i) bound[i] = side[i] > 0 ? upper[i] : side[i] < 0 ? -lower[i] : 0.0;
        all_gradient(X, shift, bound.data(), sums.data());
        for (std::size_t j = 0; j < d; ++j)
            c[j] =
                g[j] + (j + 1 < d ? sums[j] * inv_scale[j] : sums[j]) + side[n + j] * (side[n + j] ? penalty[j] : 0.0);
    }

    void back_solve(const double *v, double *out) const {  // out = -B^-T v
        std::fill(out, out + d, 0.0);
        for (std::size_t j = 0; j < d; ++j)
            for (std::size_t k = 0; k < d; ++k) out[k] -= inverse[j * d + k] * v[j];
    }

    void add_row(std::size_t i, double factor) {
        load_row(i);
        for (std::size_t j = 0; j < d; ++j) c[j] += factor * row[j];
    }

    void start() {
        beta.resize(d), c.resize(d), edge.resize(d), unscaled.resize(d), row.resize(d), dual.resize(d), dual2.resize(d);
        r.resize(n + d), q.resize(n + d), h.resize(n + d), side.resize(n + d);
        residuals();
        gather();
    }

    // The offending row and the sign with which its residual leaves zero; d if there is none.
    std::size_t offender(double &sign) {
        back_solve(c.data(), dual.data());
        back_solve(g2, dual2.data());
        std::size_t best = d;
        double worst = 0.0;
        bool second = true;
        for (std::size_t k = 0; k < d; ++k) {
            const double up = bound_up(basis[k]), low = bound_low(basis[k]);
            if (!std::isfinite(up)) continue;
            const double over = dual[k] - up, under = -low - dual[k], tie = 1e-10 * (up + low);
            double length = 0.0;
            for (std::size_t j = 0; j < d; ++j) length += inverse[j * d + k] * inverse[j * d + k];
            length = std::sqrt(length);
            const double excess = std::max(over, under) / length;
            if (std::max(over, under) > tie) {
                if (second || excess > worst) best = k, worst = excess, sign = over > under ? 1.0 : -1.0;
                second = false;
            } else if (second && std::max(over, under) >= -tie) {  // flat along this edge: the second objective decides
                const double s = over > under ? 1.0 : -1.0, gain = s * dual2[k] / length;
                if (gain > 1e-9 && gain > worst) best = k, worst = gain, sign = s;
            }
        }
        flat = second;
        return best;
    }
    bool flat = false;

    Pivoting pivot() {
        double sign = 0.0;
        const std::size_t k = offender(sign);
        if (k == d) return Pivoting::optimal;
        const std::size_t leaving = basis[k];
        for (std::size_t j = 0; j < d; ++j) edge[j] = -sign * inverse[j * d + k];
        products(edge.data(), h.data());
        double slope = flat ? 0.0 : (sign > 0 ? bound_up(leaving) - dual[k] : bound_low(leaving) + dual[k]);
        crossings.clear();
        for (std::size_t i = 0; i < n + d; ++i) {
            if (side[i] * h[i] <= 0.0) continue;
            crossings.push_back({std::max(r[i] / h[i], 0.0), q[i] / h[i], i});
        }
        std::make_heap(crossings.begin(), crossings.end());
        std::size_t entering = n + d;
        double t = 0.0, s = 0.0;
        std::size_t passed = 0;
        for (auto end = crossings.end(); end != crossings.begin(); ++passed) {
            std::pop_heap(crossings.begin(), end);
            --end;
            const std::size_t i = end->i;
            slope += (bound_up(i) + bound_low(i)) * std::fabs(h[i]);
            // A row that is nearly parallel to the edge would make the basis singular: passed over, f falls on.
            if (slope >= 0.0 && std::fabs(h[i]) > 1e-11) {
                entering = i, t = end->t, s = end->s;
                break;
            }
        }
        if (entering == n + d) return crossings.empty() || slope < 0.0 ? Pivoting::unbounded : Pivoting::singular;
        for (std::size_t a = crossings.size() - passed; a < crossings.size(); ++a) {
            const std::size_t i = crossings[a].i;
            add_row(i, -side[i] * (bound_up(i) + bound_low(i)));
            side[i] = static_cast<signed char>(-side[i]);
        }
        add_row(entering, side[entering] > 0 ? -bound_up(entering) : bound_low(entering));
        add_row(leaving, sign > 0 ? bound_up(leaving) : -bound_low(leaving));
        for (std::size_t i = 0; i < n + d; ++i) r[i] -= t * h[i], q[i] -= s * h[i];
        for (std::size_t b = 0; b < d; ++b) r[basis[b]] = q[basis[b]] = 0.0;
        for (std::size_t j = 0; j < d; ++j) beta[j] += t * edge[j];
        side[entering] = 0, r[entering] = q[entering] = 0.0;
        side[leaving] = sign > 0 ? 1 : -1, r[leaving] = sign * t, q[leaving] = sign * s;
        exchange(k, entering);
        return Pivoting::out_of_pivots;
    }

    // Row k of B becomes row `entering` of A: a rank-one change of the inverse.
    void exchange(std::size_t k, std::size_t entering) {
        load_row(entering);
        std::vector<double> across(d, 0.0);
        for (std::size_t j = 0; j < d; ++j)
            for (std::size_t m = 0; m < d; ++m) across[m] += row[j] * inverse[j * d + m];
        const double pivot = across[k];
        across[k] -= 1.0;
        for (std::size_t j = 0; j < d; ++j) {
            const double factor = inverse[j * d + k] / pivot;
            for (std::size_t m = 0; m < d; ++m) inverse[j * d + m] -= factor * across[m];
        }
        basis[k] = static_cast<std::int64_t>(entering);
    }

    // At most `pivots` of them; their number comes back in `done`.
    Pivoting run(std::size_t pivots, std::size_t &done) {
        start();
        Pivoting state = Pivoting::out_of_pivots;
        for (done = 0; state == Pivoting::out_of_pivots && done < pivots; ++done) state = pivot();
        if (state == Pivoting::optimal) --done;
        return state;
    }

    // d over all rows, within its bounds.
    void duals(double *out) {
        for (std::size_t i = 0; i < n + d; ++i) out[i] = side[i] > 0 ? bound_up(i) : side[i] < 0 ? -bound_low(i) : 0.0;
        back_solve(c.data(), dual.data());
        for (std::size_t k = 0; k < d; ++k) {
            const std::size_t i = basis[k];
            out[i] = std::min(std::max(dual[k], -bound_low(i)), bound_up(i));
        }
    }
};

}  // namespace epicycle
