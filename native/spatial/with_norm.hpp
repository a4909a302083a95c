// The norm of a metric that has a tree, chosen by the number that Python gives it.
#pragma once

#include "core/binding.hpp"
#include "spatial/kd_tree.hpp"

namespace epicycle {

// Calls work(Norm) for the metric of this number, of those that have a tree.
template <class Work>
auto with_norm(int metric, double power, const char *message, Work work) {
    require(metric >= 0 && metric <= 3 && power >= 1.0, message);
    switch (static_cast<Metric>(metric)) {
        case Metric::manhattan:
            return work(Norm<Metric::manhattan>{});
        case Metric::chebyshev:
            return work(Norm<Metric::chebyshev>{});
        case Metric::minkowski:
            return work(Norm<Metric::minkowski>{power});
        default:
            return work(Norm<Metric::euclidean>{});
    }
}

}  // namespace epicycle
