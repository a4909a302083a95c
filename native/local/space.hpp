// Locally weighted regression in several dimensions: a tree of boxes finds the points in reach of a query.
#pragma once

#include <numeric>

#include "local/line.hpp"

namespace epicycle {

// n points of p coordinates, row by row.
struct LocalSpace {
    const double *x, *y, *c, *prior;
    std::size_t n, p;

    double distance(std::size_t j, const double *q) const {
        double s = 0.0;
        for (std::size_t i = 0; i < p; ++i) {
            const double d = x[j * p + i] - q[i];
            s += d * d;
        }
        return std::sqrt(s);
    }
};

// Points halved at the median of their widest coordinate until few are left; every node knows its box.
class BoxTree {
public:
    explicit BoxTree(const LocalSpace &P) : points(P), order(P.n) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        if (P.n) build(0, P.n);
    }

    // Indices of all points within `reach` of q, in an order that depends on the points alone.
    void within(const double *q, double reach, std::vector<std::size_t> &found) const {
        found.clear();
        if (!nodes.empty()) collect(0, q, reach, found);
    }

private:
    struct Node {
        std::size_t begin, end, right;  // the left child follows its parent; right == 0: a leaf
    };
    static constexpr std::size_t LEAF = 24;

    std::size_t build(std::size_t begin, std::size_t end) {
        const std::size_t self = nodes.size(), p = points.p;
        nodes.push_back({begin, end, 0});
        boxes.resize(boxes.size() + 2 * p);
        std::size_t widest = 0;
        double width = -1.0;
        for (std::size_t i = 0; i < p; ++i) {
            double low = points.x[order[begin] * p + i], high = low;
            for (std::size_t j = begin; j < end; ++j) {
                const double v = points.x[order[j] * p + i];
                low = std::min(low, v);
                high = std::max(high, v);
            }
            boxes[self * 2 * p + i] = low;
            boxes[self * 2 * p + p + i] = high;
            if (high - low > width) width = high - low, widest = i;
        }
        if (end - begin <= LEAF || !(width > 0.0)) return self;
        const std::size_t middle = begin + (end - begin) / 2;
        std::nth_element(order.begin() + static_cast<std::ptrdiff_t>(begin),
                         order.begin() + static_cast<std::ptrdiff_t>(middle),
                         order.begin() + static_cast<std::ptrdiff_t>(end), [&](std::size_t a, std::size_t b) {
                             const double u = points.x[a * p + widest], v = points.x[b * p + widest];
                             return u < v || (u == v && a < b);
                         });
        build(begin, middle);
        const std::size_t right = build(middle, end);
        nodes[self].right = right;
        return self;
    }

    void collect(std::size_t node, const double *q, double reach, std::vector<std::size_t> &found) const {
        const std::size_t p = points.p;
        const double *low = boxes.data() + node * 2 * p, *high = low + p;
        double s = 0.0;
        for (std::size_t i = 0; i < p; ++i) {
            const double d = q[i] < low[i] ? low[i] - q[i] : q[i] > high[i] ? q[i] - high[i] : 0.0;
            s += d * d;
        }
        if (std::sqrt(s) > reach) return;
        const Node &here = nodes[node];
        if (here.right == 0) {
            for (std::size_t j = here.begin; j < here.end; ++j)
                if (points.distance(order[j], q) <= reach) found.push_back(order[j]);
            return;
        }
        collect(node + 1, q, reach, found);
        collect(here.right, q, reach, found);
    }

    const LocalSpace &points;
    std::vector<std::size_t> order;
    std::vector<Node> nodes;
    std::vector<double> boxes;  // of every node: lower corner, upper corner
};

// Distance from q at which the prior weight around it first reaches `share`.
inline double space_radius(const LocalSpace &P, const double *q, double share, LocalWorkspace &ws) {
    auto &order = ws.order;
    order.resize(P.n);
    for (std::size_t j = 0; j < P.n; ++j) order[j] = {P.distance(j, q), P.prior[j]};
    const double enough = share * (1.0 - 1e-14);
    // Halve the range that holds the answer: partial sums of weight, never a full sort.
    std::size_t begin = 0, end = P.n;
    double before = 0.0;
    const auto nearer = [](const auto &a, const auto &b) { return a.first < b.first; };
    while (end - begin > 16) {
        const std::size_t middle = begin + (end - begin) / 2;
        const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
        std::nth_element(at(begin), at(middle), at(end), nearer);
        double weight = 0.0;
        for (std::size_t j = begin; j < middle; ++j) weight += order[j].second;
        if (before + weight >= enough) {
            end = middle;
        } else {
            before += weight;
            begin = middle;
        }
    }
    std::sort(order.begin() + static_cast<std::ptrdiff_t>(begin), order.begin() + static_cast<std::ptrdiff_t>(end),
              nearer);
    for (std::size_t j = begin; j < end; ++j) {
        before += order[j].second;
        if (before >= enough) return order[j].first;
    }
    return order[end - 1].first;
}

inline std::size_t local_terms(std::size_t p, int degree) {
    return degree == 0 ? 1 : degree == 1 ? 1 + p : 1 + p + p * (p + 1) / 2;
}

inline LocalAnswer space_nearest(const LocalSpace &P, const double *q) {
    double nearest = std::numeric_limits<double>::infinity(), total = 0.0, sum = 0.0;
    for (std::size_t j = 0; j < P.n; ++j) {
        if (P.c[j] <= 0.0) continue;
        const double d = P.distance(j, q);
        if (d < nearest) nearest = d, total = 0.0, sum = 0.0;
        if (d == nearest) total += P.c[j], sum += P.c[j] * P.y[j];
    }
    return nearest_answer(total, sum);
}

// Normal equations where there are about as many points as terms or more, and eigenvectors where these fail.
inline LocalAnswer solve_space(LocalWorkspace &ws, std::size_t n, std::size_t m) {
    std::fill(ws.A.begin(), ws.A.end(), 0.0);
    std::fill(ws.b.begin(), ws.b.end(), 0.0);
    for (std::size_t j = 0; j < n; ++j) {
        const double *phi = ws.phi.data() + j * m;
        for (std::size_t i = 0; i < m; ++i) {
            const double left = ws.k[j] * phi[i];
            ws.b[i] += left * ws.y[j];
            for (std::size_t l = 0; l <= i; ++l) ws.A[i * m + l] += left * phi[l];
        }
    }
    for (std::size_t i = 0; i < m; ++i)
        for (std::size_t l = 0; l < i; ++l) ws.A[l * m + i] = ws.A[i * m + l];
    LocalAnswer out;
    if (n >= m && solve_local(ws.A.data(), ws.b.data(), m, ws.beta.data(), ws.a.data(), ws.work.data())) {
        out.value = ws.beta[0];
        out.own = ws.a[0];
        out.error = backward_error(ws.A.data(), ws.b.data(), m, ws.beta.data());
    } else {
        out = solve_carefully(ws, n, m);
    }
    return out;
}

inline LocalAnswer space_answer(const LocalSpace &P, const BoxTree &tree, const double *q, double h, LocalKernel kernel,
                                int degree, bool squares, LocalWorkspace &ws) {
    const std::size_t p = P.p, m = local_terms(p, degree);
    tree.within(q, h * local_reach(kernel), ws.index);
    if (ws.index.empty() || !(h > 0.0)) {
        LocalAnswer out = space_nearest(P, q);
        if (!ws.index.empty() && degree > 0) out.status = LocalStatus::flat;
        return out;
    }
    ws.size_for(m);
    ws.phi.resize(ws.index.size() * m);
    ws.k.resize(ws.index.size());
    ws.y.resize(ws.index.size());
    std::size_t n = 0;
    const double inv = 1.0 / h;
    for (const std::size_t j : ws.index) {
        const double k = local_weight(kernel, P.distance(j, q) * inv) * P.c[j];
        if (!(k > 0.0)) continue;
        double *phi = ws.phi.data() + n * m;
        phi[0] = 1.0;
        if (degree > 0)
            for (std::size_t i = 0; i < p; ++i) phi[1 + i] = (P.x[j * p + i] - q[i]) * inv;
        if (degree > 1)
            for (std::size_t i = 0, at = 1 + p; i < p; ++i)
                for (std::size_t l = 0; l <= i; ++l) phi[at++] = phi[1 + i] * phi[1 + l];
        ws.k[n] = k;
        ws.y[n] = P.y[j];
        ws.index[n++] = j;
    }
    if (n == 0) return space_nearest(P, q);
    LocalAnswer out = n + 1 < m ? solve_few(ws, n, m) : solve_space(ws, n, m);
    if (squares) {
        for (std::size_t j = 0; j < n; ++j) {
            double l = 0.0;
            for (std::size_t i = 0; i < m; ++i) l += ws.a[i] * ws.phi[j * m + i];
            out.squares += ws.k[j] * ws.k[j] / P.c[ws.index[j]] * l * l;
        }
    }
    return out;
}

EPICYCLE_CLONES inline void space_queries(const LocalSpace &P, const BoxTree &tree, const double *queries,
                                          const double *h, std::size_t from, std::size_t to, LocalKernel kernel,
                                          int degree, bool squares, LocalWorkspace &ws, const LocalOutput &out) {
    for (std::size_t i = from; i < to; ++i)
        out.put(i, space_answer(P, tree, queries + i * P.p, h[i], kernel, degree, squares, ws));
}

}  // namespace epicycle
