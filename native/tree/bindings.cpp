// Bindings of the kernels of trees.
#include <memory>
#include <optional>
#include <vector>

#include "tree/bins.hpp"
#include "tree/grow.hpp"
#include "tree/losses.hpp"
#include "tree/options.hpp"
#include "tree/predict.hpp"
#include "tree/shap.hpp"

namespace epicycle {
namespace {

template <class T>
void bind_rows(nb::module_ &m) {
    m.def(
        "bin_rows",
        [](Matrix<T> X, RowMajor<double> cuts, InOut2<std::uint8_t> out, int threads) {
            constexpr const char *expected = "bin_rows: expected X (n, p), cuts (p, 255), out (n, p), threads >= 1";
            const auto x = view(X);
            require(cuts.shape(0) == x.cols && cuts.shape(1) == 255, expected);
            require(out.shape(0) == x.rows && out.shape(1) == x.cols, expected);
            threads = team(threads);
            nb::gil_scoped_release nogil;
            bin_rows(x, cuts.data(), out.data(), threads);
        },
        "X"_a.noconvert(), "cuts"_a, "out"_a.noconvert(), "threads"_a);
    m.def(
        "predict",
        [](Matrix<T> X, RowMajor<std::uint64_t> nodes, Vector<double> values, Vector<std::int64_t> roots,
           RowMajor<std::uint64_t> levels, std::size_t first, std::size_t last, InOut2<double> out, int threads) {
            constexpr const char *expected =
                "tree.predict: expected X (n, p), well-formed trees, 0 <= first <= last <= n_trees, out (n, K)";
            const auto x = view(X);
            require(values.shape(0) == nodes.shape(0), expected);
            const Forest forest = forest_of(nodes, values.data(), roots, levels, expected);
            require(first <= last && last <= forest.n_trees, expected);
            require(out.shape(0) == x.rows && out.shape(1) >= 1, expected);
            threads = team(threads);
            bool fine = true;
            {
                nb::gil_scoped_release nogil;
                if (x.rows <= 8) {
                    fine = predict_few(forest, first, last, x, out.shape(1), out.data());
                } else if ((fine = well_formed(forest, x.cols))) {
                    predict(forest, first, last, x, out.shape(1), out.data(), threads);
                }
            }
            require(fine, expected);
        },
        "X"_a.noconvert(), "nodes"_a, "values"_a, "roots"_a, "levels"_a, "first"_a, "last"_a, "out"_a.noconvert(),
        "threads"_a);
}

template <class T>
void bind_shap(nb::module_ &m) {
    m.def(
        "shap_values",
        [](Matrix<T> X, RowMajor<std::uint64_t> nodes, Vector<double> values, Vector<std::int64_t> roots,
           RowMajor<std::uint64_t> levels, Vector<double> count,
           nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu> out, int threads) {
            constexpr const char *expected = "shap_values: expected X (n, p), well-formed trees, a positive count (m,) "
                                             "for every node, out (n, p, K)";
            const auto x = view(X);
            require(values.shape(0) == nodes.shape(0) && count.shape(0) == nodes.shape(0), expected);
            require(out.shape(0) == x.rows && out.shape(1) == x.cols && out.shape(2) >= 1, expected);
            const Forest forest = forest_of(nodes, values.data(), roots, levels, expected);
            require(well_formed(forest, x.cols), expected);
            for (std::size_t i = 0; i < count.shape(0); ++i) require(count.data()[i] > 0, expected);
            threads = team(threads);
            nb::gil_scoped_release nogil;
            shap_values(forest, count.data(), x, out.shape(2), out.data(), threads, Interrupts{});
        },
        "X"_a.noconvert(), "nodes"_a, "values"_a, "roots"_a, "levels"_a, "count"_a, "out"_a.noconvert(), "threads"_a);
}

// Columns that features share, checked; `expected` where something does not fit.
Bundles bundles_of(const RowMajor<std::int32_t> &places, const Vector<std::int32_t> &n_codes,
                   const Vector<std::int32_t> &n_bins, const char *expected) {
    const std::size_t p = n_bins.shape(0), q = n_codes.shape(0);
    require(places.shape(0) == 3 && places.shape(1) == p, expected);
    const Bundles bundles{places.data(), places.data() + p, places.data() + 2 * p, n_codes.data()};
    for (std::size_t c = 0; c < q; ++c) require(n_codes.data()[c] >= 1 && n_codes.data()[c] <= 255, expected);
    for (std::size_t j = 0; j < p; ++j) {
        const std::int32_t nb = n_bins.data()[j];
        require(nb >= 1 && nb <= 255, expected);
        require(bundles.column[j] >= 0 && static_cast<std::size_t>(bundles.column[j]) < q, expected);
        const std::int32_t codes = bundles.n_codes[bundles.column[j]];
        require(bundles.first[j] >= 0 && bundles.usual[j] >= 0 && bundles.usual[j] < nb, expected);
        require(bundles.first[j] > 0 ? bundles.first[j] + nb - 1 <= codes : nb == codes, expected);
    }
    return bundles;
}

// A table of bins: rows (n, q), the same by column where there is room for it, and the features that are searched.
struct TableArrays {
    RowMajor<std::uint8_t> rows;
    std::optional<RowMajor<std::uint8_t>> columns;
    std::optional<RowMajor<std::int32_t>> places;
    std::optional<Vector<std::int32_t>> n_codes;
    Vector<std::int32_t> features, n_bins;
};

struct GrowArrays {
    SplitArrays split;
    std::optional<RowMajor<std::uint8_t>> groups;
    std::size_t max_leaves, max_depth;
};

auto grow_tree(const TableArrays &given, const GrowArrays &limits, RowMajor<float> gh, double sum_abs_g, double sum_h,
               bool all_rows, InOut1<std::uint32_t> order, InOut1<std::uint32_t> scratch, InOut1<std::int64_t> packed,
               int threads) {
    constexpr const char *expected =
        "tree.grow: expected rows (n, q), columns (q, n) or None, places (3, p) and n_codes (q,) or None with q = p, "
        "gh (n, 2), features in [0, p), n_bins in [1, 255], categorical and monotone (p,), groups (g, p), order (m,) "
        "with m <= n and entries in [0, n), scratch (m,), packed (n,)";
    const auto &[rows, columns, places, n_codes, features, n_bins] = given;
    const auto &groups = limits.groups;
    const std::size_t n = rows.shape(0), q = rows.shape(1), m = order.shape(0);
    require(places.has_value() == n_codes.has_value(), expected);
    const std::size_t p = places ? places->shape(1) : q;
    require(n >= 1 && n < (std::size_t{1} << 30) && m >= 1 && m <= n && (!all_rows || m == n), expected);
    require(!columns || (columns->shape(0) == q && columns->shape(1) == n), expected);
    require(gh.shape(0) == n && gh.shape(1) == 2, expected);
    require(n_bins.shape(0) == p && scratch.shape(0) == m && packed.shape(0) == n, expected);
    require(!groups || groups->shape(1) == p, expected);
    check_features(features, n_bins, expected);
    require(all_rows || all_below(order, n), expected);
    require(std::isfinite(sum_abs_g) && std::isfinite(sum_h) && sum_abs_g >= 0 && sum_h >= 0, expected);
    std::optional<Bundles> bundles;
    if (places) {
        require(n_codes->shape(0) == q, expected);
        bundles = bundles_of(*places, *n_codes, n_bins, expected);
    }
    threads = team(threads);

    const BinnedTable table{
        rows.data(),   columns ? columns->data() : nullptr, n, q, features.data(), features.shape(0),
        n_bins.data(), bundles ? &*bundles : nullptr};
    const double l2 = limits.split.l2;
    const GrowRules rules{limits.max_leaves,
                          limits.max_depth,
                          limits.split.view(p, expected),
                          groups ? groups->data() : nullptr,
                          groups ? groups->shape(0) : 0,
                          p};
    std::vector<GrownNode> nodes;
    {
        nb::gil_scoped_release nogil;
        Units units(m, sum_abs_g, sum_h);
        quantise(gh.data(), all_rows ? nullptr : order.data(), m, units, packed.data(),
                 worth(static_cast<double>(m) * 4, threads));
        const double noise = gain_noise(sum_abs_g, sum_h, l2);
        Grower grower(table, rules, gh.data(), packed.data(), units, noise, order.data(), scratch.data(), m, all_rows,
                      threads);
        nodes = grower.grow(Interrupts{});
    }
    const std::size_t size = nodes.size();
    std::vector<std::int32_t> feature(size), bin(size), left(size);
    std::vector<std::uint8_t> kind(size);
    std::vector<std::uint64_t> sides(4 * size);
    std::vector<double> gain(size), G(size), H(size), value(size);
    std::vector<std::int64_t> begin(size), end(size);
    for (std::size_t i = 0; i < size; ++i) {
        const GrownNode &node = nodes[i];
        feature[i] = node.split.found() ? node.split.feature : 0;
        bin[i] = node.split.bin;
        left[i] = node.left;
        kind[i] = static_cast<std::uint8_t>(node.split.missing_left + 4 * node.split.categorical);
        std::copy(node.split.left.begin(), node.split.left.end(), sides.begin() + static_cast<std::ptrdiff_t>(4 * i));
        gain[i] = node.split.gain;
        G[i] = node.G;
        H[i] = node.H;
        value[i] = node_value(node.G, node.H, l2, node.bounds);
        begin[i] = static_cast<std::int64_t>(node.begin);
        end[i] = static_cast<std::int64_t>(node.end);
    }
    return nb::make_tuple(array_out(feature), array_out(bin), array_out(left), array_out(kind), array_out(sides),
                          array_out(gain), array_out(G), array_out(H), array_out(value), array_out(begin),
                          array_out(end));
}

}  // namespace

void bind_tree(nb::module_ &m) {
    bind_rows<double>(m);
    bind_rows<float>(m);
    bind_shap<double>(m);
    bind_shap<float>(m);
    m.def(
        "quantile_cuts",
        [](Vector<double> x, Weight weight, std::size_t max_bins) {
            constexpr const char *expected =
                "quantile_cuts: expected sorted x (n,) without NaN, weight (n,) or None, 2 <= max_bins <= 255";
            require(max_bins >= 2 && max_bins <= 255, expected);
            const double *w = pointer(weight, x.shape(0), expected);
            std::vector<double> cuts;
            bool sorted = true;
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 1; i < x.shape(0); ++i) sorted &= x.data()[i - 1] <= x.data()[i];
                if (sorted) cuts = quantile_cuts(x.data(), w, x.shape(0), max_bins);
            }
            require(sorted, expected);
            return array_out(cuts);
        },
        "x"_a.noconvert(), "weight"_a.none(), "max_bins"_a);
    m.def(
        "transpose_bytes",
        [](RowMajor<std::uint8_t> rows, InOut2<std::uint8_t> out, int threads) {
            require(out.shape(0) == rows.shape(1) && out.shape(1) == rows.shape(0),
                    "transpose_bytes: expected rows (n, p), out (p, n)");
            threads = team(threads);
            nb::gil_scoped_release nogil;
            transpose_bytes(rows.data(), rows.shape(0), rows.shape(1), out.data(), threads);
        },
        "rows"_a.noconvert(), "out"_a.noconvert(), "threads"_a);
    m.def(
        "loss_rows",
        [](int kind, double parameter, Vector<double> y, Weight weight, RowMajor<double> score,
           std::optional<nb::ndarray<float, nb::ndim<3>, nb::c_contig, nb::device::cpu>> gh,
           std::optional<InOut2<double>> normal, int threads) {
            constexpr const char *expected = "loss_rows: expected a known kind, y (n,) (class numbers for softmax), "
                                             "weight (n,) or None, score (K, n), "
                                             "gh (K, n, 2) or None, normal (2, n) or None";
            const std::size_t n = y.shape(0), K = score.shape(0);
            require(kind >= 0 && kind <= static_cast<int>(LossId::softmax), expected);
            const auto loss = static_cast<LossId>(kind);
            require(K >= 1 && score.shape(1) == n && (loss == LossId::softmax ? K >= 2 : K == 1), expected);
            require(!gh || (gh->shape(0) == K && gh->shape(1) == n && gh->shape(2) == 2), expected);
            require(!normal || (normal->shape(0) == 2 && normal->shape(1) == n), expected);
            const double *w = pointer(weight, n, expected);
            if (loss == LossId::softmax)
                for (std::size_t i = 0; i < n; ++i)
                    require(y.data()[i] >= 0 && y.data()[i] < static_cast<double>(K), expected);
            threads = team(threads);
            std::vector<double> total(1 + 2 * K);
            {
                nb::gil_scoped_release nogil;
                const auto sums = loss_rows(loss, parameter, y.data(), w, score.data(), n, K, gh ? gh->data() : nullptr,
                                            normal ? normal->data() : nullptr, threads);
                total[0] = sums[0].loss;
                for (std::size_t k = 0; k < K; ++k) {
                    total[1 + 2 * k] = sums[k].abs_g;
                    total[2 + 2 * k] = sums[k].h;
                }
            }
            return array_out(total);
        },
        "kind"_a, "parameter"_a, "y"_a.noconvert(), "weight"_a.none(), "score"_a.noconvert(), "gh"_a.noconvert().none(),
        "normal"_a.noconvert().none(), "threads"_a);
    m.def(
        "class_rows",
        [](Vector<double> y, Weight weight, Vector<double> score, RowMajor<double> normal, std::size_t k, std::size_t K,
           InOut2<float> gh, int threads) {
            constexpr const char *expected = "class_rows: expected y, score (n,), weight (n,) or None, normal (2, n), "
                                             "k < K, K >= 2, gh (n, 2)";
            const std::size_t n = y.shape(0);
            require(score.shape(0) == n && normal.shape(0) == 2 && normal.shape(1) == n, expected);
            require(k < K && K >= 2 && gh.shape(0) == n && gh.shape(1) == 2, expected);
            const double *w = pointer(weight, n, expected);
            threads = team(threads);
            nb::gil_scoped_release nogil;
            class_rows(y.data(), w, score.data(), normal.data(), n, k, K, gh.data(), threads);
        },
        "y"_a.noconvert(), "weight"_a.none(), "score"_a.noconvert(), "normal"_a.noconvert(), "k"_a, "K"_a,
        "gh"_a.noconvert(), "threads"_a);
    m.def(
        "plan_bundles",
        [](RowMajor<std::uint8_t> rows, Vector<std::int32_t> n_bins, Vector<std::uint8_t> eligible, int threads) {
            constexpr const char *expected = "plan_bundles: expected rows (n, p) with n >= 1, n_bins (p,) in [1, 255] "
                                             "that no bin of an eligible feature exceeds, eligible (p,)";
            const std::size_t n = rows.shape(0), p = rows.shape(1);
            require(n >= 1 && n_bins.shape(0) == p && eligible.shape(0) == p, expected);
            for (std::size_t j = 0; j < p; ++j) require(n_bins.data()[j] >= 1 && n_bins.data()[j] <= 255, expected);
            threads = team(threads);
            BundlePlan plan;
            {
                nb::gil_scoped_release nogil;
                plan = plan_bundles(rows.data(), n, p, n_bins.data(), eligible.data(), threads);
            }
            return nb::make_tuple(array_out(plan.column), array_out(plan.first), array_out(plan.usual),
                                  array_out(plan.n_codes));
        },
        "rows"_a.noconvert(), "n_bins"_a.noconvert(), "eligible"_a.noconvert(), "threads"_a);
    m.def(
        "bundle_rows",
        [](RowMajor<std::uint8_t> rows, RowMajor<std::int32_t> places, Vector<std::int32_t> n_codes,
           Vector<std::int32_t> n_bins, InOut2<std::uint8_t> out, int threads) {
            constexpr const char *expected =
                "bundle_rows: expected rows (n, p), places (3, p) of codes in n_codes (q,), n_bins (p,), out (n, q)";
            require(n_bins.shape(0) == rows.shape(1), expected);
            const Bundles bundles = bundles_of(places, n_codes, n_bins, expected);
            require(out.shape(0) == rows.shape(0) && out.shape(1) == n_codes.shape(0), expected);
            threads = team(threads);
            nb::gil_scoped_release nogil;
            bundle_rows(rows.data(), rows.shape(0), rows.shape(1), bundles, out.shape(1), out.data(), threads);
        },
        "rows"_a.noconvert(), "places"_a.noconvert(), "n_codes"_a.noconvert(), "n_bins"_a.noconvert(),
        "out"_a.noconvert(), "threads"_a);
    nb::class_<TableArrays>(m, "BinnedTable")
        .def(nb::init<RowMajor<std::uint8_t>, std::optional<RowMajor<std::uint8_t>>,
                      std::optional<RowMajor<std::int32_t>>, std::optional<Vector<std::int32_t>>, Vector<std::int32_t>,
                      Vector<std::int32_t>>(),
             nb::kw_only(), "rows"_a.noconvert(), "columns"_a.none(), "places"_a.none(), "n_codes"_a.none(),
             "features"_a.noconvert(), "n_bins"_a.noconvert());
    nb::class_<SplitArrays>(m, "SplitRules")
        .def(nb::init<Vector<std::uint8_t>, std::optional<Vector<std::int8_t>>, std::size_t, double, double, double,
                      double>(),
             nb::kw_only(), "categorical"_a.noconvert(), "monotone"_a.none(), "min_samples"_a, "min_child_weight"_a,
             "l2"_a, "min_gain"_a, "smoothing"_a);
    nb::class_<GrowArrays>(m, "GrowRules")
        .def(nb::init<SplitArrays, std::optional<RowMajor<std::uint8_t>>, std::size_t, std::size_t>(), nb::kw_only(),
             "split"_a, "groups"_a.none(), "max_leaves"_a, "max_depth"_a);
    m.def("grow", &grow_tree, "table"_a, "rules"_a, "gh"_a.noconvert(), "sum_abs_g"_a, "sum_h"_a, "all_rows"_a,
          "order"_a.noconvert(), "scratch"_a.noconvert(), "packed"_a.noconvert(), "threads"_a);
    m.def(
        "add_to_leaves",
        [](Vector<std::uint32_t> order, Vector<std::int64_t> begin, Vector<std::int64_t> end, Vector<double> values,
           InOut1<double> score, int threads) {
            constexpr const char *expected = "add_to_leaves: expected order (m,) with entries in [0, n), ranges of it, "
                                             "values of the same length, score (n,)";
            require(values.shape(0) == begin.shape(0), expected);
            check_ranges(begin, end, order.shape(0), expected);
            threads = team(threads);
            bool inside = true;
            {
                nb::gil_scoped_release nogil;
                const std::size_t n = score.shape(0);
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1) reduction(&& : inside)
                for (std::int64_t l = 0; l < static_cast<std::int64_t>(begin.shape(0)); ++l) {
                    const double v = values.data()[l];
                    for (std::int64_t i = begin.data()[l]; i < end.data()[l]; ++i) {
                        const std::size_t r = order.data()[i];
                        if (r < n)
                            score.data()[r] += v;
                        else
                            inside = false;
                    }
                }
            }
            require(inside, expected);
        },
        "order"_a.noconvert(), "begin"_a, "end"_a, "values"_a, "score"_a.noconvert(), "threads"_a);
    m.def(
        "predict_bins",
        [](RowMajor<std::uint8_t> rows, Vector<std::int32_t> feature, Vector<std::int32_t> left,
           RowMajor<std::uint64_t> sides, Vector<double> values, InOut1<double> out, int threads) {
            constexpr const char *expected =
                "predict_bins: expected rows (n, p), a well-formed tree of m nodes with sides (m, 4), out (n,)";
            check_tree(feature, left, sides, rows.shape(1), expected);
            require(values.shape(0) == left.shape(0) && out.shape(0) == rows.shape(0), expected);
            threads = team(threads);
            nb::gil_scoped_release nogil;
            predict_bins(rows.data(), rows.shape(0), rows.shape(1), feature.data(), left.data(),
                         reinterpret_cast<const Sides *>(sides.data()), values.data(), out.data(), threads);
        },
        "rows"_a.noconvert(), "feature"_a, "left"_a, "sides"_a, "values"_a, "out"_a.noconvert(), "threads"_a);
}

}  // namespace epicycle
