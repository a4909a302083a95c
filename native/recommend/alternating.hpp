// Half-steps of alternating least squares. For every row u (a user, or an item in the other half) the minimiser x of
//
//     1/2 sum_j a_j (t_j - o_j - x'z_j)^2 + 1/2 x'(B + s_u diag(penalty)) x,     z_j = (y_j, 1),
//
// over the row's entries j. y_j and o_j are the factors and the bias of the entry's partner; without biases z_j = y_j
// and o_j = 0. Rows are independent: each is solved by one thread, so the bits do not depend on how many there are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/rows.hpp"
#include "core/syrk.hpp"
#include "core/threads.hpp"

namespace epicycle::recommend {

// Entries of the rows: those of row u are start[u] .. start[u + 1] - 1. Without `curvature` every a_j is 1.
struct Entries {
    const std::int64_t *start;
    const std::int32_t *at;
    const double *target, *curvature;
    std::size_t rows;

    double a(std::int64_t j) const { return curvature ? curvature[j] : 1.0; }
};

// Parameters of one side: k factors, and behind them the bias where there is one.
struct Partners {
    const double *values;
    std::size_t k;
    bool bias;

    std::size_t d() const { return k + bias; }
    const double *row(std::int32_t i) const { return values + static_cast<std::size_t>(i) * d(); }
    double offset(std::int32_t i) const { return bias ? row(i)[k] : 0.0; }
    // x'z of a row x of the other side.
    double product(const double *x, std::int32_t i) const { return dense_dot(row(i), x, k) + (bias ? x[k] : 0.0); }
};

struct Quadratic {
    const double *base;     // d x d, symmetric
    const double *penalty;  // d
    const double *scale;    // s_u
};

// The lower Cholesky factor of the d x d matrix in c, in place, by columns. Pivots that rounding leaves without digits
// are lifted to the size of its errors: the step stays finite, and the gradient afterwards shows what it is worth.
EPICYCLE_CLONES inline void factorise(double *c, std::size_t ld, std::size_t d, double *column) {
    for (std::size_t j = 0; j < d; ++j) {
        const double root = std::sqrt(c[j * ld + j]);
        c[j * ld + j] = root;
        for (std::size_t i = j + 1; i < d; ++i) c[i * ld + j] = column[i] = c[i * ld + j] / root;
        for (std::size_t i = j + 1; i < d; ++i) {
            double *row = c + i * ld;
            const double l = column[i], before = row[i];
            for (std::size_t m = j + 1; m <= i; ++m) row[m] -= l * column[m];
            const double least = std::numeric_limits<double>::epsilon() * before;
            if (!(row[i] > least)) row[i] = std::max(least, std::numeric_limits<double>::min());
        }
    }
}

inline void solve_factorised(const double *c, std::size_t ld, std::size_t d, double *x) {
    for (std::size_t i = 0; i < d; ++i) x[i] = (x[i] - dense_dot(c + i * ld, x, i)) / c[i * ld + i];
    for (std::size_t i = d; i-- > 0;) {
        x[i] /= c[i * ld + i];
        dense_add(c + i * ld, -x[i], x, i);
    }
}

// Packed rows sqrt(a) (y, 1, t - o), whose second moments hold the matrix and the right-hand side of a row's equations.
struct NormalEquations {
    PackedRows block;
    std::vector<double, CacheAligned<double>> c;
    std::vector<double> column, b, g;
    std::size_t d, ld;

    explicit NormalEquations(std::size_t d)
        : block(d + 1), c(panels(d + 1) * PANEL * panels(d + 1) * PANEL), column(d), b(d), g(d), d(d),
          ld(panels(d + 1) * PANEL) {}

    void pack(const Entries &e, const Partners &partners, std::int64_t from, std::size_t n) {
        const std::size_t k = partners.k;
        for (std::size_t r = 0; r < n; ++r) {
            const std::int64_t j = from + static_cast<std::int64_t>(r);
            const std::int32_t i = e.at[j];
            const double root = std::sqrt(e.a(j)), *y = partners.row(i);
            std::size_t m = 0;
            for (double *to = block.packed.data() + r * PANEL; m + PANEL <= k; m += PANEL, to += ROWS * PANEL)
                for (std::size_t q = 0; q < PANEL; ++q) to[q] = root * y[m + q];
            for (; m < k; ++m) block.column(m)[r * PANEL] = root * y[m];
            if (partners.bias) block.column(k)[r * PANEL] = root;
            block.column(d)[r * PANEL] = root * (e.target[j] - partners.offset(i));
        }
    }

    void accumulate(const Entries &e, const Partners &partners, std::size_t u) {
        std::fill(c.begin(), c.end(), 0.0);
        for (std::int64_t from = e.start[u]; from < e.start[u + 1]; from += ROWS) {
            const auto n = static_cast<std::size_t>(std::min<std::int64_t>(ROWS, e.start[u + 1] - from));
            pack(e, partners, from, n);
            syrk(block.packed.data(), n, d + 1, c.data());
        }
        for (std::size_t i = 0; i < d; ++i) b[i] = c[d * ld + i];
    }

    void add(const Quadratic &q, std::size_t u) {
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j <= i; ++j) c[i * ld + j] += q.base[i * d + j];
            c[i * ld + i] += q.scale[u] * q.penalty[i];
        }
    }

    // The minimiser, written to x.
    void solve(double *x) {
        std::copy(b.begin(), b.end(), x);
        factorise(c.data(), ld, d, column.data());
        solve_factorised(c.data(), ld, d, x);
    }
};

// Solves every row exactly. `size`: the squared norm of the right-hand side of each row.
template <class Interrupt>
void half_step(const Entries &e, const Partners &partners, const Quadratic &q, double *x, double *size, int threads,
               const Interrupt &interrupt) {
    const std::size_t d = partners.d();
    in_pieces(0, e.rows, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads)
        {
            NormalEquations equations(d);
#pragma omp for schedule(dynamic, 4)
            for (std::size_t u = from; u < to; ++u) {
                equations.accumulate(e, partners, u);
                size[u] = dense_dot(equations.b.data(), equations.b.data(), d);
                equations.add(q, u);
                equations.solve(x + u * d);
            }
        }
    });
}

// A few steps of conjugate gradients on every row, from where it is: the objective falls with each of them.
struct ConjugateGradients {
    std::vector<double> r, p, product, rhs;
    explicit ConjugateGradients(std::size_t d) : r(d), p(d), product(d), rhs(d) {}

    // out = (B + s diag(penalty) + sum_j a_j z_j z_j') v
    void apply(const Entries &e, const Partners &partners, const Quadratic &q, std::size_t u, const double *v,
               std::vector<double> &out) const {
        const std::size_t d = partners.d(), k = partners.k;
        for (std::size_t i = 0; i < d; ++i) out[i] = dense_dot(q.base + i * d, v, d) + q.scale[u] * q.penalty[i] * v[i];
        for (std::int64_t j = e.start[u]; j < e.start[u + 1]; ++j) {
            const std::int32_t i = e.at[j];
            const double slope = e.a(j) * partners.product(v, i);
            dense_add(partners.row(i), slope, out.data(), k);
            if (partners.bias) out[k] += slope;
        }
    }

    void right_hand_side(const Entries &e, const Partners &partners, std::size_t u) {
        std::fill(rhs.begin(), rhs.end(), 0.0);
        for (std::int64_t j = e.start[u]; j < e.start[u + 1]; ++j) {
            const std::int32_t i = e.at[j];
            const double slope = e.a(j) * (e.target[j] - partners.offset(i));
            dense_add(partners.row(i), slope, rhs.data(), partners.k);
            if (partners.bias) rhs[partners.k] += slope;
        }
    }

    double solve(const Entries &e, const Partners &partners, const Quadratic &q, std::size_t u, int steps, double *x) {
        const std::size_t d = partners.d();
        right_hand_side(e, partners, u);
        apply(e, partners, q, u, x, r);
        for (std::size_t i = 0; i < d; ++i) p[i] = r[i] = rhs[i] - r[i];
        double norm = dense_dot(r.data(), r.data(), d);
        const double enough = 1e-30 * norm;
        for (int step = 0; step < steps && norm > enough; ++step) {
            apply(e, partners, q, u, p.data(), product);
            const double curvature = dense_dot(p.data(), product.data(), d);
            if (!(curvature > 0.0)) break;
            const double length = norm / curvature;
            for (std::size_t i = 0; i < d; ++i) x[i] += length * p[i], r[i] -= length * product[i];
            const double before = norm;
            norm = dense_dot(r.data(), r.data(), d);
            for (std::size_t i = 0; i < d; ++i) p[i] = r[i] + norm / before * p[i];
        }
        return dense_dot(rhs.data(), rhs.data(), d);
    }
};

template <class Interrupt>
void half_step_cg(const Entries &e, const Partners &partners, const Quadratic &q, int steps, double *x, double *size,
                  int threads, const Interrupt &interrupt) {
    const std::size_t d = partners.d();
    in_pieces(0, e.rows, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads)
        {
            ConjugateGradients solver(d);
#pragma omp for schedule(dynamic, 4)
            for (std::size_t u = from; u < to; ++u) size[u] = solver.solve(e, partners, q, u, steps, x + u * d);
        }
    });
}

// The loss of every row at x, 1/2 sum_j a_j (t_j - o_j - x'z_j)^2, and its gradient (rows x d).
template <class Interrupt>
void row_losses(const Entries &e, const Partners &partners, const double *x, double *loss, double *gradient,
                int threads, const Interrupt &interrupt) {
    const std::size_t d = partners.d(), k = partners.k;
    in_pieces(0, e.rows, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16)
        for (std::size_t u = from; u < to; ++u) {
            double sum = 0.0, *g = gradient + u * d;
            std::fill(g, g + d, 0.0);
            for (std::int64_t j = e.start[u]; j < e.start[u + 1]; ++j) {
                const std::int32_t i = e.at[j];
                const double r = partners.product(x + u * d, i) + partners.offset(i) - e.target[j], slope = e.a(j) * r;
                sum += slope * r;
                dense_add(partners.row(i), slope, g, k);
                if (partners.bias) g[k] += slope;
            }
            loss[u] = 0.5 * sum;
        }
    });
}

// Second moments of (y, 1, t - o) for the rows lo .. lo + count - 1, added to `out` (count x D x D, lower triangles).
inline void add_moments(const std::int32_t *own, const std::int32_t *at, const double *target, const double *curvature,
                        std::size_t n, const Partners &partners, std::size_t lo, std::size_t count, double *out) {
    const std::size_t d = partners.d(), D = d + 1;
    std::vector<double> z(D);
    for (std::size_t j = 0; j < n; ++j) {
        const auto u = static_cast<std::size_t>(own[j]);
        if (u < lo || u - lo >= count) continue;
        std::copy_n(partners.row(at[j]), partners.k, z.begin());
        if (partners.bias) z[partners.k] = 1.0;
        z[d] = target[j] - partners.offset(at[j]);
        const double a = curvature ? curvature[j] : 1.0;
        double *m = out + (u - lo) * D * D;
        for (std::size_t r = 0; r < D; ++r) dense_add(z.data(), a * z[r], m + r * D, r + 1);
    }
}

}  // namespace epicycle::recommend
