// Hidden Markov chains: what a sequence of observations says about the states behind it.
//
// Given log e_t(k), the log-density of observation t in state k, start probabilities q and transitions A:
//   forward   a_t(j) = e_t(j) sum_i a_{t-1}(i) A(i, j),      a_0(j) = q(j) e_0(j)
//   backward  b_t(i) = sum_j A(i, j) e_{t+1}(j) b_{t+1}(j),  b_{T-1}(i) = 1
// The posterior of state k at t is a_t(k) b_t(k) over its sum, which is the likelihood at every t.
//
// Both run scaled: e_t is divided by its largest entry, a_t by its sum c_t, and the logarithms of both are added up. A
// state whose scaled a_t is below the smallest number is lost. A path through it weighs at most that number times the
// largest b_t, so that as long as no b_t is above LARGEST nothing has been lost that shows. Otherwise (states that are
// almost impossible until all others are quite so) the sequence runs again with every number as its logarithm.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <limits>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

constexpr double NEVER = -std::numeric_limits<double>::infinity();
constexpr double LARGEST = 1e280;

// Start and transition probabilities of K states, in rows of `width` numbers with zeros beyond K.
struct MarkovChain {
    std::size_t states, width;
    std::vector<double> start, forward, backward;  // A and its transpose
    std::vector<double> log_start, log_transition;

    MarkovChain(const double *q, const double *A, std::size_t k)
        : states(k), width(k <= 2   ? 2
                           : k <= 4 ? 4
                                    : (k + 7) / 8 * 8),
          start(width), forward(k * width), backward(k * width), log_start(k), log_transition(k * k) {
        for (std::size_t i = 0; i < k; ++i) {
            start[i] = q[i];
            log_start[i] = std::log(q[i]);
            for (std::size_t j = 0; j < k; ++j) {
                forward[i * width + j] = backward[j * width + i] = A[i * k + j];
                log_transition[i * k + j] = std::log(A[i * k + j]);
            }
        }
    }
};

// What a sequence, or several, add to the expected counts, and the log-likelihood.
struct ChainCounts {
    std::vector<double> start, transition;
    explicit ChainCounts(std::size_t k) : start(k), transition(k * k) {}
};

struct ChainWork {
    std::vector<double> density, alpha, scale;
};

inline double sum_of_logs(const double *x, std::size_t n) {
    // One logarithm for many factors: their product stays far from the ends of the range.
    double total = 0.0, product = 1.0;
    for (std::size_t t = 0; t < n; ++t) {
        product *= x[t];
        if (product < 1e-150 || product > 1e150) {
            total += std::log(product);
            product = 1.0;
        }
    }
    return total + std::log(product);
}

// exp(log e_t - max), rows of `width`; the maxima are added up into `shift`, or -inf where a row has no possible state.
EPICYCLE_CLONES inline double scaled_densities(const double *log_e, std::size_t n, std::size_t k, std::size_t width,
                                               double *out, double *row_shift) {
    double shift = 0.0;
    for (std::size_t t = 0; t < n; ++t) {
        const double *row = log_e + t * k;
        double most = NEVER;
        for (std::size_t j = 0; j < k; ++j) most = row[j] > most ? row[j] : most;
        const double by = most == NEVER ? 0.0 : most;
        double *e = out + t * width;
        for (std::size_t j = 0; j < k; ++j) e[j] = exp_nonpositive(row[j] - by);
        for (std::size_t j = k; j < width; ++j) e[j] = 0.0;
        shift += most;
        if (row_shift) row_shift[t] = most;
    }
    return shift;
}

// What a pass over one sequence reads and writes. `alpha` gets a_t times c_t, since it is divided by c_t only on the
// way to a_{t+1}: the sum and the division are done while the product with A is. `posterior` may be null.
struct ScaledPass {
    const MarkovChain &chain;
    std::size_t n;
    const double *e;
    double *alpha, *scale, *counts, *posterior, *first;
};

// A row of W numbers in registers. Memory is read through copies, which become loads that need no alignment.
template <std::size_t W>
struct Lanes {
    typedef double Vector __attribute__((vector_size(W * sizeof(double))));
    Vector v;

    EPICYCLE_INLINE static Lanes load(const double *x) {
        Lanes out;
        std::memcpy(&out.v, x, sizeof out.v);
        return out;
    }
    EPICYCLE_INLINE void store(double *x) const { std::memcpy(x, &v, sizeof v); }
    // Halves are added to halves: no addition waits for more than log W others.
    EPICYCLE_INLINE double sum() const {
        double part[W];
        store(part);
        for (std::size_t half = W / 2; half > 0; half /= 2)
            for (std::size_t j = 0; j < half; ++j) part[j] += part[j + half];
        return part[0];
    }
    // x'M for M (k, W), by two sums side by side.
    EPICYCLE_INLINE static Lanes times_matrix(const double *x, const double *M, std::size_t k) {
        Vector one = load(M).v * x[0], two = {};
        std::size_t i = 1;
        for (; i + 1 < k; i += 2) {
            two += load(M + i * W).v * x[i];
            one += load(M + (i + 1) * W).v * x[i + 1];
        }
        if (i < k) two += load(M + i * W).v * x[i];
        return {one + two};
    }
};

template <std::size_t W>
EPICYCLE_INLINE bool forward_scaled(const ScaledPass &p) {
    using Row = Lanes<W>;
    const std::size_t k = p.chain.states;
    const double *A = p.chain.forward.data();
    double by = 1.0;
    for (std::size_t t = 0; t < p.n; ++t) {
        double *a = p.alpha + t * W;
        const auto e = Row::load(p.e + t * W).v;
        const Row next =
            t == 0 ? Row{Row::load(p.chain.start.data()).v * e} : Row{Row::times_matrix(a - W, A, k).v * (e * by)};
        next.store(a);
        const double total = next.sum();
        p.scale[t] = total;
        if (!(total > 1e-290)) return false;
        by = 1.0 / total;
    }
    return true;
}

// Posteriors a_t b_t; `counts` gets sum_t a_t(i) w_{t+1}(j) with w = e b / c, to be multiplied by A.
template <std::size_t W>
EPICYCLE_INLINE bool backward_scaled(const ScaledPass &p) {
    using Row = Lanes<W>;
    const std::size_t k = p.chain.states;
    const double *At = p.chain.backward.data();
    Row beta;
    for (std::size_t j = 0; j < W; ++j) beta.v[j] = j < k ? 1.0 : 0.0;
    double w[W], a[W], product[W];
    for (std::size_t t = p.n; t-- > 0;) {
        const double by = 1.0 / p.scale[t];
        const Row here{Row::load(p.alpha + t * W).v * by};
        if (t + 1 < p.n) {
            beta = Row::times_matrix(w, At, k);
            here.store(a);
            const auto after = Row::load(w).v;
            for (std::size_t i = 0; i < k; ++i)
                Row{Row::load(p.counts + i * W).v + after * a[i]}.store(p.counts + i * W);
            if (!(beta.sum() < LARGEST)) return false;
        }
        Row{Row::load(p.e + t * W).v * beta.v * by}.store(w);
        const Row found{here.v * beta.v};
        if (p.posterior && k == W)
            found.store(p.posterior + t * W);
        else if (p.posterior) {
            found.store(product);
            for (std::size_t j = 0; j < k; ++j) p.posterior[t * k + j] = product[j];
        }
        if (t == 0) found.store(p.first);
    }
    return true;
}

template <std::size_t W>
EPICYCLE_INLINE bool scaled_pass(const ScaledPass &p) {
    return forward_scaled<W>(p) && backward_scaled<W>(p);
}

// The same for more states than registers are made for.
EPICYCLE_INLINE void wide_times(const double *x, const double *M, std::size_t k, std::size_t width, double *out) {
    for (std::size_t j = 0; j < width; j += 8) {
        Lanes<8>::Vector one = {}, two = {};
        std::size_t i = 0;
        for (; i + 1 < k; i += 2) {
            one += Lanes<8>::load(M + i * width + j).v * x[i];
            two += Lanes<8>::load(M + (i + 1) * width + j).v * x[i + 1];
        }
        if (i < k) one += Lanes<8>::load(M + i * width + j).v * x[i];
        Lanes<8>{one + two}.store(out + j);
    }
}

EPICYCLE_INLINE double wide_sum(const double *x, std::size_t width) {
    Lanes<8> part = Lanes<8>::load(x);
    for (std::size_t j = 8; j < width; j += 8) part.v += Lanes<8>::load(x + j).v;
    return part.sum();
}

template <>
EPICYCLE_INLINE bool scaled_pass<0>(const ScaledPass &p) {
    const std::size_t k = p.chain.states, width = p.chain.width;
    std::vector<double> held(3 * width);
    double *beta = held.data(), *w = beta + width, *a = w + width, by = 1.0;
    for (std::size_t t = 0; t < p.n; ++t) {
        double *here = p.alpha + t * width;
        if (t == 0)
            std::copy_n(p.chain.start.data(), width, here);
        else
            wide_times(here - width, p.chain.forward.data(), k, width, here);
        for (std::size_t j = 0; j < width; ++j) here[j] *= p.e[t * width + j] * by;
        p.scale[t] = wide_sum(here, width);
        if (!(p.scale[t] > 1e-290)) return false;
        by = 1.0 / p.scale[t];
    }
    std::fill(beta, beta + k, 1.0);
    for (std::size_t t = p.n; t-- > 0;) {
        by = 1.0 / p.scale[t];
        for (std::size_t j = 0; j < width; ++j) a[j] = p.alpha[t * width + j] * by;
        if (t + 1 < p.n) {
            wide_times(w, p.chain.backward.data(), k, width, beta);
            for (std::size_t i = 0; i < k; ++i)
                for (std::size_t j = 0; j < width; j += 8) {
                    double *count = p.counts + i * width + j;
                    Lanes<8>{Lanes<8>::load(count).v + Lanes<8>::load(w + j).v * a[i]}.store(count);
                }
            if (!(wide_sum(beta, width) < LARGEST)) return false;
        }
        for (std::size_t j = 0; j < width; ++j) w[j] = p.e[t * width + j] * beta[j] * by;
        if (p.posterior)
            for (std::size_t j = 0; j < k; ++j) p.posterior[t * k + j] = a[j] * beta[j];
        if (t == 0)
            for (std::size_t j = 0; j < width; ++j) p.first[j] = a[j] * beta[j];
    }
    return true;
}

EPICYCLE_CLONES inline bool scaled_pass_2(const ScaledPass &p) { return scaled_pass<2>(p); }
EPICYCLE_CLONES inline bool scaled_pass_4(const ScaledPass &p) { return scaled_pass<4>(p); }
EPICYCLE_CLONES inline bool scaled_pass_8(const ScaledPass &p) { return scaled_pass<8>(p); }
EPICYCLE_CLONES inline bool scaled_pass_any(const ScaledPass &p) { return scaled_pass<0>(p); }

inline bool run_scaled(const ScaledPass &p) {
    switch (p.chain.width) {
        case 2:
            return scaled_pass_2(p);
        case 4:
            return scaled_pass_4(p);
        case 8:
            return scaled_pass_8(p);
        default:
            return scaled_pass_any(p);
    }
}

inline double log_sum(const double *x, std::size_t n) {
    const double most = *std::max_element(x, x + n);
    if (most == NEVER) return NEVER;
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) total += std::exp(x[i] - most);
    return most + std::log(total);
}

// The same by logarithms throughout; `alpha` and `beta` are (n, K).
inline double log_pass(const MarkovChain &chain, std::size_t n, const double *log_e, double *alpha, double *beta,
                       double weight, double *posterior, double *steps, ChainCounts &counts) {
    const std::size_t k = chain.states;
    const double *A = chain.log_transition.data();
    std::vector<double> terms(k);
    double before = 0.0;
    for (std::size_t t = 0; t < n; ++t) {
        for (std::size_t j = 0; j < k; ++j) {
            if (t == 0) {
                alpha[j] = chain.log_start[j] + log_e[j];
                continue;
            }
            for (std::size_t i = 0; i < k; ++i) terms[i] = alpha[(t - 1) * k + i] + A[i * k + j];
            alpha[t * k + j] = log_sum(terms.data(), k) + log_e[t * k + j];
        }
        if (steps) {
            const double here = log_sum(alpha + t * k, k);
            steps[t] = here == NEVER ? NEVER : here - before;
            before = here;
        }
    }
    const double total = log_sum(alpha + (n - 1) * k, k);
    if (total == NEVER) {
        if (posterior) std::fill(posterior, posterior + n * k, std::numeric_limits<double>::quiet_NaN());
        return total;
    }
    for (std::size_t j = 0; j < k; ++j) beta[(n - 1) * k + j] = 0.0;
    for (std::size_t t = n - 1; t-- > 0;)
        for (std::size_t i = 0; i < k; ++i) {
            for (std::size_t j = 0; j < k; ++j)
                terms[j] = A[i * k + j] + log_e[(t + 1) * k + j] + beta[(t + 1) * k + j];
            beta[t * k + i] = log_sum(terms.data(), k);
            for (std::size_t j = 0; j < k; ++j)
                counts.transition[i * k + j] += weight * std::exp(alpha[t * k + i] + terms[j] - total);
        }
    for (std::size_t t = 0; t < n; ++t) {
        const bool wanted = posterior != nullptr;
        if (!wanted && t > 0) break;
        for (std::size_t j = 0; j < k; ++j) {
            const double p = std::exp(alpha[t * k + j] + beta[t * k + j] - total);
            if (t == 0) counts.start[j] += weight * p;
            if (wanted) posterior[t * k + j] = p;
        }
    }
    return total;
}

// One sequence. Adds its expected counts, times `weight`; writes posteriors (n, K) and the logarithms of
// p(x_t | x_0, ..., x_{t-1}), where they are wanted. Returns the log-likelihood, -inf for what cannot happen.
inline double smooth_sequence(const MarkovChain &chain, std::size_t n, const double *log_e, double weight,
                              double *posterior, double *steps, ChainWork &work, ChainCounts &counts) {
    const std::size_t k = chain.states, width = chain.width;
    if (n == 0) return 0.0;
    work.density.resize(n * width);
    work.alpha.resize(n * width);
    work.scale.resize(n);
    std::vector<double> products(k * width, 0.0), first(width);
    const double shift = scaled_densities(log_e, n, k, width, work.density.data(), steps);
    const ScaledPass pass{chain,           n,         work.density.data(), work.alpha.data(), work.scale.data(),
                          products.data(), posterior, first.data()};
    if (!std::isfinite(shift) || !run_scaled(pass))
        return log_pass(chain, n, log_e, work.alpha.data(), work.density.data(), weight, posterior, steps, counts);
    for (std::size_t i = 0; i < k; ++i) {
        counts.start[i] += weight * first[i];
        for (std::size_t j = 0; j < k; ++j)
            counts.transition[i * k + j] += weight * products[i * width + j] * chain.forward[i * width + j];
    }
    if (steps)
        for (std::size_t t = 0; t < n; ++t) steps[t] += std::log(work.scale[t]);
    return shift + sum_of_logs(work.scale.data(), n);
}

// The path of largest probability, and its logarithm together with the observations; of equal ones that with the
// smaller states at the end. States are -1 where no path is possible.
EPICYCLE_CLONES inline double viterbi_sequence(const MarkovChain &chain, std::size_t n, const double *log_e,
                                               std::vector<std::int32_t> &from, std::int64_t *path) {
    const std::size_t k = chain.states;
    if (n == 0) return 0.0;
    const double *A = chain.log_transition.data();
    from.resize(n * k);
    std::vector<double> held(2 * k);
    double *best = held.data(), *next = best + k;
    for (std::size_t j = 0; j < k; ++j) best[j] = chain.log_start[j] + log_e[j];
    for (std::size_t t = 1; t < n; ++t) {
        std::int32_t *back = from.data() + t * k;
        for (std::size_t j = 0; j < k; ++j) {
            next[j] = best[0] + A[j];
            back[j] = 0;
        }
        for (std::size_t i = 1; i < k; ++i)
            for (std::size_t j = 0; j < k; ++j) {
                const double value = best[i] + A[i * k + j];
                back[j] = value > next[j] ? static_cast<std::int32_t>(i) : back[j];
                next[j] = value > next[j] ? value : next[j];
            }
        for (std::size_t j = 0; j < k; ++j) next[j] += log_e[t * k + j];
        std::swap(best, next);
    }
    std::size_t state = 0;
    for (std::size_t j = 1; j < k; ++j)
        if (best[j] > best[state]) state = j;
    const double value = best[state];
    if (value == NEVER) {
        std::fill(path, path + n, std::int64_t{-1});
        return value;
    }
    for (std::size_t t = n; t-- > 0;) {
        path[t] = static_cast<std::int64_t>(state);
        state = static_cast<std::size_t>(from[t * k + state]);
        if (t == 0) break;
    }
    return value;
}

// Sequences in groups that depend on their number alone: the counts of a group are added up by one thread, those of
// the groups in their order, so that threads change no bit.
constexpr std::size_t SEQUENCE_GROUPS = 64;

struct Sequences {
    const std::int64_t *offsets;  // (count + 1,), from 0, rising
    std::size_t count;
    std::size_t groups() const { return std::min(count, SEQUENCE_GROUPS); }
    std::size_t first(std::size_t group) const { return count * group / groups(); }
    std::size_t begin(std::size_t s) const { return static_cast<std::size_t>(offsets[s]); }
    std::size_t length(std::size_t s) const { return static_cast<std::size_t>(offsets[s + 1] - offsets[s]); }
};

// work(thread's own scratch, group) for every group; the first exception is thrown again.
template <class Scratch, class Work>
void for_groups(const Sequences &sequences, int threads, const Work &work) {
    std::exception_ptr failed;
    const auto groups = static_cast<std::int64_t>(sequences.groups());
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Scratch scratch;
#pragma omp for schedule(dynamic)
        for (std::int64_t g = 0; g < groups; ++g) {
            try {
                work(scratch, static_cast<std::size_t>(g));
            } catch (...) {
#pragma omp critical
                failed = std::current_exception();
            }
        }
    }
    if (failed) std::rethrow_exception(failed);
}

inline ChainCounts smooth(const MarkovChain &chain, const Sequences &sequences, const double *log_e,
                          const double *weight, int threads, double *values, double *posterior, double *steps) {
    const std::size_t k = chain.states, groups = sequences.groups();
    std::vector<ChainCounts> parts(groups, ChainCounts(k));
    for_groups<ChainWork>(sequences, threads, [&](ChainWork &work, std::size_t g) {
        for (std::size_t s = sequences.first(g); s < sequences.first(g + 1); ++s) {
            const std::size_t at = sequences.begin(s);
            values[s] =
                smooth_sequence(chain, sequences.length(s), log_e + at * k, weight ? weight[s] : 1.0,
                                posterior ? posterior + at * k : nullptr, steps ? steps + at : nullptr, work, parts[g]);
        }
    });
    ChainCounts total(k);
    for (const ChainCounts &part : parts) {
        for (std::size_t i = 0; i < k; ++i) total.start[i] += part.start[i];
        for (std::size_t i = 0; i < k * k; ++i) total.transition[i] += part.transition[i];
    }
    return total;
}

inline void viterbi(const MarkovChain &chain, const Sequences &sequences, const double *log_e, int threads,
                    double *values, std::int64_t *path) {
    for_groups<std::vector<std::int32_t>>(sequences, threads, [&](std::vector<std::int32_t> &from, std::size_t g) {
        for (std::size_t s = sequences.first(g); s < sequences.first(g + 1); ++s) {
            const std::size_t at = sequences.begin(s);
            values[s] = viterbi_sequence(chain, sequences.length(s), log_e + at * chain.states, from, path + at);
        }
    });
}

}  // namespace epicycle
