// Isolation trees (Liu, Ting and Zhou, 2008): a node divides its rows at a random threshold of a random column.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "bayes/random.hpp"
#include "tree/predict.hpp"

namespace epicycle {

// Nodes in the order in which they are made: the children of node i are left[i] and the next, 0 is none.
struct IsolationTree {
    std::vector<std::int32_t> column, left;
    std::vector<double> threshold;
    std::vector<std::uint8_t> missing_left;
    std::vector<std::int64_t> count;  // of rows

    std::size_t add(std::size_t rows) {
        column.push_back(0);
        left.push_back(0);
        threshold.push_back(0.0);
        missing_left.push_back(0);
        count.push_back(static_cast<std::int64_t>(rows));
        return column.size() - 1;
    }
};

// Grows the tree of a sample (n x p, row-major; NaN is missing). What is drawn depends on the rows as a set alone, and
// not on columns that are constant in all of them.
class IsolationTreeGrower {
public:
    IsolationTreeGrower(const double *X, std::size_t n, std::size_t p, int max_depth, Random &random)
        : X(X), p(p), max_depth(max_depth), random(random), rows(n) {
        for (std::size_t i = 0; i < n; ++i) rows[i] = i;
        for (std::size_t j = 0; j < p; ++j)
            if (range(j, 0, n).divides()) columns.push_back(j);
        tree.add(n);
    }

    template <class Interrupt>
    IsolationTree operator()(const Interrupt &interrupt) {
        grow(0, 0, rows.size(), 0, columns.size(), interrupt);
        return std::move(tree);
    }

private:
    struct Range {
        double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();
        std::size_t missing = 0;
        bool divides() const { return low < high; }
    };

    const double *X;
    std::size_t p;
    int max_depth;
    Random &random;
    std::vector<std::size_t> rows, columns;
    IsolationTree tree;

    Range range(std::size_t j, std::size_t start, std::size_t end) const {
        Range found;
        for (std::size_t i = start; i < end; ++i) {
            const double x = X[rows[i] * p + j];
            found.low = x < found.low ? x : found.low;
            found.high = x > found.high ? x : found.high;
            found.missing += x != x;
        }
        return found;
    }

    // A column that differs among the rows, each with the same chance; those found constant move behind `active`, where
    // they stay for the nodes below. False where none is left.
    bool draw_column(std::size_t start, std::size_t end, std::size_t &active, std::size_t &column, Range &found) {
        while (active > 0) {
            const auto at = std::min(active - 1, static_cast<std::size_t>(random.uniform() * active));
            column = columns[at];
            found = range(column, start, end);
            if (found.divides()) return true;
            std::swap(columns[at], columns[--active]);
        }
        return false;
    }

    template <class Interrupt>
    void grow(std::size_t node, std::size_t start, std::size_t end, int depth, std::size_t active,
              const Interrupt &interrupt) {
        if (end - start > 4096) interrupt();
        std::size_t column = 0;
        Range found;
        if (depth >= max_depth || end - start < 2 || !draw_column(start, end, active, column, found)) return;
        const double u = random.uniform();
        double threshold = (1.0 - u) * found.low + u * found.high;  // no difference, which could overflow
        if (!(threshold >= found.low && threshold < found.high)) threshold = found.low;
        const bool coin = random.uniform() < 0.5;
        const auto goes_left = [&](std::size_t i) {
            const double x = X[i * p + column];
            return x != x ? coin : x <= threshold;
        };
        const auto middle = std::partition(rows.begin() + static_cast<std::ptrdiff_t>(start),
                                           rows.begin() + static_cast<std::ptrdiff_t>(end), goes_left);
        const auto cut = static_cast<std::size_t>(middle - rows.begin());
        const std::size_t left = tree.add(cut - start);
        tree.add(end - cut);
        tree.column[node] = static_cast<std::int32_t>(column);
        tree.left[node] = static_cast<std::int32_t>(left);
        tree.threshold[node] = threshold;
        // Where no value was missing, one that is goes to the larger side later.
        tree.missing_left[node] = found.missing > 0 ? coin : cut - start >= end - cut;
        // What the nodes below find constant they move within the first `active` columns, all of which stay there.
        grow(left, start, cut, depth + 1, active, interrupt);
        grow(left + 1, cut, end, depth + 1, active, interrupt);
    }
};

// out (n x p) += what every split on the path of a row adds to the mean depth that is expected below it, to the column
// of the split: expected[child] - expected[node].
template <class T, class Interrupt>
void path_contributions(const Forest &f, const Dense<T> &X, const double *expected, double *out,
                        [[maybe_unused]] int threads, const Interrupt &interrupt) {
    constexpr std::size_t PIECE = 4096;
    for (std::size_t from = 0; from < X.rows; from += PIECE) {
        const auto to = static_cast<std::int64_t>(std::min(from + PIECE, X.rows));
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1)
        for (std::int64_t row = static_cast<std::int64_t>(from); row < to; ++row) {
            const auto i = static_cast<std::size_t>(row);
            for (std::size_t t = 0; t < f.n_trees; ++t) {
                const Node *nodes = f.nodes + f.roots[t];
                const double *mean = expected + f.roots[t];
                for (std::uint32_t at = 0; !nodes[at].leaf();) {
                    const std::size_t j = nodes[at].feature();
                    const std::uint32_t next = step<false>(nodes[at], static_cast<double>(X(i, j)), nullptr);
                    out[i * X.cols + j] += mean[next] - mean[at];
                    at = next;
                }
            }
        }
        interrupt();
    }
}

}  // namespace epicycle
