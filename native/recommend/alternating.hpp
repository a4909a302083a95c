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

// Eight systems A x = b of d equations side by side: lane l of every vector belongs to the l-th. A is the lower
// triangle, row after row: entry (i, j) is at i (i + 1) / 2 + j.
EPICYCLE_INLINE std::size_t triangle(std::size_t i) { return i * (i + 1) / 2; }

// g = A x - b.
EPICYCLE_CLONES inline void residual(const Eight *A, std::size_t d, const Eight *x, const Eight *b, Eight *g) {
    for (std::size_t i = 0; i < d; ++i) {
        const Eight *row = A + triangle(i);
        const Eight v = x[i];
        Eight sum = row[i] * v - b[i];
        for (std::size_t j = 0; j < i; ++j) {
            sum += row[j] * x[j];
            g[j] += row[j] * v;
        }
        g[i] = sum;
    }
}

// The lower Cholesky factor in place, column by column, and the reciprocals of its diagonal. Pivots that rounding
// leaves without digits are lifted to the size of its errors: the step stays finite, and the gradient afterwards shows
// what it is worth.
EPICYCLE_CLONES inline void factorise(Eight *A, std::size_t d, Eight *inverse) {
    for (std::size_t j = 0; j < d; ++j) {
        Eight *pivots = A + triangle(j);
        Eight pivot = pivots[j];
        const Eight least = pivot * std::numeric_limits<double>::epsilon();
        for (std::size_t k = 0; k < j; ++k) pivot -= pivots[k] * pivots[k];
        for (std::size_t l = 0; l < 8; ++l) {
            const double lifted = std::max(least[l], std::numeric_limits<double>::min());
            pivot[l] = std::sqrt(pivot[l] > least[l] ? pivot[l] : lifted);
        }
        const Eight reciprocal = 1.0 / pivot;
        pivots[j] = pivot;
        inverse[j] = reciprocal;
        std::size_t i = j + 1;
        for (; i + 4 <= d; i += 4) {
            Eight *r0 = A + triangle(i), *r1 = A + triangle(i + 1), *r2 = A + triangle(i + 2),
                  *r3 = A + triangle(i + 3);
            Eight s0 = r0[j], s1 = r1[j], s2 = r2[j], s3 = r3[j];
            for (std::size_t k = 0; k < j; ++k) {
                const Eight v = pivots[k];
                s0 -= r0[k] * v;
                s1 -= r1[k] * v;
                s2 -= r2[k] * v;
                s3 -= r3[k] * v;
            }
            r0[j] = s0 * reciprocal;
            r1[j] = s1 * reciprocal;
            r2[j] = s2 * reciprocal;
            r3[j] = s3 * reciprocal;
        }
        for (; i < d; ++i) {
            Eight *row = A + triangle(i);
            Eight sum = row[j];
            for (std::size_t k = 0; k < j; ++k) sum -= row[k] * pivots[k];
            row[j] = sum * reciprocal;
        }
    }
}

EPICYCLE_CLONES inline void solve_factorised(const Eight *A, const Eight *inverse, std::size_t d, Eight *x) {
    for (std::size_t i = 0; i < d; ++i) {
        const Eight *row = A + triangle(i);
        Eight sum = x[i];
        for (std::size_t j = 0; j < i; ++j) sum -= row[j] * x[j];
        x[i] = sum * inverse[i];
    }
    for (std::size_t i = d; i-- > 0;) {
        const Eight *row = A + triangle(i);
        const Eight v = x[i] * inverse[i];
        x[i] = v;
        for (std::size_t j = 0; j < i; ++j) x[j] -= row[j] * v;
    }
}

// Whether a tile of the products of k factors has room for two columns more, which then cost nothing.
constexpr bool has_room(std::size_t k) { return k % 8 >= 1 && k % 8 <= 6; }

// The factors of the partners, padded to whole vectors, with the bias behind them where there is room.
struct PaddedPartners {
    std::vector<double, CacheAligned<double>> rows;
    std::size_t ld;

    PaddedPartners(const Partners &p, std::size_t n, int threads)
        : rows(n * ((p.k + 7) / 8 * 8)), ld((p.k + 7) / 8 * 8) {
        const std::size_t kept = has_room(p.k) ? p.d() : p.k;
#pragma omp parallel for num_threads(threads) schedule(static) if (n * ld > 1000000)
        for (std::size_t i = 0; i < n; ++i) std::copy_n(p.values + i * p.d(), kept, rows.data() + i * ld);
    }
    EPICYCLE_INLINE const double *row(std::int32_t i) const { return rows.data() + static_cast<std::size_t>(i) * ld; }
    EPICYCLE_INLINE void prefetch(std::int32_t i) const {
        for (std::size_t m = 0; m < ld; m += 8) __builtin_prefetch(row(i) + m);
    }
};

constexpr std::size_t AHEAD = 6;  // entries whose partners are prefetched

// Copies a padded row into panels that begin at `to`, times its root.
EPICYCLE_INLINE void pack_row(const double *z, std::size_t ld, double root, double *to) {
    Eight low, high;
    std::size_t m = 0;
    for (; m + PANEL <= ld; m += PANEL, to += ROWS * PANEL) {
        std::memcpy(&low, z + m, sizeof low);
        std::memcpy(&high, z + m + 8, sizeof high);
        low *= root;
        high *= root;
        std::memcpy(to, &low, sizeof low);
        std::memcpy(to + 8, &high, sizeof high);
    }
    if (m == ld) return;
    std::memcpy(&low, z + m, sizeof low);
    low *= root;
    std::memcpy(to, &low, sizeof low);
}

// Copies the partners of n entries into panels, each times its root.
EPICYCLE_CLONES inline void pack(const PaddedPartners &partners, const std::int32_t *at, const double *root,
                                 std::size_t n, double *packed) {
    for (std::size_t r = 0; r < n; ++r) {
        if (r + AHEAD < n) partners.prefetch(at[r + AHEAD]);
        pack_row(partners.row(at[r]), partners.ld, root[r], packed + r * PANEL);
    }
}

// The same, and the roots of the weights and the targets times these as columns k and k + 1. `a` may be null.
EPICYCLE_CLONES inline void pack_with_targets(const PaddedPartners &partners, const std::int32_t *at, const double *a,
                                              const double *target, std::size_t n, std::size_t k, double biased,
                                              double *packed) {
    double *last = packed + k / PANEL * ROWS * PANEL + k % PANEL;
    for (std::size_t r = 0; r < n; ++r) {
        if (r + AHEAD < n) partners.prefetch(at[r + AHEAD]);
        const double *z = partners.row(at[r]);
        const double root = a ? std::sqrt(a[r]) : 1.0;
        pack_row(z, partners.ld, root, packed + r * PANEL);
        last[r * PANEL] = root;
        last[r * PANEL + 1] = root * (target[r] - biased * z[k]);
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

// What the equations of a row are made of: second moments of its partners by panels, and what the bias and the
// right-hand side add. Those are moments with two columns more, the roots of the weights and the targets times these,
// where there is room, and sums beside them where the columns would begin a tile of their own.
struct NormalEquations {
    using Aligned = std::vector<double, CacheAligned<double>>;
    std::size_t k, d, width;
    PackedRows block;
    Aligned c, sums, b, root, t;
    double weight = 0.0, total = 0.0, squares = 0.0;  // sums of a, a (t - o) and a (t - o)^2

    explicit NormalEquations(const Partners &p)
        : k(p.k), d(p.d()), width(panels(p.k) * PANEL), block(p.k), c(width * width), sums(width),
          b(std::max(width, d)), root(ROWS), t(ROWS) {}

    void accumulate(const Entries &e, const Partners &partners, const PaddedPartners &padded, std::size_t u) {
        for (Aligned *part : {&c, &sums, &b}) std::fill(part->begin(), part->end(), 0.0);
        weight = total = squares = 0.0;
        for (std::int64_t from = e.start[u]; from < e.start[u + 1]; from += ROWS) {
            const auto n = static_cast<std::size_t>(std::min<std::int64_t>(ROWS, e.start[u + 1] - from));
            if (has_room(k))
                moments_with_targets(e, padded, from, n, partners.bias);
            else
                moments_and_sums(e, partners, padded, from, n);
        }
        if (!has_room(k)) return;
        const double *of_roots = c.data() + k * width, *of_targets = of_roots + width;
        std::copy_n(of_roots, k, sums.data());
        std::copy_n(of_targets, k, b.data());
        weight = of_roots[k], total = of_targets[k], squares = of_targets[k + 1];
    }

private:
    void moments_with_targets(const Entries &e, const PaddedPartners &padded, std::int64_t from, std::size_t n,
                              bool bias) {
        double *packed = block.packed.data();
        pack_with_targets(padded, e.at + from, e.curvature ? e.curvature + from : nullptr, e.target + from, n, k,
                          bias ? 1.0 : 0.0, packed);
        syrk(packed, n, k + 2, c.data());
    }
    void moments_and_sums(const Entries &e, const Partners &partners, const PaddedPartners &padded, std::int64_t from,
                          std::size_t n) {
        for (std::size_t r = 0; r < n; ++r) {
            const std::int64_t j = from + static_cast<std::int64_t>(r);
            const double a = e.a(j), error = e.target[j] - partners.offset(e.at[j]);
            root[r] = e.curvature ? std::sqrt(a) : 1.0;
            t[r] = root[r] * error;
            weight += a;
            total += a * error;
            squares += a * error * error;
        }
        if (k == 0) return;
        double *packed = block.packed.data();
        pack(padded, e.at + from, root.data(), n, packed);
        syrk(packed, n, k, c.data());
        add_sums(packed, n, width, root.data(), t.data(), sums.data(), b.data());
    }
};

// The systems of eight rows, each solved for its minimiser.
struct EightRows {
    using Vectors = std::vector<Eight, CacheAligned<Eight>>;
    std::size_t d;
    Vectors A, inverse, x, b, g;
    double squares[8];

    explicit EightRows(std::size_t d) : d(d), A(triangle(d)), inverse(d), x(d), b(d), g(d) {}

    static double &lane(Vectors &v, std::size_t i, std::size_t l) { return reinterpret_cast<double *>(&v[i])[l]; }

    // A = B + s diag(penalty) + moments, and the parameters to begin with.
    void take(const NormalEquations &row, const Quadratic &q, std::size_t u, const double *from, std::size_t l) {
        const std::size_t k = row.k;
        for (std::size_t i = 0; i < k; ++i)
            for (std::size_t j = 0; j <= i; ++j)
                lane(A, triangle(i) + j, l) = row.c[i * row.width + j] + q.base[i * d + j];
        if (d > k) {
            for (std::size_t j = 0; j < k; ++j) lane(A, triangle(k) + j, l) = row.sums[j] + q.base[k * d + j];
            lane(A, triangle(k) + k, l) = row.weight + q.base[k * d + k];
        }
        for (std::size_t i = 0; i < d; ++i) {
            lane(A, triangle(i) + i, l) += q.scale[u] * q.penalty[i];
            lane(x, i, l) = from[i];
            lane(b, i, l) = i < k ? row.b[i] : row.total;
        }
        squares[l] = row.squares;
    }
    void leave_empty(std::size_t l) {
        for (std::size_t i = 0; i < d; ++i) {
            for (std::size_t j = 0; j <= i; ++j) lane(A, triangle(i) + j, l) = i == j ? 1.0 : 0.0;
            lane(x, i, l) = lane(b, i, l) = 0.0;
        }
        squares[l] = 0.0;
    }

    // Writes the minimisers of the first `rows` systems to `out` and what they say to `numbers`.
    void solve(double *out, double *numbers, std::size_t rows) {
        residual(A.data(), d, x.data(), b.data(), g.data());
        x = b;
        factorise(A.data(), d, inverse.data());
        solve_factorised(A.data(), inverse.data(), d, x.data());
        for (std::size_t l = 0; l < rows; ++l, out += d, numbers += ROW_NUMBERS) {
            double slope = 0.0, size = 0.0, product = 0.0;
            for (std::size_t i = 0; i < d; ++i) {
                out[i] = lane(x, i, l);
                slope += lane(g, i, l) * lane(g, i, l);
                size += lane(b, i, l) * lane(b, i, l);
                product += lane(b, i, l) * out[i];
            }
            numbers[SLOPE] = slope, numbers[SIZE] = size, numbers[VALUE] = 0.5 * (squares[l] - product);
        }
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
            EightRows systems(d);
#pragma omp for schedule(dynamic, 1)
            for (std::size_t first = from; first < to; first += 8) {
                const std::size_t rows = std::min<std::size_t>(8, to - first);
                for (std::size_t l = 0; l < rows; ++l) {
                    equations.accumulate(e, partners, padded, first + l);
                    systems.take(equations, q, first + l, x + (first + l) * d, l);
                }
                for (std::size_t l = rows; l < 8; ++l) systems.leave_empty(l);
                systems.solve(x + first * d, numbers + first * ROW_NUMBERS, rows);
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
