// Gibbs sampling of latent Dirichlet allocation, in parallel and without approximation.
//
// Words lie in parts. phi_k ~ Dirichlet(eta) is the same as masses of the parts, m_k ~ Dirichlet(p_j eta), times words
// within each part, ~ Dirichlet(eta), independent of each other. The masses are drawn, once in a sweep; the shares of
// documents and of words within parts are integrated out:
//
//   P(z_i = k | rest) ~ (n_dk + alpha_k) m_kj (n_kw + eta) / (n_kj + p_j eta)     for a word w of part j,
//
// all counts without token i. A block, a set of documents and a part, meets the counts n_dk of its documents and n_kw,
// n_kj of its part only. Blocks with other documents and other parts are therefore drawn side by side, and the
// posterior of z is the stationary distribution. Samplers without masses share n_k among threads, whose totals are
// then out of date. Streams of random numbers belong to the seed, the sweep and the block.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "bayes/random.hpp"
#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t LANE_TOPICS = 16;  // counts of topics are padded with zeros to a multiple of it

constexpr std::size_t in_lanes(std::size_t k) { return (k + LANE_TOPICS - 1) / LANE_TOPICS * LANE_TOPICS; }

// The stream of one block (splitmix64 of its keys).
inline Random stream_of(std::uint64_t seed, std::uint64_t sweep, std::uint64_t block) {
    const auto mixed = [](std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    };
    constexpr std::uint64_t step = 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = mixed(mixed(mixed(seed + step) ^ sweep) + step * (block + 1));
    std::array<std::uint64_t, 4> state{};
    for (std::uint64_t &s : state) s = mixed(x += step);
    return Random(state);
}

// A topic in proportion to (n + alpha) (row + eta) scale. Topic b * LANE_TOPICS + l is in lane l: the sums run down the
// lanes in vectors, then a lane is chosen, then a topic in it.
EPICYCLE_INLINE std::size_t draw_topic(const float *n, const float *alpha, const float *row, float eta,
                                       const float *scale, std::size_t k, std::size_t kp, double uniform, float *sums) {
    constexpr std::size_t L = LANE_TOPICS;
    float lane[L] = {};
    for (std::size_t b = 0; b < kp; b += L)
        for (std::size_t l = 0; l < L; ++l) {
            lane[l] += (n[b + l] + alpha[b + l]) * ((row[b + l] + eta) * scale[b + l]);
            sums[b + l] = lane[l];
        }
    float group[4];
    for (std::size_t g = 0; g < 4; ++g)
        group[g] = (lane[4 * g] + lane[4 * g + 1]) + (lane[4 * g + 2] + lane[4 * g + 3]);
    const float two = group[0] + group[1], three = two + group[2], total = three + group[3];
    float u = static_cast<float>(uniform) * total;
    const std::size_t g = static_cast<std::size_t>(u >= group[0]) + (u >= two) + (u >= three);
    const float below_group[4] = {0.0F, group[0], two, three};
    u -= below_group[g];
    const float *x = lane + 4 * g;
    const float first = x[0], second = first + x[1], third = second + x[2];
    const std::size_t l = static_cast<std::size_t>(u >= first) + (u >= second) + (u >= third);
    const float below_lane[4] = {0.0F, first, second, third};
    u -= below_lane[l];
    const std::size_t column = 4 * g + l, last = kp - L + column;
    std::size_t b = column;
    for (std::size_t i = column; i < last; i += L) b += u >= sums[i] ? L : 0;
    const float before = b >= L ? sums[b - L] : 0.0F;
    if (b < k && sums[b] > before) return b;
    // Rounding has led behind the last topic of a lane: the last one that has a probability.
    std::size_t chosen = k;
    for (std::size_t j = 0; j < k; ++j)
        if ((n[j] + alpha[j]) * ((row[j] + eta) * scale[j]) > 0.0F) chosen = j;
    return chosen;
}

struct Tokens {
    const std::int32_t *words;     // of all tokens, by document, then by part
    const std::int64_t *segments;  // (documents * parts + 1): where the tokens of a document in a part begin
    std::size_t documents, parts;
    const double *sizes;   // (parts,): words of each part
    const double *masses;  // (parts, k)
    const float *alpha;    // (kp,)
    double eta;
    std::size_t k, kp;
};

// One block: documents from .. to, words of part j.
EPICYCLE_CLONES inline void draw_block(const Tokens &t, std::size_t from, std::size_t to, std::size_t j, Random random,
                                       std::int32_t *z, float *counts, double *totals, float *space) {
    const std::size_t k = t.k, kp = t.kp;
    float *n = space, *scale = n + kp, *sums = scale + kp;
    const double *mass = t.masses + j * k;
    const double room = t.sizes[j] * t.eta;
    const auto eta = static_cast<float>(t.eta);
    for (std::size_t i = 0; i < kp; ++i) scale[i] = i < k ? static_cast<float>(mass[i] / (totals[i] + room)) : 0.0F;
    for (std::size_t d = from; d < to; ++d) {
        const std::int64_t *segment = t.segments + d * t.parts;
        const auto begin = static_cast<std::size_t>(segment[j]), end = static_cast<std::size_t>(segment[j + 1]);
        if (begin == end) continue;
        for (std::size_t i = 0; i < kp; ++i) n[i] = 0.0F;
        for (auto i = static_cast<std::size_t>(segment[0]); i < static_cast<std::size_t>(segment[t.parts]); ++i)
            n[z[i]] += 1.0F;
        for (std::size_t i = begin; i < end; ++i) {
            if (i + 2 < end) {
                const float *next = counts + static_cast<std::size_t>(t.words[i + 2]) * kp;
                for (std::size_t b = 0; b < kp; b += LANE_TOPICS) __builtin_prefetch(next + b, 1);
            }
            float *row = counts + static_cast<std::size_t>(t.words[i]) * kp;
            const auto old = static_cast<std::size_t>(z[i]);
            n[old] -= 1.0F;
            row[old] -= 1.0F;
            totals[old] -= 1.0;
            scale[old] = static_cast<float>(mass[old] / (totals[old] + room));
            std::size_t chosen = draw_topic(n, t.alpha, row, eta, scale, k, kp, random.uniform(), sums);
            if (chosen >= k) chosen = old;  // every probability has underflowed
            n[chosen] += 1.0F;
            row[chosen] += 1.0F;
            totals[chosen] += 1.0;
            scale[chosen] = static_cast<float>(mass[chosen] / (totals[chosen] + room));
            z[i] = static_cast<std::int32_t>(chosen);
        }
    }
}

// One sweep: as many rounds as parts, in each of which every set of documents meets another part. `bounds` (parts + 1)
// cuts the documents; counts (p, kp) and totals (parts, k) go along with z.
template <class Interrupt>
void draw_tokens(const Tokens &t, const std::int64_t *bounds, std::uint64_t seed, std::uint64_t sweep, std::int32_t *z,
                 float *counts, double *totals, int threads, const Interrupt &interrupt) {
    const auto parts = static_cast<std::int64_t>(t.parts);
    std::vector<float> space(3 * t.kp * t.parts);
    for (std::int64_t round = 0; round < parts; ++round) {
#pragma omp parallel for schedule(dynamic) num_threads(threads) if (threads > 1)
        for (std::int64_t i = 0; i < parts; ++i) {
            const auto j = static_cast<std::size_t>((i + round) % parts);
            const auto block = static_cast<std::uint64_t>(i) * t.parts + j;
            draw_block(t, static_cast<std::size_t>(bounds[i]), static_cast<std::size_t>(bounds[i + 1]), j,
                       stream_of(seed, sweep, block), z, counts, totals + j * t.k,
                       space.data() + 3 * t.kp * static_cast<std::size_t>(i));
        }
        interrupt();
    }
}

}  // namespace epicycle
