// Bindings of what trees need that grow over rows in many places.
#include <algorithm>
#include <vector>

#include "tree/options.hpp"
#include "tree/parts.hpp"

namespace epicycle {
namespace {

// measure: rows in all, sums of |gradient| and curvature over them; smallest and largest curvature and largest
// |gradient| of a row, in units.
Units units_of(const Vector<double> &measure, const char *expected) {
    require(measure.shape(0) == 6, expected);
    const double *m = measure.data();
    require(m[0] >= 0 && m[0] < 1073741824.0 && m[1] >= 0 && m[2] >= 0, expected);
    require(std::isfinite(m[1]) && std::isfinite(m[2]), expected);
    for (int i = 3; i < 6; ++i) require(m[i] >= 0 && m[i] <= 4294967295.0, expected);
    Units units(static_cast<std::size_t>(m[0]), m[1], m[2]);
    units.smallest_h = static_cast<std::uint32_t>(m[3]);
    units.largest_h = static_cast<std::uint32_t>(m[4]);
    units.largest_g = static_cast<std::uint32_t>(m[5]);
    return units;
}

auto best_split(RowMajor<std::int64_t> hist, std::optional<RowMajor<std::uint32_t>> count, std::int64_t total,
                std::size_t n_rows, std::tuple<double, double> range, std::optional<Vector<std::uint8_t>> allowed,
                Vector<double> measure, Vector<std::int32_t> features, Vector<std::int32_t> n_bins,
                const SplitArrays &limits) {
    constexpr const char *expected =
        "best_split: expected hist (f, 256), count (f, 256) or None where curvature tells the rows, allowed (f,), "
        "measure (6,), ascending features (f,) in [0, p), n_bins in [1, 255], categorical and monotone (p,)";
    const std::size_t f = features.shape(0), p = n_bins.shape(0);
    const Units units = units_of(measure, expected);
    check_features(features, n_bins, expected);
    require(f >= 1 && hist.shape(0) == f && hist.shape(1) == BINS, expected);
    require(!count || (count->shape(0) == f && count->shape(1) == BINS), expected);
    require(!allowed || allowed->shape(0) == f, expected);
    const BinnedTable table{nullptr, nullptr, 0, p, features.data(), f, n_bins.data()};
    const SplitRules rules = limits.view(p, expected);
    const double l2 = limits.l2;
    const Bounds bounds{std::get<0>(range), std::get<1>(range)};
    Split split;
    bool counted = true;
    double middle = 0.0;
    {
        nb::gil_scoped_release nogil;
        const SplitSearch search(table, rules, units, gain_noise(measure.data()[1], measure.data()[2], l2));
        std::vector<Split> found;
        search.each(hist.data(), total, n_rows, bounds, allowed ? allowed->data() : nullptr, found, 1);
        const std::vector<std::uint32_t> none(count ? 0 : BINS, 0);
        const auto rows_of = [&](std::size_t k) {
            counted = counted && count;
            return count ? count->data() + k * BINS : none.data();
        };
        split = search.best(found, hist.data(), total, n_rows, bounds, rows_of);
        if (split.found()) middle = middle_value(split.left_sum, total - split.left_sum, units, l2, bounds);
    }
    require(counted, expected);
    const std::vector<std::uint64_t> sides(split.left.begin(), split.left.end());
    return nb::make_tuple(split.feature, split.bin, split.missing_left + 4 * split.categorical, array_out(sides, 1, 4),
                          split.gain, split.left_sum, middle);
}

}  // namespace

void bind_tree_parts(nb::module_ &m) {
    m.def(
        "quantise_rows",
        [](RowMajor<float> gh, Vector<std::uint32_t> order, Vector<double> measure, InOut1<std::int64_t> packed) {
            constexpr const char *expected =
                "quantise_rows: expected gh (n, 2), order with entries in [0, n), measure (6,), packed (n,)";
            units_of(measure, expected);
            Units units(static_cast<std::size_t>(measure.data()[0]), measure.data()[1], measure.data()[2]);
            require(gh.shape(1) == 2 && packed.shape(0) == gh.shape(0) && all_below(order, gh.shape(0)), expected);
            nb::gil_scoped_release nogil;
            quantise(gh.data(), order.data(), order.shape(0), units, packed.data(), 1);
            return std::make_tuple(units.smallest_h, units.largest_h, units.largest_g);
        },
        "gh"_a.noconvert(), "order"_a.noconvert(), "measure"_a.noconvert(), "packed"_a.noconvert());
    m.def(
        "divide_rows",
        [](RowMajor<std::uint8_t> rows, std::size_t feature, Vector<std::uint64_t> sides, InOut1<std::uint32_t> order) {
            constexpr const char *expected =
                "divide_rows: expected rows (n, p), feature in [0, p), sides (4,), order with entries in [0, n)";
            require(feature < rows.shape(1) && sides.shape(0) == 4, expected);
            require(all_below(Vector<std::uint32_t>(order), rows.shape(0)), expected);
            Sides left;
            std::copy(sides.data(), sides.data() + 4, left.begin());
            nb::gil_scoped_release nogil;
            return divide_rows(rows.data(), rows.shape(1), feature, left, order.data(), order.shape(0));
        },
        "rows"_a.noconvert(), "feature"_a, "sides"_a.noconvert(), "order"_a.noconvert());
    m.def(
        "node_histogram",
        [](RowMajor<std::uint8_t> rows, Vector<std::int64_t> packed, Vector<std::uint32_t> order,
           Vector<std::int32_t> features, Vector<std::int32_t> n_bins, InOut2<std::int64_t> hist,
           std::optional<InOut2<std::uint32_t>> count) {
            constexpr const char *expected =
                "node_histogram: expected rows (n, p), packed (n,), order with entries in [0, n), ascending features "
                "(f,) in [0, p), n_bins (p,) in [1, 255], hist and count (f, 256)";
            const std::size_t n = rows.shape(0), f = features.shape(0);
            require(packed.shape(0) == n && n_bins.shape(0) == rows.shape(1), expected);
            check_features(features, n_bins, expected);
            require(hist.shape(0) == f && hist.shape(1) == BINS, expected);
            require(!count || (count->shape(0) == f && count->shape(1) == BINS), expected);
            require(all_below(order, n), expected);
            const BinnedTable table{rows.data(), nullptr, n, rows.shape(1), features.data(), f, n_bins.data()};
            nb::gil_scoped_release nogil;
            std::vector<std::vector<Packed>> spare;
            histogram(table, packed.data(), order.data(), 0, order.shape(0), hist.data(), spare, 1);
            if (count) {
                std::fill(count->data(), count->data() + f * BINS, 0u);
                count_rows(table, order.data(), order.shape(0), count->data());
            }
        },
        "rows"_a.noconvert(), "packed"_a.noconvert(), "order"_a.noconvert(), "features"_a.noconvert(),
        "n_bins"_a.noconvert(), "hist"_a.noconvert(), "count"_a.none());
    m.def("best_split", &best_split, "hist"_a.noconvert(), "count"_a.none(), "total"_a, "n_rows"_a, "range"_a,
          "allowed"_a.none(), "measure"_a.noconvert(), "features"_a.noconvert(), "n_bins"_a.noconvert(), "rules"_a);
    // Sums over ranges of rows as (G >> 32, G & 0xffffffff, H >> 32, H & 0xffffffff), which add up.
    m.def(
        "sum_ranges",
        [](RowMajor<float> gh, Vector<std::uint32_t> order, Vector<std::int64_t> begin, Vector<std::int64_t> end,
           Vector<double> measure) {
            constexpr const char *expected =
                "sum_ranges: expected gh (n, 2), order with entries in [0, n), ranges of it, measure (6,)";
            const FixedScale scale(units_of(measure, expected));
            require(gh.shape(1) == 2 && all_below(order, gh.shape(0)), expected);
            check_ranges(begin, end, order.shape(0), expected);
            std::vector<std::int64_t> sums(4 * begin.shape(0));
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 0; i < begin.shape(0); ++i) {
                    WideSum total[2];
                    sum_range(gh.data(), order.data(), static_cast<std::size_t>(begin.data()[i]),
                              static_cast<std::size_t>(end.data()[i]), scale, total[0], total[1]);
                    for (int k = 0; k < 2; ++k) {
                        sums[4 * i + 2 * k] = static_cast<std::int64_t>(total[k] >> 32);
                        sums[4 * i + 2 * k + 1] = static_cast<std::int64_t>(total[k] & 0xffffffff);
                    }
                }
            }
            return array_out(sums, begin.shape(0), 4);
        },
        "gh"_a.noconvert(), "order"_a.noconvert(), "begin"_a.noconvert(), "end"_a.noconvert(), "measure"_a.noconvert());
    m.def(
        "sums_of_ranges",
        [](RowMajor<std::int64_t> sums, Vector<double> measure) {
            constexpr const char *expected = "sums_of_ranges: expected sums (l, 4) of sum_ranges, measure (6,)";
            const FixedScale scale(units_of(measure, expected));
            require(sums.shape(1) == 4, expected);
            std::vector<double> out(2 * sums.shape(0));
            for (std::size_t i = 0; i < sums.shape(0); ++i) {
                const std::int64_t *s = sums.data() + 4 * i;
                constexpr WideSum high = WideSum{1} << 32;
                out[2 * i] = scale.gradient(static_cast<WideSum>(s[0]) * high + s[1]);
                out[2 * i + 1] = scale.curvature(static_cast<WideSum>(s[2]) * high + s[3]);
            }
            return array_out(out, sums.shape(0), 2);
        },
        "sums"_a.noconvert(), "measure"_a.noconvert());
}

}  // namespace epicycle
