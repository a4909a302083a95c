// Bindings of the kernels of decision trees and forests.
#include <memory>
#include <vector>

#include "cart/grow.hpp"
#include "cart/predict.hpp"
#include "cart/sort.hpp"
#include "tree/options.hpp"

namespace epicycle {
namespace {

constexpr std::size_t MAX_ROWS = CART_ROW;

// Rows of column j that are not zero come from data[start[j]:start[j + 1]]; a dense X has them all.
template <class T>
void sort_columns(Matrix<T> X, Vector<std::int32_t> columns, InOut2<std::uint32_t> out, InOut1<std::int64_t> distinct,
                  InOut1<std::int64_t> missing, int threads) {
    constexpr const char *expected =
        "sort_columns: expected X (n, p), columns (k,) in [0, p), out (k, n), distinct and "
        "missing (k,), n below 2^29";
    const auto x = view(X);
    const std::size_t k = columns.shape(0);
    require(x.rows < MAX_ROWS && out.shape(0) == k && out.shape(1) == x.rows, expected);
    require(distinct.shape(0) == k && missing.shape(0) == k, expected);
    for (std::size_t i = 0; i < k; ++i)
        require(columns.data()[i] >= 0 && static_cast<std::size_t>(columns.data()[i]) < x.cols, expected);
    threads = team(threads);
    nb::gil_scoped_release nogil;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        SortSpace space;
        std::vector<double> column(x.rows);
#pragma omp for schedule(dynamic)
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(k); ++i) {
            const auto j = static_cast<std::size_t>(columns.data()[i]);
            for (std::size_t r = 0; r < x.rows; ++r) column[r] = static_cast<double>(x(r, j));
            const auto found =
                sort_column(column.data(), nullptr, x.rows, out.data() + static_cast<std::size_t>(i) * x.rows, space);
            distinct.data()[i] = static_cast<std::int64_t>(found.distinct);
            missing.data()[i] = static_cast<std::int64_t>(found.missing);
        }
    }
}

template <class T>
void sort_sparse_columns(Vector<T> data, Vector<std::int32_t> rows, Vector<std::int64_t> start, std::size_t n_rows,
                         InOut1<std::uint32_t> out, InOut1<std::int64_t> distinct, int threads) {
    constexpr const char *expected = "sort_sparse_columns: expected data, rows in [0, n_rows) and out (nnz,), start "
                                     "(p + 1,) ascending to nnz, distinct (p,), n_rows below 2^29";
    const std::size_t p = distinct.shape(0), nnz = data.shape(0);
    require(n_rows < MAX_ROWS && start.shape(0) == p + 1 && rows.shape(0) == nnz && out.shape(0) == nnz, expected);
    require(start.data()[0] == 0 && start.data()[p] == static_cast<std::int64_t>(nnz), expected);
    for (std::size_t j = 0; j < p; ++j) require(start.data()[j] <= start.data()[j + 1], expected);
    for (std::size_t i = 0; i < nnz; ++i)
        require(rows.data()[i] >= 0 && static_cast<std::size_t>(rows.data()[i]) < n_rows, expected);
    threads = team(threads);
    nb::gil_scoped_release nogil;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        SortSpace space;
        std::vector<double> column;
        std::vector<std::uint32_t> numbers;
#pragma omp for schedule(dynamic, 16)
        for (std::int64_t j = 0; j < static_cast<std::int64_t>(p); ++j) {
            const std::int64_t first = start.data()[j], last = start.data()[j + 1];
            column.assign(data.data() + first, data.data() + last);
            numbers.assign(rows.data() + first, rows.data() + last);
            const auto found = sort_column(column.data(), numbers.data(), column.size(), out.data() + first, space);
            distinct.data()[j] = static_cast<std::int64_t>(found.distinct);
        }
    }
}

struct GrownArrays {
    std::vector<CartNode> nodes;
    std::vector<double> values;
};

template <class Target>
GrownArrays grow_with(const CartTable &table, const CartRules &rules, const CartTarget &raw, const Target &target,
                      std::uint32_t *order, std::size_t m, bool unit, int threads) {
    CartGrower<Target> grower(table, rules, raw, target, order, m, unit, threads);
    grower.grow(Interrupts{});
    return {std::move(grower.nodes), std::move(grower.values)};
}

using OptionalMatrix = std::optional<RowMajor<double>>;
using Numbers = nb::ndarray<nb::ro, nb::device::cpu>;

CartValues values_of(const std::optional<Numbers> &values, std::optional<Vector<std::int32_t>> rows,
                     std::optional<Vector<std::int64_t>> start, std::size_t n, std::size_t p, const char *expected) {
    CartValues out;
    if (!values) return out;
    const bool wide = values->dtype() == nb::dtype<double>();
    require(wide || values->dtype() == nb::dtype<float>(), expected);
    (wide ? reinterpret_cast<const void *&>(out.wide) : reinterpret_cast<const void *&>(out.narrow)) = values->data();
    if (rows) {
        require(start && start->shape(0) == p + 1 && values->ndim() == 1 && values->shape(0) == rows->shape(0),
                expected);
        require(start->data()[0] == 0 && start->data()[p] == static_cast<std::int64_t>(rows->shape(0)), expected);
        for (std::size_t j = 0; j < p; ++j) require(start->data()[j] <= start->data()[j + 1], expected);
        out.row = rows->data();
        out.start = start->data();
        return out;
    }
    require(values->ndim() == 2 && values->shape(0) == n && values->shape(1) == p, expected);
    out.row_stride = values->stride(0);
    out.col_stride = values->stride(1);
    return out;
}

// The features of a table: bytes with the values at both ends of each code, and lists of rows sorted by value.
struct FeatureArrays {
    RowMajor<std::uint8_t> codes;
    Vector<std::int32_t> coded_feature, n_codes;
    RowMajor<double> low, high, centre;
    Vector<std::uint8_t> categorical;
    InOut1<std::uint32_t> lists;
    Vector<std::int64_t> list_start;
    Vector<std::int32_t> sorted_feature;
    std::optional<Numbers> values;
    std::optional<Vector<std::int32_t>> value_rows;
    std::optional<Vector<std::int64_t>> value_start;
    std::size_t n_features;
};

struct GrowLimits {
    int criterion;
    double l2;
    std::size_t max_depth, max_leaves, min_split, min_leaf;
    double min_weight, min_gain, leaf_cost;
    std::size_t max_features;
    bool random;
    std::optional<Vector<std::int8_t>> monotone;
};

auto grow_cart(const FeatureArrays &features, const GrowLimits &limits, Vector<double> weight, OptionalMatrix y,
               std::optional<Vector<std::int32_t>> labels, std::size_t n_classes, std::size_t n_outputs,
               InOut1<std::uint32_t> order, bool unit_weights, std::uint64_t seed, int threads) {
    constexpr const char *expected =
        "cart.grow: expected codes (n, c) below n_codes or 255, coded_feature, n_codes (c,) in [1, 255], low, high, "
        "centre (c, 256), categorical (c,), lists with starts (s + 1,) and features (s,), values (n, p) or compressed "
        "by column, "
        "weight (n,), y (n, K) or labels (n,) in [0, n_classes), order (m,) ascending, of positive weight";
    const auto &[codes, coded_feature, n_codes, low, high, centre, categorical, lists, list_start, sorted_feature,
                 values, value_rows, value_start, n_features] = features;
    const auto &monotone = limits.monotone;
    const int criterion = limits.criterion;
    const double l2 = limits.l2;
    const std::size_t n = weight.shape(0), c = coded_feature.shape(0), s = sorted_feature.shape(0), m = order.shape(0);
    require(n >= 1 && n < MAX_ROWS && m >= 1 && m <= n && n_features >= 1, expected);
    require(codes.shape(1) == c && (c == 0 || codes.shape(0) == n) && n_codes.shape(0) == c, expected);
    for (const auto &numbers : {low, high, centre})
        require(numbers.shape(0) == c && (c == 0 || numbers.shape(1) == 256), expected);
    require(categorical.shape(0) == c, expected);
    require(list_start.shape(0) == s + 1 && (!monotone || monotone->shape(0) == n_features), expected);
    for (std::size_t i = 0; i < c; ++i) require(n_codes.data()[i] >= 1 && n_codes.data()[i] <= 255, expected);
    std::vector<std::uint8_t> named(n_features, 0);
    for (const auto &list : {coded_feature, sorted_feature})
        for (std::size_t i = 0; i < list.shape(0); ++i) {
            const auto j = list.data()[i];
            require(j >= 0 && static_cast<std::size_t>(j) < n_features && !named[static_cast<std::size_t>(j)],
                    expected);
            named[static_cast<std::size_t>(j)] = 1;
        }
    const bool sparse = value_rows.has_value();
    require(s == 0 || list_start.data()[0] >= 0, expected);
    for (std::size_t j = 0; j < s; ++j) {
        const std::int64_t size = list_start.data()[j + 1] - list_start.data()[j];
        require(sparse ? size >= 0 && size <= static_cast<std::int64_t>(n) : size == static_cast<std::int64_t>(n),
                expected);
    }
    require(s == 0 || static_cast<std::size_t>(list_start.data()[s]) <= lists.shape(0), expected);
    require(s == 0 || values.has_value(), expected);
    require(y.has_value() != labels.has_value() && criterion >= 0 && criterion <= 4, expected);
    require(!y || y->shape(0) == n, expected);
    require(!labels || (labels->shape(0) == n && n_classes >= 2), expected);
    const std::size_t K = y ? y->shape(1) : n_classes;
    require(K >= 1 && n_outputs >= 1 && n_outputs <= K && (!monotone || K == 1) && std::isfinite(l2) && l2 >= 0,
            expected);
    threads = team(threads);
    const CartValues numbers = values_of(values, value_rows, value_start, n, n_features, expected);
    bool fine = true;
    {
        nb::gil_scoped_release nogil;
        for (std::size_t i = 0; i < m; ++i) {
            fine = fine && order.data()[i] < n && (i == 0 || order.data()[i] > order.data()[i - 1]);
            fine = fine && weight.data()[order.data()[i]] > 0;
        }
        std::size_t positive = 0;
        for (std::size_t i = 0; i < n; ++i) positive += weight.data()[i] > 0;
        fine = fine && positive == m;
        if (labels) fine = fine && all_below(*labels, n_classes);
        for (std::size_t j = 0; fine && s > 0 && j < static_cast<std::size_t>(list_start.data()[s]); ++j)
            fine = (lists.data()[j] & CART_ROW) < n;
        if (values && value_rows) fine = fine && all_below(*value_rows, n);
    }
    require(fine, expected);

    CartTable table{n,
                    n_features,
                    codes.data(),
                    c,
                    coded_feature.data(),
                    n_codes.data(),
                    low.data(),
                    high.data(),
                    centre.data(),
                    categorical.data(),
                    lists.data(),
                    list_start.data(),
                    s,
                    sorted_feature.data(),
                    sparse,
                    numbers};
    const CartTarget raw{weight.data(), y ? y->data() : nullptr, labels ? labels->data() : nullptr, K};
    CartRules rules{
        {static_cast<Criterion>(criterion), l2, K == 1 && criterion >= 3, nullptr, 0, static_cast<double>(n_outputs)},
        limits.max_depth,
        limits.max_leaves,
        limits.min_split,
        limits.min_leaf,
        limits.min_weight,
        limits.min_gain,
        limits.leaf_cost,
        limits.max_features,
        limits.random,
        monotone ? monotone->data() : nullptr,
        seed};
    GrownArrays grown;
    std::vector<double> logarithms, pairs;
    {
        nb::gil_scoped_release nogil;
        if (rules.criterion.kind == Criterion::entropy) {
            double total = 0.0;
            bool whole = true;
            for (std::size_t i = 0; i < n; ++i) {
                total += weight.data()[i];
                whole = whole && weight.data()[i] == std::floor(weight.data()[i]);
            }
            if (whole && total < 1e7) {
                logarithms.resize(static_cast<std::size_t>(total) + 1);
                for (std::size_t i = 0; i < logarithms.size(); ++i) logarithms[i] = xlogx(static_cast<double>(i));
                rules.criterion.table = logarithms.data();
                rules.criterion.table_size = logarithms.size();
            }
        }
        if (labels) {
            grown = grow_with(table, rules, raw, ClassTarget{weight.data(), labels->data(), K}, order.data(), m,
                              unit_weights, threads);
        } else if (K == 1) {
            pairs.resize(2 * n);
            for (std::size_t i = 0; i < n; ++i) {
                pairs[2 * i] = weight.data()[i];
                pairs[2 * i + 1] = weight.data()[i] * y->data()[i];
            }
            grown = grow_with(table, rules, raw, OneTarget{pairs.data()}, order.data(), m, unit_weights, threads);
        } else {
            grown = grow_with(table, rules, raw, ManyTargets{weight.data(), y->data(), K}, order.data(), m,
                              unit_weights, threads);
        }
    }
    const std::size_t size = grown.nodes.size();
    std::vector<std::int32_t> feature(size, 0), left(size), column(size, 0);
    std::vector<std::uint8_t> kind(size);
    std::vector<double> threshold(size), cost(size), mass(size);
    std::vector<std::uint64_t> sides(4 * size);
    std::vector<std::int64_t> begin(size), end(size);
    for (std::size_t i = 0; i < size; ++i) {
        const CartNode &node = grown.nodes[i];
        const CartSplit &split = node.split;
        begin[i] = static_cast<std::int64_t>(node.begin);
        end[i] = static_cast<std::int64_t>(node.end);
        left[i] = node.left;
        cost[i] = node.cost;
        mass[i] = node.weight;
        threshold[i] = std::numeric_limits<double>::infinity();
        if (node.left == 0) continue;
        const auto slot = static_cast<std::size_t>(split.slot);
        const bool coded = slot < c, levels = coded && categorical.data()[slot];
        feature[i] = coded ? coded_feature.data()[slot] : sorted_feature.data()[slot - c];
        column[i] = coded ? static_cast<std::int32_t>(slot) : -1;
        kind[i] = static_cast<std::uint8_t>((split.missing_left ? 1 : 0) | (levels ? 4 : 0));
        threshold[i] = split.threshold;
        std::copy(split.left.begin(), split.left.end(), sides.begin() + static_cast<std::ptrdiff_t>(4 * i));
    }
    return nb::make_tuple(array_out(feature), array_out(threshold), array_out(left), array_out(kind), array_out(sides),
                          array_out(column), array_out(cost), array_out(mass), array_out(begin), array_out(end),
                          array_out(grown.values));
}

template <class T>
void bind_walks(nb::module_ &m) {
    m.def(
        "forest_sums",
        [](Matrix<T> X, RowMajor<std::uint64_t> nodes, RowMajor<double> values, Vector<std::int64_t> roots,
           RowMajor<std::uint64_t> levels, InOut2<double> out, int threads) {
            constexpr const char *expected = "forest_sums: expected X (n, p), well-formed trees of m nodes, values (m, "
                                             "K), out (n, K)";
            const auto x = view(X);
            require(values.shape(0) == nodes.shape(0) && out.shape(0) == x.rows && out.shape(1) == values.shape(1),
                    expected);
            const Forest forest = forest_of(nodes, values.data(), roots, levels, expected);
            threads = team(threads);
            bool fine = true;
            {
                nb::gil_scoped_release nogil;
                if ((fine = well_formed(forest, x.cols))) sum_leaves(forest, x, values.shape(1), out.data(), threads);
            }
            require(fine, expected);
        },
        "X"_a.noconvert(), "nodes"_a, "values"_a, "roots"_a, "levels"_a, "out"_a.noconvert(), "threads"_a);
    m.def(
        "forest_leaves",
        [](Matrix<T> X, RowMajor<std::uint64_t> nodes, Vector<std::int64_t> roots, RowMajor<std::uint64_t> levels,
           InOut2<std::int32_t> out, int threads) {
            constexpr const char *expected = "forest_leaves: expected X (n, p), well-formed trees, out (n, n_trees)";
            const auto x = view(X);
            require(out.shape(0) == x.rows && out.shape(1) + 1 == roots.shape(0), expected);
            const Forest forest = forest_of(nodes, nullptr, roots, levels, expected);
            threads = team(threads);
            bool fine = true;
            {
                nb::gil_scoped_release nogil;
                if ((fine = well_formed(forest, x.cols))) find_leaves(forest, x, out.data(), threads);
            }
            require(fine, expected);
        },
        "X"_a.noconvert(), "nodes"_a, "roots"_a, "levels"_a, "out"_a.noconvert(), "threads"_a);
    m.def("sort_columns", &sort_columns<T>, "X"_a.noconvert(), "columns"_a, "out"_a.noconvert(),
          "distinct"_a.noconvert(), "missing"_a.noconvert(), "threads"_a);
    m.def("sort_sparse_columns", &sort_sparse_columns<T>, "data"_a.noconvert(), "rows"_a, "start"_a, "n_rows"_a,
          "out"_a.noconvert(), "distinct"_a.noconvert(), "threads"_a);
}

}  // namespace

void bind_cart(nb::module_ &m) {
    bind_walks<double>(m);
    bind_walks<float>(m);
    nb::class_<FeatureArrays>(m, "FeatureTable")
        .def(nb::init<RowMajor<std::uint8_t>, Vector<std::int32_t>, Vector<std::int32_t>, RowMajor<double>,
                      RowMajor<double>, RowMajor<double>, Vector<std::uint8_t>, InOut1<std::uint32_t>,
                      Vector<std::int64_t>, Vector<std::int32_t>, std::optional<Numbers>,
                      std::optional<Vector<std::int32_t>>, std::optional<Vector<std::int64_t>>, std::size_t>(),
             nb::kw_only(), "codes"_a.noconvert(), "coded_feature"_a, "n_codes"_a, "low"_a, "high"_a, "centre"_a,
             "categorical"_a, "lists"_a.noconvert(), "list_start"_a, "sorted_feature"_a, "values"_a.none(),
             "value_rows"_a.none(), "value_start"_a.none(), "n_features"_a);
    nb::class_<GrowLimits>(m, "GrowRules")
        .def(nb::init<int, double, std::size_t, std::size_t, std::size_t, std::size_t, double, double, double,
                      std::size_t, bool, std::optional<Vector<std::int8_t>>>(),
             nb::kw_only(), "criterion"_a, "l2"_a, "max_depth"_a, "max_leaves"_a, "min_split"_a, "min_leaf"_a,
             "min_weight"_a, "min_gain"_a, "leaf_cost"_a, "max_features"_a, "random"_a, "monotone"_a.none());
    m.def("grow", &grow_cart, "table"_a, "rules"_a, "weight"_a, "y"_a.none(), "labels"_a.none(), "n_classes"_a,
          "n_outputs"_a, "order"_a.noconvert(), "unit_weights"_a, "seed"_a, "threads"_a);
    m.def(
        "leaves_of_codes",
        [](RowMajor<std::uint8_t> codes, Vector<std::uint32_t> rows, Vector<std::int32_t> column,
           Vector<std::int32_t> left, RowMajor<std::uint64_t> sides, InOut1<std::int32_t> out) {
            constexpr const char *expected = "leaves_of_codes: expected codes (n, p), rows (m,) in [0, n), a "
                                             "well-formed tree with sides (k, 4), out (m,)";
            check_tree(column, left, sides, codes.shape(1), expected);
            require(out.shape(0) == rows.shape(0) && all_below(rows, codes.shape(0)), expected);
            nb::gil_scoped_release nogil;
            leaves_of_codes(codes.data(), codes.shape(1), rows.data(), rows.shape(0), column.data(), left.data(),
                            reinterpret_cast<const Sides *>(sides.data()), out.data());
        },
        "codes"_a.noconvert(), "rows"_a, "column"_a, "left"_a, "sides"_a, "out"_a.noconvert());
}

}  // namespace epicycle
