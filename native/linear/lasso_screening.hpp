// The dual point and the gap-safe sphere over all columns, from correlations that may be out of date.
//
// c_j is the correlation of column j with an earlier residual; |x_j'r| <= |c_j| + slack_j for the present one. Columns
// that are not `alive` are known to have coefficient zero and no longer belong to the problem.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "linear/coordinate_descent.hpp"

namespace epicycle {

struct ColumnState {
    const double *c, *slack, *w, *norm;  // norm = |x_j|
    std::size_t p;
};

struct DualPoint {
    double primal, dual, scale;
};

// rr = |r|^2. The dual point is scale * r.
inline DualPoint dual_point(const ColumnState &x, const Penalty &penalty, const std::uint8_t *alive, double rr) {
    DualScale scale;
    double wc = 0.0, value = 0.5 * rr;
    bool any_ridge = false;
    for (std::size_t j = 0; j < x.p; ++j) {
        const double l1 = penalty.l1[j], l2 = penalty.l2[j], w = x.w[j];
        if (!alive[j]) continue;
        if (l1 == 0.0 && l2 == 0.0) continue;  // unpenalised: r is orthogonal to it
        if (w != 0.0) {
            wc += w * x.c[j];
            value += l1 * std::fabs(w) + 0.5 * l2 * w * w;
        }
        any_ridge |= l2 > 0.0;
        const double away = x.c[j] >= 0.0 ? x.slack[j] : -x.slack[j];
        scale.column(x.c[j] + away, w, l1, l2, penalty.positive);
    }
    DualPoint best{value, -std::numeric_limits<double>::infinity(), 0.0};
    for (const double s : {scale.tight, scale.loose}) {
        double dual = s * (rr + wc) - 0.5 * s * s * rr;  // <y, r> = |r|^2 + w'X'r
        if (any_ridge)
            for (std::size_t j = 0; j < x.p; ++j)
                if (alive[j]) {
                    const double away = x.c[j] >= 0.0 ? x.slack[j] : -x.slack[j];
                    dual -= dual_penalty(s, x.c[j] + away, penalty.l1[j], penalty.l2[j], penalty.positive);
                }
        if (dual > best.dual) best.dual = dual, best.scale = s;
    }
    return best;
}

// Takes columns out whose coefficient is zero at the optimum: the optimal dual point is within `radius` of scale * r,
// so |x_j'theta*| < l1_j wherever scale (|c_j| + slack_j) + radius |x_j| < l1_j. Returns how many are left, and scores
// them by how far their constraint is from being active, in the metric of the sphere (support first).
inline std::size_t screen(const ColumnState &x, const Penalty &penalty, double scale, double radius,
                          std::uint8_t *alive, double *score) {
    std::size_t left = 0;
    for (std::size_t j = 0; j < x.p; ++j) {
        score[j] = std::numeric_limits<double>::infinity();
        if (!alive[j]) continue;
        const double l1 = penalty.l1[j];
        if (x.w[j] != 0.0 || (l1 == 0.0 && penalty.l2[j] == 0.0)) {
            score[j] = -std::numeric_limits<double>::infinity();
            ++left;
            continue;
        }
        const double m = scale * magnitude(x.c[j], penalty.positive), slack = scale * x.slack[j];
        if (m + slack + radius * x.norm[j] < l1) {
            alive[j] = 0;
            continue;
        }
        score[j] = (l1 - m) / x.norm[j];
        ++left;
    }
    return left;
}

}  // namespace epicycle
