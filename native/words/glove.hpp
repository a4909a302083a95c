// GloVe (Pennington, Socher, Manning):  minimise  1/2 sum_ij f(X_ij) (w_i'c_j + a_i + b_j - log X_ij)^2  over words w
// and contexts c, where X_ij adds up 1 / distance over the occurrences of i and j within a window.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "words/vectors.hpp"

namespace epicycle {

// Sums by pairs of words, in open addressing: a pair is one number, and 2^64 - 1 is none.
class PairSums {
public:
    PairSums() : key_(1 << 16, EMPTY), sum_(1 << 16) {}

    void add(std::uint64_t key, double x) {
        std::size_t at = place(key);
        if (key_[at] == EMPTY) {
            if (2 * ++used_ > key_.size()) {
                grow();
                at = place(key);
            }
            key_[at] = key;
        }
        sum_[at] += x;
    }

    // In the order of the keys.
    std::vector<std::pair<std::uint64_t, double>> sorted() const {
        std::vector<std::pair<std::uint64_t, double>> all;
        all.reserve(used_);
        for (std::size_t i = 0; i < key_.size(); ++i)
            if (key_[i] != EMPTY) all.emplace_back(key_[i], sum_[i]);
        std::sort(all.begin(), all.end());
        return all;
    }

private:
    static constexpr std::uint64_t EMPTY = ~std::uint64_t{0};

    std::size_t place(std::uint64_t key) const {
        std::size_t at = static_cast<std::size_t>(Stream::mixed(key)) & (key_.size() - 1);
        while (key_[at] != EMPTY && key_[at] != key) at = (at + 1) & (key_.size() - 1);
        return at;
    }
    void grow() {
        std::vector<std::uint64_t> keys(2 * key_.size(), EMPTY);
        std::vector<double> sums(2 * key_.size());
        keys.swap(key_);
        sums.swap(sum_);
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (keys[i] != EMPTY) {
                const std::size_t at = place(keys[i]);
                key_[at] = keys[i];
                sum_[at] = sums[i];
            }
    }

    std::vector<std::uint64_t> key_;
    std::vector<double> sum_;
    std::size_t used_ = 0;
};

// Occurrences of i <= j within `window` words of each other, each counted by 1 / distance times the sentence's weight.
template <class Poll>
std::vector<std::pair<std::uint64_t, double>> cooccurrences(const std::int32_t *ids, const std::int64_t *first,
                                                            std::size_t sentences, const double *weight,
                                                            std::size_t window, Poll poll) {
    PairSums sums;
    for (std::size_t s = 0; s < sentences; ++s) {
        for (std::int64_t i = first[s]; i < first[s + 1]; ++i) {
            const std::int64_t low = std::max(first[s], i - static_cast<std::int64_t>(window));
            for (std::int64_t c = low; c < i; ++c) {
                const auto a = static_cast<std::uint64_t>(std::min(ids[i], ids[c]));
                const auto b = static_cast<std::uint64_t>(std::max(ids[i], ids[c]));
                // A word with itself is met from both sides.
                const double twice = a == b ? 2.0 : 1.0;
                sums.add((a << 32) | b, twice * weight[s] / static_cast<double>(i - c));
            }
        }
        if (s % 1024 == 0) poll();
    }
    return sums.sorted();
}

template <class T>
struct Glove {
    std::size_t width;
    T *word, *context, *word_square, *context_square;  // (words, width); sums of squared gradients
    T *bias, *context_bias, *bias_square, *context_bias_square;
};

// A step of AdaGrad for one entry; returns f (w'c + a + b - log X)^2 / 2.
template <class T>
EPICYCLE_INLINE double glove_body(const Glove<T> &m, std::size_t i, std::size_t j, T log_x, T f, T rate) {
    T *w = m.word + i * m.width, *c = m.context + j * m.width;
    T *ww = m.word_square + i * m.width, *cc = m.context_square + j * m.width;
    const T difference = padded_dot(w, c, m.width) + m.bias[i] + m.context_bias[j] - log_x, g = f * difference;
    for (std::size_t k = 0; k < m.width; ++k) {
        const T of_w = g * c[k], of_c = g * w[k];
        ww[k] += of_w * of_w;
        cc[k] += of_c * of_c;
        w[k] -= rate * of_w / std::sqrt(ww[k]);
        c[k] -= rate * of_c / std::sqrt(cc[k]);
    }
    m.bias_square[i] += g * g;
    m.context_bias_square[j] += g * g;
    m.bias[i] -= rate * g / std::sqrt(m.bias_square[i]);
    m.context_bias[j] -= rate * g / std::sqrt(m.context_bias_square[j]);
    return 0.5 * static_cast<double>(g) * static_cast<double>(difference);
}
EPICYCLE_CLONES inline double glove_step(const Glove<float> &m, std::size_t i, std::size_t j, float log_x, float f,
                                         float rate) {
    return glove_body(m, i, j, log_x, f, rate);
}
EPICYCLE_CLONES inline double glove_step(const Glove<double> &m, std::size_t i, std::size_t j, double log_x, double f,
                                         double rate) {
    return glove_body(m, i, j, log_x, f, rate);
}

}  // namespace epicycle
