// Bindings of the densities and of the Markov chains over them.
#include <nanobind/stl/array.h>
#include <nanobind/stl/string.h>

#include <string>

#include "bayes/chain.hpp"
#include "bayes/models.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

// A function of Python: u -> (log p, gradient), or u -> log p where it has no gradient.
class PythonDensity : public Density {
public:
    PythonDensity(nb::callable function, std::size_t n, bool has_gradient)
        : function(std::move(function)), n(n), has_gradient(has_gradient) {}
    std::size_t dimension() const override { return n; }
    double operator()(const double *u, double *g) const override {
        nb::gil_scoped_acquire gil;
        Buffer copy(n);
        std::copy(u, u + n, copy.data.get());
        const nb::object result = function(vector_out(copy, n));
        if (!has_gradient) return nb::cast<double>(result);
        const auto pair = nb::cast<std::tuple<double, Vector<double>>>(result);
        const auto &gradient = std::get<1>(pair);
        require(gradient.shape(0) == n, "gradient: expected one number for every coordinate");
        std::copy(gradient.data(), gradient.data() + n, g);
        return std::get<0>(pair);
    }

private:
    nb::callable function;
    std::size_t n;
    bool has_gradient;
};

Sampler sampler_named(const std::string &name) {
    if (name == "nuts") return Sampler::nuts;
    if (name == "hmc") return Sampler::hmc;
    if (name == "metropolis") return Sampler::metropolis;
    require(name == "slice", "sampler: expected 'nuts', 'hmc', 'metropolis' or 'slice'");
    return Sampler::slice;
}

}  // namespace

void bind_sampling(nb::module_ &m) {
    nb::class_<Density>(m, "_Density");
    nb::class_<PythonDensity, Density>(m, "PythonDensity")
        .def(nb::init<nb::callable, std::size_t, bool>(), "function"_a, "n"_a, "has_gradient"_a);
    nb::class_<NormalDensity, Density>(m, "NormalDensity")
        .def(
            "__init__",
            [](NormalDensity *self, Vector<double> mean, RowMajor<double> precision) {
                const std::size_t n = mean.shape(0);
                require(n > 0 && precision.shape(0) == n && precision.shape(1) == n,
                        "NormalDensity: expected mean (n,) and precision (n, n)");
                new (self) NormalDensity(mean.data(), precision.data(), n);
            },
            "mean"_a, "precision"_a);
    nb::class_<LinearDensity, Density>(m, "LinearDensity")
        .def(
            "__init__",
            [](LinearDensity *self, RowMajor<double> gram, Vector<double> solution, double rss, double rows,
               Vector<double> prior_mean, Vector<double> prior_precision, double shape, double rate) {
                const std::size_t k = solution.shape(0);
                require(k > 0 && gram.shape(0) == k && gram.shape(1) == k && prior_mean.shape(0) == k &&
                            prior_precision.shape(0) == k,
                        "LinearDensity: expected gram (k, k), solution, prior_mean and prior_precision (k,)");
                new (self) LinearDensity(gram.data(), solution.data(), rss, rows, prior_mean.data(),
                                         prior_precision.data(), shape, rate, k);
            },
            "gram"_a, "solution"_a, "rss"_a, "rows"_a, "prior_mean"_a, "prior_precision"_a, "shape"_a, "rate"_a);
    nb::class_<HierarchicalDensity, Density>(m, "HierarchicalDensity")
        .def(
            "__init__",
            [](HierarchicalDensity *self, Vector<double> y, Vector<double> s, double mu_mean, double mu_scale,
               double tau_scale) {
                require(y.shape(0) > 0 && s.shape(0) == y.shape(0), "HierarchicalDensity: expected y and s (n,)");
                new (self) HierarchicalDensity(y.data(), s.data(), y.shape(0), mu_mean, mu_scale, tau_scale);
            },
            "y"_a, "s"_a, "mu_mean"_a, "mu_scale"_a, "tau_scale"_a);
    nb::class_<RegressionDensity, Density>(m, "RegressionDensity")
        .def(
            "__init__",
            [](RegressionDensity *self, RowMajor<double> X, Vector<double> y, Weight offset,
               Vector<double> prior_precision) {
                constexpr const char *expected =
                    "RegressionDensity: expected X (n, p), y (n,), offset (n,) for counts or None for labels -1 and 1, "
                    "prior_precision (p,)";
                const std::size_t n = X.shape(0), p = X.shape(1);
                require(n > 0 && p > 0 && y.shape(0) == n && prior_precision.shape(0) == p, expected);
                const double *shift = pointer(offset, n, expected);
                new (self) RegressionDensity(shift ? Likelihood::poisson : Likelihood::logistic, X.data(), y.data(),
                                             shift, prior_precision.data(), n, p);
            },
            "X"_a, "y"_a, "offset"_a.none(), "prior_precision"_a);

    m.def(
        "log_density",
        [](const Density &density, Vector<double> u) {
            const std::size_t n = density.dimension();
            require(u.shape(0) == n, "log_density: expected one number for every coordinate");
            Buffer g(n);
            double value;
            {
                nb::gil_scoped_release nogil;
                value = density(u.data(), g.data.get());
            }
            return std::make_tuple(value, vector_out(g, n));
        },
        "density"_a, "u"_a);

    nb::class_<ChainOptions>(m, "ChainOptions")
        .def(
            "__init__",
            [](ChainOptions *self, const std::string &sampler, std::size_t warmup, std::size_t thin, bool dense,
               double target_accept, double step_size, int max_depth, double integration_time) {
                require(thin >= 1 && max_depth >= 1 && max_depth <= 20 && target_accept > 0 && target_accept < 1 &&
                            integration_time > 0,
                        "ChainOptions: thin, max_depth, target_accept or integration_time out of range");
                new (self)
                    ChainOptions{sampler_named(sampler), warmup, 0, thin, dense, target_accept, step_size, max_depth,
                                 integration_time};
            },
            nb::kw_only(), "sampler"_a, "warmup"_a, "thin"_a, "dense"_a, "target_accept"_a, "step_size"_a,
            "max_depth"_a, "integration_time"_a);

    // Runs without the GIL; draws, statistics and progress are written as the chain goes on, until stop[0] is not 0.
    m.def(
        "sample_chain",
        [](const Density &density, ChainOptions options, Vector<double> start, Vector<std::uint64_t> seed,
           InOut2<double> draws, InOut2<double> statistics, InOut1<std::int64_t> progress, InOut1<std::int64_t> stop) {
            const std::size_t n = density.dimension(), count = draws.shape(0);
            require(start.shape(0) == n && draws.shape(1) == n && seed.shape(0) == 4 && statistics.shape(0) == count &&
                        statistics.shape(1) == 7 && progress.shape(0) == 2 && stop.shape(0) >= 1,
                    "sample_chain: expected start (n,), seed (4,), draws (d, n), statistics (d, 7), progress (2,)");
            options.draws = count;
            const ChainOutput output{draws.data(), statistics.data(), progress.data(), stop.data()};
            Random random({seed.data()[0], seed.data()[1], seed.data()[2], seed.data()[3]});
            ChainResult result;
            {
                nb::gil_scoped_release nogil;
                result = run_chain(density, start.data(), random, options, output);
            }
            return std::make_tuple(result.step_size, array_out(std::move(result.metric)));
        },
        "density"_a, "options"_a, "start"_a, "seed"_a, "draws"_a.noconvert(), "statistics"_a.noconvert(),
        "progress"_a.noconvert(), "stop"_a.noconvert());
}

}  // namespace epicycle
