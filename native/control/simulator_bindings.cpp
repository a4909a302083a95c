// Bindings of the simulators.
#include "control/simulators.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using CubeOut = nb::ndarray<double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

// Controls that are given, or those of a feedback gain x + offset, within limits.
struct ControlArrays {
    std::optional<Cube> given, gain;
    std::optional<RowMajor<double>> offset;
    Vector<double> lowest, highest;
};

// States outside it end a run.
struct BoxArrays {
    std::optional<Vector<double>> low, high;
};

// Where whole runs are written to, or nothing.
struct TrajectoryArrays {
    std::optional<CubeOut> states, controls;
    std::optional<InOut2<double>> rewards;
};

// Calls run(S) for the system of this number; the order is that of `SYSTEMS` in Python.
template <class Run>
auto with_system(int number, Run run) {
    switch (number) {
        case 0:
            return run(Type<CartPoleSystem>{});
        case 1:
            return run(Type<PendulumSystem>{});
        case 2:
            return run(Type<MountainCarSystem>{});
        case 3:
            return run(Type<QuadrotorSystem>{});
        case 4:
            return run(Type<BicycleSystem>{});
        default:
            throw nb::value_error("system: expected a number from 0 to 4");
    }
}

Clock clock_of(double seconds, int integrator, const Vector<double> &parameters, std::size_t expected) {
    require(parameters.shape(0) == expected, "parameters: expected as many as the system has");
    require(integrator >= 0 && integrator <= 2, "integrator: expected 0, 1 or 2");
    return {seconds, static_cast<Integrator>(integrator), parameters.data()};
}

template <class S>
void require_rows(const RowMajor<double> &x, const RowMajor<double> &u) {
    require(x.shape(1) == S::states && u.shape(1) == S::controls && x.shape(0) == u.shape(0),
            "expected x (rows, states) and u (rows, controls)");
}

}  // namespace

void bind_simulators(nb::module_ &m) {
    m.def(
        "motion",
        [](int system, Vector<double> parameters, RowMajor<double> x, RowMajor<double> u) {
            return with_system(system, [&](auto type) {
                using S = typename decltype(type)::type;
                require_rows<S>(x, u);
                clock_of(0.0, 0, parameters, S::parameters);
                const std::size_t rows = x.shape(0);
                std::vector<double> out(rows * S::states);
                {
                    nb::gil_scoped_release nogil;
                    for (std::size_t i = 0; i < rows; ++i)
                        S::motion(x.data() + i * S::states, u.data() + i * S::controls, parameters.data(),
                                  out.data() + i * S::states);
                }
                return array_out(std::move(out), rows, S::states);
            });
        },
        "system"_a, "parameters"_a, "x"_a, "u"_a);
    m.def(
        "expand",
        [](int system, Vector<double> parameters, double seconds, int integrator, RowMajor<double> x,
           RowMajor<double> u, bool second) {
            return with_system(system, [&](auto type) {
                using S = typename decltype(type)::type;
                constexpr std::size_t d = S::states, n = d + S::controls;
                require_rows<S>(x, u);
                const Clock clock = clock_of(seconds, integrator, parameters, S::parameters);
                const std::size_t rows = x.shape(0), seconds_of = second ? d * n * n : 0;
                std::vector<double> value(rows * d), first(rows * d * n), more(rows * seconds_of);
                {
                    nb::gil_scoped_release nogil;
                    for (std::size_t i = 0; i < rows; ++i)
                        expand_step<S>(x.data() + i * d, u.data() + i * S::controls, clock, value.data() + i * d,
                                       first.data() + i * d * n, second ? more.data() + i * seconds_of : nullptr);
                }
                return std::make_tuple(array_out(std::move(value), rows, d), array_out(std::move(first), rows, d, n),
                                       array_out(std::move(more), second ? rows : 0, d, n, n));
            });
        },
        "system"_a, "parameters"_a, "seconds"_a, "integrator"_a, "x"_a, "u"_a, "second"_a);
    nb::class_<ControlArrays>(m, "Controls")
        .def(nb::init<std::optional<Cube>, std::optional<Cube>, std::optional<RowMajor<double>>, Vector<double>,
                      Vector<double>>(),
             nb::kw_only(), "given"_a.none(), "gain"_a.none(), "offset"_a.none(), "lowest"_a, "highest"_a);
    nb::class_<BoxArrays>(m, "Box").def(nb::init<std::optional<Vector<double>>, std::optional<Vector<double>>>(),
                                        "low"_a.none(), "high"_a.none());
    nb::class_<TrajectoryArrays>(m, "Trajectories")
        .def(nb::init<std::optional<CubeOut>, std::optional<CubeOut>, std::optional<InOut2<double>>>(),
             "states"_a.noconvert().none(), "controls"_a.noconvert().none(), "rewards"_a.noconvert().none());
    m.def(
        "rollout",
        [](int system, Vector<double> parameters, double seconds, int integrator, RowMajor<double> start,
           std::size_t steps, const ControlArrays &applied, const BoxArrays &ends, const TrajectoryArrays &paths,
           int threads) {
            return with_system(system, [&](auto type) {
                const auto &[given, gain, offset, lowest, highest] = applied;
                const auto &[box_low, box_high] = ends;
                const auto &[states, controls, rewards] = paths;
                using S = typename decltype(type)::type;
                constexpr std::size_t d = S::states, c = S::controls;
                const std::size_t rows = start.shape(0);
                constexpr const char *expected =
                    "rollout: expected start (rows, states), given (rows or 1, steps, controls) or gain (steps or 1, "
                    "controls, states) with offset (steps or 1, controls), limits (controls,), boxes (states,), "
                    "all or none of states (rows, steps + 1, states), controls (rows, steps, controls), rewards (rows, "
                    "steps)";
                require(start.shape(1) == d && given.has_value() != gain.has_value() &&
                            gain.has_value() == offset.has_value() && box_low.has_value() == box_high.has_value() &&
                            lowest.shape(0) == c && highest.shape(0) == c,
                        expected);
                Controls from;
                from.low = lowest.data(), from.high = highest.data();
                if (given) {
                    require(given->shape(1) == steps && given->shape(2) == c &&
                                (given->shape(0) == rows || given->shape(0) == 1),
                            expected);
                    from.given = given->data();
                    from.row_stride = given->shape(0) == rows ? steps * c : 0;
                } else {
                    const std::size_t times = gain->shape(0);
                    require((times == 1 || times == steps) && gain->shape(1) == c && gain->shape(2) == d &&
                                offset->shape(0) == times && offset->shape(1) == c,
                            expected);
                    from.gain = gain->data(), from.offset = offset->data(), from.constant = times == 1;
                }
                Box box;
                if (box_low) {
                    require(box_low->shape(0) == d && box_high->shape(0) == d, expected);
                    box = {box_low->data(), box_high->data()};
                }
                const bool store = states.has_value();
                require(controls.has_value() == store && rewards.has_value() == store, expected);
                if (store)
                    require(states->shape(0) == rows && states->shape(1) == steps + 1 && states->shape(2) == d &&
                                controls->shape(0) == rows && controls->shape(1) == steps && controls->shape(2) == c &&
                                rewards->shape(0) == rows && rewards->shape(1) == steps,
                            expected);
                const Clock clock = clock_of(seconds, integrator, parameters, S::parameters);
                std::vector<double> last(rows * d);
                std::vector<std::int64_t> lengths(rows);
                const int size = team(threads);
                {
                    nb::gil_scoped_release nogil;
                    const Interrupts poll;
                    const Trajectories out{store ? states->data() : nullptr, store ? controls->data() : nullptr,
                                           store ? rewards->data() : nullptr, last.data(), lengths.data()};
                    const Rollout<S> rollout(start.data(), rows, steps, from, box, clock, out);
                    const auto blocks = static_cast<std::int64_t>((rows + LANES - 1) / LANES);
                    const auto at_once = static_cast<std::int64_t>(size) * 64;  // between two looks for Ctrl-C
                    for (std::int64_t from_block = 0; from_block < blocks; from_block += at_once) {
                        const std::int64_t until = std::min(blocks, from_block + at_once);
#pragma omp parallel for num_threads(size) schedule(static) if (size > 1)
                        for (std::int64_t b = from_block; b < until; ++b)
                            rollout.block(static_cast<std::size_t>(b) * LANES);
                        poll();
                    }
                }
                return std::make_tuple(array_out(std::move(last), rows, d), array_out(std::move(lengths)));
            });
        },
        "system"_a, "parameters"_a, "seconds"_a, "integrator"_a, "start"_a, "steps"_a, "controls"_a, "box"_a, "paths"_a,
        "threads"_a);
}

}  // namespace epicycle
