// Stochastic gradients for factor models, one entry or one pair of entries after another. The order is the caller's, so
// that a pass has the same bits wherever it runs.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "recommend/alternating.hpp"

namespace epicycle::recommend {

struct Model {
    double *users, *items;
    std::size_t k;
    bool bias;
    std::size_t d() const { return k + bias; }
};

// One pass of the joint gradient of the squared error: for the entry j of user u and item i with r = t - x'y - b - c,
//     x += rate (a r y - penalty_u x),   y += rate (a r x - penalty_i y),   the biases in the same way.
// Penalties are those of one entry, for every user and item a pair: of factors and of the bias. The rate of an entry is
// at most 1 / (a (|x|^2 + |y|^2 + 2) + penalties), with which no step goes past the entry's own minimum.
inline void sgd_pass(const std::int64_t *order, std::size_t n, const std::int32_t *user, const std::int32_t *item,
                     const double *target, const double *curvature, const double *user_penalty,
                     const double *item_penalty, double rate, const Model &model) {
    const std::size_t k = model.k, d = model.d();
    for (std::size_t s = 0; s < n; ++s) {
        const std::int64_t j = order[s];
        double *x = model.users + static_cast<std::size_t>(user[j]) * d;
        double *y = model.items + static_cast<std::size_t>(item[j]) * d;
        const double a = curvature ? curvature[j] : 1.0;
        const double r = target[j] - dense_dot(x, y, k) - (model.bias ? x[k] + y[k] : 0.0);
        const double *lu = user_penalty + 2 * static_cast<std::size_t>(user[j]);
        const double *li = item_penalty + 2 * static_cast<std::size_t>(item[j]);
        const double pu = lu[0], pi = li[0];
        const double steep = a * (dense_dot(x, x, k) + dense_dot(y, y, k) + 2.0) + pu + pi + lu[1] + li[1];
        const double step = std::min(rate, 1.0 / steep), g = step * a * r;
        for (std::size_t m = 0; m < k; ++m) {
            const double xm = x[m];
            x[m] += g * y[m] - step * pu * xm;
            y[m] += g * xm - step * pi * y[m];
        }
        if (model.bias) {
            x[k] += g - step * lu[1] * x[k];
            y[k] += g - step * li[1] * y[k];
        }
    }
}

// Whether item i is among the sorted items of user u.
inline bool is_seen(const std::int64_t *start, const std::int32_t *seen, std::int32_t u, std::int32_t i) {
    return std::binary_search(seen + start[u], seen + start[u + 1], i);
}

// Bayesian personalised ranking (Rendle et al. 2009): ascent on log sigma(s_ui - s_uj) - penalty/2 (|x|^2 + ...) for an
// item i that user u has and a drawn item j that u has not; draws that u has are left out. Returns the number of pairs
// that were used and of those that were in the right order before their step.
struct Ranked {
    std::int64_t used = 0, right = 0;
};
inline Ranked bpr_pass(const std::int64_t *positive, const std::int32_t *negative, std::size_t n,
                       const std::int32_t *user, const std::int32_t *item, const std::int64_t *start,
                       const std::int32_t *seen, double penalty, double rate, const Model &model) {
    const std::size_t k = model.k, d = model.d();
    Ranked count;
    for (std::size_t s = 0; s < n; ++s) {
        const std::int32_t u = user[positive[s]], i = item[positive[s]], j = negative[s];
        if (is_seen(start, seen, u, j)) continue;
        double *x = model.users + static_cast<std::size_t>(u) * d;
        double *yi = model.items + static_cast<std::size_t>(i) * d, *yj = model.items + static_cast<std::size_t>(j) * d;
        double margin = dense_dot(x, yi, k) - dense_dot(x, yj, k);
        if (model.bias) margin += yi[k] - yj[k];
        ++count.used;
        count.right += margin > 0.0;
        const double g = 1.0 / (1.0 + std::exp(margin));
        for (std::size_t m = 0; m < k; ++m) {
            const double xm = x[m];
            x[m] += rate * (g * (yi[m] - yj[m]) - penalty * xm);
            yi[m] += rate * (g * xm - penalty * yi[m]);
            yj[m] += rate * (-g * xm - penalty * yj[m]);
        }
        if (model.bias) {
            yi[k] += rate * (g - penalty * yi[k]);
            yj[k] += rate * (-g - penalty * yj[k]);
        }
    }
    return count;
}

}  // namespace epicycle::recommend
