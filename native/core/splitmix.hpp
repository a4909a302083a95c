// The generator splitmix64 (Steele, Lea and Flood 2014): streams that a seed fixes, one for each piece of work.
#pragma once

#include <cstdint>

namespace epicycle {

struct SplitMix {
    std::uint64_t state;

    std::uint64_t next() {
        std::uint64_t x = (state += 0x9e3779b97f4a7c15ull);
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
        return x ^ (x >> 31);
    }
};

}  // namespace epicycle
