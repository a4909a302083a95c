// The random numbers of one Markov chain: xoshiro256++ (Blackman and Vigna), seeded by the named stream of the chain.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace epicycle {

class Random {
public:
    explicit Random(const std::array<std::uint64_t, 4> &seed) : state(seed) {
        if ((state[0] | state[1] | state[2] | state[3]) == 0) state[0] = 1;  // the one state that it never leaves
    }

    // Uniform in (0, 1): the middle of one of 2^53 cells, so that its logarithm exists.
    double uniform() { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1.0p-53; }

    // Marsaglia's polar method; every second call is served from the pair of the one before.
    double normal() {
        if (has_spare) {
            has_spare = false;
            return spare;
        }
        double a, b, s;
        do {
            a = 2.0 * uniform() - 1.0;
            b = 2.0 * uniform() - 1.0;
            s = a * a + b * b;
        } while (s >= 1.0 || s == 0.0);
        const double factor = std::sqrt(-2.0 * std::log(s) / s);
        spare = b * factor;
        has_spare = true;
        return a * factor;
    }

    double exponential() { return -std::log(uniform()); }

    // The state, of which a copy goes on in the same way (but for the spare normal number).
    const std::array<std::uint64_t, 4> &words() const { return state; }

private:
    std::array<std::uint64_t, 4> state;
    double spare = 0.0;
    bool has_spare = false;

    static std::uint64_t rotate(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }

    std::uint64_t bits() {
        const std::uint64_t result = rotate(state[0] + state[3], 23) + state[0], t = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= t;
        state[3] = rotate(state[3], 45);
        return result;
    }
};

}  // namespace epicycle
