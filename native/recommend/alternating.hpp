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
#include <cstring>
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

typedef double Eight __attribute__((vector_size(64)));

// The lower Cholesky factor of the d x d matrix in c, in place, column by column. Rows are ld apart, a multiple of
// eight, and changed eight entries at a time: left of the pivot by zeros, right of the diagonal what is never read.
// Pivots that rounding leaves without digits are lifted to the size of its errors: the step stays finite, and the
// gradient afterwards shows what it is worth. `column` has room for ld numbers.
EPICYCLE_CLONES inline void factorise(double *c, std::size_t ld, std::size_t d, double *column) {
    std::fill(column, column + ld, 0.0);
    for (std::size_t j = 0; j < d; ++j) {
        const double root = std::sqrt(c[j * ld + j]), inverse = 1.0 / root;
        c[j * ld + j] = root;
        for (std::size_t i = j + 1; i < d; ++i) c[i * ld + j] = column[i] = c[i * ld + j] * inverse;
        column[j] = 0.0;
        for (std::size_t i = j + 1; i < d; ++i) {
            double *row = c + i * ld;
            const double l = column[i], before = row[i];
            for (std::size_t m = j / 8 * 8; m <= i; m += 8) {
                Eight r, v;
                std::memcpy(&r, row + m, sizeof r);
                std::memcpy(&v, column + m, sizeof v);
                r -= l * v;
                std::memcpy(row + m, &r, sizeof r);
            }
            const double least = std::numeric_limits<double>::epsilon() * before;
            if (!(row[i] > least)) row[i] = std::max(least, std::numeric_limits<double>::min());
        }
    }
}

// g = A x - b for a symmetric matrix of which c holds the lower triangle; the upper one is written. x has d numbers, b
// and g room for ld.
EPICYCLE_CLONES inline void residual(double *c, std::size_t ld, std::size_t d, const double *x, const double *b,
                                     double *g) {
    for (std::size_t i = 0; i < d; ++i)
        for (std::size_t j = 0; j < i; ++j) c[j * ld + i] = c[i * ld + j];
    for (std::size_t m = 0; m < ld; m += 8) {
        Eight sum;
        std::memcpy(&sum, b + m, sizeof sum);
        sum = -sum;
        for (std::size_t j = 0; j < d; ++j) {
            Eight row;
            std::memcpy(&row, c + j * ld + m, sizeof row);
            sum += x[j] * row;
        }
        std::memcpy(g + m, &sum, sizeof sum);
    }
}

inline void solve_factorised(const double *c, std::size_t ld, std::size_t d, double *x) {
    for (std::size_t i = 0; i < d; ++i) x[i] = (x[i] - dense_dot(c + i * ld, x, i)) / c[i * ld + i];
    for (std::size_t i = d; i-- > 0;) {
        x[i] /= c[i * ld + i];
        dense_add(c + i * ld, -x[i], x, i);
    }
}

// The factors of the partners, padded to whole panels.
struct PaddedPartners {
    std::vector<double, CacheAligned<double>> rows;
    std::size_t ld;

    PaddedPartners(const Partners &p, std::size_t n, int threads)
        : rows(n * panels(p.k) * PANEL), ld(panels(p.k) * PANEL) {
#pragma omp parallel for num_threads(threads) schedule(static) if (n * ld > 1000000)
        for (std::size_t i = 0; i < n; ++i) std::copy_n(p.values + i * p.d(), p.k, rows.data() + i * ld);
    }
};

// Copies the partners of n entries into panels, each times its root.
EPICYCLE_CLONES inline void pack(const double *rows, std::size_t ld, const std::int32_t *at, const double *root,
                                 std::size_t n, double *packed) {
    constexpr std::size_t ahead = 6;
    for (std::size_t r = 0; r < n; ++r) {
        const double *z = rows + static_cast<std::size_t>(at[r]) * ld;
        if (r + ahead < n) {
            const double *next = rows + static_cast<std::size_t>(at[r + ahead]) * ld;
            for (std::size_t m = 0; m < ld; m += 8) __builtin_prefetch(next + m);
        }
        double *to = packed + r * PANEL;
        for (std::size_t m = 0; m < ld; m += PANEL, to += ROWS * PANEL) {
            Eight low, high;
            std::memcpy(&low, z + m, sizeof low);
            std::memcpy(&high, z + m + 8, sizeof high);
            low *= root[r];
            high *= root[r];
            std::memcpy(to, &low, sizeof low);
            std::memcpy(to + 8, &high, sizeof high);
        }
    }
}

// Adds sum_r root_r p_r to `sums` and sum_r t_r p_r to `b` for the n packed rows p of `width` numbers.
EPICYCLE_CLONES inline void add_sums(const double *packed, std::size_t n, std::size_t width, const double *root,
                                     const double *t, double *sums, double *b) {
    for (std::size_t m = 0; m < width; m += PANEL) {
        const double *p = packed + m * ROWS;
        Eight s0, s1, v0, v1, low, high;  // four sums at a time, so that none waits for itself
        std::memcpy(&s0, sums + m, sizeof s0);
        std::memcpy(&s1, sums + m + 8, sizeof s1);
        std::memcpy(&v0, b + m, sizeof v0);
        std::memcpy(&v1, b + m + 8, sizeof v1);
        for (std::size_t r = 0; r < n; ++r, p += PANEL) {
            std::memcpy(&low, p, sizeof low);
            std::memcpy(&high, p + 8, sizeof high);
            s0 += root[r] * low;
            s1 += root[r] * high;
            v0 += t[r] * low;
            v1 += t[r] * high;
        }
        std::memcpy(sums + m, &s0, sizeof s0);
        std::memcpy(sums + m + 8, &s1, sizeof s1);
        std::memcpy(b + m, &v0, sizeof v0);
        std::memcpy(b + m + 8, &v1, sizeof v1);
    }
}

// Calls work(from, to) for pieces of the rows that take some hundredths of a second, and looks for Ctrl-C between them.
template <class Interrupt, class Work>
void in_pieces_of_work(const Entries &e, std::size_t d, const Interrupt &interrupt, Work work) {
    constexpr double most = 1e9;  // multiply-adds
    const double entry = static_cast<double>(d) * static_cast<double>(d), row = entry * static_cast<double>(d + 8);
    for (std::size_t from = 0; from < e.rows;) {
        std::size_t to = from;
        for (double sum = 0.0; to < e.rows && sum < most; ++to)
            sum += row + entry * static_cast<double>(e.start[to + 1] - e.start[to]);
        work(from, to);
        interrupt();
        from = to;
    }
}

// What a half-step says about each row: the squared norm of its right-hand side, that of its gradient before the step,
// and its part of the objective after it.
enum RowNumber : int { SIZE, SLOPE, VALUE, ROW_NUMBERS };

// The equations of a row: second moments of its partners by panels, and beside them what the bias and the right-hand
// side add, which would begin a panel of their own.
struct NormalEquations {
    using Aligned = std::vector<double, CacheAligned<double>>;
    std::size_t k, d, width, ld;
    PackedRows block;
    Aligned c, A, column, sums, b, g, root, t;
    double weight = 0.0, total = 0.0, squares = 0.0;  // sums of a, a (t - o) and a (t - o)^2

    explicit NormalEquations(const Partners &p)
        : k(p.k), d(p.d()), width(panels(p.k) * PANEL), ld((p.d() + 7) / 8 * 8), block(p.k), c(width * width),
          A(d * ld), column(ld), sums(width), b(std::max(width, ld)), g(ld), root(ROWS), t(ROWS) {}

    void accumulate(const Entries &e, const Partners &partners, const PaddedPartners &padded, std::size_t u) {
        for (Aligned *part : {&c, &sums, &b}) std::fill(part->begin(), part->end(), 0.0);
        weight = total = squares = 0.0;
        for (std::int64_t from = e.start[u]; from < e.start[u + 1]; from += ROWS) {
            const auto n = static_cast<std::size_t>(std::min<std::int64_t>(ROWS, e.start[u + 1] - from));
            for (std::size_t r = 0; r < n; ++r) {
                const std::int64_t j = from + static_cast<std::int64_t>(r);
                const double a = e.a(j), error = e.target[j] - partners.offset(e.at[j]);
                root[r] = e.curvature ? std::sqrt(a) : 1.0;
                t[r] = root[r] * error;
                weight += a;
                total += a * error;
                squares += a * error * error;
            }
            if (k == 0) continue;
            pack(padded.rows.data(), padded.ld, e.at + from, root.data(), n, block.packed.data());
            syrk(block.packed.data(), n, k, c.data());
            add_sums(block.packed.data(), n, width, root.data(), t.data(), sums.data(), b.data());
        }
    }

    // A = B + s diag(penalty) + moments, its lower triangle.
    void assemble(const Quadratic &q, std::size_t u) {
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t j = 0; j <= i; ++j) A[i * ld + j] = c[i * width + j] + q.base[i * d + j];
        if (d > k) {
            for (std::size_t j = 0; j < k; ++j) A[k * ld + j] = sums[j] + q.base[k * d + j];
            A[k * ld + k] = weight + q.base[k * d + k];
            b[k] = total;
        }
        for (std::size_t i = 0; i < d; ++i) A[i * ld + i] += q.scale[u] * q.penalty[i];
    }

    // The minimiser, written to x.
    void solve(double *x, double *numbers) {
        residual(A.data(), ld, d, x, b.data(), g.data());
        numbers[SLOPE] = dense_dot(g.data(), g.data(), d);
        numbers[SIZE] = dense_dot(b.data(), b.data(), d);
        std::copy_n(b.begin(), d, x);
        factorise(A.data(), ld, d, column.data());
        solve_factorised(A.data(), ld, d, x);
        numbers[VALUE] = 0.5 * (squares - dense_dot(b.data(), x, d));
    }
};

// Solves every row exactly. `numbers`: rows x ROW_NUMBERS.
template <class Interrupt>
void half_step(const Entries &e, const Partners &partners, std::size_t n_partners, const Quadratic &q, double *x,
               double *numbers, int threads, const Interrupt &interrupt) {
    const std::size_t d = partners.d();
    const PaddedPartners padded(partners, n_partners, threads);
    in_pieces_of_work(e, d, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads)
        {
            NormalEquations equations(partners);
#pragma omp for schedule(dynamic, 4)
            for (std::size_t u = from; u < to; ++u) {
                equations.accumulate(e, partners, padded, u);
                equations.assemble(q, u);
                equations.solve(x + u * d, numbers + u * ROW_NUMBERS);
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

    // Returns sum a (t - o)^2.
    double right_hand_side(const Entries &e, const Partners &partners, std::size_t u) {
        double squares = 0.0;
        std::fill(rhs.begin(), rhs.end(), 0.0);
        for (std::int64_t j = e.start[u]; j < e.start[u + 1]; ++j) {
            const std::int32_t i = e.at[j];
            const double t = e.target[j] - partners.offset(i), slope = e.a(j) * t;
            dense_add(partners.row(i), slope, rhs.data(), partners.k);
            if (partners.bias) rhs[partners.k] += slope;
            squares += slope * t;
        }
        return squares;
    }

    void solve(const Entries &e, const Partners &partners, const Quadratic &q, std::size_t u, int steps, double *x,
               double *numbers) {
        const std::size_t d = partners.d();
        const double squares = right_hand_side(e, partners, u);
        apply(e, partners, q, u, x, r);
        for (std::size_t i = 0; i < d; ++i) p[i] = r[i] = rhs[i] - r[i];
        double norm = dense_dot(r.data(), r.data(), d);
        numbers[SIZE] = dense_dot(rhs.data(), rhs.data(), d);
        numbers[SLOPE] = norm;
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
        numbers[VALUE] = 0.5 * (squares - dense_dot(rhs.data(), x, d) - dense_dot(r.data(), x, d));
    }
};

template <class Interrupt>
void half_step_cg(const Entries &e, const Partners &partners, const Quadratic &q, int steps, double *x, double *numbers,
                  int threads, const Interrupt &interrupt) {
    const std::size_t d = partners.d();
    in_pieces_of_work(e, d, interrupt, [&](std::size_t from, std::size_t to) {
#pragma omp parallel num_threads(threads)
        {
            ConjugateGradients solver(d);
#pragma omp for schedule(dynamic, 4)
            for (std::size_t u = from; u < to; ++u)
                solver.solve(e, partners, q, u, steps, x + u * d, numbers + u * ROW_NUMBERS);
        }
    });
}

// The loss of every row at x, 1/2 sum_j a_j (t_j - o_j - x'z_j)^2, and its gradient (rows x d).
template <class Interrupt>
void row_losses(const Entries &e, const Partners &partners, const double *x, double *loss, double *gradient,
                int threads, const Interrupt &interrupt) {
    const std::size_t d = partners.d(), k = partners.k;
    in_pieces_of_work(e, d, interrupt, [&](std::size_t from, std::size_t to) {
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
