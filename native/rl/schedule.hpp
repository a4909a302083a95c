// Numbers that change while an agent learns: learning rates, shares of random actions, temperatures.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace epicycle {

struct Schedule {
    enum Kind : std::int64_t { constant, linear, exponential, visits };
    Kind kind;
    double start, end, span;  // span: steps of the decay, or the power of the visits

    // After `t` steps; `n` counts the visits, this one included.
    double at(double t, double n) const {
        switch (kind) {
            case linear:
                return t >= span ? end : start + (end - start) * (t / span);
            case exponential:
                return t >= span ? end : start * std::pow(end / start, t / span);
            case visits:
                return std::max(end, span == 1.0 ? start / n : start / std::pow(n, span));
            default:
                return start;
        }
    }
};

}  // namespace epicycle
