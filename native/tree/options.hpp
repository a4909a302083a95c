// What the search for splits is given, and the checks that growing a whole tree and its single steps share.
#pragma once

#include "core/binding.hpp"
#include "tree/predict.hpp"
#include "tree/split.hpp"

namespace epicycle {

struct SplitArrays {
    Vector<std::uint8_t> categorical;
    std::optional<Vector<std::int8_t>> monotone;
    std::size_t min_samples;
    double min_child_weight, l2, min_gain, smoothing;

    SplitRules view(std::size_t p, const char *message) const {
        require(categorical.shape(0) == p && (!monotone || monotone->shape(0) == p), message);
        return {l2,
                min_child_weight,
                min_gain,
                smoothing,
                min_samples,
                categorical.data(),
                monotone ? monotone->data() : nullptr};
    }
};

// Ascending features in [0, p), bins in [1, 255].
inline void check_features(const Vector<std::int32_t> &features, const Vector<std::int32_t> &n_bins,
                           const char *message) {
    const std::size_t p = n_bins.shape(0);
    for (std::size_t j = 0; j < p; ++j) require(n_bins.data()[j] >= 1 && n_bins.data()[j] <= 255, message);
    require(all_below(features, p), message);
    for (std::size_t k = 1; k < features.shape(0); ++k) require(features.data()[k] > features.data()[k - 1], message);
}

// Ranges of `order`.
inline void check_ranges(const Vector<std::int64_t> &begin, const Vector<std::int64_t> &end, std::size_t size,
                         const char *message) {
    require(end.shape(0) == begin.shape(0), message);
    for (std::size_t i = 0; i < begin.shape(0); ++i)
        require(begin.data()[i] >= 0 && begin.data()[i] <= end.data()[i] &&
                    static_cast<std::size_t>(end.data()[i]) <= size,
                message);
}

// A tree in arrays: children stand behind their parent, features inside the table, sides (m, 4).
inline void check_tree(const Vector<std::int32_t> &feature, const Vector<std::int32_t> &left,
                       const RowMajor<std::uint64_t> &sides, std::size_t p, const char *message) {
    const std::size_t size = left.shape(0);
    require(size >= 1 && feature.shape(0) == size && sides.shape(0) == size && sides.shape(1) == 4, message);
    for (std::size_t i = 0; i < size; ++i) {
        const std::int64_t l = left.data()[i], f = feature.data()[i];
        const bool inner = l > static_cast<std::int64_t>(i) && l + 1 < static_cast<std::int64_t>(size);
        require(l == 0 || (inner && f >= 0 && f < static_cast<std::int64_t>(p)), message);
    }
}

// Trees one behind the other, each with its nodes from roots[t] to roots[t + 1].
inline Forest forest_of(const RowMajor<std::uint64_t> &nodes, const double *values, const Vector<std::int64_t> &roots,
                        const RowMajor<std::uint64_t> &levels, const char *message) {
    require(nodes.shape(1) == 2 && levels.shape(1) == 4 && roots.shape(0) >= 1, message);
    const Forest forest{
        reinterpret_cast<const Node *>(nodes.data()),   values,         roots.data(),   roots.shape(0) - 1,
        reinterpret_cast<const Sides *>(levels.data()), nodes.shape(0), levels.shape(0)};
    require(well_formed_roots(forest), message);
    return forest;
}

}  // namespace epicycle
