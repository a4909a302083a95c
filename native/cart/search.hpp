// The best split of a node over some of its features.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

#include "cart/candidates.hpp"
#include "cart/levels.hpp"
#include "tree/bins.hpp"

namespace epicycle {

// What one thread needs to search.
template <class Target>
struct SearchSpace {
    SearchSpace(const CartRules &rules, std::size_t K)
        : candidates(rules, K), sum(K + 1), gap(K + 1), levels(rules, K) {}
    Candidates<Target::FIXED> candidates;
    std::vector<double> hist;  // features at once x 256 x V, zero between searches
    std::vector<std::uint32_t> count;
    std::vector<std::array<std::uint64_t, 4>> bits;
    std::vector<double> sum, gap;
    std::vector<std::uint8_t> codes;
    LevelOrders<Target::FIXED> levels;
};

template <class Target>
class CartSearch {
public:
    static constexpr std::size_t SMALL = 192;  // rows below which bins are marked when touched

    CartSearch(const CartTable &table, const CartRules &rules, const Target &target, bool unit_weights)
        : table(table), rules(rules), target(target), V(target.K() + 1), unit(unit_weights) {
        at_once = std::max<std::size_t>(1, (std::size_t{1} << 18) / (256 * V * sizeof(double)));
    }

    std::size_t features_at_once() const { return at_once; }
    std::int32_t feature(std::size_t slot) const {
        return slot < table.n_coded ? table.coded_feature[slot] : table.sorted_feature[slot - table.n_coded];
    }

    // The best split of each of the coded features slots[0:F] into out[0:F]; F is at most features_at_once().
    void coded(const CartWhole &node, const std::int32_t *slots, std::size_t F, const double *draws, CartSplit *out,
               SearchSpace<Target> &space) const {
        const std::size_t size = 256 * V;
        if (draws && std::none_of(slots, slots + F, [&](std::int32_t slot) { return table.categorical[slot]; })) {
            for (std::size_t f = 0; f < F; ++f)
                drawn_code(node, static_cast<std::size_t>(slots[f]), draws + 2 * f, out[f], space);
            return;
        }
        if (space.hist.size() < F * size) space.hist.resize(F * size, 0.0);
        if (space.bits.size() < F) space.bits.resize(F, {0, 0, 0, 0});
        const bool small = node.m <= SMALL;
        small ? accumulate<true>(node, slots, F, space) : accumulate<false>(node, slots, F, space);
        for (std::size_t f = 0; f < F; ++f) {
            const auto slot = static_cast<std::size_t>(slots[f]);
            double *hist = space.hist.data() + f * size;
            std::uint8_t present[257];
            std::size_t n_present = 0;
            if (small) {
                for (std::size_t word = 0; word < 4; ++word)
                    for (std::uint64_t set = space.bits[f][word]; set; set &= set - 1)
                        present[n_present++] =
                            static_cast<std::uint8_t>(64 * word + static_cast<std::size_t>(__builtin_ctzll(set)));
                space.bits[f] = {0, 0, 0, 0};
            } else {
                const auto nb = static_cast<std::size_t>(table.n_codes[slot]);
                for (std::size_t b = 0; b < nb; ++b)
                    if (hist[b * V] > 0) present[n_present++] = static_cast<std::uint8_t>(b);
                if (hist[MISSING_BIN * V] > 0) present[n_present++] = MISSING_BIN;
            }
            const std::uint32_t *count = counts(node, slot, space);
            out[f] = CartSplit{};
            if (n_present > 1) {
                if (table.categorical[slot])
                    of_levels(node, slot, hist, count, present, n_present, draws ? draws + 2 * f : nullptr, out[f],
                              space);
                else
                    of_codes(node, slot, hist, count, present, n_present, draws ? draws + 2 * f : nullptr, out[f],
                             space);
            }
            for (std::size_t i = 0; i < n_present; ++i) std::fill_n(hist + present[i] * V, V, 0.0);
        }
    }

    // The best split of one sorted feature: entries first..last-1 of its list belong to the node.
    void sorted(const CartWhole &node, std::size_t slot, std::int64_t first, std::int64_t last, const double *draws,
                CartSplit &out, SearchSpace<Target> &space) const {
        out = CartSplit{};
        const std::size_t j = slot - table.n_coded;
        const std::uint32_t *list = table.lists + first;
        auto total = static_cast<std::size_t>(last - first), m = total;
        double *gap = space.gap.data(), *sum = space.sum.data();
        std::fill_n(gap, V, 0.0);
        while (m > 0 && (list[m - 1] & CART_GAP)) target.add(gap, list[--m] & CART_ROW);
        const std::size_t gaps = total - m, zeros = table.sparse ? node.m - total : 0;
        const auto below = static_cast<std::size_t>(
            zeros ? std::partition_point(list, list + m, [](std::uint32_t e) { return e & CART_BELOW; }) - list : 0);
        const std::size_t block = zeros ? below : ~std::size_t{0};  // where the zeros stand among the entries
        if (m + (zeros > 0) < 1 || (m + (zeros > 0) == 1 && gaps == 0)) return;
        auto &candidates = space.candidates;
        candidates.begin(node, rules.monotone ? rules.monotone[feature(slot)] : 0, true);
        const bool coin = draws && draws[1] < 0.5;
        candidates.set_missing(gap, static_cast<double>(gaps), !draws || !coin || !gaps, gaps && (!draws || coin));
        std::vector<double> zero;
        if (zeros) {
            zero = node.sum;
            for (std::size_t v = 0; v < V; ++v) zero[v] -= gap[v];
            std::fill_n(sum, V, 0.0);
            for (std::size_t i = 0; i < m; ++i) target.add(sum, list[i] & CART_ROW);
            for (std::size_t v = 0; v < V; ++v) zero[v] -= sum[v];
            for (std::size_t v = 0; v < V; ++v)
                if (rules.criterion.kind != Criterion::squared || v == 0) zero[v] = std::max(zero[v], 0.0);
        }
        std::fill_n(sum, V, 0.0);
        double n = 0.0;
        const std::size_t steps = m + (zeros > 0);
        std::size_t only = ~std::size_t{0};
        double drawn = 0.0;
        if (draws) only = draw_position(j, list, steps, block, draws[0], drawn);
        const auto group = [&] {
            if (n > 0) {
                for (std::size_t v = 0; v < V; ++v) sum[v] += zero[v];
            } else {
                std::copy(zero.begin(), zero.end(), sum);
            }
            n += static_cast<double>(zeros);
        };
        if (!zeros && !draws) {
            for (std::size_t i = 0; i < m; ++i) {
                if ((list[i] & CART_NEW) && i > 0) candidates.push(i, sum, static_cast<double>(i));
                target.add(sum, list[i] & CART_ROW);
            }
            n = static_cast<double>(m);
        } else {
            for (std::size_t e = 0; e < steps; ++e) {
                const bool is_block = e == block;
                const std::size_t i = e > block ? e - 1 : e;
                const bool fresh = is_block || e == block + 1 || (list[i] & CART_NEW);
                if (e > 0 && fresh && (!draws || e == only)) candidates.push(e, sum, n);
                if (is_block) {
                    group();
                } else {
                    target.add(sum, list[i] & CART_ROW);
                    n += 1.0;
                }
            }
        }
        candidates.judge();
        if (gaps && steps > 0 && (!draws || only == ~std::size_t{0})) {  // what is there against what is missing
            candidates.set_missing(gap, static_cast<double>(gaps), true, false);
            candidates.push(steps, sum, n);
            candidates.judge();
        }
        if (!candidates.best.found()) return;
        out = candidates.best;
        out.slot = static_cast<std::int32_t>(slot);
        out.at = candidates.best_id;
        out.some_missing = gaps > 0;
        if (out.at < steps) {
            const double a = entry_value(j, list, out.at - 1, block), b = entry_value(j, list, out.at, block);
            out.threshold = draws && a <= drawn && drawn < b ? drawn : between(a, b);
        }
        if (!out.some_missing) {
            const std::size_t n_left = out.at > block ? out.at - 1 + zeros : out.at;
            out.missing_left = 2 * n_left > node.m;
        }
    }

private:
    const CartTable &table;
    const CartRules &rules;
    const Target &target;
    std::size_t V;
    bool unit;
    std::size_t at_once;

    double entry_value(std::size_t j, const std::uint32_t *list, std::size_t e, std::size_t block) const {
        if (e == block) return 0.0;
        return table.values.at(static_cast<std::size_t>(table.sorted_feature[j]),
                               list[e > block ? e - 1 : e] & CART_ROW);
    }

    // A threshold between the least and the greatest number, and how many steps lie at or below it; none where all are
    // equal.
    std::size_t draw_position(std::size_t j, const std::uint32_t *list, std::size_t steps, std::size_t block, double u,
                              double &drawn) const {
        const double a = entry_value(j, list, 0, block), b = entry_value(j, list, steps - 1, block);
        if (!(a < b)) return ~std::size_t{0};
        drawn = a + u * (b - a);
        if (!std::isfinite(drawn) || drawn >= b) drawn = a;
        std::size_t lo = 0, hi = steps - 1;  // value(lo) <= drawn < value(hi)
        while (hi - lo > 1) {
            const std::size_t mid = lo + (hi - lo) / 2;
            (entry_value(j, list, mid, block) <= drawn ? lo : hi) = mid;
        }
        return hi;
    }

    template <bool Small>
    void accumulate(const CartWhole &node, const std::int32_t *slots, std::size_t F, SearchSpace<Target> &space) const {
        const std::size_t size = 256 * V;
        double *const hist = space.hist.data();
        for (std::size_t i = 0; i < node.m; ++i) {
            const std::uint32_t r = node.rows[i];
            const std::uint8_t *row = table.codes + std::size_t{r} * table.n_coded;
            for (std::size_t f = 0; f < F; ++f) {
                const std::size_t c = row[slots[f]];
                target.add(hist + f * size + c * (Target::FIXED ? Target::FIXED + 1 : V), r);
                if (Small) space.bits[f][c >> 6] |= std::uint64_t{1} << (c & 63);
            }
        }
    }

    // One threshold, drawn between the least and the greatest number: two passes over the codes, and no histogram.
    void drawn_code(const CartWhole &node, std::size_t slot, const double *draws, CartSplit &out,
                    SearchSpace<Target> &space) const {
        out = CartSplit{};
        const double *low = table.low + 256 * slot, *high = table.high + 256 * slot,
                     *centre = table.centre + 256 * slot;
        if (space.codes.size() < node.m) space.codes.resize(node.m);
        std::uint8_t *codes = space.codes.data(), first = 255, last = 0;
        std::size_t gaps = 0;
        for (std::size_t i = 0; i < node.m; ++i) {
            const std::uint8_t c = table.codes[std::size_t{node.rows[i]} * table.n_coded + slot];
            codes[i] = c;
            first = std::min(first, c);
            last = std::max<std::uint8_t>(last, c == MISSING_BIN ? 0 : c);
            gaps += c == MISSING_BIN;
        }
        if (gaps == node.m || (first >= last && gaps == 0)) return;
        const bool there = first >= last;  // one number: what is there against what is missing
        const double drawn = centre[first] + draws[0] * (centre[last] - centre[first]);
        std::size_t from = first;
        if (there)
            from = static_cast<std::size_t>(table.n_codes[slot]) - 1;
        else if (centre[first] <= drawn)
            from = static_cast<std::size_t>(std::upper_bound(centre + first, centre + last, drawn) - centre) - 1;
        double *sum = space.sum.data(), *gap = space.gap.data(), n = 0.0;
        std::fill_n(sum, V, 0.0);
        std::fill_n(gap, V, 0.0);
        if constexpr (Target::FIXED == 1) {  // without a branch that nobody can foresee
            double w[2] = {0.0, 0.0}, s[2] = {0.0, 0.0};
            std::size_t rows = 0;
            for (std::size_t i = 0; i < node.m; ++i) {
                const double *pair = target.pair + 2 * std::size_t{node.rows[i]};
                const bool left = codes[i] <= from;
                const double keep = left ? 1.0 : 0.0;
                w[i & 1] += keep * pair[0];
                s[i & 1] += keep * pair[1];
                rows += left;
            }
            sum[0] = w[0] + w[1];
            sum[1] = s[0] + s[1];
            n = static_cast<double>(rows);
        } else {
            for (std::size_t i = 0; i < node.m; ++i)
                if (codes[i] <= from) {
                    target.add(sum, node.rows[i]);
                    n += 1.0;
                }
        }
        for (std::size_t i = 0; gaps && i < node.m; ++i)
            if (codes[i] == MISSING_BIN) target.add(gap, node.rows[i]);
        auto &candidates = space.candidates;
        const bool coin = draws[1] < 0.5 && gaps && !there;
        candidates.begin(node, rules.monotone ? rules.monotone[feature(slot)] : 0, true);
        candidates.set_missing(gap, static_cast<double>(gaps), !coin, coin);
        candidates.push(0, sum, n);
        candidates.judge();
        if (!candidates.best.found()) return;
        out = candidates.best;
        out.slot = static_cast<std::int32_t>(slot);
        out.some_missing = gaps > 0;
        if (!there) {
            const double a = high[from], b = low[from + 1];
            out.threshold = a <= drawn && drawn < b ? drawn : between(a, b);
        }
        send_left_below(out.left, from + 1);
        if (out.missing_left) send_left(out.left, MISSING_BIN);
    }

    // Rows by code, where a leaf has to hold several and weights do not tell; null where they need not be known.
    const std::uint32_t *counts(const CartWhole &node, std::size_t slot, SearchSpace<Target> &space) const {
        if (unit || rules.min_leaf <= 1) return nullptr;
        space.count.assign(256, 0);
        for (std::size_t i = 0; i < node.m; ++i)
            ++space.count[table.codes[std::size_t{node.rows[i]} * table.n_coded + slot]];
        return space.count.data();
    }

    // Candidate i of codes in this order has the codes order[0..i] on the left.
    void push_prefixes(const double *hist, const std::uint32_t *count, const std::uint8_t *order, std::size_t last,
                       std::size_t only, SearchSpace<Target> &space) const {
        double *sum = space.sum.data(), n = 0.0;
        std::fill_n(sum, V, 0.0);
        for (std::size_t i = 0; i < last; ++i) {
            const double *h = hist + order[i] * V;
            for (std::size_t v = 0; v < V; ++v) sum[v] += h[v];
            n = count ? n + count[order[i]] : sum[0];
            if (only == ~std::size_t{0} || i == only) space.candidates.push(i, sum, n);
        }
    }

    void of_codes(const CartWhole &node, std::size_t slot, const double *hist, const std::uint32_t *count,
                  const std::uint8_t *present, std::size_t n_present, const double *draws, CartSplit &out,
                  SearchSpace<Target> &space) const {
        const bool some_missing = present[n_present - 1] == MISSING_BIN;
        const std::size_t m = n_present - some_missing;
        const double *low = table.low + 256 * slot, *high = table.high + 256 * slot;
        auto &candidates = space.candidates;
        candidates.begin(node, rules.monotone ? rules.monotone[feature(slot)] : 0, unit || count);
        double *gap = space.gap.data();
        std::copy_n(hist + MISSING_BIN * V, V, gap);
        const double gap_n = count ? count[MISSING_BIN] : gap[0];
        const bool coin = draws && draws[1] < 0.5;
        candidates.set_missing(gap, gap_n, !draws || !coin || !some_missing, some_missing && (!draws || coin));
        std::size_t only = ~std::size_t{0};
        double drawn = 0.0;
        if (draws && m > 1) {
            const double *centre = table.centre + 256 * slot;
            const double a = centre[present[0]], b = centre[present[m - 1]];
            drawn = a + draws[0] * (b - a);
            only = 0;
            while (only + 2 < m && centre[present[only + 1]] <= drawn) ++only;
        }
        if (m > 1) {
            push_prefixes(hist, count, present, m - 1, only, space);
            candidates.judge();
        }
        if (some_missing && m > 0 && (!draws || m == 1)) {  // what is there against what is missing
            candidates.set_missing(gap, gap_n, true, false);
            push_prefixes(hist, count, present, m, m - 1, space);
            candidates.judge();
        }
        if (!candidates.best.found()) return;
        out = candidates.best;
        out.slot = static_cast<std::int32_t>(slot);
        out.some_missing = some_missing;
        const std::size_t i = candidates.best_id;
        if (i + 1 < m) {
            const double a = high[present[i]], b = low[present[i + 1]];
            out.threshold = draws && a <= drawn && drawn < b ? drawn : between(a, b);
        }
        double n_left = 0.0;
        for (std::size_t k = 0; k <= i; ++k) n_left += hist[present[k] * V];
        if (!some_missing) out.missing_left = 2 * n_left > node.sum[0];
        // Codes between the two are not in the node; the threshold says where they belong, and where bins touch it is
        // one of their cuts, so that codes and numbers part alike.
        const std::size_t from = present[i], to = i + 1 < m ? present[i + 1] : table.n_codes[slot];
        const auto end = static_cast<std::size_t>(std::upper_bound(high + from + 1, high + to, out.threshold) - high);
        send_left_below(out.left, end);
        if (i + 1 < m && low[end] <= high[end - 1]) out.threshold = high[end - 1];
        if (out.missing_left) send_left(out.left, MISSING_BIN);
    }

    void of_levels(const CartWhole &node, std::size_t slot, const double *hist, const std::uint32_t *count,
                   const std::uint8_t *present, std::size_t n_present, const double *draws, CartSplit &out,
                   SearchSpace<Target> &space) const {
        auto &candidates = space.candidates;
        candidates.begin(node, 0, unit || count);
        candidates.set_missing(nullptr, 0.0, true, false);
        std::array<std::uint8_t, 256> order{};
        std::copy_n(present, n_present, order.begin());
        bool subsets = false;
        if (draws) {  // any set of levels: a random order, cut at random
            CartRandom random(static_cast<std::uint64_t>(draws[0] * 0x1.0p53));
            for (std::size_t i = n_present - 1; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
            push_prefixes(hist, count, order.data(), n_present - 1, random.below(n_present - 1), space);
        } else if ((subsets = space.levels.wants_subsets(n_present))) {
            space.levels.push_subsets(hist, count, present, n_present, candidates);
        } else {
            space.levels.arrange(hist, order.data(), n_present, node);
            push_prefixes(hist, count, order.data(), n_present - 1, ~std::size_t{0}, space);
        }
        candidates.judge();
        if (!candidates.best.found()) return;
        out = candidates.best;
        out.slot = static_cast<std::int32_t>(slot);
        std::array<bool, 256> is_left{};
        for (std::size_t i = 0; i < n_present; ++i)
            is_left[i] = subsets ? i > 0 && (candidates.best_id >> (i - 1) & 1) : i <= candidates.best_id;
        const std::uint8_t *codes = subsets ? present : order.data();
        double weight = 0.0;
        for (std::size_t i = 0; i < n_present; ++i) weight += is_left[i] ? hist[codes[i] * V] : 0.0;
        // The lighter side is listed, so that levels which are not here go where most rows go.
        const bool light = 2 * weight <= node.sum[0];
        for (std::size_t i = 0; i < n_present; ++i)
            if (is_left[i] == light) send_left(out.left, codes[i]);
        out.missing_left = goes_left(out.left, MISSING_BIN);
        out.some_missing = present[n_present - 1] == MISSING_BIN;
        if (!light) std::swap(out.value_left, out.value_right);
    }
};

}  // namespace epicycle
