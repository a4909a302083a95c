// Sums of gradients that do not depend on the order of rows.
//
// Gradients are floats: as whole multiples of 2^-49 of a power of two that none exceeds they are exact, but for those
// below 2^-25 of the largest, and their sums are exact integers, however the rows are divided.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "tree/histogram.hpp"

namespace epicycle {

constexpr std::size_t SUM_ROWS = 8192;  // rows whose sum surely fits 64 bits

using WideSum = __int128;

struct FixedScale {
    double per_g, per_h;  // powers of two
    explicit FixedScale(const Units &units)
        : per_g(power(units.g, units.largest_g)), per_h(power(units.h, units.largest_h)) {}
    double gradient(WideSum sum) const { return static_cast<double>(sum) / per_g; }
    double curvature(WideSum sum) const { return static_cast<double>(sum) / per_h; }

private:
    static double power(double unit, std::uint32_t largest) {
        int exponent = 0;
        std::frexp(unit * (static_cast<double>(largest) + 1.0), &exponent);
        return std::ldexp(1.0, 49 - std::max(exponent, -900));
    }
};

struct FixedSum {
    std::int64_t g = 0, h = 0;
};

// The sums over rows order[begin:end], at most SUM_ROWS of them.
inline FixedSum sum_rows(const float *gh, const std::uint32_t *order, std::size_t begin, std::size_t end,
                         const FixedScale &scale) {
    // Numbers around 1.5 * 2^52 are apart by one: adding it rounds, and the bits then count.
    constexpr double anchor = 6755399441055744.0;
    const auto bits = [](double x) {
        std::uint64_t b;
        std::memcpy(&b, &x, sizeof b);
        return b;
    };
    std::uint64_t g = 0, h = 0;
    for (std::size_t i = begin; i < end; ++i) {
        const float *of_row = gh + 2 * static_cast<std::size_t>(order[i]);
        g += bits(static_cast<double>(of_row[0]) * scale.per_g + anchor);
        h += bits(static_cast<double>(of_row[1]) * scale.per_h + anchor);
    }
    const std::uint64_t base = static_cast<std::uint64_t>(end - begin) * bits(anchor);
    return {static_cast<std::int64_t>(g - base), static_cast<std::int64_t>(h - base)};
}

}  // namespace epicycle
