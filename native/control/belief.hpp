// Partially observed decision processes: backups of values over beliefs. Row a S + s of P holds the probabilities of
// the states that follow state s under action a (a row of zeros ends the process), O(a, s', o) the probability of
// observation o when action a has led to s'. Beliefs need not add up to one: values are homogeneous.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/rows.hpp"
#include "core/sparse.hpp"
#include "core/tiles.hpp"

namespace epicycle {

struct BeliefProcess {
    Csr<double, std::int32_t> P;
    const double *reward;       // (A, S)
    const double *observation;  // (A, S, O)
    std::size_t states, actions, observations;
    double discount;

    const double *seen(std::size_t a, std::size_t s) const { return observation + (a * states + s) * observations; }

    // out(s') = sum_s b(s) P(s' | s, a)
    void move(const double *b, std::size_t a, double *out) const {
        std::fill(out, out + states, 0.0);
        for (std::size_t s = 0; s < states; ++s) {
            if (b[s] == 0.0) continue;
            const std::size_t row = a * states + s;
            for (auto e = P.indptr[row]; e < P.indptr[row + 1]; ++e)
                out[static_cast<std::size_t>(P.indices[static_cast<std::size_t>(e)])] +=
                    b[s] * P.data[static_cast<std::size_t>(e)];
        }
    }

    // out(s) = R(s, a) + discount sum_s' P(s' | s, a) g(s')
    void back(std::size_t a, const double *g, double *out) const {
        for (std::size_t s = 0; s < states; ++s) {
            const std::size_t row = a * states + s;
            double sum = 0.0;
            for (auto e = P.indptr[row]; e < P.indptr[row + 1]; ++e)
                sum += P.data[static_cast<std::size_t>(e)] *
                       g[static_cast<std::size_t>(P.indices[static_cast<std::size_t>(e)])];
            out[s] = reward[row] + discount * sum;
        }
    }

    double immediate(const double *b, std::size_t a) const {
        double sum = 0.0;
        for (std::size_t s = 0; s < states; ++s) sum += b[s] * reward[a * states + s];
        return sum;
    }
};

// Short vectors are multiplied in place: a call would cost more.
inline double inner(const double *x, const double *y, std::size_t n) {
    if (n >= 16) return dense_dot(x, y, n);
    double sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += x[i] * y[i];
    return sum;
}

// The best of `count` vectors at b, the first of equals, and its value.
struct Best {
    std::size_t index = 0;
    double value = -std::numeric_limits<double>::infinity();
};
inline Best best_vector(const double *vectors, std::size_t count, const double *b, std::size_t n) {
    Best best;
    for (std::size_t k = 0; k < count; ++k) {
        const double value = inner(vectors + k * n, b, n);
        if (value > best.value) best = {k, value};
    }
    return best;
}

// A belief by its entries that are not zero, the largest first: they rule a point out soonest.
struct SparsePoint {
    std::vector<std::uint32_t> state;
    std::vector<double> weight, inverse;
    double value, below;  // below: value less the interpolation between the corners

    SparsePoint(const double *b, std::size_t n, double v) : value(v), below(0.0) {
        for (std::size_t s = 0; s < n; ++s)
            if (b[s] > 0.0) state.push_back(static_cast<std::uint32_t>(s));
        std::stable_sort(state.begin(), state.end(), [&](std::uint32_t i, std::uint32_t j) { return b[i] > b[j]; });
        for (const std::uint32_t s : state) {
            weight.push_back(b[s]);
            inverse.push_back(1.0 / b[s]);
        }
    }
    double at(const double *corner) const {
        double sum = 0.0;
        for (std::size_t i = 0; i < state.size(); ++i) sum += weight[i] * corner[state[i]];
        return sum;
    }
};

// Values that no policy exceeds: the lesser of a convex function, the maximum of `count` vectors, and of the sawtooth
// that hangs from the corners of the simplex through the points.
struct UpperBound {
    std::vector<double> corner;
    const double *vectors;
    std::size_t count;
    std::vector<SparsePoint> points;

    double operator()(const double *b) const {
        const std::size_t n = corner.size();
        const double convex = count ? best_vector(vectors, count, b, n).value : std::numeric_limits<double>::infinity();
        double lowest = 0.0;
        for (const SparsePoint &p : points) {
            double ratio = std::numeric_limits<double>::infinity();
            // The ratio only falls; below this one the point is not the lowest any more.
            const double needed = p.below < 0.0 ? lowest / p.below : std::numeric_limits<double>::infinity();
            for (std::size_t i = 0; i < p.state.size() && ratio > needed; ++i)
                ratio = std::min(ratio, b[p.state[i]] * p.inverse[i]);
            if (ratio > needed) lowest = ratio * p.below;
        }
        return std::min(convex, inner(corner.data(), b, n) + lowest);
    }

    // The value at b is at most v: a point that says so, if that is news.
    void add(const double *b, double v) {
        const std::size_t n = corner.size();
        if (!(v < (*this)(b))) return;
        SparsePoint p(b, n, v);
        if (p.state.size() == 1) {
            corner[p.state[0]] = v / p.weight[0];
            refresh();
            return;
        }
        p.below = v - p.at(corner.data());
        if (p.below < 0.0) points.push_back(std::move(p));
    }

    void refresh() {
        for (SparsePoint &p : points) p.below = p.value - p.at(corner.data());
    }

    // Points that the others make superfluous leave, the older first.
    void prune(std::vector<double> &room) {
        const std::size_t n = corner.size();
        std::vector<SparsePoint> kept;
        points.swap(kept);
        std::vector<SparsePoint> waiting(std::move(kept));
        for (std::size_t i = waiting.size(); i-- > 0;) {
            room.assign(n, 0.0);
            for (std::size_t j = 0; j < waiting[i].state.size(); ++j) room[waiting[i].state[j]] = waiting[i].weight[j];
            if (waiting[i].value < (*this)(room.data())) points.push_back(std::move(waiting[i]));
        }
        std::reverse(points.begin(), points.end());
    }
};

// The vectors in tiles, for many products with the same ones; lanes beyond the last vector repeat the first.
struct VectorTiles {
    std::size_t states, count;
    std::vector<double> lanes;

    VectorTiles(const double *vectors, std::size_t count, std::size_t states)
        : states(states), count(count), lanes((count + TILE - 1) / TILE * TILE * states) {
        for (std::size_t k = 0; k < lanes.size() / std::max<std::size_t>(states, 1); ++k)
            for (std::size_t s = 0; s < states; ++s)
                lanes[(k / TILE * states + s) * TILE + k % TILE] = vectors[(k < count ? k : 0) * states + s];
    }

    // The best vector for each of four beliefs, the first of equals.
    void best(const double *const b[4], Best out[4]) const {
        constexpr double zero[TILE] = {};
        double score[4][TILE];
        double *const to[4] = {score[0], score[1], score[2], score[3]};
        for (std::size_t first = 0; first < count; first += TILE) {
            tile_scores(b, lanes.data() + first * states, zero, states, to);
            const std::size_t size = std::min(TILE, count - first);
            for (std::size_t i = 0; i < 4; ++i)
                for (std::size_t l = 0; l < size; ++l)
                    if (-score[i][l] > out[i].value) out[i] = {first + l, -score[i][l]};
        }
    }
};

// Room for one backup.
struct BackupRoom {
    std::vector<double> moved, part, future;
    std::vector<std::size_t> choice, best, likely;
    explicit BackupRoom(const BeliefProcess &m)
        : moved(m.states), part(m.states * m.observations), future(m.states), choice(m.observations),
          best(m.observations) {}
};

// For each observation after an action that led to the beliefs `room.moved`, the best vector; returns the sum of
// values.
inline double choose(const BeliefProcess &m, const double *vectors, std::size_t count, const VectorTiles *tiles,
                     std::size_t a, BackupRoom &room) {
    const std::size_t n = m.states;
    std::fill(room.part.begin(), room.part.end(), 0.0);
    for (std::size_t s = 0; s < n; ++s)
        if (room.moved[s] != 0.0)
            for (std::size_t o = 0; o < m.observations; ++o) room.part[o * n + s] = room.moved[s] * m.seen(a, s)[o];
    room.likely.clear();
    for (std::size_t o = 0; o < m.observations; ++o) {
        const double *part = room.part.data() + o * n;
        if (std::any_of(part, part + n, [](double x) { return x != 0.0; })) room.likely.push_back(o);
    }
    std::fill(room.choice.begin(), room.choice.end(), std::size_t{0});
    double value = 0.0;
    for (std::size_t i = 0; i < room.likely.size(); i += tiles ? 4 : 1) {
        const std::size_t size = tiles ? std::min<std::size_t>(4, room.likely.size() - i) : 1;
        Best next[4];
        const double *b[4];
        for (std::size_t j = 0; j < 4; ++j) b[j] = room.part.data() + room.likely[i + std::min(j, size - 1)] * n;
        if (tiles)
            tiles->best(b, next);
        else
            next[0] = best_vector(vectors, count, b[0], n);
        for (std::size_t j = 0; j < size; ++j) {
            room.choice[room.likely[i + j]] = next[j].index;
            value += next[j].value;
        }
    }
    return value;
}

// Point-based backup at b: the vector of the best first action with, after each observation, the best of the given
// vectors, which may also stand in tiles. Writes the vector, returns action and value.
inline Best backup(const BeliefProcess &m, const double *vectors, std::size_t count, const double *b, double *out,
                   BackupRoom &room, const VectorTiles *tiles = nullptr) {
    Best best;
    const std::size_t n = m.states;
    for (std::size_t a = 0; a < m.actions; ++a) {
        m.move(b, a, room.moved.data());
        double value = choose(m, vectors, count, tiles, a, room);
        value = m.immediate(b, a) + m.discount * value;
        if (value > best.value) {
            best = {a, value};
            room.best.swap(room.choice);
        }
    }
    for (std::size_t s = 0; s < n; ++s) {
        const double *seen = m.seen(best.index, s);
        double sum = 0.0;
        for (std::size_t o = 0; o < m.observations; ++o)
            if (seen[o] != 0.0) sum += seen[o] * vectors[room.best[o] * n + s];
        room.future[s] = sum;
    }
    m.back(best.index, room.future.data(), out);
    return best;
}

// Values of the actions at b when what follows is worth bound(belief).
template <class Bound>
void lookahead(const BeliefProcess &m, const Bound &bound, const double *b, double *out, BackupRoom &room) {
    for (std::size_t a = 0; a < m.actions; ++a) {
        m.move(b, a, room.moved.data());
        double value = 0.0;
        for (std::size_t o = 0; o < m.observations; ++o) {
            double mass = 0.0;
            for (std::size_t s = 0; s < m.states; ++s) {
                room.part[s] = room.moved[s] == 0.0 ? 0.0 : room.moved[s] * m.seen(a, s)[o];
                mass += room.part[s];
            }
            if (mass > 0.0) value += bound(room.part.data());
        }
        out[a] = m.immediate(b, a) + m.discount * value;
    }
}

// One sweep of the fast informed bound: as if the state were seen one step later. Returns the largest change.
inline double informed_sweep(const BeliefProcess &m, const double *vectors, double *out, int threads) {
    const auto rows = static_cast<std::ptrdiff_t>(m.actions * m.states);
    double change = 0.0;
#pragma omp parallel for num_threads(threads) schedule(static) reduction(max : change) if (threads > 1)
    for (std::ptrdiff_t r = 0; r < rows; ++r) {
        const auto row = static_cast<std::size_t>(r);
        const std::size_t a = row / m.states;
        double future = 0.0;
        for (std::size_t o = 0; o < m.observations; ++o) {
            double best = -std::numeric_limits<double>::infinity();
            for (std::size_t next = 0; next < m.actions; ++next) {
                double sum = 0.0;
                for (auto e = m.P.indptr[row]; e < m.P.indptr[row + 1]; ++e) {
                    const auto s = static_cast<std::size_t>(m.P.indices[static_cast<std::size_t>(e)]);
                    sum += m.P.data[static_cast<std::size_t>(e)] * m.seen(a, s)[o] * vectors[next * m.states + s];
                }
                best = std::max(best, sum);
            }
            future += best;
        }
        out[row] = m.reward[row] + m.discount * future;
        change = std::max(change, std::abs(out[row] - vectors[row]));
    }
    return change;
}

}  // namespace epicycle
