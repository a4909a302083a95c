// Ways to divide one node, collected by the sums of their left sides and judged together.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cart/table.hpp"

namespace epicycle {

// The node that is being divided.
struct CartWhole {
    const std::uint32_t *rows;  // ascending
    std::size_t m;
    std::vector<double> sum, centre;  // (W, S_1 .. S_K); means where squares are taken from them, else zeros
    double score = 0.0;
    Bounds bounds;
};

template <std::size_t Fixed>
class Candidates {
public:
    static constexpr std::size_t MANY = 256;
    CartSplit best;  // of all that was judged since begin()
    std::size_t best_id = 0;

    Candidates(const CartRules &rules, std::size_t K) : rules(rules), K(K), V(K + 1), left(MANY * V), side(2 * V) {}

    void begin(const CartWhole &node, int sign, bool counted) {
        whole = &node;
        monotone_sign = sign;
        least_n = counted ? static_cast<double>(rules.min_leaf) : CART_NEVER;
        best = CartSplit{};
        size = 0;
    }
    // Rows that may go to either side with every candidate; `a` holds their sums, n their number.
    void set_missing(const double *a, double n, bool try_right, bool try_left) {
        missing = a;
        missing_n = n;
        right = try_right;
        also_left = try_left;
    }
    EPICYCLE_INLINE void push(std::size_t id, const double *a, double n) {
        for (std::size_t v = 0; v < (Fixed ? Fixed + 1 : V); ++v) left[Fixed ? v * MANY + size : size * V + v] = a[v];
        number[size] = n;
        ids[size] = id;
        if (++size == MANY) judge();
    }
    // Judge what was pushed.
    void judge() {
        if (right) judge_as(false);
        if (also_left) {
            for (std::size_t v = 0; v < V; ++v)
                for (std::size_t i = 0; i < size; ++i) left[Fixed ? v * MANY + i : i * V + v] += missing[v];
            for (std::size_t i = 0; i < size; ++i) number[i] += missing_n;
            judge_as(true);
        }
        size = 0;
    }

private:
    const CartRules &rules;
    std::size_t K, V;
    const CartWhole *whole = nullptr;
    const double *missing = nullptr;
    double missing_n = 0.0, least_n = 0.0;
    bool right = true, also_left = false;
    int monotone_sign = 0;
    std::size_t size = 0;
    std::vector<double> left, side;
    double number[MANY], gain[MANY];
    std::size_t ids[MANY];

    void judge_as(bool missing_left) {
        const CriterionRules &criterion = rules.criterion;
        const bool squares = criterion.kind == Criterion::squared || criterion.kind == Criterion::gini;
        if (Fixed == 1 && squares && !rules.monotone) {
            pair_gains(left.data(), left.data() + MANY, number, size, whole->sum[0], whole->sum[1],
                       static_cast<double>(whole->m), whole->centre[1], criterion.l2, criterion.two_classes ? 2.0 : 1.0,
                       least_n, rules.min_weight, gain);
        } else {
            for (std::size_t i = 0; i < size; ++i) gain[i] = gain_of(i);
        }
        for (std::size_t i = 0; i < size; ++i) {
            if (!(gain[i] > best.gain)) continue;
            best.gain = gain[i];
            best.missing_left = missing_left;
            best_id = ids[i];
            best.slot = 0;
            if (rules.monotone) {
                (void)gain_of(i);
                best.value_left = value(side.data());
                best.value_right = value(side.data() + V);
            }
        }
    }

    double value(const double *a) const { return a[1] / (a[0] + rules.criterion.l2); }

    double gain_of(std::size_t i) {
        double *l = side.data(), *r = side.data() + V;
        for (std::size_t v = 0; v < V; ++v) {
            l[v] = left[Fixed ? v * MANY + i : i * V + v];
            r[v] = whole->sum[v] - l[v];
        }
        const double others = static_cast<double>(whole->m) - number[i];
        if (number[i] < least_n || others < least_n || !(l[0] > 0) || !(r[0] > 0)) return CART_NEVER;
        if (l[0] < rules.min_weight || r[0] < rules.min_weight) return CART_NEVER;
        if (rules.criterion.kind == Criterion::poisson)  // a mean of zero has no logarithm; differences leave rounding
            for (std::size_t v = 1; v < V; ++v)
                if (std::min(l[v], r[v]) <= 1e-12 * whole->sum[v]) return CART_NEVER;
        if (rules.monotone) {  // K is 1
            const double vl = value(l), vr = value(r);
            if (monotone_sign * (vr - vl) < 0 || std::min(vl, vr) < whole->bounds.low ||
                std::max(vl, vr) > whole->bounds.high)
                return CART_NEVER;
        }
        return side_score<Fixed>(rules.criterion, l, whole->centre.data(), K) +
               side_score<Fixed>(rules.criterion, r, whole->centre.data(), K) - whole->score;
    }
};

}  // namespace epicycle
