// The gradient of a multi-layer perceptron on a batch of rows, by back-propagation:
//
//   forward    z_0 = x,  u_l = W_l z_{l-1} + b_l,  z_l = a(u_l) for l < L,  f = u_L
//   backward   d_L = dl/df,  d_{l-1} = a'(u_{l-1}) * (W_l' d_l),  dl/dW_l = sum_i d_l z_{l-1}',  dl/db_l = sum_i d_l
//
// Rows go through the layers in blocks, whose gradients are added up in order, on one thread: a batch of a small
// network takes less than it costs to wake others where the processors are wanted elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/losses.hpp"
#include "core/simd.hpp"
#include "core/syrk.hpp"
#include "nets/product.hpp"

namespace epicycle {

enum class Activation : int { identity, logistic, tanh, relu };

// Weights of shape (outputs, inputs), and where their gradient goes.
template <class T>
struct LinearLayer {
    std::size_t inputs, outputs;
    const T *weight, *bias;
    T *weight_gradient, *bias_gradient;
};

// A batch: rows of X, and either the class of each row or `outputs` numbers. No weights are ones.
template <class T>
struct LabelledRows {
    std::size_t n;
    const T *x;
    const std::int64_t *classes;
    const T *numbers;
    const double *weight;
    double scale;  // of every row, beside its weight
};

template <class T>
using Aligned = std::vector<T, CacheAligned<T>>;

// a(u) in place. tanh and the logistic function in single precision go by the exponential of a double.
template <class T>
EPICYCLE_INLINE void activate(Activation activation, T *u, std::size_t n) {
    if (activation == Activation::relu)
        for (std::size_t i = 0; i < n; ++i) u[i] = u[i] < T(0) ? T(0) : u[i];
    if (activation == Activation::logistic)
        for (std::size_t i = 0; i < n; ++i) {
            const double e = exp_nonpositive(-std::fabs(static_cast<double>(u[i])));
            u[i] = static_cast<T>((u[i] < T(0) ? e : 1.0) / (1.0 + e));
        }
    if (activation == Activation::tanh) {
        if constexpr (sizeof(T) == sizeof(double)) {
            for (std::size_t i = 0; i < n; ++i) u[i] = std::tanh(u[i]);
        } else {
            for (std::size_t i = 0; i < n; ++i) {
                const double e = exp_nonpositive(-2.0 * std::fabs(static_cast<double>(u[i])));
                const double z = (1.0 - e) / (1.0 + e);
                u[i] = static_cast<T>(u[i] < T(0) ? -z : z);
            }
        }
    }
}

// d *= a'(u), from z = a(u).
template <class T>
EPICYCLE_INLINE void times_slope(Activation activation, const T *z, T *d, std::size_t n) {
    if (activation == Activation::relu)
        for (std::size_t i = 0; i < n; ++i) d[i] = z[i] > T(0) ? d[i] : T(0);
    if (activation == Activation::logistic)
        for (std::size_t i = 0; i < n; ++i) d[i] *= z[i] * (T(1) - z[i]);
    if (activation == Activation::tanh)
        for (std::size_t i = 0; i < n; ++i) d[i] *= T(1) - z[i] * z[i];
}

// l of a row with outputs f, and its derivatives over them times `factor` into d. Of classes the smoothed one counts
// for 1 - s, and all share s evenly.
template <class T>
EPICYCLE_INLINE double softmax_row(const T *f, std::size_t k, std::int64_t y, double s, double factor, T *d) {
    double top = f[0], total = 0.0, mean = 0.0;
    for (std::size_t j = 1; j < k; ++j) top = std::max(top, static_cast<double>(f[j]));
    for (std::size_t j = 0; j < k; ++j) total += exp_nonpositive(static_cast<double>(f[j]) - top);
    double others = 0.0;  // p_y - 1 without cancellation
    for (std::size_t j = 0; j < k; ++j) {
        const double p = exp_nonpositive(static_cast<double>(f[j]) - top) / total;
        if (static_cast<std::int64_t>(j) != y) others += p;
        d[j] = static_cast<T>(factor * (p - s / static_cast<double>(k)));
        mean += f[j];
    }
    d[y] = static_cast<T>(factor * (s - s / static_cast<double>(k) - others));
    const double truth = (1.0 - s) * f[y] + s * mean / static_cast<double>(k);
    return (top - truth) + std::log(total);
}

template <class T>
EPICYCLE_INLINE double numbers_row(LossId loss, const T *f, const T *y, std::size_t k, double s, double factor, T *d) {
    double value = 0.0;
    for (std::size_t j = 0; j < k; ++j) {
        const double z = f[j], t = static_cast<double>(y[j]) * (1.0 - s) + s / 2.0;
        const LossRow row = loss == LossId::logistic  ? binomial_row(z, t, 0.0, 0.0)
                            : loss == LossId::poisson ? poisson_row(z, t, 0.0, 0.0)
                                                      : squared_row(z, t, 0.0, 0.0);
        value += row.value;
        d[j] = static_cast<T>(factor * row.slope);
    }
    return value;
}

template <class T>
class Perceptron {
public:
    static constexpr std::size_t BLOCK = 64;  // rows at once: their units stay in the second-level cache

    Perceptron(std::vector<LinearLayer<T>> given, Activation activation, LossId loss, double smoothing)
        : layers(std::move(given)), activation(activation), loss(loss), smoothing(smoothing) {
        std::size_t at = 0, widest = 0;
        for (const auto &l : layers) {
            const std::size_t in = padded(l.inputs, LANES<T>), out = padded(l.outputs, LANES<T>);
            transposed.emplace_back(l.inputs * out);
            as_given.emplace_back(l.outputs * in);
            z.emplace_back(BLOCK * in);
            starts.push_back(at);
            at += l.outputs * in + out;
            widest = std::max({widest, in, out});
        }
        z.emplace_back(BLOCK * padded(outputs(), LANES<T>));
        sums.resize(at);
        after.resize(BLOCK * widest);
        before.resize(BLOCK * widest);
    }

    std::size_t inputs() const { return layers.front().inputs; }
    std::size_t outputs() const { return layers.back().outputs; }

    // Sets the gradient of the weighted sum of losses, and gives that sum.
    double gradient(const LabelledRows<T> &rows) {
        pack();
        std::fill(sums.begin(), sums.end(), T(0));
        double total = 0.0;
        for (std::size_t from = 0; from < rows.n; from += BLOCK)
            total += add(rows, from, std::min(from + BLOCK, rows.n));
        for (std::size_t l = 0; l < layers.size(); ++l) {
            const auto &layer = layers[l];
            const std::size_t in = padded(layer.inputs, LANES<T>);
            const T *g = sums.data() + starts[l];
            for (std::size_t o = 0; o < layer.outputs; ++o)
                std::copy_n(g + o * in, layer.inputs, layer.weight_gradient + o * layer.inputs);
            std::copy_n(g + layer.outputs * in, layer.outputs, layer.bias_gradient);
        }
        return total;
    }

private:
    std::vector<LinearLayer<T>> layers;
    Activation activation;
    LossId loss;
    double smoothing;
    std::vector<Aligned<T>> transposed, as_given;  // W' and W; here as below rows are padded
    std::vector<std::size_t> starts;               // of each layer in `sums`: rows of its gradient, then its biases
    Aligned<T> sums;
    std::vector<Aligned<T>> z;  // of a block of rows, from the inputs on
    Aligned<T> after, before;   // derivatives over the outputs of a layer, and over its inputs

    void pack() {
        for (std::size_t l = 0; l < layers.size(); ++l) {
            const auto &layer = layers[l];
            const std::size_t in = padded(layer.inputs, LANES<T>), out = padded(layer.outputs, LANES<T>);
            for (std::size_t o = 0; o < layer.outputs; ++o) {
                const T *w = layer.weight + o * layer.inputs;
                for (std::size_t i = 0; i < layer.inputs; ++i) transposed[l][i * out + o] = w[i];
                if (l > 0) std::copy(w, w + layer.inputs, as_given[l].data() + o * in);
            }
        }
    }

    // Adds the gradient of some rows to the sums, and gives their loss.
    double add(const LabelledRows<T> &rows, std::size_t from, std::size_t to) {
        switch (isa()) {
            case Isa::avx512:
                return add_v4(rows, from, to);
            case Isa::avx2:
                return add_v3(rows, from, to);
            default:
                return body<16, 2>(rows, from, to);
        }
    }
    EPICYCLE_V4 double add_v4(const LabelledRows<T> &rows, std::size_t from, std::size_t to) {
        return body<64, 8>(rows, from, to);
    }
    EPICYCLE_V3 double add_v3(const LabelledRows<T> &rows, std::size_t from, std::size_t to) {
        return body<32, 6>(rows, from, to);
    }

    template <int BYTES, int HEIGHT>
    EPICYCLE_INLINE double body(const LabelledRows<T> &rows, std::size_t from, std::size_t to) {
        const std::size_t n = to - from, last = layers.size() - 1, k = outputs();
        for (std::size_t i = 0; i < n; ++i)
            std::copy_n(rows.x + (from + i) * inputs(), inputs(), z[0].data() + i * padded(inputs(), LANES<T>));
        for (std::size_t l = 0; l <= last; ++l) {
            const auto &layer = layers[l];
            const std::size_t in = padded(layer.inputs, LANES<T>), out = padded(layer.outputs, LANES<T>);
            T *u = z[l + 1].data();
            for (std::size_t i = 0; i < n; ++i) std::copy_n(layer.bias, layer.outputs, u + i * out);
            product<T, BYTES, HEIGHT>(z[l].data(), in, 1, transposed[l].data(), out, n, layer.inputs, layer.outputs, u,
                                      out);
            if (l < last) activate(activation, u, n * out);
        }
        const std::size_t ld = padded(k, LANES<T>);
        T *d = after.data(), *earlier = before.data();
        double total = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
            const T *f = z[last + 1].data() + i * ld;
            const double v = (rows.weight ? rows.weight[from + i] : 1.0) * rows.scale;
            total +=
                v * (rows.classes ? softmax_row(f, k, rows.classes[from + i], smoothing, v, d + i * ld)
                                  : numbers_row(loss, f, rows.numbers + (from + i) * k, k, smoothing, v, d + i * ld));
        }
        for (std::size_t l = last + 1; l-- > 0;) {
            const auto &layer = layers[l];
            const std::size_t in = padded(layer.inputs, LANES<T>), out = padded(layer.outputs, LANES<T>);
            T *g = sums.data() + starts[l], *gb = g + layer.outputs * in;
            product<T, BYTES, HEIGHT>(d, 1, out, z[l].data(), in, layer.outputs, n, layer.inputs, g, in);
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t o = 0; o < layer.outputs; ++o) gb[o] += d[i * out + o];
            if (l == 0) break;
            std::fill_n(earlier, n * in, T(0));
            product<T, BYTES, HEIGHT>(d, out, 1, as_given[l].data(), in, n, layer.outputs, layer.inputs, earlier, in);
            times_slope(activation, z[l].data(), earlier, n * in);
            std::swap(d, earlier);
        }
        return total;
    }
};

}  // namespace epicycle
