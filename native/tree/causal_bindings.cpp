// Bindings of the causal forest.
#include "core/binding.hpp"
#include "tree/causal.hpp"

namespace epicycle {

void bind_causal_trees(nb::module_ &m) {
    m.def(
        "grow_causal",
        [](InOut2<std::uint8_t> bins, Vector<double> y, Vector<double> t, Vector<double> weight, std::size_t min_leaf,
           std::size_t max_features, double max_samples, double balance, std::size_t groups, std::size_t per_group,
           std::uint64_t seed, int threads) {
            const std::size_t n = bins.shape(0), p = bins.shape(1);
            require(y.shape(0) == n && t.shape(0) == n && weight.shape(0) == n && n >= 4 && p >= 1 && min_leaf >= 1 &&
                        max_features >= 1 && max_samples > 0 && balance >= 0 && per_group >= 1,
                    "grow_causal: expected bins (n, p) with n >= 4 and p >= 1, y, t and weight (n,), min_leaf, "
                    "max_features and per_group >= 1");
            const bool fits =
                std::all_of(bins.data(), bins.data() + n * p, [](std::uint8_t b) { return b < CAUSAL_BINS; });
            require(fits, "grow_causal: expected bins below 128");
            const CausalRows rows{bins.data(), y.data(), t.data(), weight.data(), n, p};
            const CausalOptions options{min_leaf, max_features, max_samples, balance};
            const int size = team(threads);
            std::vector<std::vector<CausalNode>> trees;
            {
                nb::gil_scoped_release nogil;
                trees = grow_causal_trees(rows, options, groups, per_group, seed, size);
            }
            std::vector<std::int64_t> first{0};
            std::vector<std::int32_t> splits;
            std::vector<double> moments;
            for (const auto &tree : trees) {
                for (const CausalNode &node : tree) {
                    splits.insert(splits.end(), {node.feature, node.cut, node.left});
                    moments.insert(moments.end(), {node.A, node.B});
                }
                first.push_back(first.back() + static_cast<std::int64_t>(tree.size()));
            }
            const auto count = static_cast<std::size_t>(first.back());
            const std::size_t ends = first.size();
            return std::make_tuple(array_out(std::move(first), ends), array_out(std::move(splits), count, 3),
                                   array_out(std::move(moments), count, 2));
        },
        "bins"_a.noconvert(), "y"_a, "t"_a, "weight"_a, "min_leaf"_a, "max_features"_a, "max_samples"_a, "balance"_a,
        "groups"_a, "per_group"_a, "seed"_a, "threads"_a);
    m.def(
        "predict_causal",
        [](Vector<std::int64_t> first, InOut2<std::int32_t> splits, InOut2<double> moments, std::size_t per_group,
           std::size_t min_leaf, InOut2<std::uint8_t> bins, InOut1<double> effect, InOut1<double> variance,
           InOut1<double> degrees, int threads) {
            constexpr const char *expected =
                "predict_causal: expected first (trees + 1,), splits (nodes, 3), moments (nodes, 2) of whole trees, "
                "bins (n, p), effect, variance and degrees (n,), min_leaf >= 1";
            const std::size_t n = bins.shape(0), p = bins.shape(1), count = splits.shape(0);
            const std::size_t trees = first.shape(0) ? first.shape(0) - 1 : 0;
            require(trees && per_group && min_leaf && trees % per_group == 0 && splits.shape(1) == 3 &&
                        moments.shape(0) == count && moments.shape(1) == 2 && effect.shape(0) == n &&
                        variance.shape(0) == n && degrees.shape(0) == n && first.data()[0] == 0 &&
                        static_cast<std::size_t>(first.data()[trees]) == count,
                    expected);
            std::vector<CausalNode> nodes(count);
            for (std::size_t k = 0; k < trees; ++k) {
                const std::int64_t size = first.data()[k + 1] - first.data()[k];
                require(size >= 1, expected);
                for (std::int64_t i = 0; i < size; ++i) {
                    const auto at = static_cast<std::size_t>(first.data()[k] + i);
                    const std::int32_t *s = splits.data() + 3 * at;
                    // Children follow their parent, so that a walk ends.
                    require(s[0] < static_cast<std::int32_t>(p) && (s[0] < 0 || (s[2] > i && s[2] + 1 < size)),
                            expected);
                    nodes[at] = {s[0], s[1], s[2], moments.data()[2 * at], moments.data()[2 * at + 1]};
                }
            }
            const int size = team(threads);
            nb::gil_scoped_release nogil;
            predict_causal_trees(nodes.data(), first.data(), trees / per_group, per_group, min_leaf, bins.data(), n, p,
                                 effect.data(), variance.data(), degrees.data(), size);
        },
        "first"_a, "splits"_a.noconvert(), "moments"_a.noconvert(), "per_group"_a, "min_leaf"_a, "bins"_a.noconvert(),
        "effect"_a.noconvert(), "variance"_a.noconvert(), "degrees"_a.noconvert(), "threads"_a);
}

}  // namespace epicycle
