// Bindings of Kalman's filter and smoother.
#include "control/kalman_forms.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

using Series = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using InOutSeries = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// (1, rows, columns) for all times, or (steps, rows, columns).
OverTime over_time(const Series &x, std::size_t rows, std::size_t columns, std::size_t steps, const char *expected) {
    require(x.shape(1) == rows && x.shape(2) == columns && (x.shape(0) == 1 || x.shape(0) == steps), expected);
    return {x.data(), x.shape(0) == 1 ? 0 : rows * columns};
}

struct StateSpaceArrays {
    Series A, C, W, V;
    RowMajor<double> a, c;
    Vector<double> mean;
    RowMajor<double> cov;
};

StateSpace state_space(const StateSpaceArrays &arrays, std::size_t steps, const char *expected) {
    const auto &[A, C, W, V, a, c, mean, cov] = arrays;
    const std::size_t n = mean.shape(0), p = C.shape(1);
    require(cov.shape(0) == n && cov.shape(1) == n && a.shape(0) == steps && a.shape(1) == n && c.shape(0) == steps &&
                c.shape(1) == p && n > 0 && p > 0,
            expected);
    return {n,
            p,
            steps,
            over_time(A, n, n, steps, expected),
            over_time(C, p, n, steps, expected),
            over_time(W, n, n, steps, expected),
            over_time(V, p, p, steps, expected),
            a.data(),
            c.data(),
            mean.data(),
            cov.data()};
}

constexpr const char *EXPECTED =
    "kalman: expected y (steps, p), A and W (1 or steps, n, n), C (1 or steps, p, n), V (1 or steps, p, p), a (steps, "
    "n), c (steps, p), mean (n,), cov (n, n)";

}  // namespace

void bind_kalman(nb::module_ &m) {
    nb::class_<StateSpaceArrays>(m, "StateSpace")
        .def(nb::init<Series, Series, Series, Series, RowMajor<double>, RowMajor<double>, Vector<double>,
                      RowMajor<double>>(),
             "A"_a, "C"_a, "W"_a, "V"_a, "a"_a, "c"_a, "mean"_a, "cov"_a);
    m.def(
        "kalman_filter",
        [](RowMajor<double> y, const StateSpaceArrays &arrays, int store, int form) {
            const std::size_t steps = y.shape(0);
            const StateSpace model = state_space(arrays, steps, EXPECTED);
            require(y.shape(1) == model.p, EXPECTED);
            // Predictions and filtered covariances are what the smoother reads; all is what users see.
            const std::size_t n = model.n, kept = store > 0 ? steps : 0, all = store > 1 ? steps : 0;
            auto pm = new_array<double>(kept, n), fm = new_array<double>(all, n);
            auto pc = new_array<double>(kept, n, n), fc = new_array<double>(kept, n, n);
            auto ll = new_array<double>(all);
            double total = 0.0;
            {
                nb::gil_scoped_release nogil;
                const FilterStore out{kept ? pm.data() : nullptr, kept ? pc.data() : nullptr, all ? fm.data() : nullptr,
                                      kept ? fc.data() : nullptr, all ? ll.data() : nullptr};
                total = form == 1   ? kalman_filter<SquareRootStep>(model, y.data(), out, Interrupts{})
                        : form == 2 ? kalman_filter<InformationStep>(model, y.data(), out, Interrupts{})
                                    : kalman_filter<KalmanStep>(model, y.data(), out, Interrupts{});
            }
            return nb::make_tuple(total, pm, pc, fm, fc, ll);
        },
        "y"_a, "model"_a, "store"_a, "form"_a);
    m.def(
        "kalman_smoother",
        [](RowMajor<double> y, const StateSpaceArrays &arrays, InOut2<double> predicted_mean, InOutSeries predicted_cov,
           InOutSeries filtered_cov, bool lagged) {
            const std::size_t steps = y.shape(0);
            const StateSpace model = state_space(arrays, steps, EXPECTED);
            const std::size_t n = model.n;
            require(y.shape(1) == model.p && predicted_mean.shape(0) == steps && predicted_mean.shape(1) == n,
                    EXPECTED);
            for (const InOutSeries *given : {&predicted_cov, &filtered_cov})
                require(given->shape(0) == steps && given->shape(1) == n && given->shape(2) == n, EXPECTED);
            nb::gil_scoped_release nogil;
            KalmanSmoother(model, y.data(), predicted_mean.data(), predicted_cov.data(), filtered_cov.data(), lagged)
                .run(Interrupts{});
        },
        "y"_a, "model"_a, "predicted_mean"_a.noconvert(), "predicted_cov"_a.noconvert(), "filtered_cov"_a.noconvert(),
        "lagged"_a);
}

}  // namespace epicycle
