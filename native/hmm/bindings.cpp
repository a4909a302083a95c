// Bindings of hidden Markov chains.
#include "core/binding.hpp"
#include "hmm/diagonal_normals.hpp"
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

DiagonalNormals normals_of(const RowMajor<double> &X, const RowMajor<double> &mean, const RowMajor<double> &variance,
                           const char *message) {
    const std::size_t k = mean.shape(0), p = mean.shape(1);
    require(k > 0 && X.shape(1) == p && variance.shape(0) == k && variance.shape(1) == p, message);
    return DiagonalNormals(mean.data(), variance.data(), k, p);
}

}  // namespace

void bind_hmm(nb::module_ &m) {
    m.def(
        "diagonal_scores",
        [](RowMajor<double> X, RowMajor<double> mean, RowMajor<double> variance, InOut2<double> out) {
            constexpr const char *expected =
                "diagonal_scores: expected X (n, p), mean and variance (K, p), out (n, K), in float64";
            const auto normals = normals_of(X, mean, variance, expected);
            require(out.shape(0) == X.shape(0) && out.shape(1) == normals.k, expected);
            nb::gil_scoped_release nogil;
            diagonal_scores(normals, X.data(), X.shape(0), out.data());
        },
        "X"_a, "mean"_a, "variance"_a, "out"_a.noconvert());
    m.def(
        "diagonal_moments",
        [](RowMajor<double> X, RowMajor<double> weight, RowMajor<double> mean, RowMajor<double> variance) {
            constexpr const char *expected =
                "diagonal_moments: expected X (n, p), weight (n, K), mean and variance (K, p), in float64";
            const auto normals = normals_of(X, mean, variance, expected);
            require(weight.shape(0) == X.shape(0) && weight.shape(1) == normals.k, expected);
            Buffer total(normals.k), first(normals.k * normals.p), second(normals.k * normals.p);
            {
                nb::gil_scoped_release nogil;
                diagonal_moments(normals, X.data(), weight.data(), X.shape(0), total.data.get(), first.data.get(),
                                 second.data.get());
            }
            return std::make_tuple(vector_out(total, normals.k), matrix_out(first, normals.k, normals.p),
                                   matrix_out(second, normals.k, normals.p));
        },
        "X"_a, "weight"_a, "mean"_a, "variance"_a);
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
