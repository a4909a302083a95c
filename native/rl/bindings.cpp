// Bindings of the learners over numbered states and actions.
#include <nanobind/stl/array.h>

#include "core/binding.hpp"
#include "rl/monte_carlo.hpp"
#include "rl/planning.hpp"
#include "rl/temporal_difference.hpp"

namespace epicycle {

namespace {

using Numbers = std::array<double, 4>;  // a schedule: kind, start, end, span
constexpr auto ARRAYS = "tables: expected arrays of states * actions entries, or of states";

// An environment of Python: reset() -> state, step(action) -> (state, reward, terminated, truncated).
class PythonWorld {
public:
    PythonWorld(nb::callable reset_, nb::callable step_, std::size_t n_states, std::size_t n_actions)
        : begin(std::move(reset_)), advance(std::move(step_)), n_states(n_states), n_actions(n_actions) {}
    std::size_t states() const { return n_states; }
    std::size_t actions() const { return n_actions; }
    void go_on(std::int64_t) {}
    std::size_t reset(Random &) { return checked(nb::cast<std::int64_t>(begin())); }
    Transition step(std::size_t, std::size_t action, Random &) {
        const nb::tuple got = nb::cast<nb::tuple>(advance(action));
        return {checked(nb::cast<std::int64_t>(got[0])), nb::cast<double>(got[1]), nb::cast<bool>(got[2]),
                nb::cast<bool>(got[3])};
    }

private:
    nb::callable begin, advance;
    std::size_t n_states, n_actions;
    std::size_t checked(std::int64_t state) const {
        require(state >= 0 && static_cast<std::size_t>(state) < n_states, "world: a state is out of range");
        return static_cast<std::size_t>(state);
    }
};

Schedule schedule(const Numbers &x) {
    require(x[0] >= 0 && x[0] <= 3, "schedule: expected a kind from 0 to 3");
    return {static_cast<Schedule::Kind>(static_cast<int>(x[0])), x[1], x[2], x[3]};
}

// The tables of an agent, and how it learns and explores.
struct LearnerArrays {
    InOut1<double> q, second;
    InOut1<std::int64_t> visits;
    InOut1<std::uint8_t> allowed;
    Weight policy;
    double discount;
    int target, exploration;
    Numbers rate, explore;
};

struct PositionArrays {
    InOut1<std::int64_t> whole;
    InOut1<double> real;
};

// Rewards that wait for their target, and traces of earlier steps.
struct TraceArrays {
    InOut1<std::int64_t> ring_key;
    InOut1<double> ring_reward, trace;
    InOut1<std::int64_t> active;
    double decay;
    int kind;
    bool offline;
};

template <class World>
Learner learner(const World &world, const LearnerArrays &arrays) {
    const auto &[q, second, visits, allowed, policy, discount, target, exploration, rate, explore] = arrays;
    require(target >= 0 && target <= 4 && exploration >= 0 && exploration <= 3, "unknown target or exploration");
    const std::size_t pairs = world.states() * world.actions();
    const std::size_t keys = static_cast<Target>(target) == Target::state_values ? world.states() : pairs;
    require(q.shape(0) == keys && visits.shape(0) == keys && allowed.shape(0) == pairs, ARRAYS);
    require(second.shape(0) == keys || second.shape(0) == 0, ARRAYS);
    const bool fixed = static_cast<Exploration>(exploration) == Exploration::fixed;
    require(!fixed || (policy && policy->shape(0) == pairs), ARRAYS);
    require(fixed || keys == pairs, "values of states are learnt for a policy that is given");
    return {world.states(),
            world.actions(),
            q.data(),
            second.data(),
            visits.data(),
            allowed.data(),
            fixed ? policy->data() : nullptr,
            discount,
            static_cast<Target>(target),
            static_cast<Exploration>(exploration),
            schedule(rate),
            schedule(explore),
            ActionChoice(world.actions())};
}

Position position(const PositionArrays &arrays, const Learner &m) {
    const auto &[whole, real] = arrays;
    require(whole.shape(0) == Position::WHOLES && real.shape(0) == Position::REALS, "position: wrong sizes");
    const std::int64_t *w = whole.data();
    require(w[Position::STATE] >= 0 && static_cast<std::size_t>(w[Position::STATE]) < m.states &&
                w[Position::ACTION] < static_cast<std::int64_t>(m.actions),
            "position: a state or action is out of range");
    return {whole.data(), real.data()};
}

Episodes records(const InOut2<double> &rows) {
    require(rows.shape(1) == Episodes::COLUMNS, "episodes: expected six columns");
    return {rows.data(), rows.shape(0)};
}

// Runs without the GIL where the world is a table.
template <class World, class Run>
void released(Run run) {
    if constexpr (std::is_same_v<World, TableWorld>) {
        nb::gil_scoped_release nogil;
        run();
    } else {
        run();
    }
}

template <class World>
void bind_world(nb::module_ &m) {
    m.def(
        "temporal_difference",
        [](World &world, const LearnerArrays &tables, const PositionArrays &place, const TraceArrays &traces,
           std::size_t steps, bool last, InOut2<double> rows) {
            const auto &[ring_key, ring_reward, trace, active, decay, kind, offline] = traces;
            Learner l = learner(world, tables);
            Position at = position(place, l);
            const std::size_t n = std::max<std::size_t>(ring_key.shape(0), 1), keys = tables.q.shape(0);
            const bool two = l.target == Target::double_q_learning;
            require(ring_reward.shape(0) == ring_key.shape(0) && all_below(ring_key, keys), "ring: wrong entries");
            require(decay == 0.0 || (trace.shape(0) == keys && active.shape(0) == keys && all_below(active, keys)),
                    "traces: expected one for every entry of q");
            require(!(offline || two) || tables.second.shape(0) == keys, ARRAYS);
            require(!two || (decay == 0.0 && n == 1 && !offline), "double Q-learning looks one step ahead");
            require(at.whole[Position::WAITING] >= 0 && at.whole[Position::OLDEST] >= 0 &&
                        at.whole[Position::WAITING] <= static_cast<std::int64_t>(n) &&
                        at.whole[Position::ACTIVE] >= 0 &&
                        at.whole[Position::ACTIVE] <= static_cast<std::int64_t>(active.shape(0)),
                    "position: wrong counts");
            require(kind >= 0 && kind <= 2, "trace: expected a kind from 0 to 2");
            TemporalDifference run{l,      at,           at.random(),   ring_key.data(), ring_reward.data(),
                                   n,      trace.data(), active.data(), decay,           static_cast<Trace>(kind),
                                   offline};
            Episodes episodes = records(rows);
            std::size_t made = 0;
            released<World>([&] { made = run.run(world, steps, last, episodes); });
            return std::make_tuple(made, episodes.count);
        },
        "world"_a, "learner"_a, "position"_a, "traces"_a, "steps"_a, "last"_a, "rows"_a.noconvert());
    m.def(
        "monte_carlo",
        [](World &world, const LearnerArrays &tables, const PositionArrays &place, bool first_visit, bool off_policy,
           std::size_t steps, std::size_t most, InOut2<double> rows) {
            Learner l = learner(world, tables);
            Position at = position(place, l);
            require(!off_policy || (tables.second.shape(0) == tables.q.shape(0) && !l.by_state()), ARRAYS);
            MonteCarlo run{l, at, at.random(), first_visit, off_policy};
            Episodes episodes = records(rows);
            std::size_t made = 0;
            released<World>([&] { made = run.run(world, steps, most, episodes, Interrupts{}); });
            return std::make_tuple(made, episodes.count);
        },
        "world"_a, "learner"_a, "position"_a, "first_visit"_a, "off_policy"_a, "steps"_a, "most"_a,
        "rows"_a.noconvert());
    m.def(
        "plan",
        [](World &world, const LearnerArrays &tables, const PositionArrays &place, TransitionModel &model,
           InOut1<double> priority, InOut1<std::int64_t> n_updates, std::size_t updates, double threshold,
           std::size_t steps, InOut2<double> rows) {
            Learner l = learner(world, tables);
            Position at = position(place, l);
            const std::size_t pairs = tables.q.shape(0);
            require(!l.by_state() && model.n_pairs() == pairs && model.n_states() == l.states, ARRAYS);
            require((priority.shape(0) == 0 || priority.shape(0) == pairs) && n_updates.shape(0) == 1, ARRAYS);
            double *waiting = priority.shape(0) > 0 ? priority.data() : nullptr;
            Planning run{l, at, at.random(), model, updates, threshold, waiting, n_updates.data()[0]};
            Episodes episodes = records(rows);
            std::size_t made = 0;
            released<World>([&] { made = run.run(world, steps, episodes); });
            return std::make_tuple(made, episodes.count);
        },
        "world"_a, "learner"_a, "position"_a, "model"_a, "priority"_a.noconvert(), "n_updates"_a.noconvert(),
        "updates"_a, "threshold"_a, "steps"_a, "rows"_a.noconvert());
}

}  // namespace

void bind_rl(nb::module_ &m) {
    nb::class_<TableWorld>(m, "TableWorld")
        .def(
            "__init__",
            [](TableWorld *self, std::size_t states, std::size_t actions, Vector<std::int64_t> row,
               Vector<std::int64_t> next, Vector<double> p, Vector<double> reward, Vector<bool> ends,
               Vector<double> start, std::int64_t max_steps) {
                const std::size_t n = next.shape(0);
                require(states > 0 && states < (std::size_t{1} << 32) && start.shape(0) == states &&
                            row.shape(0) == states * actions + 1 && p.shape(0) == n && reward.shape(0) == n &&
                            ends.shape(0) == n && all_below(next, states),
                        "TableWorld: expected row (states * actions + 1,), entries of one length, start (states,)");
                bool rising = row.data()[0] == 0 && row.data()[states * actions] == static_cast<std::int64_t>(n);
                for (std::size_t k = 0; k < states * actions; ++k)
                    rising = rising && row.data()[k] <= row.data()[k + 1];
                require(rising, "TableWorld: row does not rise from 0 to the number of entries");
                new (self) TableWorld(states, actions, row.data(), next.data(), p.data(), reward.data(), ends.data(),
                                      start.data(), max_steps);
            },
            "states"_a, "actions"_a, "row"_a, "next"_a, "p"_a, "reward"_a, "ends"_a, "start"_a, "max_steps"_a);
    nb::class_<PythonWorld>(m, "PythonWorld")
        .def(nb::init<nb::callable, nb::callable, std::size_t, std::size_t>(), "reset"_a, "step"_a, "states"_a,
             "actions"_a);
    nb::class_<TransitionModel>(m, "TransitionModel")
        .def(nb::init<std::size_t, std::size_t>(), "states"_a, "actions"_a)
        .def(
            "see",
            [](TransitionModel &self, Vector<std::int64_t> pair, Vector<std::int64_t> next, Vector<bool> ended,
               Vector<double> count, Vector<double> reward) {
                const std::size_t n = pair.shape(0);
                require(next.shape(0) == n && ended.shape(0) == n && count.shape(0) == n && reward.shape(0) == n,
                        "TransitionModel.see: expected arrays of one length");
                for (std::size_t i = 0; i < n; ++i)
                    self.see(static_cast<std::size_t>(pair.data()[i]), static_cast<std::size_t>(next.data()[i]),
                             ended.data()[i], count.data()[i], reward.data()[i]);
            },
            "pair"_a, "next"_a, "ended"_a, "count"_a, "reward"_a)
        .def("outcomes", [](const TransitionModel &self) {
            std::vector<std::int64_t> pair, next;
            std::vector<std::uint8_t> ended;
            std::vector<double> count, reward;
            for (const TransitionModel::Outcome &o : self.outcomes()) {
                pair.push_back(static_cast<std::int64_t>(o.pair)), next.push_back(static_cast<std::int64_t>(o.next));
                ended.push_back(o.ended), count.push_back(o.count), reward.push_back(o.reward);
            }
            return nb::make_tuple(array_out(std::move(pair)), array_out(std::move(next)), array_out(std::move(ended)),
                                  array_out(std::move(count)), array_out(std::move(reward)));
        });
    nb::class_<LearnerArrays>(m, "Learner")
        .def(nb::init<InOut1<double>, InOut1<double>, InOut1<std::int64_t>, InOut1<std::uint8_t>, Weight, double, int,
                      int, Numbers, Numbers>(),
             nb::kw_only(), "q"_a.noconvert(), "second"_a.noconvert(), "visits"_a.noconvert(), "allowed"_a.noconvert(),
             "policy"_a.none(), "discount"_a, "target"_a, "exploration"_a, "rate"_a, "explore"_a);
    nb::class_<PositionArrays>(m, "Position")
        .def(nb::init<InOut1<std::int64_t>, InOut1<double>>(), "whole"_a.noconvert(), "real"_a.noconvert());
    nb::class_<TraceArrays>(m, "Traces")
        .def(nb::init<InOut1<std::int64_t>, InOut1<double>, InOut1<double>, InOut1<std::int64_t>, double, int, bool>(),
             nb::kw_only(), "ring_key"_a.noconvert(), "ring_reward"_a.noconvert(), "trace"_a.noconvert(),
             "active"_a.noconvert(), "decay"_a, "kind"_a, "offline"_a);
    bind_world<TableWorld>(m);
    bind_world<PythonWorld>(m);
}

}  // namespace epicycle
