// One Markov chain: warm-up, then draws that are written as they come.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>

#include "bayes/adaptation.hpp"
#include "bayes/hamiltonian.hpp"
#include "bayes/random_walk.hpp"

namespace epicycle {

enum class Sampler { nuts, hmc, metropolis, slice };

struct ChainOptions {
    Sampler sampler;
    std::size_t warmup, draws, thin;
    bool dense;
    double target_accept, step_size;  // step_size 0: looked for
    int max_depth;
    double integration_time;
};

// Where a chain writes, and where it is told to stop. Another thread reads `progress` and sets `stop` meanwhile.
struct ChainOutput {
    double *draws, *statistics;  // (draws, n) and (draws, 7)
    std::int64_t *progress;      // iterations done, draws written
    const std::int64_t *stop;
};

struct ChainResult {
    double step_size = 0.0;
    Vec metric;
};

class Recorder {
public:
    Recorder(const ChainOptions &options, const ChainOutput &output, std::size_t n)
        : options(options), output(output), n(n) {}

    std::size_t iterations() const { return options.warmup + options.draws * options.thin; }
    bool stopped() const { return __atomic_load_n(output.stop, __ATOMIC_RELAXED) != 0; }
    void record(std::size_t iteration, const Position &at, const Statistics &s) {
        divergences += s.divergent;  // of all transitions since the last draw that is kept
        if (iteration >= options.warmup) {
            const std::size_t after = iteration - options.warmup;
            if ((after + 1) % options.thin == 0) {
                const std::size_t row = after / options.thin;
                std::copy(at.q.begin(), at.q.end(), output.draws + row * n);
                const double values[] = {
                    s.log_density, s.acceptance, s.step_size, s.depth, s.steps, divergences > 0 ? 1.0 : 0.0, s.energy};
                std::copy(values, values + 7, output.statistics + row * 7);
                __atomic_store_n(output.progress + 1, static_cast<std::int64_t>(row + 1), __ATOMIC_RELEASE);
                divergences = 0.0;
            }
        } else {
            divergences = 0.0;
        }
        __atomic_store_n(output.progress, static_cast<std::int64_t>(iteration + 1), __ATOMIC_RELEASE);
    }

private:
    const ChainOptions &options;
    const ChainOutput &output;
    std::size_t n;
    double divergences = 0.0;
};

inline ChainResult run_hamiltonian(const Density &density, const double *start, Random &random,
                                   const ChainOptions &options, const ChainOutput &output) {
    Hamiltonian chain(density, start, options.max_depth, options.integration_time);
    Recorder recorder(options, output, chain.n);
    Windows windows(options.warmup);
    Spread spread(chain.n, options.dense);
    StepSize step(options.target_accept);
    step.now = options.step_size > 0.0 ? options.step_size : 1.0;
    const auto restart = [&] {
        if (options.step_size <= 0.0 || options.warmup > 0) step.now = chain.reasonable_step(step.now, random);
        step.restart();
    };
    restart();
    for (std::size_t i = 0; i < recorder.iterations() && !recorder.stopped(); ++i) {
        const Statistics s =
            options.sampler == Sampler::nuts ? chain.no_u_turn(step.now, random) : chain.fixed_time(step.now, random);
        if (i < options.warmup) {
            step.learn(s.acceptance);
            if (windows.collects(i)) spread.add(chain.current.q.data());
            if (windows.closes(i)) {
                spread.set(chain.metric);
                spread.restart();
                restart();
            }
            if (i + 1 == options.warmup) step.settle();
        }
        recorder.record(i, chain.current, s);
    }
    return {step.now, chain.metric.values(options.dense)};
}

inline ChainResult run_metropolis(const Density &density, const double *start, Random &random,
                                  const ChainOptions &options, const ChainOutput &output) {
    Metropolis chain(density, start);
    Recorder recorder(options, output, chain.n);
    Spread spread(chain.n, options.dense);
    if (options.step_size > 0.0) chain.scale = options.step_size;
    // The covariance is that of all draws so far, but for the way to the mode, and is renewed now and then: windows as
    // short as those of Hamiltonian samplers hold too few different draws. The last tenth leaves it as it is.
    const std::size_t first = options.warmup / 10, again = options.warmup / 3, last = options.warmup - first;
    const std::size_t every = std::max<std::size_t>(20, chain.n);
    for (std::size_t i = 0; i < recorder.iterations() && !recorder.stopped(); ++i) {
        const Statistics s = chain.transition(random);
        if (i < options.warmup) {
            chain.learn(s.acceptance);
            if (i >= first && i < last) spread.add(chain.current.q.data());
            if (i == again) spread.restart();
            if (i >= first && i < last && (i - first) % every == every - 1 && spread.size() > 10.0)
                spread.set(chain.metric);
            if (i == again || i + 1 == last) chain.restart();
        }
        recorder.record(i, chain.current, s);
    }
    return {chain.scale, chain.metric.values(options.dense)};
}

inline ChainResult run_slice(const Density &density, const double *start, Random &random, const ChainOptions &options,
                             const ChainOutput &output) {
    Slice chain(density, start);
    Recorder recorder(options, output, chain.n);
    if (options.step_size > 0.0) std::fill(chain.width.begin(), chain.width.end(), options.step_size);
    for (std::size_t i = 0; i < recorder.iterations() && !recorder.stopped(); ++i) {
        const Statistics s = chain.transition(random);
        if (i < options.warmup) chain.learn();
        recorder.record(i, chain.current, s);
    }
    return {0.0, chain.width};
}

inline ChainResult run_chain(const Density &density, const double *start, Random &random, const ChainOptions &options,
                             const ChainOutput &output) {
    if (options.sampler == Sampler::metropolis) return run_metropolis(density, start, random, options, output);
    if (options.sampler == Sampler::slice) return run_slice(density, start, random, options, output);
    return run_hamiltonian(density, start, random, options, output);
}

}  // namespace epicycle
