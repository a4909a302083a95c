// Functions G of the squared distance by which points repel each other: of Student's distribution with nu degrees of
// freedom, (1 + d^2 / nu)^(-(nu + 1) / 2), and of the cross-entropy, log((1 + d^2) / (softness + d^2)).
#pragma once

#include <cmath>

#include "core/simd.hpp"

namespace epicycle::manifold {

struct Kernel {
    bool logarithmic = false;
    double softness = 0.0, freedom = 1.0;

    double value(double square) const {
        if (logarithmic) return std::log1p((1.0 - softness) / (softness + square));
        const double base = 1.0 + square / freedom;
        return freedom == 1.0 ? 1.0 / base : std::pow(base, -(freedom + 1.0) / 2.0);
    }
    // value(square) - value(0) without cancellation.
    double drop(double square) const {
        if (logarithmic) return std::log1p(square) - std::log1p(square / softness);
        if (freedom == 1.0) return -square / (1.0 + square);
        return std::expm1(-(freedom + 1.0) / 2.0 * std::log1p(square / freedom));
    }
    // dG / dd^2 = -factor() slope(square).
    double slope(double square) const {
        if (logarithmic) return 1.0 / (softness + square) - 1.0 / (1.0 + square);
        return value(square) / (1.0 + square / freedom);
    }
    double factor() const { return logarithmic ? 1.0 : (freedom + 1.0) / (2.0 * freedom); }
};

}  // namespace epicycle::manifold
