// Means of kernels over the points of a kd-tree, within a bound of the error.
//
// For a query q the mean is S / W,  S = sum_i w_i k(d(q, x_i) / h)  with k falling and k(0) = 1, W = sum_i w_i. A node
// of weight w whose kernels lie in [a, b] is replaced by w (a + b) / 2, which is wrong by at most w (b - a) / 2. It is
// taken where (b - a) / 2 is at most  e = (atol + rtol L) / W,  with L <= S what is known of the sum so far and W the
// weight of all points: the errors of all nodes then add up to at most  W e <= atol + rtol S.  Near nodes come first,
// so that L grows early.
//
// Kernels that reach everywhere are taken relative to that of the nearest point, so that no sum vanishes.
//
// A weight v may be left out of the points that equal the query: with v = 1 every point is seen by the others alone,
// one of weight 3 by two more of its kind. It is left out of the sum term by term; a difference of sums would cancel.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/simd.hpp"
#include "core/threads.hpp"
#include "spatial/kd_tree.hpp"

namespace epicycle {

enum class DensityKernel : int { gaussian, tophat, epanechnikov, exponential, linear, cosine };

// The half square of a distance in bandwidths, from the square of the distance and 1 / h.
EPICYCLE_INLINE double half_square(double square, double rate) { return square * rate * rate * 0.5; }

EPICYCLE_CLONES inline void half_squares(double *a, std::size_t m, double rate) {
    for (std::size_t j = 0; j < m; ++j) a[j] = half_square(a[j], rate);
}
EPICYCLE_CLONES inline void decay(const double *a, std::size_t m, double nearest, double *out) {
    for (std::size_t j = 0; j < m; ++j) out[j] = exp_nonpositive(nearest - a[j]);
}

// The argument of a kernel from a reduced distance, and its value: exp(nearest - a) where it reaches everywhere.
template <Metric M, DensityKernel K>
struct KernelOfDistance {
    static constexpr bool everywhere = K == DensityKernel::gaussian || K == DensityKernel::exponential;
    static constexpr bool by_squares = K == DensityKernel::gaussian && M == Metric::euclidean;
    Norm<M> norm;
    double rate;  // 1 / h

    double argument(double reduced) const {
        if constexpr (by_squares) return half_square(reduced, rate);
        const double d = norm.root(reduced) * rate;
        if constexpr (K == DensityKernel::gaussian) return d * d / 2.0;
        return d;
    }
    void arguments(double *reduced, std::size_t m) const {
        if constexpr (by_squares) {
            half_squares(reduced, m, rate);
        } else {
            for (std::size_t j = 0; j < m; ++j) reduced[j] = argument(reduced[j]);
        }
    }
    double operator()(double a, double nearest) const {
        if constexpr (everywhere) return a <= nearest ? 1.0 : exp_nonpositive(nearest - a);
        if (!(a < 1.0)) return 0.0;
        if constexpr (K == DensityKernel::epanechnikov) return 1.0 - a * a;
        if constexpr (K == DensityKernel::linear) return 1.0 - a;
        if constexpr (K == DensityKernel::cosine) return std::cos(1.5707963267948966 * a);
        return 1.0;
    }
    void of_leaf(double *a, std::size_t m, double nearest) const {
        if constexpr (everywhere) {
            decay(a, m, nearest, a);
        } else {
            for (std::size_t j = 0; j < m; ++j) a[j] = (*this)(a[j], nearest);
        }
    }
};

// Points, their weights (none: all one) and those of the nodes.
struct WeightedTree {
    KdTree tree;
    std::vector<double> weight, node_weight;

    WeightedTree(const double *X, std::size_t n, std::size_t p, const double *w) : tree(X, n, p) {
        if (w) {
            weight.resize(n);
            for (std::size_t i = 0; i < n; ++i) weight[i] = w[static_cast<std::size_t>(tree.row[i])];
        }
        node_weight.resize(tree.count());
        for (std::size_t node = tree.count(); node-- > 0;) {
            double sum = 0.0;
            if (!tree.is_leaf(node)) {
                sum = node_weight[2 * node + 1] + node_weight[2 * node + 2];
            } else if (!w) {
                sum = static_cast<double>(tree[node].size());
            } else {
                for (std::size_t i = tree[node].start; i < tree[node].end; ++i) sum += weight[i];
            }
            node_weight[node] = sum;
        }
    }
};

struct DensityTolerance {
    double log_atol;  // of S / W, before it is taken relative to the nearest point
    double rtol;
};

template <Metric M, DensityKernel K>
class KernelMean {
public:
    KernelMean(const WeightedTree &points, const KernelOfDistance<M, K> &kernel, const DensityTolerance &tolerance,
               double left_out)
        : points(points), tree(points.tree), kernel(kernel), tolerance(tolerance), left_out(left_out) {}

    // log(S / W).
    double operator()(const double *query) {
        const double total = points.node_weight[0];
        q = query;
        nearest = 0.0;
        spare = left_out;
        if constexpr (KernelOfDistance<M, K>::everywhere) {
            least = std::numeric_limits<double>::infinity();
            find_nearest(0, tree.near(kernel.norm, q, 0));
            nearest = kernel.argument(least);
            if (!(nearest < std::numeric_limits<double>::infinity())) return -nearest;  // beyond all numbers
        }
        const double log_atol = tolerance.log_atol + nearest;
        atol = log_atol > 700.0 ? std::numeric_limits<double>::max() : std::exp(log_atol);
        atol *= std::max(1.0 - left_out / total, 0.0);  // what is left weighs at least this share of all
        sum = known = 0.0;
        spare = left_out;
        add(0, tree.near(kernel.norm, q, 0));
        if (!(sum > 0.0)) return -std::numeric_limits<double>::infinity();
        // No kernel exceeds that of the nearest point: where rounding takes all of W, the sum is what is left of it.
        return std::log(sum) - nearest - std::log(std::max(total - (left_out - spare), sum));
    }

private:
    const WeightedTree &points;
    const KdTree &tree;
    const KernelOfDistance<M, K> &kernel;
    const DensityTolerance &tolerance;
    const double left_out;
    const double *q = nullptr;
    double nearest = 0.0, least = 0.0, atol = 0.0, sum = 0.0, known = 0.0;
    double spare = 0.0;  // of the weight to leave out, what no point has taken yet
    std::array<double, KD_LEAF> values{};

    double weight_of(std::size_t i) const { return points.weight.empty() ? 1.0 : points.weight[i]; }

    // What is left of the weight of point i, which equals the query.
    double kept(std::size_t i) {
        const double w = weight_of(i), taken = std::min(w, spare);
        spare -= taken;
        return w - taken;
    }

    void find_nearest(std::size_t node, double near) {
        if (near >= least) return;
        if (tree.is_leaf(node)) {
            const auto &leaf = tree[node];
            tree.distances(kernel.norm, q, leaf.start, leaf.size(), values.data());
            for (std::size_t j = 0; j < leaf.size(); ++j) {
                if (values[j] == 0.0 && spare > 0.0 && !(kept(leaf.start + j) > 0.0)) continue;
                least = std::min(least, values[j]);
            }
            return;
        }
        const std::size_t left = 2 * node + 1;
        const double a = tree.near(kernel.norm, q, left), b = tree.near(kernel.norm, q, left + 1);
        find_nearest(a <= b ? left : left + 1, std::min(a, b));
        find_nearest(a <= b ? left + 1 : left, std::max(a, b));
    }

    // The largest reduced distance of the query from a box.
    double far(std::size_t node) const {
        double total = 0.0;
        for (std::size_t k = 0; k < tree.cols(); ++k)
            total = kernel.norm.join(
                total, kernel.norm.part(std::max(q[k] - tree.lower(node, k), tree.upper(node, k) - q[k])));
        return total;
    }

    void add(std::size_t node, double near) {
        const double most = kernel(kernel.argument(near), nearest), weight = points.node_weight[node];
        if (most == 0.0) return;
        const double allowed = 2.0 * (atol + tolerance.rtol * known / points.node_weight[0]);
        const double fewest = kernel(kernel.argument(far(node)), nearest);
        if (most - fewest <= allowed && !(spare > 0.0 && near == 0.0)) {
            sum += weight * (most / 2.0 + fewest / 2.0);
            known += weight * fewest;
            return;
        }
        if (tree.is_leaf(node)) {
            const double exact = of_leaf(tree[node]);
            sum += exact;
            known += exact;
            return;
        }
        const std::size_t left = 2 * node + 1;
        const double a = tree.near(kernel.norm, q, left), b = tree.near(kernel.norm, q, left + 1);
        add(a <= b ? left : left + 1, std::min(a, b));
        add(a <= b ? left + 1 : left, std::max(a, b));
    }

    double of_leaf(const KdTree::Node &leaf) {
        const std::size_t m = leaf.size();
        tree.distances(kernel.norm, q, leaf.start, m, values.data());
        std::array<std::size_t, KD_LEAF> equal;  // to the query, while there is weight to leave out
        std::array<double, KD_LEAF> left;
        std::size_t n_equal = 0;
        if (spare > 0.0)
            for (std::size_t j = 0; j < m && spare > 0.0; ++j)
                if (values[j] == 0.0) {
                    left[n_equal] = kept(leaf.start + j);
                    equal[n_equal++] = j;
                }
        kernel.arguments(values.data(), m);
        for (std::size_t e = 0; e < n_equal; ++e) values[equal[e]] = nearest;
        kernel.of_leaf(values.data(), m, nearest);
        if (!points.weight.empty())
            for (std::size_t j = 0; j < m; ++j) values[j] *= points.weight[leaf.start + j];
        for (std::size_t e = 0; e < n_equal; ++e) values[equal[e]] = left[e];
        std::fill(values.begin() + static_cast<std::ptrdiff_t>(m), values.end(), 0.0);
        double partial[8] = {};  // of fixed shape, whatever the width of the registers
        for (std::size_t j = 0; j < KD_LEAF; j += 8)
            for (std::size_t l = 0; l < 8; ++l) partial[l] += values[j + l];
        return ((partial[0] + partial[4]) + (partial[1] + partial[5])) +
               ((partial[2] + partial[6]) + (partial[3] + partial[7]));
    }
};

// out[i] = log of the mean of kernels at row i of Q (n x p), up to a weight `left_out` of points that equal it left
// out.
template <Metric M, DensityKernel K, class Interrupt>
void log_kernel_means(const WeightedTree &points, const KernelOfDistance<M, K> &kernel,
                      const DensityTolerance &tolerance, double left_out, const double *Q, std::size_t n, double *out,
                      [[maybe_unused]] int threads, const Interrupt &interrupt) {
    const std::size_t p = points.tree.cols();
    // Pieces of well below a second even where every point is visited.
    const std::size_t piece = std::max<std::size_t>(16, std::min<std::size_t>(4096, (1 << 26) / points.tree.rows()));
    for (std::size_t from = 0; from < n; from += piece) {
        const auto to = static_cast<std::int64_t>(std::min(from + piece, n));
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
            KernelMean<M, K> density(points, kernel, tolerance, left_out);
#pragma omp for schedule(dynamic, 8)
            for (std::int64_t i = static_cast<std::int64_t>(from); i < to; ++i) out[i] = density(Q + i * p);
        }
        interrupt();
    }
}

}  // namespace epicycle
