// Features that share a column: those that are never away from their usual bins in the same row.
//
// Indicators of one category are such features, and so are many columns of sparse tables. A shared column has code 0
// where all of its features are at their usual bin; the codes from `first` on are the other bins of one of them.
// Nothing is lost: a histogram by codes holds those of all its features, what is missing being what remains of the sum.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "tree/bins.hpp"

namespace epicycle {

struct Bundles {                  // each by feature, but for the last
    const std::int32_t *column;   // where it is stored
    const std::int32_t *first;    // its first code; 0 where it has the column for itself
    const std::int32_t *usual;    // its bin at code 0
    const std::int32_t *n_codes;  // by column
    bool shares(std::int32_t j) const { return first[j] > 0; }
    std::size_t code(std::int32_t j, std::int32_t bin) const {
        return static_cast<std::size_t>(first[j] + bin - (bin > usual[j]));
    }
};

// Sums by code of a shared column to sums by bin of one of its features.
template <class Sum>
void by_own_bins(const Bundles &bundles, std::int32_t feature, std::int32_t n_bins, const Sum *by_code, Sum total,
                 Sum *by_bin) {
    const std::int32_t usual = bundles.usual[feature];
    Sum others = 0;
    for (std::int32_t b = 0; b < n_bins; ++b)
        if (b != usual) others += by_bin[b] = by_code[bundles.code(feature, b)];
    by_bin[usual] = total - others;
    by_bin[MISSING_BIN] = 0;
}

struct BundlePlan {
    std::vector<std::int32_t> column, first, usual, n_codes;
};

// Which features share a column. Features with eligible[j] = 0 have one for themselves, and so has every feature that
// is away from its usual bin in half of the rows.
inline BundlePlan plan_bundles(const std::uint8_t *rows, std::size_t n, std::size_t p, const std::int32_t *n_bins,
                               const std::uint8_t *eligible, int threads) {
    constexpr std::size_t SAMPLE = std::size_t{1} << 14, TRIES = 64;
    const std::size_t m = std::min(n, SAMPLE), words = (m + 63) / 64;
    // Multiples of the golden ratio are spread evenly, and out of step with any order of the rows.
    const auto sampled = [&](std::size_t i) {
        const auto spread = static_cast<unsigned __int128>(i * std::uint64_t{0x9E3779B97F4A7C15}) * n;
        return rows + (m == n ? i : static_cast<std::size_t>(spread >> 64)) * p;
    };
    // The usual bin is the most frequent one in the sample; a bit tells where a feature is away from it.
    std::vector<std::int32_t> usual(p, 0);
    std::vector<std::size_t> away(p, m);
    std::vector<std::vector<std::uint64_t>> bits(p);
#pragma omp parallel for num_threads(threads) schedule(dynamic, 16) if (threads > 1)
    for (std::int64_t j = 0; j < static_cast<std::int64_t>(p); ++j) {
        if (!eligible[j]) continue;
        std::uint32_t count[BINS] = {};
        for (std::size_t i = 0; i < m; ++i) ++count[sampled(i)[j]];
        usual[j] = static_cast<std::int32_t>(std::max_element(count, count + n_bins[j]) - count);
        away[j] = m - count[usual[j]];
        if (2 * away[j] >= m) continue;
        bits[j].assign(words, 0);
        for (std::size_t i = 0; i < m; ++i) bits[j][i / 64] |= std::uint64_t{sampled(i)[j] != usual[j]} << (i % 64);
    }
    std::vector<std::size_t> by_load;
    for (std::size_t j = 0; j < p; ++j)
        if (!bits[j].empty()) by_load.push_back(j);
    std::stable_sort(by_load.begin(), by_load.end(), [&](auto a, auto b) { return away[a] > away[b]; });
    // First fit: a feature joins the first group that it never meets in the sample and that has codes to spare.
    struct Group {
        std::vector<std::uint64_t> taken;
        std::int32_t codes;
    };
    std::vector<Group> groups;
    std::vector<std::int32_t> group(p, -1);
    for (const std::size_t j : by_load) {
        const std::int32_t more = n_bins[j] - 1;
        std::size_t g = groups.size() > TRIES ? groups.size() - TRIES : 0;
        for (; g < groups.size(); ++g) {
            bool free = groups[g].codes + more <= static_cast<std::int32_t>(MISSING_BIN);
            for (std::size_t w = 0; free && w < words; ++w) free = (groups[g].taken[w] & bits[j][w]) == 0;
            if (free) break;
        }
        if (g == groups.size()) groups.push_back({std::vector<std::uint64_t>(words, 0), 1});
        for (std::size_t w = 0; w < words; ++w) groups[g].taken[w] |= bits[j][w];
        groups[g].codes += more;
        group[j] = static_cast<std::int32_t>(g);
    }
    // What the sample promised is tried on every row: of two features that meet, the later leaves.
    std::vector<std::size_t> members;
    for (std::size_t j = 0; j < p; ++j)
        if (group[j] >= 0) members.push_back(j);
    std::vector<std::uint8_t> leaves(p, 0);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        std::vector<std::int64_t> seen(groups.size(), -1);
        std::vector<std::uint8_t> met(p, 0);
#pragma omp for schedule(static)
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
            const std::uint8_t *row = rows + static_cast<std::size_t>(i) * p;
            for (const std::size_t j : members) {
                if (row[j] == usual[j]) continue;
                met[j] |= seen[group[j]] == i;
                seen[group[j]] = i;
            }
        }
#pragma omp critical
        for (std::size_t j = 0; j < p; ++j) leaves[j] |= met[j];
    }
    std::vector<std::int32_t> size(groups.size(), 0), stored(groups.size(), -1);
    for (const std::size_t j : members) {
        if (leaves[j])
            group[j] = -1;
        else
            ++size[group[j]];
    }
    BundlePlan plan;
    for (std::size_t j = 0; j < p; ++j) {
        const std::int32_t g = group[j];
        const bool shares = g >= 0 && size[g] > 1, opens = !shares || stored[g] < 0;
        if (shares && opens) stored[g] = static_cast<std::int32_t>(plan.n_codes.size());
        if (opens) plan.n_codes.push_back(shares ? 1 : n_bins[j]);
        const std::int32_t c = shares ? stored[g] : static_cast<std::int32_t>(plan.n_codes.size()) - 1;
        plan.column.push_back(c);
        plan.first.push_back(shares ? plan.n_codes[c] : 0);
        plan.usual.push_back(usual[j]);
        if (shares) plan.n_codes[c] += n_bins[j] - 1;
    }
    return plan;
}

// The stored columns (n x q) of rows of bins (n x p).
inline void bundle_rows(const std::uint8_t *rows, std::size_t n, std::size_t p, const Bundles &bundles, std::size_t q,
                        std::uint8_t *out, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(n); ++i) {
        const std::uint8_t *row = rows + static_cast<std::size_t>(i) * p;
        std::uint8_t *to = out + static_cast<std::size_t>(i) * q;
        std::fill(to, to + q, std::uint8_t{0});
        for (std::size_t j = 0; j < p; ++j) {
            const auto f = static_cast<std::int32_t>(j);
            if (!bundles.shares(f))
                to[bundles.column[j]] = row[j];
            else if (row[j] != bundles.usual[j])
                to[bundles.column[j]] = static_cast<std::uint8_t>(bundles.code(f, row[j]));
        }
    }
}

}  // namespace epicycle
