// Coordinate ascent of the variational bound of latent Dirichlet allocation over documents.
//
// With t_k = exp E log theta_k and b_kw = exp E log phi_kw, the best share of topic k in word w is t_k b_kw / s_w,
// s_w = sum_k t_k b_kw, and gamma_k = alpha_k + t_k sum_w c_w b_kw / s_w the best parameters given these shares. Both
// steps never lower the bound. t and the rows of b may have any scale, which cancels in the shares; b has a largest
// entry of one in each row and `shift` its logarithm.
//
// Topics are padded to a multiple of LANES: b is zero there. All sums have one order, whatever the threads.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/simd.hpp"
#include "core/sparse.hpp"
#include "core/threads.hpp"
#include "decomposition/dirichlet.hpp"

namespace epicycle {

constexpr std::size_t LANES = 8;
constexpr double ROUNDING = 1e-14;
constexpr double LEAST_SHARE = 1e-290;  // of a word that no topic of the document has

constexpr std::size_t padded(std::size_t k) { return (k + LANES - 1) / LANES * LANES; }

// t = exp(digamma(gamma)) up to a factor, whose logarithm is returned.
EPICYCLE_INLINE double expected_shares(const double *gamma, std::size_t k, std::size_t kp, double *t) {
    for (std::size_t j = 0; j < kp; ++j) t[j] = exp_digamma(gamma[j]);
    double largest = 0.0;
    for (std::size_t j = 0; j < k; ++j) largest = std::max(largest, t[j]);
    if (largest > 1e-200) return 0.0;
    double top = digamma(gamma[0]);  // parameters near zero: relative to the largest
    for (std::size_t j = 1; j < k; ++j) top = std::max(top, digamma(gamma[j]));
    for (std::size_t j = 0; j < k; ++j) t[j] = exp_nonpositive(digamma(gamma[j]) - top);
    return top;
}

// One step of a document: norms s_w, and g = sum_w c_w / s_w b_w. Four words share each read of t and g.
EPICYCLE_INLINE void share_words(const double *B, const double *c, std::size_t m, std::size_t kp, const double *t,
                                 double *s, double *r, double *g) {
    for (std::size_t j = 0; j < kp; ++j) g[j] = 0.0;
    std::size_t w = 0;
    for (; w + 4 <= m; w += 4) {
        const double *b0 = B + w * kp, *b1 = b0 + kp, *b2 = b1 + kp, *b3 = b2 + kp;
        double p0[LANES] = {}, p1[LANES] = {}, p2[LANES] = {}, p3[LANES] = {};
        for (std::size_t j = 0; j < kp; j += LANES)
            for (std::size_t l = 0; l < LANES; ++l) {
                p0[l] += t[j + l] * b0[j + l];
                p1[l] += t[j + l] * b1[j + l];
                p2[l] += t[j + l] * b2[j + l];
                p3[l] += t[j + l] * b3[j + l];
            }
        for (std::size_t width = LANES / 2; width > 0; width /= 2)
            for (std::size_t l = 0; l < width; ++l) {
                p0[l] += p0[l + width];
                p1[l] += p1[l + width];
                p2[l] += p2[l + width];
                p3[l] += p3[l + width];
            }
        const double norms[4] = {p0[0], p1[0], p2[0], p3[0]};
        double q[4];
        for (std::size_t i = 0; i < 4; ++i) {
            s[w + i] = norms[i];
            q[i] = r[w + i] = norms[i] > LEAST_SHARE ? c[w + i] / norms[i] : 0.0;
        }
        for (std::size_t j = 0; j < kp; ++j) g[j] += q[0] * b0[j] + q[1] * b1[j] + (q[2] * b2[j] + q[3] * b3[j]);
    }
    for (; w < m; ++w) {
        const double *b = B + w * kp;
        double p[LANES] = {};
        for (std::size_t j = 0; j < kp; j += LANES)
            for (std::size_t l = 0; l < LANES; ++l) p[l] += t[j + l] * b[j + l];
        for (std::size_t width = LANES / 2; width > 0; width /= 2)
            for (std::size_t l = 0; l < width; ++l) p[l] += p[l + width];
        s[w] = p[0];
        r[w] = p[0] > LEAST_SHARE ? c[w] / p[0] : 0.0;
        for (std::size_t j = 0; j < kp; ++j) g[j] += r[w] * b[j];
    }
}

// Steps of one document until the mean change of gamma is at most tol, or `most` are made. Left behind: gamma after the
// last step; t and r before it, from which the sums over words follow; and the part of the bound that theta and the
// words of the document have in it, at the gamma before the last step.
EPICYCLE_CLONES inline double ascend_document(const double *B, const double *c, const double *shift, std::size_t m,
                                              std::size_t k, std::size_t kp, const double *alpha, double alpha_term,
                                              double tol, std::size_t most, bool want_bound, double *gamma, double *t,
                                              double *r, double *work, double *steps) {
    double *g = work, *before = work + kp, *s = work + 2 * kp;
    double scale = 0.0;
    std::size_t made = 0;
    for (bool last = false; !last;) {
        scale = expected_shares(gamma, k, kp, t);
        share_words(B, c, m, kp, t, s, r, g);
        double change = 0.0, all = 0.0;
        for (std::size_t j = 0; j < k; ++j) {
            before[j] = gamma[j];
            gamma[j] = alpha[j] + t[j] * g[j];
            change += std::fabs(gamma[j] - before[j]);
            all += gamma[j];
        }
        // Below ROUNDING of the whole a change is noise, however small the tolerance.
        last = ++made >= most || change <= std::max(tol * static_cast<double>(k), ROUNDING * all);
    }
    *steps += static_cast<double>(made);
    if (!want_bound) return 0.0;
    double total = 0.0, words = 0.0, parts[LANES] = {};
    for (std::size_t j = 0; j < k; ++j) total += before[j];
    for (std::size_t w = 0; w < m; ++w) s[w] = log_positive(s[w] > LEAST_SHARE ? s[w] : LEAST_SHARE);
    double count = 0.0, alphas = 0.0;
    for (std::size_t w = 0; w < m; ++w) {
        words += c[w] * (s[w] + shift[w]);
        count += c[w];
    }
    for (std::size_t j = k; j < kp; ++j) before[j] = 1.0;  // log Gamma(1) + 0
    for (std::size_t j = 0; j < kp; ++j) g[j] = divergence_term(before[j], j < k ? alpha[j] : 1.0);
    for (std::size_t j = 0; j < kp; j += LANES)
        for (std::size_t l = 0; l < LANES; ++l) parts[l] += g[j + l];
    for (std::size_t l = 1; l < LANES; ++l) parts[0] += parts[l];
    for (std::size_t j = 0; j < k; ++j) alphas += alpha[j];
    // -(log Gamma(total) + (alphas - total) digamma(total)) closes the divergence; the words lack the same digamma.
    return words + count * (scale - digamma(total)) + alpha_term + parts[0] - divergence_term(total, alphas);
}

// E log theta of documents, added up with their weights.
EPICYCLE_CLONES inline void add_log_shares(const double *gamma, std::size_t k, double weight, double *sums) {
    double total = 0.0;
    for (std::size_t j = 0; j < k; ++j) total += gamma[j];
    const double log_total = digamma(total);
    for (std::size_t j = 0; j < k; ++j) sums[j] += weight * (digamma(gamma[j]) - log_total);
}

// sums_w += v r_w t for the words of a document, in the topics from .. to.
EPICYCLE_CLONES inline void add_shares(const double *r, double v, const double *t, std::size_t from, std::size_t to,
                                       double *row) {
    const double x = *r * v;
    for (std::size_t j = from; j < to; ++j) row[j] += x * t[j];
}

struct TopicRows {
    const double *b;      // (p, kp)
    const double *shift;  // (p,)
    const double *alpha;  // (k,)
    double alpha_term;    // log Gamma(sum alpha) - sum log Gamma(alpha)
    std::size_t k, kp;
};

struct Ascent {
    double bound = 0.0, steps = 0.0;
};

// All documents. `sums` (p, kp) and `logs` (k,) are added to where they are given.
template <class T, class I, class Interrupt>
Ascent ascend_documents(const Csr<T, I> &X, const double *weight, const TopicRows &topics, double tol, std::size_t most,
                        bool want_bound, double *gamma, double *sums, double *logs, int threads,
                        const Interrupt &interrupt) {
    constexpr std::size_t CHUNK = 128;
    const std::size_t k = topics.k, kp = topics.kp;
    std::vector<double> ratios, shares(CHUNK * kp), bounds(CHUNK), steps(CHUNK);
    std::size_t longest = 0;
    for (std::size_t i = 0; i < X.rows; ++i)
        longest = std::max(longest, static_cast<std::size_t>(X.indptr[i + 1] - X.indptr[i]));
    const std::size_t own = longest * (kp + 3) + 4 * kp + LANES;
    std::vector<double> space(own * static_cast<std::size_t>(std::max(threads, 1)));
    Ascent out;
    for (std::size_t first = 0; first < X.rows; first += CHUNK) {
        const auto many = static_cast<std::int64_t>(std::min(CHUNK, X.rows - first));
        const I begin = X.indptr[first];
        ratios.resize(static_cast<std::size_t>(X.indptr[first + static_cast<std::size_t>(many)] - begin));
#pragma omp parallel num_threads(threads) if (threads > 1)
        {
#if defined(_OPENMP)
            double *B = space.data() + own * static_cast<std::size_t>(omp_get_thread_num());
#else
            double *B = space.data();
#endif
            double *c = B + longest * kp, *shift = c + longest, *now = shift + longest, *work = now + kp;
#pragma omp for schedule(dynamic, 4)
            for (std::int64_t d = 0; d < many; ++d) {
                const std::size_t i = first + static_cast<std::size_t>(d);
                const I from = X.indptr[i], to = X.indptr[i + 1];
                const auto m = static_cast<std::size_t>(to - from);
                for (std::size_t w = 0; w < m; ++w) {
                    const auto column = static_cast<std::size_t>(X.indices[static_cast<std::size_t>(from) + w]);
                    std::copy_n(topics.b + column * kp, kp, B + w * kp);
                    c[w] = static_cast<double>(X.data[static_cast<std::size_t>(from) + w]);
                    shift[w] = topics.shift[column];
                }
                double *mine = gamma + i * k;
                std::copy_n(mine, k, now);
                std::fill(now + k, now + kp, 1.0);
                steps[static_cast<std::size_t>(d)] = 0.0;
                bounds[static_cast<std::size_t>(d)] =
                    ascend_document(B, c, shift, m, k, kp, topics.alpha, topics.alpha_term, tol, most, want_bound, now,
                                    shares.data() + static_cast<std::size_t>(d) * kp, ratios.data() + (from - begin),
                                    work, steps.data() + d);
                std::copy_n(now, k, mine);
            }
            if (sums) {
                const auto panels = static_cast<std::int64_t>(kp / LANES);
                // One thread takes a run of topics of all documents of the chunk.
#pragma omp for schedule(static)
                for (std::int64_t part = 0; part < threads; ++part) {
                    const auto from_topic = static_cast<std::size_t>(part * panels / threads) * LANES;
                    const auto to_topic = static_cast<std::size_t>((part + 1) * panels / threads) * LANES;
                    if (from_topic == to_topic) continue;
                    for (std::int64_t d = 0; d < many; ++d) {
                        const std::size_t i = first + static_cast<std::size_t>(d);
                        const double v = weight ? weight[i] : 1.0;
                        if (v == 0.0) continue;
                        const double *t = shares.data() + static_cast<std::size_t>(d) * kp;
                        for (I a = X.indptr[i]; a < X.indptr[i + 1]; ++a)
                            add_shares(ratios.data() + (a - begin), v, t, from_topic, to_topic,
                                       sums + static_cast<std::size_t>(X.indices[a]) * kp);
                    }
                }
            }
        }
        for (std::int64_t d = 0; d < many; ++d) {
            const std::size_t i = first + static_cast<std::size_t>(d);
            const double v = weight ? weight[i] : 1.0;
            out.bound += v * bounds[static_cast<std::size_t>(d)];
            out.steps += steps[static_cast<std::size_t>(d)];
            if (logs) add_log_shares(gamma + i * k, k, v, logs);
        }
        interrupt();
    }
    return out;
}

// b = exp E log phi, of lambda (p, k), with the largest of every row divided out; the parts of the bound that the
// topics have but for their totals are added to `term`.
EPICYCLE_CLONES inline double expected_row(const double *lambda, const double *log_total, std::size_t k, double prior,
                                           double *b, double *term, bool want_bound) {
    double top = -HUGE_VAL;
    for (std::size_t j = 0; j < k; ++j) b[j] = digamma(lambda[j]) - log_total[j];
    for (std::size_t j = 0; j < k; ++j) top = std::max(top, b[j]);
    for (std::size_t j = 0; j < k; ++j) b[j] = exp_nonpositive(b[j] - top);
    if (want_bound)
        for (std::size_t j = 0; j < k; ++j) term[j] += divergence_term(lambda[j], prior);
    return top;
}

}  // namespace epicycle
