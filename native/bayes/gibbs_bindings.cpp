// Bindings of the Polya-gamma draws and of the Gibbs sampler over them.
#include <algorithm>

#include "bayes/polya_gamma.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

Random seeded(const Vector<std::uint64_t> &seed) {
    require(seed.shape(0) == 4, "seed: expected four numbers");
    return Random({seed.data()[0], seed.data()[1], seed.data()[2], seed.data()[3]});
}

}  // namespace

void bind_gibbs(nb::module_ &m) {
    m.def(
        "polya_gamma",
        [](Vector<double> c, Vector<std::uint64_t> seed) {
            Random random = seeded(seed);
            const std::size_t n = c.shape(0);
            Buffer out(n);
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 0; i < n; ++i) out.data[i] = polya::draw(c.data()[i], random);
            }
            return vector_out(out, n);
        },
        "c"_a, "seed"_a);

    // Runs without the GIL; draws and progress are written as the chain goes on, until stop[0] is not 0.
    m.def(
        "logistic_gibbs",
        [](RowMajor<double> X, Vector<double> kappa, Vector<std::int64_t> repeats, Vector<double> precision,
           Vector<double> start, Vector<std::uint64_t> seed, std::size_t warmup, InOut2<double> draws,
           InOut1<std::int64_t> progress, InOut1<std::int64_t> stop) {
            const std::size_t n = X.shape(0), p = X.shape(1), count = draws.shape(0);
            require(p > 0 && kappa.shape(0) == p && repeats.shape(0) == n && precision.shape(0) == p &&
                        start.shape(0) == p && draws.shape(1) == p && progress.shape(0) == 2 && stop.shape(0) >= 1,
                    "logistic_gibbs: expected X (n, p), kappa, precision and start (p,), repeats (n,), draws (d, p), "
                    "progress (2,)");
            Random random = seeded(seed);
            LogisticGibbs chain(X.data(), kappa.data(), repeats.data(), precision.data(), n, p);
            Vec w(start.data(), start.data() + p);
            double *out = draws.data();
            std::int64_t *done = progress.data();
            const std::int64_t *told = stop.data();
            nb::gil_scoped_release nogil;
            for (std::size_t i = 0; i < warmup + count && __atomic_load_n(told, __ATOMIC_RELAXED) == 0; ++i) {
                chain.step(w.data(), random);
                if (i >= warmup) {
                    std::copy(w.begin(), w.end(), out + (i - warmup) * p);
                    __atomic_store_n(done + 1, static_cast<std::int64_t>(i - warmup + 1), __ATOMIC_RELEASE);
                }
                __atomic_store_n(done, static_cast<std::int64_t>(i + 1), __ATOMIC_RELEASE);
            }
        },
        "X"_a, "kappa"_a, "repeats"_a, "precision"_a, "start"_a, "seed"_a, "warmup"_a, "draws"_a.noconvert(),
        "progress"_a.noconvert(), "stop"_a.noconvert());
}

}  // namespace epicycle
