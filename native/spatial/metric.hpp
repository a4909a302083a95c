// The metrics that compiled searches know, as Python numbers them.
#pragma once

namespace epicycle {

enum class Metric : int { euclidean, manhattan, chebyshev, minkowski, cosine, given };

}  // namespace epicycle
