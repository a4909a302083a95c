// One tree, grown leaf by leaf: always the leaf whose best split gains most.
//
// The rows of a leaf are a piece of `order`, ascending. A split partitions the piece; the histogram of the smaller
// child is summed, that of the larger is what remains of its parent's. Leaf sums are taken from the gradients
// themselves, so that leaf values carry no rounding of bins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "tree/split.hpp"
#include "tree/sums.hpp"

namespace epicycle {

struct GrowRules {
    std::size_t max_leaves, max_depth;  // 0: no limit
    SplitRules split;
    const std::uint8_t *groups;  // interaction constraints: n_groups x n_columns, who may meet; null without
    std::size_t n_groups, n_columns;
};

struct GrownNode {
    Split split;            // not found in a leaf
    std::int32_t left = 0;  // the right child is the next node
    std::size_t begin = 0, end = 0, depth = 0;
    Packed sum = 0;
    Bounds bounds;
    double G = 0.0, H = 0.0;  // exact in leaves; of inner nodes the sums of their children
};

class Grower {
public:
    Grower(const BinnedTable &table, const GrowRules &rules, const float *gh, const Packed *packed, const Units &units,
           double noise, std::uint32_t *order, std::uint32_t *scratch, std::size_t n_rows, bool identity, int threads)
        : table(table), rules(rules), gh(gh), packed(packed), order(order), scratch(scratch), n_rows(n_rows),
          identity(identity), threads(threads), search(table, rules.split, units, noise), units(units) {}

    // poll() is called between splits and may throw.
    template <class Poll>
    std::vector<GrownNode> grow(const Poll &poll) {
        nodes.assign(1, GrownNode{});
        nodes[0].end = n_rows;
        std::size_t leaves = 1;
        const std::size_t most = rules.max_leaves ? rules.max_leaves : n_rows;
        if (most > 1 && divisible(nodes[0])) {
            auto hist = buffer();
            histogram(table, packed, identity ? nullptr : order, 0, n_rows, hist.get(), spare, threads);
            for (std::size_t b = 0; b < table.codes_of(0); ++b) nodes[0].sum += hist[b];
            nodes[0].sum += hist[MISSING_BIN];
            consider(0, std::move(hist));
        }
        while (leaves < most && !open.empty()) {
            poll();
            std::pop_heap(open.begin(), open.end(), later);
            Candidate chosen = std::move(open.back());
            open.pop_back();
            divide(chosen, ++leaves < most);
        }
        for (auto &candidate : open) nodes[candidate.node].split = Split{};
        sum_leaves();
        return std::move(nodes);
    }

private:
    using Histogram = std::unique_ptr<Packed[]>;
    struct Candidate {
        double gain;
        std::size_t node;
        Histogram hist;
    };
    // A heap with the largest gain on top, the older node among equals.
    static bool later(const Candidate &a, const Candidate &b) {
        return a.gain < b.gain || (a.gain == b.gain && a.node > b.node);
    }

    const BinnedTable &table;
    const GrowRules &rules;
    const float *gh;
    const Packed *packed;
    std::uint32_t *order, *scratch;
    std::size_t n_rows;
    bool identity;  // the root's rows are 0..n-1, which need no list
    int threads;
    SplitSearch search;
    Units units;
    std::vector<GrownNode> nodes;
    std::vector<Candidate> open;
    std::vector<Histogram> free_buffers;
    std::vector<std::vector<Packed>> spare;
    std::vector<Split> found;
    std::vector<std::vector<std::uint8_t>> allowed;  // by node, where there are interaction constraints

    Histogram buffer() {
        if (free_buffers.empty()) return Histogram(new Packed[table.n_stored() * BINS]);
        Histogram hist = std::move(free_buffers.back());
        free_buffers.pop_back();
        return hist;
    }

    bool divisible(const GrownNode &node) const {
        const std::size_t n = node.end - node.begin;
        return n >= 2 * std::max<std::size_t>(rules.split.min_samples, 1) && n > 1 &&
               (rules.max_depth == 0 || node.depth < rules.max_depth) && table.n_features > 0;
    }

    // Find the best split of a node with this histogram and put it among the candidates.
    void consider(std::size_t i, Histogram hist) {
        GrownNode &node = nodes[i];
        const std::uint8_t *may = rules.groups ? features_of(i) : nullptr;
        const std::size_t n = node.end - node.begin;
        search.each(hist.get(), node.sum, n, node.bounds, may, found, threads);
        std::uint32_t count[BINS], own[BINS];
        const auto rows_of = [&](std::size_t k) {
            list_root(node);
            std::fill(count, count + BINS, 0u);
            const Column column = table.column(table.features[k]);
            for (std::size_t r = node.begin; r < node.end; ++r) ++count[column[order[r]]];
            return table.by_bin<std::uint32_t>(k, count, static_cast<std::uint32_t>(n), own);
        };
        const Split split = search.best(found, hist.get(), node.sum, n, node.bounds, rows_of);
        if (!split.found()) {
            free_buffers.push_back(std::move(hist));
            return;
        }
        node.split = split;
        open.push_back({split.gain, i, std::move(hist)});
        std::push_heap(open.begin(), open.end(), later);
    }

    // Features that may still be used below node i: those of the groups that hold all features on the way to it.
    const std::uint8_t *features_of(std::size_t i) {
        allowed.resize(nodes.size());
        if (allowed[i].empty()) allowed[i].assign(rules.n_groups, 1);  // groups at first, for the root
        may_use.assign(table.n_features, 0);
        for (std::size_t g = 0; g < rules.n_groups; ++g)
            if (allowed[i][g])
                for (std::size_t k = 0; k < table.n_features; ++k)
                    may_use[k] |= rules.groups[g * rules.n_columns + static_cast<std::size_t>(table.features[k])];
        return may_use.data();
    }
    std::vector<std::uint8_t> may_use;

    void list_root(const GrownNode &node) {
        if (!identity || node.begin != 0 || node.end != n_rows) return;
        std::iota(order, order + n_rows, std::uint32_t{0});
        identity = false;
    }

    // Divide a node by its split; `more` says whether its children may be divided in turn.
    void divide(Candidate &chosen, bool more) {
        const std::size_t l = nodes.size(), r = l + 1;
        nodes.resize(l + 2);
        GrownNode &node = nodes[chosen.node], &left = nodes[l], &right = nodes[r];
        node.left = static_cast<std::int32_t>(l);
        const std::size_t middle = partition(node);
        left.begin = node.begin;
        left.end = right.begin = middle;
        right.end = node.end;
        left.depth = right.depth = node.depth + 1;
        left.sum = node.split.left_sum;
        right.sum = node.sum - left.sum;
        left.bounds = right.bounds = node.bounds;
        if (rules.split.monotone) tighten(node, left, right);
        if (rules.groups) {
            allowed.resize(nodes.size());
            auto groups = allowed[chosen.node];
            for (std::size_t g = 0; g < rules.n_groups; ++g)
                groups[g] &= rules.groups[g * rules.n_columns + static_cast<std::size_t>(node.split.feature)];
            allowed[l] = allowed[r] = groups;
        }
        const bool go_left = more && divisible(left), go_right = more && divisible(right);
        if (!go_left && !go_right) {
            free_buffers.push_back(std::move(chosen.hist));
            return;
        }
        const bool left_smaller = left.end - left.begin <= right.end - right.begin;
        const GrownNode &small = left_smaller ? left : right;
        Histogram small_hist = buffer(), large_hist = std::move(chosen.hist);
        histogram(table, packed, order, small.begin, small.end, small_hist.get(), spare, threads);
        combine<-1>(table, large_hist.get(), small_hist.get());
        Histogram &left_hist = left_smaller ? small_hist : large_hist,
                  &right_hist = left_smaller ? large_hist : small_hist;
        go_left ? consider(l, std::move(left_hist)) : free_buffers.push_back(std::move(left_hist));
        go_right ? consider(r, std::move(right_hist)) : free_buffers.push_back(std::move(right_hist));
    }

    void tighten(const GrownNode &node, GrownNode &left, GrownNode &right) const {
        const int sign = node.split.categorical ? 0 : rules.split.monotone[node.split.feature];
        if (sign == 0) return;
        const double middle = middle_value(left.sum, right.sum, units, rules.split.l2, node.bounds);
        (sign > 0 ? left : right).bounds.high = middle;
        (sign > 0 ? right : left).bounds.low = middle;
    }

    // Stable: rows stay ascending on both sides. Returns where the right side begins.
    std::size_t partition(const GrownNode &node) {
        const Column column = table.column(node.split.feature);
        std::uint8_t left[BINS];
        const auto bin_left = [&](std::size_t b) { return goes_left(node.split.left, b); };
        table.by_code(node.split.feature, bin_left, left);
        const std::size_t begin = node.begin, m = node.end - begin;
        const int parts = worth(static_cast<double>(m) * 2, threads);
        std::vector<std::size_t> n_left(parts + 1, 0);
        const bool numbered = identity && begin == 0 && node.end == n_rows;
#pragma omp parallel for num_threads(parts) schedule(static, 1) if (parts > 1)
        for (int t = 0; t < parts; ++t) {
            const std::size_t from = begin + m * t / parts, to = begin + m * (t + 1) / parts;
            // Left rows forwards from the start of the part in place, right rows into the scratch space.
            std::uint32_t *l = order + from, *r = scratch + from;
            for (std::size_t i = from; i < to; ++i) {
                const std::uint32_t row = numbered ? static_cast<std::uint32_t>(i) : order[i];
                const std::size_t is_left = left[column[row]];
                *l = row;
                *r = row;
                l += is_left;
                r += 1 - is_left;
            }
            n_left[t + 1] = static_cast<std::size_t>(l - (order + from));
        }
        identity = identity && !numbered;
        for (int t = 0; t < parts; ++t) n_left[t + 1] += n_left[t];
        const std::size_t middle = begin + n_left[parts];
        for (int t = 1; t < parts; ++t) {  // close up the left rows; those of earlier parts are in place by now
            const std::size_t from = begin + m * t / parts;
            std::copy(order + from, order + from + (n_left[t + 1] - n_left[t]), order + begin + n_left[t]);
        }
        for (int t = 0; t < parts; ++t) {
            const std::size_t from = begin + m * t / parts, to = begin + m * (t + 1) / parts;
            const std::size_t n_right = (to - from) - (n_left[t + 1] - n_left[t]);
            std::copy(scratch + from, scratch + from + n_right, order + middle + (from - begin - n_left[t]));
        }
        return middle;
    }

    void sum_leaves() {
        if (identity) list_root(nodes[0]);
        struct Piece {
            std::size_t node, begin, end;
            FixedSum sum;
        };
        std::vector<Piece> pieces;
        for (std::size_t i = 0; i < nodes.size(); ++i)
            if (!nodes[i].split.found())
                for (std::size_t b = nodes[i].begin; b < nodes[i].end; b += SUM_ROWS)
                    pieces.push_back({i, b, std::min(b + SUM_ROWS, nodes[i].end), {}});
        const FixedScale scale(units);
        const int team = worth(static_cast<double>(n_rows) * 4, threads);
#pragma omp parallel for num_threads(team) schedule(dynamic) if (team > 1)
        for (std::int64_t t = 0; t < static_cast<std::int64_t>(pieces.size()); ++t)
            pieces[t].sum = sum_rows(gh, order, pieces[t].begin, pieces[t].end, scale);
        for (std::size_t t = 0; t < pieces.size();) {
            const std::size_t i = pieces[t].node;
            WideSum G = 0, H = 0;
            for (; t < pieces.size() && pieces[t].node == i; ++t) {
                G += pieces[t].sum.g;
                H += pieces[t].sum.h;
            }
            nodes[i].G = scale.gradient(G);
            nodes[i].H = scale.curvature(H);
        }
        for (std::size_t i = nodes.size(); i-- > 0;)
            if (nodes[i].split.found()) {
                nodes[i].G = nodes[nodes[i].left].G + nodes[nodes[i].left + 1].G;
                nodes[i].H = nodes[nodes[i].left].H + nodes[nodes[i].left + 1].H;
            }
    }
};

}  // namespace epicycle
