// What the trainers of word vectors share: a stream of random numbers, and rows of numbers in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/simd.hpp"

namespace epicycle {

// splitmix64: a stream is its state, so that each sentence of each epoch has its own.
struct Stream {
    std::uint64_t state;

    static std::uint64_t mixed(std::uint64_t z) {
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
    Stream(std::uint64_t seed, std::uint64_t key) : state(mixed(seed ^ mixed(key + 0x9e3779b97f4a7c15ULL))) {}
    std::uint64_t next() { return mixed(state += 0x9e3779b97f4a7c15ULL); }
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(((next() >> 32) * n) >> 32); }  // n < 2^32
};

constexpr std::size_t WIDTH = 16;  // rows of vectors are padded with zeros to a multiple of it

template <class T>
EPICYCLE_INLINE T padded_dot(const T *a, const T *b, std::size_t n) {
    T sum[WIDTH] = {};
    for (std::size_t i = 0; i < n; i += WIDTH)
        for (std::size_t l = 0; l < WIDTH; ++l) sum[l] += a[i + l] * b[i + l];
    for (std::size_t step = WIDTH / 2; step > 0; step /= 2)
        for (std::size_t l = 0; l < step; ++l) sum[l] += sum[l + step];
    return sum[0];
}

}  // namespace epicycle
