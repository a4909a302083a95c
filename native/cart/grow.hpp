// One tree, grown node by node in depth, or best first where its leaves are counted.
//
// The rows of a node are a piece of `order`, ascending, and of every sorted column. A split divides all of them, and
// keeps their order. Sums of a node are taken from its rows anew, so that they carry no rounding from above.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "cart/absolute.hpp"
#include "cart/search.hpp"
#include "core/threads.hpp"
#include "tree/histogram.hpp"

namespace epicycle {

template <class Target>
class CartGrower {
public:
    CartGrower(const CartTable &table, const CartRules &rules, const CartTarget &raw, const Target &target,
               std::uint32_t *order, std::size_t n_rows, bool unit_weights, int threads)
        : table(table), rules(rules), raw(raw), target(target), order(order), n_rows(n_rows), threads(threads),
          K(target.K()), V(K + 1), search(table, rules, this->target, unit_weights), absolute(table, rules, raw),
          random(rules.seed), side(table.n), slot_of(table.p, -1) {
        for (std::size_t s = 0; s < table.n_coded + table.n_sorted; ++s)
            slot_of[static_cast<std::size_t>(search.feature(s))] = static_cast<std::int32_t>(s);
        features.resize(table.p);
        std::iota(features.begin(), features.end(), std::size_t{0});
        spaces.reserve(static_cast<std::size_t>(threads));
        for (int t = 0; t < threads; ++t) spaces.emplace_back(rules, K);
        absolute_spaces.resize(medians() ? static_cast<std::size_t>(threads) : 0);
        list_scratch.resize(static_cast<std::size_t>(threads));
    }

    std::vector<CartNode> nodes;
    std::vector<double> values;  // nodes x K

    // poll() is called between splits and may throw.
    template <class Poll>
    void grow(const Poll &poll) {
        keep_rows_of_weight();
        add_node(0, n_rows, 0, Bounds{});
        if (table.sparse) {
            nodes[0].ranges.resize(2 * table.n_sorted);
            for (std::size_t j = 0; j < table.n_sorted; ++j) {
                nodes[0].ranges[2 * j] = table.list_start[j];
                nodes[0].ranges[2 * j + 1] = table.list_start[j] + kept[j];
            }
        }
        total_weight = nodes[0].weight;
        rules.max_leaves ? best_first(poll) : in_depth(poll);
    }

private:
    const CartTable &table;
    const CartRules &rules;
    const CartTarget &raw;
    Target target;
    std::uint32_t *order;
    std::size_t n_rows;
    int threads;
    std::size_t K, V;
    CartSearch<Target> search;
    AbsoluteSearch absolute;
    CartRandom random;
    std::vector<std::uint8_t> side;
    std::vector<std::int32_t> slot_of;
    std::vector<std::size_t> features;
    std::vector<SearchSpace<Target>> spaces;
    std::vector<AbsoluteSpace> absolute_spaces;
    std::vector<std::vector<std::uint32_t>> list_scratch;
    std::vector<std::uint32_t> order_scratch;
    std::vector<std::int64_t> kept;  // entries of every list that belong to rows of positive weight
    std::vector<double> sums;        // nodes x V
    std::vector<std::int32_t> coded_slots, sorted_slots;
    std::vector<CartSplit> found;
    std::vector<double> draws;
    double total_weight = 0.0;

    bool medians() const { return rules.criterion.kind == Criterion::absolute; }
    // Whether sums are those of all classes; of two classes they are those of the second.
    bool labelled() const {
        const Criterion kind = rules.criterion.kind;
        return (kind == Criterion::gini || kind == Criterion::entropy) && !rules.criterion.two_classes;
    }

    void keep_rows_of_weight() {
        kept.resize(table.n_sorted);
        for (std::size_t j = 0; j < table.n_sorted; ++j) {
            std::uint32_t *list = table.lists + table.list_start[j], *to = list, fresh = CART_NEW;
            const std::uint32_t *end = table.lists + table.list_start[j + 1];
            for (const std::uint32_t *at = list; at < end; ++at) {
                fresh |= *at & CART_NEW;
                if (!(raw.weight[*at & CART_ROW] > 0)) continue;
                *to++ = *at | fresh;
                fresh = 0;
            }
            kept[j] = to - list;
        }
    }

    // ------------------------------------------------------------------------------------------- order of growth

    template <class Poll>
    void in_depth(const Poll &poll) {
        std::vector<std::size_t> stack{0};
        while (!stack.empty()) {
            poll();
            const std::size_t i = stack.back();
            stack.pop_back();
            if (!consider(i)) continue;
            divide(i);
            stack.push_back(static_cast<std::size_t>(nodes[i].left) + 1);
            stack.push_back(static_cast<std::size_t>(nodes[i].left));
        }
    }

    template <class Poll>
    void best_first(const Poll &poll) {
        std::vector<std::size_t> open;
        const auto later = [&](std::size_t a, std::size_t b) {
            const double ga = nodes[a].split.gain, gb = nodes[b].split.gain;
            return ga < gb || (ga == gb && a > b);
        };
        const auto enter = [&](std::size_t i) {
            if (!consider(i)) return;
            open.push_back(i);
            std::push_heap(open.begin(), open.end(), later);
        };
        enter(0);
        for (std::size_t leaves = 1; leaves < rules.max_leaves && !open.empty(); ++leaves) {
            poll();
            std::pop_heap(open.begin(), open.end(), later);
            const std::size_t i = open.back();
            open.pop_back();
            divide(i);
            if (leaves + 1 == rules.max_leaves) break;
            enter(static_cast<std::size_t>(nodes[i].left));
            enter(static_cast<std::size_t>(nodes[i].left) + 1);
        }
        for (std::size_t i : open) nodes[i].split = CartSplit{};
    }

    // ------------------------------------------------------------------------------------------- nodes

    void add_node(std::size_t begin, std::size_t end, std::size_t depth, const Bounds &bounds) {
        nodes.emplace_back();
        CartNode &node = nodes.back();
        node.begin = begin;
        node.end = end;
        node.depth = depth;
        node.bounds = bounds;
        sums.resize(nodes.size() * V, 0.0);
        values.resize(nodes.size() * K, 0.0);
        double *a = sums.data() + (nodes.size() - 1) * V, *value = values.data() + (nodes.size() - 1) * K;
        for (std::size_t i = begin; i < end; ++i) target.add(a, order[i]);
        node.weight = a[0];
        labelled() ? of_classes(node, a, value) : of_numbers(node, a, value);
        for (std::size_t k = 0; k < K; ++k) value[k] = std::min(std::max(value[k], bounds.low), bounds.high);
    }

    void of_classes(CartNode &node, const double *a, double *value) const {
        std::size_t present = 0;
        double squares = 0.0, logs = rules.criterion.outputs * xlogx(a[0]);
        for (std::size_t k = 0; k < K; ++k) {
            value[k] = a[1 + k] / a[0];
            present += a[1 + k] > 0;
            squares += a[1 + k] * value[k];
            logs -= xlogx(a[1 + k]);
        }
        node.pure = static_cast<double>(present) <= rules.criterion.outputs;
        const bool gini = rules.criterion.kind == Criterion::gini;
        const double cost = gini ? rules.criterion.outputs * a[0] - squares : logs * 1.4426950408889634074;
        node.cost = node.pure ? 0.0 : std::max(0.0, cost);
    }

    void of_numbers(CartNode &node, const double *a, double *value) const {
        const double *first = raw.y + std::size_t{order[node.begin]} * K;
        std::vector<std::pair<double, double>> of;
        for (std::size_t k = 0; k < K; ++k) {
            value[k] = a[1 + k] / (a[0] + rules.criterion.l2);
            if (medians()) {
                of.clear();
                for (std::size_t i = node.begin; i < node.end; ++i)
                    of.emplace_back(raw.y[std::size_t{order[i]} * K + k], raw.weight[order[i]]);
                value[k] = weighted_median(of);
            }
            double cost = 0.0, s = a[1 + k];
            for (std::size_t i = node.begin; i < node.end; ++i) {
                const std::uint32_t r = order[i];
                const double y = raw.y[std::size_t{r} * K + k], d = y - value[k];
                node.pure = node.pure && y == first[k];
                if (rules.criterion.kind == Criterion::squared) cost += raw.weight[r] * d * d;
                if (medians()) cost += raw.weight[r] * std::abs(d);
                if (rules.criterion.kind == Criterion::poisson) cost += raw.weight[r] * xlogx(y);
            }
            switch (rules.criterion.kind) {
                case Criterion::squared:
                    cost += rules.criterion.l2 * value[k] * value[k];
                    break;
                case Criterion::poisson:
                    cost -= s > 0 ? s * std::log(s / a[0]) : 0.0;
                    break;
                case Criterion::gini:
                    cost = 2.0 * (s - s * s / a[0]);
                    break;
                case Criterion::entropy:
                    cost = (xlogx(a[0]) - xlogx(s) - xlogx(a[0] - s)) * 1.4426950408889634074;
                    break;
                default:
                    break;
            }
            node.cost += std::max(cost, 0.0);
        }
        if (node.pure && rules.criterion.kind != Criterion::squared) node.cost = 0.0;
    }

    // Find the best split of a node; false where it stays a leaf.
    bool consider(std::size_t i) {
        CartNode &node = nodes[i];
        const std::size_t m = node.size();
        const bool stop = node.pure || m < rules.min_split || m < 2 * rules.min_leaf || m < 2 ||
                          node.weight < 2 * rules.min_weight || (rules.max_depth && node.depth >= rules.max_depth);
        if (stop) return false;
        CartWhole whole;
        whole.rows = order + node.begin;
        whole.m = m;
        whole.sum.assign(sums.begin() + static_cast<std::ptrdiff_t>(i * V),
                         sums.begin() + static_cast<std::ptrdiff_t>((i + 1) * V));
        whole.centre.assign(V, 0.0);
        whole.bounds = node.bounds;
        const Criterion kind = rules.criterion.kind;
        if ((kind == Criterion::squared || kind == Criterion::gini) && rules.criterion.l2 == 0)
            for (std::size_t k = 1; k < V; ++k) whole.centre[k] = whole.sum[k] / whole.sum[0];
        if (medians())
            absolute.begin(whole);
        else
            whole.score = side_score<Target::FIXED>(rules.criterion, whole.sum.data(), whole.centre.data(), K);
        const CartSplit best = draw_and_search(node, whole);
        const double norm = total_weight * rules.criterion.outputs;
        const double rounding = 1e-10 * node.cost + 1e-300;
        bool worth_it = best.found() && best.gain >= -rounding;
        if (rules.leaf_cost > 0 || rules.criterion.l2 > 0) worth_it = worth_it && best.gain > rules.leaf_cost;
        worth_it = worth_it && best.gain / norm + std::numeric_limits<double>::epsilon() >= rules.min_gain;
        if (!worth_it) {
            std::vector<std::int64_t>().swap(nodes[i].ranges);
            return false;
        }
        nodes[i].split = best;
        return true;
    }

    // Features are drawn without replacement; where none of them can be split, more are drawn.
    CartSplit draw_and_search(const CartNode &node, const CartWhole &whole) {
        CartSplit best;
        const std::size_t p = table.p, most = std::min(rules.max_features, p);
        std::size_t seen = 0;
        while (seen < p && (seen < most || !best.found())) {
            const std::size_t batch = seen < most ? most - seen : 1;
            coded_slots.clear();
            sorted_slots.clear();
            for (std::size_t i = seen; i < seen + batch; ++i) {
                if (most < p) std::swap(features[i], features[i + random.below(p - i)]);
                const std::int32_t slot = slot_of[features[i]];
                if (slot < 0) continue;  // constant
                (static_cast<std::size_t>(slot) < table.n_coded ? coded_slots : sorted_slots).push_back(slot);
            }
            seen += batch;
            search_slots(node, whole, best);
        }
        return best;
    }

    void search_slots(const CartNode &node, const CartWhole &whole, CartSplit &best) {
        const std::size_t C = coded_slots.size(), S = sorted_slots.size(), all = C + S;
        if (all == 0) return;
        found.assign(all, CartSplit{});
        draws.resize(rules.random ? 2 * all : 0);
        for (double &u : draws) u = random.uniform();
        const double *u = rules.random ? draws.data() : nullptr;
        const int team =
            worth(static_cast<double>(whole.m) * static_cast<double>(all) * (medians() ? 20.0 : 1.0), threads);
        std::size_t group = search.features_at_once();
        if (team > 1)
            group = std::min(group, (C + static_cast<std::size_t>(team) - 1) / static_cast<std::size_t>(team));
        if (medians() || group == 0) group = 1;
        const std::size_t groups = (C + group - 1) / group;
#pragma omp parallel for num_threads(team) schedule(dynamic) if (team > 1)
        for (std::int64_t task = 0; task < static_cast<std::int64_t>(groups + S); ++task) {
            const auto thread = static_cast<std::size_t>(thread_number());
            const auto g = static_cast<std::size_t>(task);
            if (g < groups && !medians()) {
                const std::size_t from = g * group, to = std::min(C, from + group);
                search.coded(whole, coded_slots.data() + from, to - from, u ? u + 2 * from : nullptr,
                             found.data() + from, spaces[thread]);
                continue;
            }
            const std::size_t at = g < groups ? g : C + (g - groups);
            const auto slot = static_cast<std::size_t>(g < groups ? coded_slots[at] : sorted_slots[at - C]);
            std::int64_t first = 0, last = 0;
            if (g >= groups) range(node, slot - table.n_coded, first, last);
            if (medians())
                absolute.search(whole, node.cost, slot, first, last, u ? u + 2 * at : nullptr, found[at],
                                absolute_spaces[thread]);
            else
                search.sorted(whole, slot, first, last, u ? u + 2 * at : nullptr, found[at], spaces[thread]);
        }
        for (const CartSplit &split : found) {
            if (!split.found()) continue;
            const bool first = !best.found() || split.gain > best.gain ||
                               (split.gain == best.gain && search.feature(static_cast<std::size_t>(split.slot)) <
                                                               search.feature(static_cast<std::size_t>(best.slot)));
            if (first) best = split;
        }
    }

    static int thread_number() {
#if defined(_OPENMP)
        return omp_get_thread_num();
#else
        return 0;
#endif
    }

    void range(const CartNode &node, std::size_t j, std::int64_t &first, std::int64_t &last) const {
        if (table.sparse) {
            first = node.ranges[2 * j];
            last = node.ranges[2 * j + 1];
        } else {
            first = table.list_start[j] + static_cast<std::int64_t>(node.begin);
            last = table.list_start[j] + static_cast<std::int64_t>(node.end);
        }
    }

    // ------------------------------------------------------------------------------------------- division

    void divide(std::size_t i) {
        set_sides(nodes[i]);
        const std::size_t begin = nodes[i].begin, end = nodes[i].end, depth = nodes[i].depth;
        order_scratch.resize(std::max(order_scratch.size(), end - begin));
        std::uint32_t *l = order + begin, *r = order_scratch.data();
        for (std::size_t k = begin; k < end; ++k) {
            const std::uint32_t row = order[k];
            const std::uint32_t left = side[row];
            *l = row;
            *r = row;
            l += left;
            r += 1 - left;
        }
        std::copy(order_scratch.data(), r, l);
        const auto middle = static_cast<std::size_t>(l - order);
        CartSplit &split = nodes[i].split;
        const bool levels = static_cast<std::size_t>(split.slot) < table.n_coded && table.categorical[split.slot];
        if (!split.some_missing && !levels) {  // what is missing later goes where most rows went
            split.missing_left = middle - begin > end - middle;
            Sides bit{};
            send_left(bit, MISSING_BIN);
            split.left[3] = split.missing_left ? split.left[3] | bit[3] : split.left[3] & ~bit[3];
        }
        Bounds below = nodes[i].bounds, above = nodes[i].bounds;
        if (rules.monotone && !levels) {
            const int sign = rules.monotone[search.feature(static_cast<std::size_t>(split.slot))];
            const double mid = split.value_left + (split.value_right - split.value_left) / 2;
            if (sign != 0) {
                (sign > 0 ? below.high : below.low) = mid;
                (sign > 0 ? above.low : above.high) = mid;
            }
        }
        const auto left = nodes.size();
        nodes[i].left = static_cast<std::int32_t>(left);
        add_node(begin, middle, depth + 1, below);
        add_node(middle, end, depth + 1, above);
        const bool leaves = rules.max_depth && depth + 1 >= rules.max_depth;
        if (table.n_sorted && !leaves && !(nodes[left].pure && nodes[left + 1].pure)) divide_lists(i, left);
        std::vector<std::int64_t>().swap(nodes[i].ranges);
    }

    void set_sides(const CartNode &node) {
        const CartSplit &split = node.split;
        const auto slot = static_cast<std::size_t>(split.slot);
        if (slot < table.n_coded) {
            for (std::size_t k = node.begin; k < node.end; ++k) {
                const std::uint32_t row = order[k];
                side[row] = goes_left(split.left, table.codes[std::size_t{row} * table.n_coded + slot]);
            }
            return;
        }
        std::int64_t first, last;
        range(node, slot - table.n_coded, first, last);
        const std::uint32_t *list = table.lists + first;
        const auto total = static_cast<std::size_t>(last - first);
        std::size_t at = split.at;
        const bool zeros = table.sparse && total < node.size();
        if (zeros) {
            const auto below = static_cast<std::size_t>(
                std::partition_point(list, list + total, [](std::uint32_t e) { return e & CART_BELOW; }) - list);
            const bool zeros_left = at > below;
            at -= zeros_left;
            for (std::size_t k = node.begin; k < node.end; ++k) side[order[k]] = zeros_left;
        }
        for (std::size_t k = 0; k < total; ++k)
            side[list[k] & CART_ROW] = list[k] & CART_GAP ? split.missing_left : k < at;
    }

    void divide_lists(std::size_t parent, std::size_t left) {
        const CartNode &node = nodes[parent];
        if (table.sparse) {
            nodes[left].ranges.resize(2 * table.n_sorted);
            nodes[left + 1].ranges.resize(2 * table.n_sorted);
        }
        const int team = worth(static_cast<double>(node.size()) * static_cast<double>(table.n_sorted), threads);
#pragma omp parallel for num_threads(team) schedule(dynamic) if (team > 1)
        for (std::int64_t jj = 0; jj < static_cast<std::int64_t>(table.n_sorted); ++jj) {
            const auto j = static_cast<std::size_t>(jj);
            std::vector<std::uint32_t> &scratch = list_scratch[static_cast<std::size_t>(thread_number())];
            std::int64_t first, last;
            range(node, j, first, last);
            const auto total = static_cast<std::size_t>(last - first);
            if (scratch.size() < total + 1) scratch.resize(total + 1);
            std::uint32_t *list = table.lists + first, *l = list, *r = scratch.data();
            std::uint32_t fresh_l = CART_NEW, fresh_r = CART_NEW;
            for (std::size_t k = 0; k < total; ++k) {
                const std::uint32_t entry = list[k];
                const std::uint32_t is_left = side[entry & CART_ROW], mask = 0u - is_left;
                fresh_l |= entry & CART_NEW;
                fresh_r |= entry & CART_NEW;
                *l = entry | fresh_l;
                *r = entry | fresh_r;
                l += is_left;
                r += 1 - is_left;
                fresh_l &= ~mask;
                fresh_r &= mask;
            }
            std::copy(scratch.data(), r, l);
            if (table.sparse) {
                auto &a = nodes[left].ranges, &b = nodes[left + 1].ranges;
                a[2 * j] = first;
                a[2 * j + 1] = b[2 * j] = first + (l - list);
                b[2 * j + 1] = last;
            }
        }
    }
};

}  // namespace epicycle
