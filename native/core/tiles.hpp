// Products of rows with many vectors, which stand in tiles of 16: (tile, column, lane).
#pragma once

#include <cstddef>

#include "core/simd.hpp"

namespace epicycle {

constexpr std::size_t TILE = 16;

// half - x'c of four rows for the vectors of one tile.
EPICYCLE_CLONES inline void tile_scores(const double *const x[4], const double *c, const double *half, std::size_t p,
                                        double *const out[4]) {
    double a0[TILE] = {}, a1[TILE] = {}, a2[TILE] = {}, a3[TILE] = {};
    for (std::size_t j = 0; j < p; ++j) {
        const double *cj = c + j * TILE;
        const double x0 = x[0][j], x1 = x[1][j], x2 = x[2][j], x3 = x[3][j];
        for (std::size_t l = 0; l < TILE; ++l) {
            a0[l] += x0 * cj[l];
            a1[l] += x1 * cj[l];
            a2[l] += x2 * cj[l];
            a3[l] += x3 * cj[l];
        }
    }
    for (std::size_t l = 0; l < TILE; ++l) {
        out[0][l] = half[l] - a0[l];
        out[1][l] = half[l] - a1[l];
        out[2][l] = half[l] - a2[l];
        out[3][l] = half[l] - a3[l];
    }
}

}  // namespace epicycle
