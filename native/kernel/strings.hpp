// Kernels of strings. A string is a run of letters 0 .. base-1 in one array of all strings; -1 is a letter that the
// alphabet does not have.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/simd.hpp"

namespace epicycle {

using Letter = std::int32_t;

// Counts of all words of length k, string by string: codes (numbers of k digits to the base) in ascending order.
// Words with a letter that the alphabet does not have are left out.
struct WordCounts {
    std::vector<std::int64_t> codes, indptr;
    std::vector<double> counts;
};

// visit(code) for every word of length k of the letters first .. last-1 that the alphabet knows; lead = base^(k-1).
template <class Visit>
EPICYCLE_INLINE void each_word(const Letter *letters, std::int64_t first, std::int64_t last, std::size_t k,
                               std::int64_t base, std::int64_t lead, const Visit &visit) {
    std::int64_t code = 0;
    std::size_t good = 0;  // letters since the last one that is unknown
    for (std::int64_t a = first; a < last; ++a) {
        const Letter letter = letters[a];
        if (letter < 0) {
            code = 0;
            good = 0;
            continue;
        }
        // the letter that leaves the word is k places back, and known: no division
        code = (good >= k ? code - lead * letters[a - static_cast<std::int64_t>(k)] : code) * base + letter;
        if (++good >= k) visit(code);
    }
}

inline std::int64_t power_of(std::int64_t base, std::size_t k) {
    std::int64_t size = 1;
    for (std::size_t i = 0; i < k; ++i) size *= base;
    return size;
}

inline WordCounts word_counts(const Letter *letters, const std::int64_t *offsets, std::size_t n, std::size_t k,
                              std::int64_t base) {
    constexpr std::int64_t FEW = 1 << 16;  // so many words are counted in a table, more are sorted
    WordCounts out;
    out.indptr.push_back(0);
    const std::int64_t lead = power_of(base, k - 1), size = lead * base;
    std::vector<std::int64_t> words, table(size <= FEW ? static_cast<std::size_t>(size) : 0, 0);
    for (std::size_t i = 0; i < n; ++i) {
        words.clear();
        each_word(letters, offsets[i], offsets[i + 1], k, base, lead, [&](std::int64_t w) { words.push_back(w); });
        if (!table.empty() && words.size() * 16 >= table.size()) {
            for (const std::int64_t w : words) ++table[static_cast<std::size_t>(w)];
            for (std::size_t w = 0; w < table.size(); ++w)
                if (table[w]) {
                    out.codes.push_back(static_cast<std::int64_t>(w));
                    out.counts.push_back(static_cast<double>(table[w]));
                    table[w] = 0;
                }
        } else {
            std::sort(words.begin(), words.end());
            for (std::size_t a = 0, b = 0; a < words.size(); a = b) {
                while (b < words.size() && words[b] == words[a]) ++b;
                out.codes.push_back(words[a]);
                out.counts.push_back(static_cast<double>(b - a));
            }
        }
        out.indptr.push_back(static_cast<std::int64_t>(out.codes.size()));
    }
    return out;
}

// The same counts as rows of a dense table (n x base^k), which comes filled with zeros.
inline void word_table(const Letter *letters, const std::int64_t *offsets, std::size_t n, std::size_t k,
                       std::int64_t base, double *table) {
    const std::int64_t lead = power_of(base, k - 1), size = lead * base;
    for (std::size_t i = 0; i < n; ++i) {
        double *row = table + i * static_cast<std::size_t>(size);
        each_word(letters, offsets[i], offsets[i + 1], k, base, lead, [row](std::int64_t w) { row[w] += 1.0; });
    }
}

// out (n x m) += A B' for rows of A as CSR and columns of B' as lists of (row of B, value) for each column.
inline void sparse_product(const double *a_data, const std::int64_t *a_indices, const std::int64_t *a_indptr,
                           std::size_t from, std::size_t to, const double *b_data, const std::int64_t *b_rows,
                           const std::int64_t *b_indptr, std::size_t m, double *out) {
    for (std::size_t i = from; i < to; ++i) {
        double *row = out + i * m;
        for (std::int64_t a = a_indptr[i]; a < a_indptr[i + 1]; ++a) {
            const double value = a_data[a];
            const std::int64_t column = a_indices[a];
            for (std::int64_t b = b_indptr[column]; b < b_indptr[column + 1]; ++b) row[b_rows[b]] += value * b_data[b];
        }
    }
}

// All words within m mismatches of a word (k letters, -1 is one that matches nothing), as codes, each once.
inline void neighbour_words(const Letter *word, std::size_t k, std::int64_t base, std::size_t mismatches,
                            std::size_t at, std::int64_t code, std::vector<std::int64_t> &out) {
    if (at == k) {
        out.push_back(code);
        return;
    }
    if (word[at] >= 0) neighbour_words(word, k, base, mismatches, at + 1, code * base + word[at], out);
    if (mismatches == 0) return;
    for (std::int64_t letter = 0; letter < base; ++letter)
        if (letter != word[at]) neighbour_words(word, k, base, mismatches - 1, at + 1, code * base + letter, out);
}

// A number and its derivative.
struct Dual {
    double value, slope;
};
EPICYCLE_INLINE Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
EPICYCLE_INLINE Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.value * b.slope + a.slope * b.value}; }

EPICYCLE_INLINE double one_of(double) { return 1.0; }
EPICYCLE_INLINE Dual one_of(Dual) { return {1.0, 0.0}; }

// For every word u of `order` letters the sum over all places i of u in s, with gaps, of decay^(length of i): the
// features of the subsequence kernel below. Words are numbered with their last letter in front.
// seen_r[u] is that sum for words of r letters, with lengths that reach to the letter before this one.
template <class Number>
void gapped_words(const Letter *s, std::size_t n, std::size_t order, std::size_t base, Number decay, Number *out,
                  std::vector<Number> &work) {
    std::vector<std::size_t> size(order + 1, 1), start(order + 1, 0);
    for (std::size_t r = 1; r <= order; ++r) {
        size[r] = size[r - 1] * base;
        start[r] = start[r - 1] + size[r - 1];
    }
    work.assign(start[order], Number{});  // levels 0 .. order-1, of which level 0 is the empty word
    work[0] = one_of(decay);
    std::fill(out, out + size[order], Number{});
    for (std::size_t a = 0; a < n; ++a) {
        const Letter letter = s[a];
        for (std::size_t r = order; r >= 1; --r) {
            Number *seen = r == order ? out : work.data() + start[r];
            if (r < order)
                for (std::size_t u = 0; u < size[r]; ++u) seen[u] = decay * seen[u];
            if (letter < 0) continue;
            const Number *prefix = work.data() + start[r - 1];
            Number *extended = seen + static_cast<std::size_t>(letter) * size[r - 1];
            for (std::size_t u = 0; u < size[r - 1]; ++u) extended[u] = extended[u] + decay * prefix[u];
        }
    }
}

// The subsequence kernel of Lodhi et al. (2002): sum over words u of `order` letters, and over all places i of u in s
// and j of u in t, of decay^(length of i + length of j). Level by level:
//     L_0(a, b) = 1,    L_r(a, b) = sum over equal letters s[x] = t[y], x < a, y < b, of decay^(a-x + b-y) L_{r-1}(x,
//     y)
// and the kernel is the sum over s[x] = t[y] of decay^2 L_{order-1}(x, y).
template <class Number>
Number subsequence_kernel(const Letter *s, std::size_t n, const Letter *t, std::size_t m, std::size_t order,
                          Number decay, std::vector<Number> &work) {
    const Number zero{}, square = decay * decay;
    if (std::min(n, m) < order) return zero;
    const std::size_t w = m + 1;
    work.assign(2 * (n + 1) * w, zero);
    Number *level = work.data(), *next = level + (n + 1) * w;
    std::fill(level, next, one_of(decay));
    for (std::size_t r = 1; r < order; ++r) {
        for (std::size_t b = 0; b < w; ++b) next[b] = zero;
        for (std::size_t a = 1; a <= n; ++a) {
            Number inside = zero;  // the part in which x = a - 1 is the last letter of s that is used
            next[a * w] = zero;
            for (std::size_t b = 1; b <= m; ++b) {
                inside = decay * inside;
                if (s[a - 1] == t[b - 1] && s[a - 1] >= 0) inside = inside + square * level[(a - 1) * w + b - 1];
                next[a * w + b] = decay * next[(a - 1) * w + b] + inside;
            }
        }
        std::swap(level, next);
    }
    Number sum = zero;
    for (std::size_t a = 1; a <= n; ++a)
        for (std::size_t b = 1; b <= m; ++b)
            if (s[a - 1] == t[b - 1] && s[a - 1] >= 0) sum = sum + square * level[(a - 1) * w + b - 1];
    return sum;
}

}  // namespace epicycle
