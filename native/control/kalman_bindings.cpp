// Bindings of Kalman's filter and smoother.
#include "control/kalman_forms.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

using Series = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// (1, rows, columns) for all times, or (steps, rows, columns).
OverTime over_time(const Series &x, std::size_t rows, std::size_t columns, std::size_t steps, const char *expected) {
    require(x.shape(1) == rows && x.shape(2) == columns && (x.shape(0) == 1 || x.shape(0) == steps), expected);
    return {x.data(), x.shape(0) == 1 ? 0 : rows * columns};
}

StateSpace state_space(const Series &A, const Series &C, const Series &W, const Series &V, const RowMajor<double> &a,
                       const RowMajor<double> &c, const Vector<double> &mean, const RowMajor<double> &cov,
                       std::size_t steps, const char *expected) {
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
    m.def(
        "kalman_filter",
        [](RowMajor<double> y, Series A, Series C, Series W, Series V, RowMajor<double> a, RowMajor<double> c,
           Vector<double> mean, RowMajor<double> cov, bool store, int form) {
            const std::size_t steps = y.shape(0);
            const StateSpace model = state_space(A, C, W, V, a, c, mean, cov, steps, EXPECTED);
            require(y.shape(1) == model.p, EXPECTED);
            const std::size_t n = model.n, means = store ? steps * n : 0, covs = means * n;
            std::vector<double> pm(means), pc(covs), fm(means), fc(covs), ll(store ? steps : 0);
            double total = 0.0;
            {
                nb::gil_scoped_release nogil;
                const auto pointer = [&](std::vector<double> &x) { return store ? x.data() : nullptr; };
                const FilterStore out{pointer(pm), pointer(pc), pointer(fm), pointer(fc), pointer(ll)};
                total = form == 1   ? kalman_filter<SquareRootStep>(model, y.data(), out, Interrupts{})
                        : form == 2 ? kalman_filter<InformationStep>(model, y.data(), out, Interrupts{})
                                    : kalman_filter<KalmanStep>(model, y.data(), out, Interrupts{});
            }
            const std::size_t kept = store ? steps : 0;
            return nb::make_tuple(total, array_out(std::move(pm), kept, n), array_out(std::move(pc), kept, n, n),
                                  array_out(std::move(fm), kept, n), array_out(std::move(fc), kept, n, n),
                                  array_out(std::move(ll)));
        },
        "y"_a, "A"_a, "C"_a, "W"_a, "V"_a, "a"_a, "c"_a, "mean"_a, "cov"_a, "store"_a, "form"_a);
    m.def(
        "kalman_smoother",
        [](RowMajor<double> y, Series A, Series C, Series W, Series V, RowMajor<double> a, RowMajor<double> c,
           Vector<double> mean, RowMajor<double> cov, RowMajor<double> predicted_mean, Series predicted_cov,
           Series filtered_cov, bool lagged) {
            const std::size_t steps = y.shape(0);
            const StateSpace model = state_space(A, C, W, V, a, c, mean, cov, steps, EXPECTED);
            const std::size_t n = model.n;
            require(y.shape(1) == model.p && predicted_mean.shape(0) == steps && predicted_mean.shape(1) == n,
                    EXPECTED);
            for (const Series *given : {&predicted_cov, &filtered_cov})
                require(given->shape(0) == steps && given->shape(1) == n && given->shape(2) == n, EXPECTED);
            const std::size_t pairs = lagged && steps > 0 ? steps - 1 : 0;
            std::vector<double> sm(steps * n), sc(steps * n * n), lag(pairs * n * n);
            {
                nb::gil_scoped_release nogil;
                KalmanSmoother(model, y.data(), predicted_mean.data(), predicted_cov.data(), filtered_cov.data())
                    .run(sm.data(), sc.data(), lagged ? lag.data() : nullptr, Interrupts{});
            }
            return nb::make_tuple(array_out(std::move(sm), steps, n), array_out(std::move(sc), steps, n, n),
                                  array_out(std::move(lag), pairs, n, n));
        },
        "y"_a, "A"_a, "C"_a, "W"_a, "V"_a, "a"_a, "c"_a, "mean"_a, "cov"_a, "predicted_mean"_a, "predicted_cov"_a,
        "filtered_cov"_a, "lagged"_a);
}

}  // namespace epicycle
