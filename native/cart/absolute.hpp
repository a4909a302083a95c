// The best split of a node for absolute error: rows in the order of a feature, with the costs of all their beginnings
// and endings.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cart/candidates.hpp"
#include "cart/median.hpp"
#include "tree/bins.hpp"

namespace epicycle {

struct AbsoluteSpace {
    std::vector<std::uint32_t> rows;  // in order, what is missing at the end
    std::vector<std::uint8_t> fresh;  // whether a row's number differs from the one before
    std::vector<std::int32_t> code;   // of each row, for coded features
    std::size_t gaps = 0;
    MedianCosts costs;
    std::vector<double> head, tail, head_gap, tail_gap, head_median, tail_median, head_gap_median, tail_gap_median;
};

class AbsoluteSearch {
public:
    AbsoluteSearch(const CartTable &table, const CartRules &rules, const CartTarget &target)
        : table(table), rules(rules), target(target) {}

    // Ranks of the targets of the node; before any feature of it is searched.
    void begin(const CartWhole &node) {
        const std::size_t K = target.K;
        rank.resize(table.n * K);
        sorted_y.resize(node.m * K);
        std::vector<std::uint32_t> rows(node.rows, node.rows + node.m);
        for (std::size_t k = 0; k < K; ++k) {
            const auto y = [&](std::uint32_t r) { return target.y[std::size_t{r} * K + k]; };
            std::stable_sort(rows.begin(), rows.end(), [&](auto a, auto b) { return y(a) < y(b); });
            for (std::size_t i = 0; i < node.m; ++i) {
                sorted_y[k * node.m + i] = y(rows[i]);
                rank[std::size_t{rows[i]} * K + k] = static_cast<std::uint32_t>(i);
            }
        }
    }

    void search(const CartWhole &node, double cost, std::size_t slot, std::int64_t first, std::int64_t last,
                const double *draws, CartSplit &out, AbsoluteSpace &space) const {
        out = CartSplit{};
        const bool coded = slot < table.n_coded, levels = coded && table.categorical[slot];
        coded ? sequence_of_codes(node, slot, draws, space) : sequence_of_list(node, first, last, space);
        const std::size_t m = node.m - space.gaps;
        costs_of(node, m, space);
        const std::int32_t feature = coded ? table.coded_feature[slot] : table.sorted_feature[slot - table.n_coded];
        const int sign = rules.monotone && !levels ? rules.monotone[feature] : 0;
        std::size_t only = 0;
        double drawn = 0.0;
        if (draws && !levels) only = draw(slot, draws[0], m, space, drawn);
        if (draws && levels) {  // the order is random; so is the cut
            std::vector<std::size_t> cuts;
            for (std::size_t e = 1; e < m; ++e)
                if (space.fresh[e]) cuts.push_back(e);
            if (!cuts.empty())
                only = cuts[std::min(cuts.size() - 1,
                                     static_cast<std::size_t>(draws[1] * static_cast<double>(cuts.size())))];
        }
        std::vector<double> weight(m + 1, 0.0);
        for (std::size_t e = 0; e < m; ++e) weight[e + 1] = weight[e] + target.weight[space.rows[e]];
        const bool coin = draws && draws[1] < 0.5;
        std::size_t best = 0;
        const auto offer = [&](std::size_t e, bool gap_left) {
            const std::size_t n_left = e + (gap_left ? space.gaps : 0);
            const double w = weight[e] + (gap_left ? node.sum[0] - weight[m] : 0.0);
            if (n_left < rules.min_leaf || node.m - n_left < rules.min_leaf || n_left == 0 || n_left == node.m) return;
            if (w < rules.min_weight || node.sum[0] - w < rules.min_weight) return;
            const double left = gap_left ? space.head_gap[e] : space.head[e];
            const double right = gap_left || !space.gaps ? space.tail[e] : space.tail_gap[e];
            const double gain = cost - left - right;
            if (!(gain > out.gain)) return;
            const double vl = gap_left ? space.head_gap_median[e] : space.head_median[e];
            const double vr = gap_left || !space.gaps ? space.tail_median[e] : space.tail_gap_median[e];
            if (rules.monotone &&
                (sign * (vr - vl) < 0 || std::min(vl, vr) < node.bounds.low || std::max(vl, vr) > node.bounds.high))
                return;
            out.gain = gain;
            out.slot = static_cast<std::int32_t>(slot);
            out.missing_left = gap_left;
            out.value_left = vl;
            out.value_right = vr;
            best = e;
        };
        for (std::size_t e = 1; e < m; ++e) {
            if (!space.fresh[e] || (draws && e != only)) continue;
            if (!draws || !coin || !space.gaps) offer(e, false);
            if (space.gaps && (!draws || coin)) offer(e, true);
        }
        if (space.gaps && m > 0 && (!draws || only == 0)) offer(m, false);
        if (out.found()) finish(node, slot, best, m, drawn, draws != nullptr, out, space, first, last);
    }

private:
    const CartTable &table;
    const CartRules &rules;
    const CartTarget &target;
    std::vector<std::uint32_t> rank;
    std::vector<double> sorted_y;

    std::int32_t code(std::size_t slot, std::uint32_t r) const {
        return table.codes[std::size_t{r} * table.n_coded + slot];
    }

    void sequence_of_codes(const CartWhole &node, std::size_t slot, const double *draws, AbsoluteSpace &space) const {
        const bool levels = table.categorical[slot];
        std::array<double, 256> key;
        std::iota(key.begin(), key.end(), 0.0);
        if (levels) {
            std::array<std::vector<std::pair<double, double>>, 256> of;
            for (std::size_t i = 0; i < node.m; ++i) {
                const std::uint32_t r = node.rows[i];
                of[static_cast<std::size_t>(code(slot, r))].emplace_back(target.y[std::size_t{r} * target.K],
                                                                         target.weight[r]);
            }
            CartRandom random(draws ? static_cast<std::uint64_t>(draws[0] * 0x1.0p53) : 0);
            for (std::size_t c = 0; c < 256; ++c)
                key[c] = draws ? random.uniform() : of[c].empty() ? 0.0 : weighted_median(of[c]);
        }
        space.rows.assign(node.rows, node.rows + node.m);
        const auto missing = [&](std::uint32_t r) { return !levels && code(slot, r) == MISSING_BIN; };
        std::stable_sort(space.rows.begin(), space.rows.end(), [&](std::uint32_t a, std::uint32_t b) {
            const auto ca = static_cast<std::size_t>(code(slot, a)), cb = static_cast<std::size_t>(code(slot, b));
            if (missing(a) != missing(b)) return missing(b);
            return key[ca] < key[cb] || (key[ca] == key[cb] && ca < cb);
        });
        space.fresh.assign(node.m, 0);
        space.gaps = 0;
        for (std::size_t i = 0; i < node.m; ++i) {
            space.gaps += missing(space.rows[i]);
            space.fresh[i] = i == 0 || code(slot, space.rows[i]) != code(slot, space.rows[i - 1]);
        }
    }

    void sequence_of_list(const CartWhole &node, std::int64_t first, std::int64_t last, AbsoluteSpace &space) const {
        const std::uint32_t *list = table.lists + first;
        const auto total = static_cast<std::size_t>(last - first);
        space.rows.clear();
        space.fresh.clear();
        space.gaps = 0;
        std::vector<std::uint32_t> zeros;
        if (total < node.m) {
            std::vector<std::uint32_t> listed(total);
            for (std::size_t i = 0; i < total; ++i) listed[i] = list[i] & CART_ROW;
            std::sort(listed.begin(), listed.end());
            std::set_difference(node.rows, node.rows + node.m, listed.begin(), listed.end(), std::back_inserter(zeros));
        }
        bool waiting = !zeros.empty(), after = false;
        const auto put_zeros = [&] {
            for (std::size_t i = 0; i < zeros.size(); ++i) {
                space.rows.push_back(zeros[i]);
                space.fresh.push_back(i == 0);
            }
            waiting = false;
            after = true;
        };
        for (std::size_t i = 0; i < total; ++i) {
            if (waiting && !(list[i] & CART_BELOW)) put_zeros();
            space.gaps += (list[i] & CART_GAP) != 0;
            space.rows.push_back(list[i] & CART_ROW);
            space.fresh.push_back(after || (list[i] & CART_NEW) != 0);
            after = false;
        }
        if (waiting) put_zeros();
    }

    // head[e]: the cost of the first e rows; tail[e]: of the others without, tail_gap[e]: with what is missing.
    void costs_of(const CartWhole &node, std::size_t m, AbsoluteSpace &space) const {
        const std::size_t K = target.K;
        const auto pass = [&](bool forwards, bool gaps, std::vector<double> &cost, std::vector<double> &median) {
            cost.assign(m + 1, 0.0);
            median.assign(m + 1, 0.0);
            for (std::size_t k = 0; k < K; ++k) {
                space.costs.begin(sorted_y.data() + k * node.m, node.m);
                const auto put = [&](std::uint32_t r) {
                    space.costs.add(rank[std::size_t{r} * K + k], target.weight[r]);
                };
                if (gaps)
                    for (std::size_t i = m; i < node.m; ++i) put(space.rows[i]);
                for (std::size_t step = 0; step <= m; ++step) {
                    const std::size_t e = forwards ? step : m - step;
                    if (step > 0) put(space.rows[forwards ? e - 1 : e]);
                    if (step == 0 && !gaps) continue;
                    if (e < m && !space.fresh[e] && e > 0) continue;
                    cost[e] += space.costs.cost();
                    if (rules.monotone) median[e] = space.costs.median();  // nothing else asks for it
                }
            }
        };
        pass(true, false, space.head, space.head_median);
        pass(false, false, space.tail, space.tail_median);
        if (!space.gaps) return;
        pass(true, true, space.head_gap, space.head_gap_median);
        pass(false, true, space.tail_gap, space.tail_gap_median);
    }

    // The number of a row; for codes their highest (on the left) or lowest.
    double number(std::size_t slot, std::uint32_t r, bool left) const {
        if (slot < table.n_coded)
            return (left ? table.high : table.low)[256 * slot + static_cast<std::size_t>(code(slot, r))];
        return table.values.at(static_cast<std::size_t>(table.sorted_feature[slot - table.n_coded]), r);
    }

    std::size_t draw(std::size_t slot, double u, std::size_t m, const AbsoluteSpace &space, double &drawn) const {
        if (m < 2) return 0;
        const double a = number(slot, space.rows[0], false), b = number(slot, space.rows[m - 1], true);
        drawn = a + u * (b - a);
        std::size_t last = 0;
        for (std::size_t e = 1; e < m; ++e) {
            if (!space.fresh[e]) continue;
            if (last > 0 && number(slot, space.rows[e - 1], true) > drawn) break;
            last = e;
        }
        return last;
    }

    void finish(const CartWhole &node, std::size_t slot, std::size_t e, std::size_t m, double drawn, bool random,
                CartSplit &out, const AbsoluteSpace &space, std::int64_t first, std::int64_t last) const {
        const bool coded = slot < table.n_coded;
        out.some_missing = space.gaps > 0;
        const bool levels = coded && table.categorical[slot];
        if (e < m && !levels) {
            const double a = number(slot, space.rows[e - 1], true), b = number(slot, space.rows[e], false);
            out.threshold = random && a <= drawn && drawn < b ? drawn : between(a, b);
        }
        if (!coded) {  // back to entries of the list, in which the zeros are one
            const std::size_t zeros = node.m - static_cast<std::size_t>(last - first);
            std::size_t below = 0;
            while (zeros && below < static_cast<std::size_t>(last - first) && (table.lists[first + below] & CART_BELOW))
                ++below;
            out.at = zeros && e > below ? e - zeros + 1 : e;
            return;
        }
        if (!levels) {
            const auto from = static_cast<std::size_t>(code(slot, space.rows[e - 1]));
            const auto to = static_cast<std::size_t>(e < m ? code(slot, space.rows[e]) : table.n_codes[slot]);
            const double *high = table.high + 256 * slot;
            send_left_below(
                out.left, static_cast<std::size_t>(std::upper_bound(high + from + 1, high + to, out.threshold) - high));
            if (out.missing_left) send_left(out.left, MISSING_BIN);
            return;
        }
        const bool light = 2 * e <= node.m;
        for (std::size_t i = light ? 0 : e; i < (light ? e : node.m); ++i)
            send_left(out.left, static_cast<std::size_t>(code(slot, space.rows[i])));
        out.missing_left = goes_left(out.left, MISSING_BIN);
        out.some_missing = false;
        for (std::size_t i = 0; i < node.m; ++i) out.some_missing |= code(slot, space.rows[i]) == MISSING_BIN;
        if (!light) std::swap(out.value_left, out.value_right);
    }
};

}  // namespace epicycle
