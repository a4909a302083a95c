// Bindings of the kernels of partially observed decision processes.
#include "control/alpha_vectors.hpp"
#include "control/belief_search.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

using Cube = nb::ndarray<const double, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
using Rows = CsrMatrix<double, std::int32_t>;

constexpr const char *EXPECTED =
    "pomdp: expected P (actions * states, states) as CSR, reward (actions, states), observation (actions, states, "
    "observations), and vectors, corners and beliefs with one column for each state";

// When a search ends: its gap relative to the value (or to the floor), the share of the gap that a trial looks for, and
// the most trials, steps of a trial, and seconds.
struct SearchLimits {
    double tolerance, floor, share;
    std::size_t trials, depth;
    double seconds;
};

BeliefProcess process(const Rows &P, const RowMajor<double> &reward, const Cube &observation, double discount) {
    const std::size_t actions = reward.shape(0), states = reward.shape(1), seen = observation.shape(2);
    require(actions > 0 && states > 0 && seen > 0 && P.rows == actions * states && P.cols == states &&
                observation.shape(0) == actions && observation.shape(1) == states,
            EXPECTED);
    return {view(P, EXPECTED), reward.data(), observation.data(), states, actions, seen, discount};
}

void require_columns(const RowMajor<double> &x, std::size_t states) { require(x.shape(1) == states, EXPECTED); }

UpperBound upper_bound(const Vector<double> &corner, const RowMajor<double> &vectors, const RowMajor<double> &points,
                       const Vector<double> &values) {
    const std::size_t n = corner.shape(0);
    require_columns(vectors, n);
    require_columns(points, n);
    require(points.shape(0) == values.shape(0), EXPECTED);
    UpperBound bound{{corner.data(), corner.data() + n}, vectors.data(), vectors.shape(0), {}};
    for (std::size_t i = 0; i < points.shape(0); ++i)
        bound.points.emplace_back(points.data() + i * n, n, values.data()[i]);
    bound.refresh();
    return bound;
}

VectorSet vector_set(const RowMajor<double> &x) {
    VectorSet set{x.shape(1), {x.data(), x.data() + x.shape(0) * x.shape(1)}, {}};
    set.tag.resize(x.shape(0));
    std::iota(set.tag.begin(), set.tag.end(), std::int64_t{0});
    return set;
}

auto out_set(VectorSet set) {
    const std::size_t count = set.size();
    return nb::make_tuple(array_out(std::move(set.data), count, set.states), array_out(std::move(set.tag)));
}

void bind_backups(nb::module_ &m) {
    m.def(
        "belief_backup",
        [](Rows P, RowMajor<double> reward, Cube observation, double discount, RowMajor<double> vectors,
           RowMajor<double> beliefs, int threads) {
            const BeliefProcess model = process(P, reward, observation, discount);
            const std::size_t n = model.states, count = beliefs.shape(0);
            require_columns(vectors, n);
            require_columns(beliefs, n);
            require(vectors.shape(0) > 0, EXPECTED);
            const int size = team(threads);
            std::vector<double> out(count * n), value(count);
            std::vector<std::int64_t> action(count);
            {
                nb::gil_scoped_release nogil;
                const VectorTiles tiles(vectors.data(), vectors.shape(0), n);
#pragma omp parallel num_threads(size) if (size > 1)
                {
                    BackupRoom room(model);
#pragma omp for schedule(static)
                    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(count); ++i) {
                        const auto k = static_cast<std::size_t>(i);
                        const Best best = backup(model, vectors.data(), vectors.shape(0), beliefs.data() + k * n,
                                                 out.data() + k * n, room, &tiles);
                        action[k] = static_cast<std::int64_t>(best.index);
                        value[k] = best.value;
                    }
                }
            }
            return nb::make_tuple(array_out(std::move(out), count, n), array_out(std::move(action)),
                                  array_out(std::move(value)));
        },
        "P"_a.noconvert(), "reward"_a, "observation"_a, "discount"_a, "vectors"_a, "beliefs"_a, "threads"_a);
    m.def(
        "belief_upper_backup",
        [](Rows P, RowMajor<double> reward, Cube observation, double discount, Vector<double> corner,
           RowMajor<double> vectors, RowMajor<double> points, Vector<double> values, RowMajor<double> beliefs,
           int threads) {
            const BeliefProcess model = process(P, reward, observation, discount);
            require(corner.shape(0) == model.states, EXPECTED);
            require_columns(beliefs, model.states);
            const UpperBound bound = upper_bound(corner, vectors, points, values);
            const std::size_t count = beliefs.shape(0);
            const int size = team(threads);
            std::vector<double> out(count * model.actions);
            {
                nb::gil_scoped_release nogil;
#pragma omp parallel num_threads(size) if (size > 1)
                {
                    BackupRoom room(model);
#pragma omp for schedule(static)
                    for (std::ptrdiff_t i = 0; i < static_cast<std::ptrdiff_t>(count); ++i)
                        lookahead(model, bound, beliefs.data() + static_cast<std::size_t>(i) * model.states,
                                  out.data() + static_cast<std::size_t>(i) * model.actions, room);
                }
            }
            return array_out(std::move(out), count, model.actions);
        },
        "P"_a.noconvert(), "reward"_a, "observation"_a, "discount"_a, "corner"_a, "vectors"_a, "points"_a, "values"_a,
        "beliefs"_a, "threads"_a);
    m.def(
        "belief_upper",
        [](Vector<double> corner, RowMajor<double> vectors, RowMajor<double> points, Vector<double> values,
           RowMajor<double> beliefs) {
            const std::size_t n = corner.shape(0), count = beliefs.shape(0);
            require_columns(beliefs, n);
            const UpperBound bound = upper_bound(corner, vectors, points, values);
            std::vector<double> out(count);
            {
                nb::gil_scoped_release nogil;
                for (std::size_t i = 0; i < count; ++i) out[i] = bound(beliefs.data() + i * n);
            }
            return array_out(std::move(out));
        },
        "corner"_a, "vectors"_a, "points"_a, "values"_a, "beliefs"_a);
    m.def(
        "informed_bound",
        [](Rows P, RowMajor<double> reward, Cube observation, double discount, InOut2<double> vectors,
           std::size_t sweeps, double stop, int threads) {
            const BeliefProcess model = process(P, reward, observation, discount);
            require(vectors.shape(0) == model.actions && vectors.shape(1) == model.states, EXPECTED);
            const int size = team(threads);
            std::vector<double> changes;
            {
                nb::gil_scoped_release nogil;
                const Interrupts poll;
                std::vector<double> other(model.actions * model.states);
                for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
                    changes.push_back(informed_sweep(model, vectors.data(), other.data(), size));
                    std::copy(other.begin(), other.end(), vectors.data());
                    if (!(changes.back() > stop)) break;
                    poll();
                }
            }
            return array_out(std::move(changes));
        },
        "P"_a.noconvert(), "reward"_a, "observation"_a, "discount"_a, "vectors"_a.noconvert(), "sweeps"_a, "stop"_a,
        "threads"_a);
}

void bind_search(nb::module_ &m) {
    nb::class_<SearchLimits>(m, "SearchLimits")
        .def(nb::init<double, double, double, std::size_t, std::size_t, double>(), nb::kw_only(), "tolerance"_a,
             "floor"_a, "share"_a, "trials"_a, "depth"_a, "seconds"_a);
    m.def(
        "belief_search",
        [](Rows P, RowMajor<double> reward, Cube observation, double discount, Vector<double> start,
           RowMajor<double> low, Vector<std::int64_t> low_actions, Vector<double> corner, RowMajor<double> high,
           const SearchLimits &limits) {
            const auto &[tolerance, floor, share, trials, depth, seconds] = limits;
            const BeliefProcess model = process(P, reward, observation, discount);
            const std::size_t n = model.states;
            require_columns(low, n);
            require(start.shape(0) == n && corner.shape(0) == n && low.shape(0) > 0 &&
                        low_actions.shape(0) == low.shape(0) && all_below(low_actions, model.actions),
                    EXPECTED);
            LowerBound lower{n,
                             {low.data(), low.data() + low.shape(0) * n},
                             {low_actions.data(), low_actions.data() + low_actions.shape(0)}};
            std::vector<double> none, trace;
            BeliefSearch search(model, std::move(lower),
                                UpperBound{{corner.data(), corner.data() + n}, high.data(), high.shape(0), {}});
            require_columns(high, n);
            {
                nb::gil_scoped_release nogil;
                const Interrupts poll;
                const auto began = Interrupts::Clock::now();
                for (std::size_t i = 0; i < trials; ++i) {
                    const double below = search.low()(start.data()), above = search.high()(start.data());
                    const double wanted = tolerance * std::max(floor, std::min(std::abs(below), std::abs(above)));
                    if (above - below <= wanted) break;
                    search.trial(start.data(), std::max(wanted, share * (above - below)), depth);
                    const std::chrono::duration<double> passed = Interrupts::Clock::now() - began;
                    trace.insert(trace.end(), {search.low()(start.data()), search.high()(start.data()),
                                               static_cast<double>(search.low().count()),
                                               static_cast<double>(search.high().points.size()), passed.count()});
                    if (passed.count() > seconds) break;
                    poll();
                }
            }
            const LowerBound &found = search.low();
            const UpperBound &above = search.high();
            std::vector<double> points(above.points.size() * n), values;
            for (std::size_t i = 0; i < above.points.size(); ++i) {
                const SparsePoint &p = above.points[i];
                for (std::size_t j = 0; j < p.state.size(); ++j) points[i * n + p.state[j]] = p.weight[j];
                values.push_back(p.value);
            }
            const std::size_t rows = trace.size() / 5, count = above.points.size();
            return nb::make_tuple(array_out(std::vector<double>(found.vectors), found.count(), n),
                                  array_out(std::vector<std::int64_t>(found.actions)),
                                  array_out(std::vector<double>(above.corner)), array_out(std::move(points), count, n),
                                  array_out(std::move(values)), array_out(std::move(trace), rows, 5));
        },
        "P"_a.noconvert(), "reward"_a, "observation"_a, "discount"_a, "start"_a, "low"_a, "low_actions"_a, "corner"_a,
        "high"_a, "limits"_a);
    m.def(
        "prune_vectors",
        [](RowMajor<double> vectors, double tolerance) {
            require(vectors.shape(1) > 0, EXPECTED);
            VectorSet kept;
            {
                nb::gil_scoped_release nogil;
                kept = pruned(vector_set(vectors), tolerance, Interrupts{});
            }
            return array_out(std::move(kept.tag));
        },
        "vectors"_a, "tolerance"_a);
    m.def(
        "largest_excess",
        [](RowMajor<double> vectors, RowMajor<double> others) {
            require(vectors.shape(1) > 0 && vectors.shape(1) == others.shape(1) && others.shape(0) > 0, EXPECTED);
            nb::gil_scoped_release nogil;
            return largest_excess(vector_set(vectors), vector_set(others), Interrupts{});
        },
        "vectors"_a, "others"_a);
    m.def(
        "incremental_pruning",
        [](Rows P, RowMajor<double> reward, Cube observation, double discount, RowMajor<double> vectors,
           double tolerance, std::size_t most) {
            const BeliefProcess model = process(P, reward, observation, discount);
            require_columns(vectors, model.states);
            require(vectors.shape(0) > 0, EXPECTED);
            VectorSet next;
            {
                nb::gil_scoped_release nogil;
                next = incremental_pruning(model, vector_set(vectors), tolerance, most, Interrupts{});
            }
            return out_set(std::move(next));
        },
        "P"_a.noconvert(), "reward"_a, "observation"_a, "discount"_a, "vectors"_a, "tolerance"_a, "most"_a);
}

}  // namespace

void bind_pomdp(nb::module_ &m) {
    bind_backups(m);
    bind_search(m);
}

}  // namespace epicycle
