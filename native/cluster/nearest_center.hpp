// The nearest of k centres for every row, with bounds on distances that spare most of them (k-means).
//
// A score is |c|^2 / 2 - x'c, half the squared distance less |x|^2 / 2. Scores are computed for tiles of 16 centres,
// one column after another in every lane, so that they have the same bits wherever they are computed: which distances
// the bounds spare changes no label.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <vector>

#include "core/rows.hpp"
#include "core/simd.hpp"
#include "core/tiles.hpp"

namespace epicycle {

constexpr std::size_t LANES = 8;  // centres that a sparse row is multiplied with at a time, in registers

// The centres, about the origin that is taken from the rows, in tiles (tile, column, lane); lanes beyond k score +inf.
struct Centers {
    std::size_t k, p, tiles, stride;
    std::vector<double> lanes, half, by_column;
    double largest = 0.0;  // the largest |c|^2

    Centers(const double *c, std::size_t k, std::size_t p, bool columns)
        : k(k), p(p), tiles((k + TILE - 1) / TILE), stride((k + LANES - 1) / LANES * LANES),
          half(tiles * TILE, std::numeric_limits<double>::infinity()) {
        // Sparse rows want the entries of all centres for a column side by side, with as few unused lanes as can be.
        (columns ? by_column : lanes).assign(columns ? stride * p : tiles * TILE * p, 0.0);
        for (std::size_t a = 0; a < k; ++a) {
            double square = 0.0;
            for (std::size_t j = 0; j < p; ++j) {
                const double v = c[a * p + j];
                square += v * v;
                if (!columns) lanes[(a / TILE * p + j) * TILE + a % TILE] = v;
            }
            half[a] = 0.5 * square;
            largest = std::max(largest, square);
        }
        if (!columns) return;
        for (std::size_t j = 0; j < p; ++j)  // written one after another: there are many columns
            for (std::size_t a = 0; a < k; ++a) by_column[j * stride + a] = c[a * p + j];
    }
    std::size_t width() const { return tiles * TILE; }
};

EPICYCLE_CLONES inline double own_score(const double *x, const double *c, double half, std::size_t p) {
    double sum = 0.0;
    for (std::size_t j = 0; j < p; ++j) sum += x[j] * c[j * TILE];
    return half - sum;
}

EPICYCLE_CLONES inline double least_of_tile(const double *s) {
    double m[8];
    for (std::size_t l = 0; l < 8; ++l) m[l] = s[l + 8] < s[l] ? s[l + 8] : s[l];
    for (std::size_t l = 0; l < 4; ++l) m[l] = m[l + 4] < m[l] ? m[l + 4] : m[l];
    m[0] = m[2] < m[0] ? m[2] : m[0];
    m[1] = m[3] < m[1] ? m[3] : m[1];
    return m[1] < m[0] ? m[1] : m[0];
}

// Products of a sparse row with G groups of centres, whose entries for a column stand side by side.
template <std::size_t G, class T, class I>
EPICYCLE_INLINE void sparse_products_body(const T *x, const I *at, std::size_t n, const double *c, std::size_t stride,
                                          double *out) {
    double sum[G * LANES] = {};
    for (std::size_t e = 0; e < n; ++e) {
        const double v = static_cast<double>(x[e]), *ce = c + static_cast<std::size_t>(at[e]) * stride;
        for (std::size_t l = 0; l < G * LANES; ++l) sum[l] += v * ce[l];
    }
    for (std::size_t l = 0; l < G * LANES; ++l) out[l] = sum[l];
}
#define EPICYCLE_PER_TYPE(T, I)                                                                                    \
    EPICYCLE_CLONES inline void sparse_products(const T *x, const I *at, std::size_t n, const double *c,           \
                                                std::size_t stride, double *out) {                                 \
        std::size_t a = 0;                                                                                         \
        for (; a + 3 * LANES <= stride; a += 3 * LANES) sparse_products_body<3>(x, at, n, c + a, stride, out + a); \
        if (a + 2 * LANES <= stride) {                                                                             \
            sparse_products_body<2>(x, at, n, c + a, stride, out + a);                                             \
            a += 2 * LANES;                                                                                        \
        }                                                                                                          \
        if (a < stride) sparse_products_body<1>(x, at, n, c + a, stride, out + a);                                 \
    }                                                                                                              \
    EPICYCLE_CLONES inline double sparse_product(const T *x, const I *at, std::size_t n, const double *c,          \
                                                 std::size_t stride) {                                             \
        double sum = 0.0;                                                                                          \
        for (std::size_t e = 0; e < n; ++e)                                                                        \
            sum += static_cast<double>(x[e]) * c[static_cast<std::size_t>(at[e]) * stride];                        \
        return sum;                                                                                                \
    }
EPICYCLE_PER_SPARSE_TYPE(EPICYCLE_PER_TYPE)
#undef EPICYCLE_PER_TYPE

// ------------------------------------------------------------------------------------------------- scores of a block

// Rows of a dense matrix about the origin.
template <class T>
struct DenseScorer {
    DenseRowReader<T> rows;
    const double *origin;
    const Centers &centers;
    std::vector<double> x;

    DenseScorer(const DenseRowReader<T> &rows, const double *origin, const Centers &centers, std::size_t block)
        : rows(rows), origin(origin), centers(centers), x(block * centers.p) {}
    // Row i becomes member m of the block; returns |x|^2.
    double load(std::size_t i, std::size_t m) {
        rows.select(i);
        double *to = x.data() + m * centers.p, square = 0.0;
        for (std::size_t j = 0; j < centers.p; ++j) {
            to[j] = static_cast<double>(rows.x[j]) - origin[j];
            square += to[j] * to[j];
        }
        return square;
    }
    double own(std::size_t m, std::size_t a) const {
        const std::size_t p = centers.p;
        return own_score(x.data() + m * p, centers.lanes.data() + a / TILE * p * TILE + a % TILE, centers.half[a], p);
    }
    // Scores of the members in the list for one tile.
    void tile(std::size_t t, const std::size_t *members, std::size_t n, double *scores) const {
        const std::size_t p = centers.p;
        for (std::size_t m = 0; m < n; m += 4) {
            const double *from[4];
            double *to[4], spare[TILE];
            for (std::size_t r = 0; r < 4; ++r) {
                const std::size_t at = members[std::min(m + r, n - 1)];
                from[r] = x.data() + at * p;
                to[r] = m + r < n ? scores + at * centers.width() + t * TILE : spare;
            }
            tile_scores(from, centers.lanes.data() + t * p * TILE, centers.half.data() + t * TILE, p, to);
        }
    }
};

// Sparse rows, whose scores for all centres come at once.
template <class T, class I>
struct SparseScorer {
    CsrRowReader<T, I> rows;
    const Centers &centers;
    std::vector<std::size_t> at;
    std::vector<double> computed;
    std::vector<char> known;

    SparseScorer(const CsrRowReader<T, I> &rows, const double *, const Centers &centers, std::size_t block)
        : rows(rows), centers(centers), at(block), computed(block * centers.width()), known(block) {}
    double load(std::size_t i, std::size_t m) {
        rows.select(i);
        at[m] = i;
        known[m] = 0;
        return row_square(rows);
    }
    double *scores(std::size_t m) {
        double *s = computed.data() + m * centers.width();
        if (known[m]) return s;
        known[m] = 1;
        rows.select(at[m]);
        sparse_products(rows.x, rows.at, rows.n, centers.by_column.data(), centers.stride, s);
        std::fill(s + centers.stride, s + centers.width(), 0.0);
        for (std::size_t a = 0; a < centers.width(); ++a) s[a] = centers.half[a] - s[a];
        return s;
    }
    // One score alone reads a number for each entry of the row; the row has just been loaded.
    double own(std::size_t, std::size_t a) const {
        return centers.half[a] - sparse_product(rows.x, rows.at, rows.n, centers.by_column.data() + a, centers.stride);
    }
    void tile(std::size_t t, const std::size_t *members, std::size_t n, double *out) {
        for (std::size_t m = 0; m < n; ++m) {
            const double *s = scores(members[m]) + t * TILE;
            std::copy(s, s + TILE, out + members[m] * centers.width() + t * TILE);
        }
    }
};

template <class T>
DenseScorer<T> scorer(const DenseRowReader<T> &rows, const double *origin, const Centers &centers, std::size_t block) {
    return {rows, origin, centers, block};
}
template <class T, class I>
SparseScorer<T, I> scorer(const CsrRowReader<T, I> &rows, const double *origin, const Centers &centers,
                          std::size_t block) {
    return {rows, origin, centers, block};
}

// ------------------------------------------------------------------------------------------------- assignment

// What is known of the rows between two assignments. `upper` bounds the distance to the own centre from above, and
// lower(i, g) that to all other centres of group g from below; a group is `per_group` tiles. Without bounds
// (groups = 0) every score is computed.
struct Assignment {
    std::int64_t *label;
    double *upper, *lower;
    std::size_t groups, per_group;
    const double *shift;        // how far each centre moved since the last assignment
    const double *group_shift;  // the largest of every group
    bool first;                 // the rows have no labels yet
};

// Rows at a time: their scores stay in the first-level cache.
inline std::size_t block_of(const Centers &c) {
    return std::max<std::size_t>(4, std::min<std::size_t>(128, 4096 / c.width()));
}

template <class Scorer>
class Block {
    const Centers &c;
    Scorer &x;
    const Assignment &a;
    std::vector<double> scores, square, own;
    std::vector<std::size_t> row, members;
    std::vector<char> wanted;  // (member, group)
    std::size_t groups;
    double rounding;

public:
    Block(const Centers &c, Scorer &x, const Assignment &a)
        : c(c), x(x), a(a), groups(std::max<std::size_t>(a.groups, 1)) {
        const std::size_t block = block_of(c);
        scores.resize(block * c.width());
        square.resize(block);
        own.resize(block);
        row.resize(block);
        members.resize(block);
        wanted.resize(block * groups);
        // Error of a squared distance, relative to |x|^2 + |c|^2: p products and sums, with room.
        rounding = 8.0 * static_cast<double>(c.p + 4) * std::numeric_limits<double>::epsilon();
    }

    // Rows from, ..., to - 1; returns how many labels changed.
    std::size_t assign(std::size_t from, std::size_t to) {
        std::size_t n = 0, changed = 0;
        for (std::size_t i = from; i < to; ++i)
            if (a.groups == 0 || a.first || !spared(i)) n += admit(i, n);
        for (std::size_t t = 0; t < c.tiles; ++t) {
            const std::size_t g = group(t);
            std::size_t count = 0;
            for (std::size_t m = 0; m < n; ++m)
                if (wanted[m * groups + g]) members[count++] = m;
            if (count > 0) x.tile(t, members.data(), count, scores.data());
        }
        for (std::size_t m = 0; m < n; ++m) changed += conclude(m);
        return changed;
    }

private:
    std::size_t group(std::size_t t) const { return a.groups == 0 ? 0 : t / a.per_group; }
    double distance(double square, double score) const { return std::sqrt(std::max(square + 2.0 * score, 0.0)); }
    double slack(double square) const { return rounding * (square + c.largest); }

    // Whether the bounds tell that the own centre is still the nearest; moves them by what the centres moved.
    bool spared(std::size_t i) {
        constexpr double up = 1.0 + 4.0 * std::numeric_limits<double>::epsilon(), down = 2.0 - up;
        double &u = a.upper[i], least = std::numeric_limits<double>::infinity();
        u = (u + a.shift[a.label[i]]) * up;
        for (std::size_t g = 0; g < groups; ++g) {
            double &l = a.lower[i * groups + g];
            l = (l - a.group_shift[g]) * down;
            least = std::min(least, l);
        }
        // The bounds have the error of the scores inside, u^2 and l^2 that of what would be computed now.
        return least > u && (least - u) * (least + u) > rounding * (4.0 * u * u + 8.0 * c.largest);
    }

    // Row i becomes member m unless its own distance, now exact, spares it after all. Returns whether it was admitted.
    std::size_t admit(std::size_t i, std::size_t m) {
        row[m] = i;
        square[m] = x.load(i, m);
        char *want = wanted.data() + m * groups;
        if (a.groups == 0 || a.first) {
            std::fill(want, want + groups, 1);
            return 1;
        }
        const double error = slack(square[m]);
        own[m] = x.own(m, static_cast<std::size_t>(a.label[i]));
        const double u = std::sqrt(std::max(square[m] + 2.0 * own[m], 0.0) + error);
        a.upper[i] = u;
        bool any = false;
        for (std::size_t g = 0; g < groups; ++g) {
            const double l = a.lower[i * groups + g];
            want[g] = !(l > u && (l - u) * (l + u) > 2.0 * error);
            any = any || want[g];
        }
        return any;
    }

    // The label and the bounds of a member from its scores.
    std::size_t conclude(std::size_t m) {
        const std::size_t i = row[m];
        const double *s = scores.data() + m * c.width();
        const char *want = wanted.data() + m * groups;
        const bool known = !(a.groups == 0 || a.first);
        const auto before = static_cast<std::size_t>(a.label[i]);
        double best = known ? own[m] : std::numeric_limits<double>::infinity();
        std::size_t at = before;
        for (std::size_t t = 0; t < c.tiles; ++t) {
            if (!want[group(t)]) continue;
            const double least = least_of_tile(s + t * TILE);
            if (!(least < best || (least == best && t * TILE <= at))) continue;  // also where it is NaN
            std::size_t l = 0;
            while (s[t * TILE + l] != least) ++l;
            // Of equal distances the first centre is taken.
            if (least < best || t * TILE + l < at) at = t * TILE + l, best = least;
        }
        if (a.groups > 0) bound(m, i, s, want, before, at, best, known);
        a.label[i] = static_cast<std::int64_t>(at);
        return at != before || a.first;
    }

    void bound(std::size_t m, std::size_t i, const double *s, const char *want, std::size_t before, std::size_t at,
               double best, bool known) {
        const double error = slack(square[m]);
        a.upper[i] = std::sqrt(std::max(square[m] + 2.0 * best, 0.0) + error);
        for (std::size_t g = 0; g < groups; ++g) {
            double &l = a.lower[i * groups + g];
            if (!want[g]) {
                if (known && before != at && group(before / TILE) == g)  // its old centre is one of the others now
                    l = std::min(l, std::sqrt(std::max(square[m] + 2.0 * own[m] - error, 0.0)));
                continue;
            }
            double least = std::numeric_limits<double>::infinity();
            const std::size_t end = std::min(c.tiles, (g + 1) * a.per_group);
            for (std::size_t t = g * a.per_group; t < end; ++t) {
                if (t != at / TILE) {
                    least = std::min(least, least_of_tile(s + t * TILE));
                    continue;
                }
                for (std::size_t q = t * TILE; q < (t + 1) * TILE; ++q)
                    if (q != at) least = std::min(least, s[q]);
            }
            l = std::sqrt(std::max(square[m] + 2.0 * least - error, 0.0));
        }
    }
};

// Assigns every row to its nearest centre; returns how many labels changed.
template <class Rows>
std::size_t assign_rows(const Rows &rows, const double *origin, const Centers &centers, const Assignment &state,
                        int threads) {
    const std::size_t n = rows.rows(), block = block_of(centers);
    const auto blocks = static_cast<std::int64_t>((n + block - 1) / block);
    std::size_t changed = 0;
    std::exception_ptr failure;
#pragma omp parallel num_threads(threads) if (threads > 1) reduction(+ : changed)
    {
        auto x = scorer(rows, origin, centers, block);
        Block<decltype(x)> work(centers, x, state);
#pragma omp for schedule(dynamic, 16)
        for (std::int64_t b = 0; b < blocks; ++b) {
            const std::size_t from = static_cast<std::size_t>(b) * block;
            try {
                changed += work.assign(from, std::min(n, from + block));
            } catch (...) {
#pragma omp critical
                failure = std::current_exception();
            }
        }
    }
    if (failure) std::rethrow_exception(failure);
    return changed;
}

// Takes every row whose cluster changed from the sums of the old one to those of the new: sums(a) = sum of v (x -
// origin).
template <class Rows>
void move_rows(Rows rows, const double *origin, const double *weight, const std::int64_t *before,
               const std::int64_t *after, double *sums) {
    const std::size_t n = rows.rows(), p = rows.cols();
    for (std::size_t i = 0; i < n; ++i) {
        if (before && before[i] == after[i]) continue;
        rows.select(i);
        const double v = weight ? weight[i] : 1.0;
        double *from = before ? sums + static_cast<std::size_t>(before[i]) * p : nullptr;
        double *to = sums + static_cast<std::size_t>(after[i]) * p;
        rows.each([&](std::size_t j, double x) {
            const double moved = v * (origin ? x - origin[j] : x);
            if (from) from[j] -= moved;
            to[j] += moved;
        });
    }
}

// closest(c, i) = min(closest(i), |x_i - c|^2) for every candidate c: what k-means++ asks for.
template <class Rows>
void closest_distances(const Rows &rows, const double *origin, const Centers &candidates, const double *closest,
                       int threads, double *out) {
    const std::size_t n = rows.rows(), block = block_of(candidates), k = candidates.k, width = candidates.width();
    const auto blocks = static_cast<std::int64_t>((n + block - 1) / block);
    std::exception_ptr failure;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        auto x = scorer(rows, origin, candidates, block);
        std::vector<double> scores(block * width), square(block);
        std::vector<std::size_t> members(block);
        for (std::size_t m = 0; m < block; ++m) members[m] = m;
#pragma omp for schedule(dynamic, 16)
        for (std::int64_t b = 0; b < blocks; ++b) {
            const std::size_t from = static_cast<std::size_t>(b) * block, count = std::min(block, n - from);
            try {
                for (std::size_t m = 0; m < count; ++m) square[m] = x.load(from + m, m);
                for (std::size_t t = 0; t < candidates.tiles; ++t) x.tile(t, members.data(), count, scores.data());
            } catch (...) {
#pragma omp critical
                failure = std::current_exception();
            }
            for (std::size_t a = 0; a < k; ++a)
                for (std::size_t m = 0; m < count; ++m) {
                    const double d = std::max(square[m] + 2.0 * scores[m * width + a], 0.0);
                    out[a * n + from + m] = closest ? std::min(closest[from + m], d) : d;
                }
        }
    }
    if (failure) std::rethrow_exception(failure);
}

}  // namespace epicycle
