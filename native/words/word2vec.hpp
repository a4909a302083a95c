// word2vec (Mikolov and others): an input vector v is to tell targets, rows u of a second matrix, from others,
//
//     loss = sum_j log(1 + exp(-s_j v'u_j)),   s_j = 1 for the target (or a branch to the right), else -1 :
//
// a word and negative samples, or the branches of a Huffman tree on the way to the word. Skip-gram takes each word of a
// window as input for the one in its middle, CBOW the mean of the window.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "words/vectors.hpp"

namespace epicycle {

constexpr std::size_t MOST_TARGETS = 64;  // of one input; longer ways through the tree are taken in pieces

// One step against the gradient: u_j -= rate dloss/du_j; change -= rate dloss/dv, which the caller adds to what v is
// made of. All products are taken before anything moves, so that the step is that of the loss. Returns the loss.
template <class T>
EPICYCLE_INLINE double step_body(const T *v, T *const *u, const bool *yes, std::size_t count, std::size_t n, T rate,
                                 T *change) {
    double f[MOST_TARGETS], g[MOST_TARGETS], loss = 0.0;
    for (std::size_t j = 0; j < count; ++j) f[j] = static_cast<double>(padded_dot(v, u[j], n));
    for (std::size_t j = 0; j < count; ++j) {
        const double s = yes[j] ? f[j] : -f[j], e = exp_nonpositive(s < 0.0 ? s : -s);
        const double wrong = s < 0.0 ? 1.0 / (1.0 + e) : e / (1.0 + e);  // the probability of the other answer
        g[j] = yes[j] ? wrong : -wrong;
        loss += (s < 0.0 ? -s : 0.0) + log1p_unit(e);
    }
    for (std::size_t j = 0; j < count; ++j) {
        const T step = rate * static_cast<T>(g[j]);
        T *row = u[j];
        for (std::size_t i = 0; i < n; ++i) {
            change[i] += step * row[i];
            row[i] += step * v[i];
        }
    }
    return loss;
}
EPICYCLE_CLONES inline double step(const float *v, float *const *u, const bool *yes, std::size_t count, std::size_t n,
                                   float rate, float *change) {
    return step_body(v, u, yes, count, n, rate, change);
}
EPICYCLE_CLONES inline double step(const double *v, double *const *u, const bool *yes, std::size_t count, std::size_t n,
                                   double rate, double *change) {
    return step_body(v, u, yes, count, n, rate, change);
}
EPICYCLE_CLONES inline void add_to(float *to, const float *x, float times, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) to[i] += times * x[i];
}

struct Word2Vec {
    std::size_t words, width;  // of the vocabulary; of a padded row
    float *input, *output;
    const float *keep;  // probability that an occurrence of a word is kept
    std::size_t window;
    bool cbow;
    std::size_t negative;             // samples, drawn by an alias table
    const float *alias_keep;          // (words,)
    const std::int32_t *alias_other;  // (words,)
    const std::int64_t *way_first;    // (words + 1,): ways through the Huffman tree; null without
    const std::int32_t *way_node;     // rows of `output` after those of words
    const std::uint8_t *way_right;
    std::size_t tree_row;  // first row of `output` that is a node of the tree
};

struct Progress {
    double loss = 0.0;
    std::int64_t pairs = 0, targets = 0, words = 0;
};

class Word2VecTrainer {
public:
    explicit Word2VecTrainer(const Word2Vec &m) : m_(m), change_(m.width), mean_(m.width) {}

    // One sentence: frequent words thinned out, windows of random size.
    Progress sentence(const std::int32_t *ids, std::size_t n, float rate, Stream stream) {
        Progress done;
        kept_.clear();
        for (std::size_t i = 0; i < n; ++i)
            if (m_.keep[ids[i]] >= 1.0f || stream.uniform() < m_.keep[ids[i]]) kept_.push_back(ids[i]);
        done.words = static_cast<std::int64_t>(kept_.size());
        const std::size_t size = kept_.size();
        reduced_.resize(size);
        for (std::size_t i = 0; i < size; ++i) reduced_[i] = m_.window - stream.below(m_.window);
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t low = i > reduced_[i] ? i - reduced_[i] : 0, high = std::min(size, i + reduced_[i] + 1);
            if (high - low < 2) continue;
            if (m_.cbow)
                window_mean(i, low, high, rate, stream, done);
            else
                for (std::size_t c = low; c < high; ++c)
                    if (c != i) pair(kept_[i], kept_[c], rate, stream, done);
        }
        return done;
    }

private:
    float *in(std::int32_t word) const { return m_.input + static_cast<std::size_t>(word) * m_.width; }
    float *out(std::size_t row) const { return m_.output + row * m_.width; }

    void target(std::size_t row, bool yes, const float *v, float rate, Progress &done) {
        rows_[count_] = out(row);
        yes_[count_++] = yes;
        for (std::size_t i = 0; i < m_.width; i += WIDTH) __builtin_prefetch(out(row) + i, 1);
        if (count_ == MOST_TARGETS) flush(v, rate, done);
    }
    void flush(const float *v, float rate, Progress &done) {
        if (count_ > 0) done.loss += step(v, rows_, yes_, count_, m_.width, rate, change_.data());
        done.targets += static_cast<std::int64_t>(count_);
        count_ = 0;
    }

    // The change of v that the targets of a word ask for.
    void targets(std::int32_t word, const float *v, float rate, Stream &stream, Progress &done) {
        std::fill(change_.begin(), change_.end(), 0.0f);
        if (m_.negative > 0) {
            target(static_cast<std::size_t>(word), true, v, rate, done);
            for (std::size_t k = 0; k < m_.negative; ++k) {
                const std::uint64_t draw = stream.next();
                const auto place = static_cast<std::size_t>(((draw >> 32) * m_.words) >> 32);
                const auto share = static_cast<float>(draw & 0xffffff) * 0x1.0p-24f;
                const std::int32_t other =
                    share < m_.alias_keep[place] ? static_cast<std::int32_t>(place) : m_.alias_other[place];
                if (other != word) target(static_cast<std::size_t>(other), false, v, rate, done);
            }
        }
        if (m_.way_first)
            for (std::int64_t e = m_.way_first[word]; e < m_.way_first[word + 1]; ++e)
                target(m_.tree_row + static_cast<std::size_t>(m_.way_node[e]), m_.way_right[e] != 0, v, rate, done);
        flush(v, rate, done);
        ++done.pairs;
    }

    void pair(std::int32_t word, std::int32_t context, float rate, Stream &stream, Progress &done) {
        float *v = in(context);
        targets(word, v, rate, stream, done);
        add_to(v, change_.data(), 1.0f, m_.width);
    }

    void window_mean(std::size_t i, std::size_t low, std::size_t high, float rate, Stream &stream, Progress &done) {
        std::fill(mean_.begin(), mean_.end(), 0.0f);
        const float share = 1.0f / static_cast<float>(high - low - 1);
        for (std::size_t c = low; c < high; ++c)
            if (c != i) add_to(mean_.data(), in(kept_[c]), share, m_.width);
        targets(kept_[i], mean_.data(), rate, stream, done);
        // Each word of the window moves by the whole change, as in the authors' program, not by its share of it.
        for (std::size_t c = low; c < high; ++c)
            if (c != i) add_to(in(kept_[c]), change_.data(), 1.0f, m_.width);
    }

    const Word2Vec m_;
    std::vector<float> change_, mean_;
    std::vector<std::int32_t> kept_;
    std::vector<std::size_t> reduced_;
    float *rows_[MOST_TARGETS];
    bool yes_[MOST_TARGETS];
    std::size_t count_ = 0;
};

}  // namespace epicycle
