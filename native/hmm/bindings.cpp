// Bindings of hidden Markov chains.
#include "core/binding.hpp"
#include "hmm/markov_chain.hpp"

namespace epicycle {

namespace {

// Start (K,), transitions (K, K), log-densities (n, K), none of them NaN or +inf, and offsets of sequences that cover
// all n rows.
struct ChainInput {
    MarkovChain chain;
    Sequences sequences;
};

bool probabilities(const double *x, std::size_t n) {
    return std::all_of(x, x + n, [](double p) { return p >= 0.0 && p <= 1.0 + 1e-6; });
}

ChainInput checked(const Vector<double> &start, const RowMajor<double> &transition, const RowMajor<double> &log_density,
                   const Vector<std::int64_t> &offsets, const char *message) {
    const std::size_t k = start.shape(0), n = log_density.shape(0), count = offsets.shape(0);
    require(k > 0 && k <= 1u << 15 && transition.shape(0) == k && transition.shape(1) == k, message);
    require(log_density.shape(1) == k && count > 0 && offsets.data()[0] == 0, message);
    require(offsets.data()[count - 1] == static_cast<std::int64_t>(n), message);
    for (std::size_t s = 1; s < count; ++s) require(offsets.data()[s - 1] <= offsets.data()[s], message);
    require(probabilities(start.data(), k) && probabilities(transition.data(), k * k), message);
    const double *e = log_density.data();
    constexpr double most = std::numeric_limits<double>::max();
    require(std::all_of(e, e + n * k, [](double x) { return x <= most; }), message);  // NaN compares false
    return {MarkovChain(start.data(), transition.data(), k), Sequences{offsets.data(), count - 1}};
}

}  // namespace

void bind_hmm(nb::module_ &m) {
    m.def(
        "smooth",
        [](Vector<double> start, RowMajor<double> transition, RowMajor<double> log_density,
           Vector<std::int64_t> offsets, Weight weight, bool posteriors, bool by_step, int threads) {
            constexpr const char *expected =
                "smooth: expected probabilities start (K,) and transition (K, K), log_density (n, K) without NaN or "
                "+inf, offsets (sequences + 1,) from 0 to n, weight (sequences,) or None";
            const ChainInput in = checked(start, transition, log_density, offsets, expected);
            const std::size_t k = in.chain.states, n = log_density.shape(0), count = in.sequences.count;
            const double *v = pointer(weight, count, expected);
            const int size = team(threads);
            Buffer values(count), posterior(posteriors ? n * k : 0), steps(by_step ? n : 0);
            ChainCounts counts(0);
            {
                nb::gil_scoped_release nogil;
                counts = smooth(in.chain, in.sequences, log_density.data(), v, size, values.data.get(),
                                posteriors ? posterior.data.get() : nullptr, by_step ? steps.data.get() : nullptr);
            }
            return std::make_tuple(vector_out(values, count), matrix_out(posterior, posteriors ? n : 0, k),
                                   vector_out(steps, by_step ? n : 0), array_out(std::move(counts.start)),
                                   array_out(std::move(counts.transition), k, k));
        },
        "start"_a, "transition"_a, "log_density"_a, "offsets"_a, "weight"_a.none(), "posteriors"_a, "by_step"_a,
        "threads"_a);
    m.def(
        "viterbi",
        [](Vector<double> start, RowMajor<double> transition, RowMajor<double> log_density,
           Vector<std::int64_t> offsets, int threads) {
            constexpr const char *expected =
                "viterbi: expected probabilities start (K,) and transition (K, K), log_density (n, K) without NaN or "
                "+inf, offsets (sequences + 1,) from 0 to n";
            const ChainInput in = checked(start, transition, log_density, offsets, expected);
            const int size = team(threads);
            Buffer values(in.sequences.count);
            std::vector<std::int64_t> path(log_density.shape(0));
            {
                nb::gil_scoped_release nogil;
                viterbi(in.chain, in.sequences, log_density.data(), size, values.data.get(), path.data());
            }
            return std::make_tuple(vector_out(values, in.sequences.count), array_out(std::move(path)));
        },
        "start"_a, "transition"_a, "log_density"_a, "offsets"_a, "threads"_a);
}

}  // namespace epicycle
