// The convolution of an N x N grid of real numbers with an even kernel, by Fourier transforms of length M = 2N, in
// which nothing wraps around. Columns c and c + N/2 travel as real and imaginary part of one sequence; of the vertical
// transforms the lower half of the frequencies is kept. What a thread writes no other one touches: the bits do not
// depend on their number.
#pragma once

#include <vector>

#include "manifold/fft.hpp"

namespace epicycle::manifold {

struct Convolution {
    std::size_t n;  // N
    Transform plan;
    std::size_t blocks;           // of LANES frequencies, that hold 0 ... M/2
    std::vector<Element> half;    // [block][column] frequencies of the grid, LANES to an element
    std::vector<Reals> spectrum;  // [block][frequency along the rows], of the kernel

    explicit Convolution(std::size_t size)
        : n(size), plan(2 * size), blocks(size / LANES + 1), half(blocks * size), spectrum(blocks * 2 * size) {}
};

struct Workspace {
    std::vector<Element> x, y;
    explicit Workspace(std::size_t m) : x(m), y(m) {}
};

// Element i of sequences along columns -> element i of sequences along frequencies, for a square of LANES x LANES.
EPICYCLE_INLINE void transpose(const Lanes *in, std::size_t in_step, Lanes *out, std::size_t out_step) {
    float square[LANES][LANES];
    for (std::size_t i = 0; i < LANES; ++i)
        for (std::size_t l = 0; l < LANES; ++l) square[l][i] = in[i * in_step][l];
    for (std::size_t l = 0; l < LANES; ++l) {
        Lanes row;
        for (std::size_t i = 0; i < LANES; ++i) row[i] = square[l][i];
        out[l * out_step] = row;
    }
}

// The LANES columns c ... of the grid and as many from c + N/2 on, transformed; frequencies 0 ... M/2 go to `half`.
EPICYCLE_CLONES inline void columns_forward(Convolution &field, const float *grid, std::size_t c, Workspace &work) {
    const std::size_t n = field.n, m = 2 * n;
    Element *x = work.x.data();
    for (std::size_t r = 0; r < n; ++r) {
        __builtin_memcpy(&x[r].re, grid + r * n + c, sizeof(Lanes));
        __builtin_memcpy(&x[r].im, grid + r * n + c + n / 2, sizeof(Lanes));
    }
    for (std::size_t r = n; r < m; ++r) x[r] = Element{};
    const Element *z = forward(field.plan, x, work.y.data());
    Element first[LANES], second[LANES];
    for (std::size_t b = 0; b < field.blocks; ++b) {
        for (std::size_t l = 0; l < LANES; ++l) {
            const std::size_t k = b * LANES + l;
            if (k > n) {
                first[l] = second[l] = Element{};
                continue;
            }
            const Element a = z[k], e = z[k == 0 ? 0 : m - k];
            first[l] = {(a.re + e.re) * 0.5f, (a.im - e.im) * 0.5f};
            second[l] = {(a.im + e.im) * 0.5f, (e.re - a.re) * 0.5f};
        }
        Element *to = field.half.data() + b * n + c;
        transpose(&first[0].re, 2, &to[0].re, 2);
        transpose(&first[0].im, 2, &to[0].im, 2);
        transpose(&second[0].re, 2, &to[n / 2].re, 2);
        transpose(&second[0].im, 2, &to[n / 2].im, 2);
    }
}

// Along the rows: forward, times the spectrum of the kernel, and back.
EPICYCLE_CLONES inline void rows_times_spectrum(Convolution &field, std::size_t b, Workspace &work) {
    const std::size_t n = field.n, m = 2 * n;
    Element *x = work.x.data(), *row = field.half.data() + b * n;
    for (std::size_t c = 0; c < n; ++c) x[c] = row[c];
    for (std::size_t c = n; c < m; ++c) x[c] = Element{};
    Element *z = forward(field.plan, x, work.y.data());
    const Reals *kernel = field.spectrum.data() + b * m;
    // Real and imaginary part change places before and after: a forward transform is then the inverse one.
    for (std::size_t j = 0; j < m; ++j) z[j] = {z[j].im * kernel[j].v, z[j].re * kernel[j].v};
    z = forward(field.plan, z, z == x ? work.y.data() : x);
    for (std::size_t c = 0; c < n; ++c) row[c] = {z[c].im, z[c].re};
}

EPICYCLE_CLONES inline void columns_back(const Convolution &field, float *grid, std::size_t c, Workspace &work) {
    const std::size_t n = field.n, m = 2 * n;
    Element *x = work.x.data();
    Element first[LANES], second[LANES];
    for (std::size_t b = 0; b < field.blocks; ++b) {
        const Element *from = field.half.data() + b * n + c;
        transpose(&from[0].re, 2, &first[0].re, 2);
        transpose(&from[0].im, 2, &first[0].im, 2);
        transpose(&from[n / 2].re, 2, &second[0].re, 2);
        transpose(&from[n / 2].im, 2, &second[0].im, 2);
        for (std::size_t l = 0; l < LANES; ++l) {
            const std::size_t k = b * LANES + l;
            if (k > n) break;
            // Z_k = A_k + i B_k and Z_(M-k) = conj A_k + i conj B_k, real and imaginary part exchanged.
            x[k] = {first[l].im + second[l].re, first[l].re - second[l].im};
            if (k > 0 && k < n) x[m - k] = {second[l].re - first[l].im, first[l].re + second[l].im};
        }
    }
    const Element *z = forward(field.plan, x, work.y.data());
    for (std::size_t r = 0; r < n; ++r) {
        __builtin_memcpy(grid + r * n + c, &z[r].im, sizeof(Lanes));
        __builtin_memcpy(grid + r * n + c + n / 2, &z[r].re, sizeof(Lanes));
    }
}

// The transform of `values` (M x M, even along both axes; the quadrant 0 ... M/2 is given, (N + 1) x (N + 1)).
EPICYCLE_CLONES inline void kernel_columns(const Convolution &field, const float *quadrant, std::size_t c,
                                           float *transformed, Workspace &work) {
    const std::size_t n = field.n, m = 2 * n, width = n + 1;
    Element *x = work.x.data();
    for (std::size_t r = 0; r < m; ++r) {
        const float *row = quadrant + (r <= n ? r : m - r) * width;
        x[r] = Element{};
        for (std::size_t l = 0; l < LANES; ++l) x[r].re[l] = c + l < width ? row[c + l] : 0.0f;
    }
    const Element *z = forward(field.plan, x, work.y.data());
    for (std::size_t k = 0; k <= n; ++k)
        for (std::size_t l = 0; l < LANES; ++l)
            if (c + l < width) transformed[(c + l) * width + k] = z[k].re[l];
}

EPICYCLE_CLONES inline void kernel_rows(Convolution &field, const float *transformed, std::size_t b, Workspace &work) {
    const std::size_t n = field.n, m = 2 * n, width = n + 1, k = b * LANES;
    Element *x = work.x.data();
    for (std::size_t c = 0; c < m; ++c) {
        const float *row = transformed + (c <= n ? c : m - c) * width;
        x[c] = Element{};
        for (std::size_t l = 0; l < LANES; ++l) x[c].re[l] = k + l < width ? row[k + l] : 0.0f;
    }
    const Element *z = forward(field.plan, x, work.y.data());
    // A grid of quintic B-splines interpolates where its coefficients are divided by this filter, once for the points
    // that give and once for those that receive, along both axes.
    const float *cosine = field.plan.cosine.data();
    const auto filter = [&](std::size_t t) {
        const float f = (33.0f + 26.0f * cosine[t % m] + cosine[2 * t % m]) / 60.0f;
        return 1.0f / (f * f);
    };
    const float scale = 1.0f / (static_cast<float>(m) * static_cast<float>(m));
    for (std::size_t j = 0; j < m; ++j)
        for (std::size_t l = 0; l < LANES; ++l)
            field.spectrum[b * m + j].v[l] = z[j].re[l] * scale * filter(j) * filter(k + l);
}

inline void set_kernel(Convolution &field, const std::vector<float> &quadrant, int threads) {
    const std::size_t n = field.n, width = n + 1, groups = (width + LANES - 1) / LANES;
    std::vector<float> transformed(width * width);
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Workspace work(2 * n);
#pragma omp for schedule(static)
        for (std::size_t g = 0; g < groups; ++g)
            kernel_columns(field, quadrant.data(), g * LANES, transformed.data(), work);
#pragma omp for schedule(static)
        for (std::size_t b = 0; b < field.blocks; ++b) kernel_rows(field, transformed.data(), b, work);
    }
}

inline void convolve(Convolution &field, float *grid, int threads) {
    const std::size_t n = field.n, groups = n / 2 / LANES;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        Workspace work(2 * n);
#pragma omp for schedule(static)
        for (std::size_t g = 0; g < groups; ++g) columns_forward(field, grid, g * LANES, work);
#pragma omp for schedule(static)
        for (std::size_t b = 0; b < field.blocks; ++b) rows_times_spectrum(field, b, work);
#pragma omp for schedule(static)
        for (std::size_t g = 0; g < groups; ++g) columns_back(field, grid, g * LANES, work);
    }
}

}  // namespace epicycle::manifold
