// Bindings of the kernels of planning.
#include "control/bellman.hpp"
#include "core/binding.hpp"

namespace epicycle {

namespace {

template <class I>
DecisionProcess<I> process(const CsrMatrix<double, I> &P, const Vector<double> &reward,
                           const Vector<std::int64_t> &first, double discount, const char *expected) {
    const std::size_t pairs = P.rows, states = P.cols;
    require(reward.shape(0) == pairs && first.shape(0) == states + 1, expected);
    const std::int64_t *f = first.data();
    bool rising = f[0] == 0 && static_cast<std::size_t>(f[states]) == pairs;
    for (std::size_t s = 0; s < states; ++s) rising = rising && f[s] <= f[s + 1];
    require(rising, expected);
    return {view(P, expected), reward.data(), f, discount};
}

template <class I>
void require_choice(const DecisionProcess<I> &m, const InOut1<std::int64_t> &choice, const char *expected) {
    require(choice.shape(0) == m.states(), expected);
    for (std::size_t s = 0; s < m.states(); ++s) {
        const std::int64_t k = choice.data()[s];
        require(k == -1 || (k >= m.first[s] && k < m.first[s + 1]), expected);
    }
}

template <class I>
void bind_bellman(nb::module_ &m) {
    using P = CsrMatrix<double, I>;
    m.def(
        "improve",
        [](P matrix, Vector<double> reward, Vector<std::int64_t> first, double discount, Vector<double> values,
           InOut1<double> out, InOut1<std::int64_t> choice, int threads) {
            constexpr const char *expected =
                "improve: expected P (pairs, states) as CSR, reward (pairs,), first (states + 1,) rising from 0 to "
                "pairs, values, out and choice (states,)";
            const auto mdp = process(matrix, reward, first, discount, expected);
            require(values.shape(0) == mdp.states() && out.shape(0) == mdp.states() &&
                        choice.shape(0) == mdp.states() && values.data() != out.data(),
                    expected);
            const int size = team(threads);
            nb::gil_scoped_release nogil;
            const Change c = improve(mdp, values.data(), out.data(), choice.data(), 1.0, size);
            return std::make_tuple(c.low, c.high);
        },
        "P"_a.noconvert(), "reward"_a, "first"_a, "discount"_a, "values"_a, "out"_a.noconvert(), "choice"_a.noconvert(),
        "threads"_a);
    m.def(
        "iterate",
        [](P matrix, Vector<double> reward, Vector<std::int64_t> first, double discount, InOut1<double> values,
           InOut1<std::int64_t> choice, std::size_t sweeps, double relax, double stop, bool ends, int threads) {
            constexpr const char *expected =
                "iterate: expected P (pairs, states) as CSR, reward (pairs,), first (states + 1,) rising from 0 to "
                "pairs, values and choice (states,)";
            const auto mdp = process(matrix, reward, first, discount, expected);
            const std::size_t n = mdp.states();
            require(values.shape(0) == n && choice.shape(0) == n, expected);
            const int size = team(threads);
            std::vector<double> changes;
            {
                nb::gil_scoped_release nogil;
                const Interrupts poll;
                HugeVector<double> other(n);
                Elimination elimination(mdp, ends);
                double *from = values.data(), *to = other.data();
                for (std::size_t sweep = 0; sweep < sweeps; ++sweep) {
                    const Change c = improve(mdp, from, to, choice.data(), relax, size, &elimination);
                    std::swap(from, to);
                    changes.insert(changes.end(), {c.low, c.high});
                    if (!(c.high - c.low > stop)) break;
                    poll();
                }
                if (from != values.data()) std::copy(from, from + n, values.data());
            }
            const std::size_t done = changes.size() / 2;
            return array_out(std::move(changes), done, 2);
        },
        "P"_a.noconvert(), "reward"_a, "first"_a, "discount"_a, "values"_a.noconvert(), "choice"_a.noconvert(),
        "sweeps"_a, "relax"_a, "stop"_a, "ends"_a, "threads"_a);
    m.def(
        "improve_in_place",
        [](P matrix, Vector<double> reward, Vector<std::int64_t> first, double discount, InOut1<double> values,
           InOut1<std::int64_t> choice) {
            constexpr const char *expected =
                "improve_in_place: expected P (pairs, states) as CSR, reward (pairs,), first (states + 1,) rising from "
                "0 to pairs, values and choice (states,)";
            const auto mdp = process(matrix, reward, first, discount, expected);
            require(values.shape(0) == mdp.states() && choice.shape(0) == mdp.states(), expected);
            nb::gil_scoped_release nogil;
            const Change c = improve_in_place(mdp, values.data(), choice.data());
            return std::make_tuple(c.low, c.high);
        },
        "P"_a.noconvert(), "reward"_a, "first"_a, "discount"_a, "values"_a.noconvert(), "choice"_a.noconvert());
    m.def(
        "evaluate",
        [](P matrix, Vector<double> reward, Vector<std::int64_t> first, double discount, InOut1<std::int64_t> choice,
           InOut1<double> values, std::size_t sweeps, int threads, double stop, bool ends) {
            constexpr const char *expected =
                "evaluate: expected P (pairs, states) as CSR, reward (pairs,), first (states + 1,) rising from 0 to "
                "pairs, choice (states,) of their own pairs or -1, values (states,)";
            const auto mdp = process(matrix, reward, first, discount, expected);
            require(values.shape(0) == mdp.states(), expected);
            require_choice(mdp, choice, expected);
            const int size = team(threads);
            nb::gil_scoped_release nogil;
            const Change c = evaluate(mdp, choice.data(), values.data(), sweeps, stop, ends, size, Interrupts{});
            return std::make_tuple(c.low, c.high);
        },
        "P"_a.noconvert(), "reward"_a, "first"_a, "discount"_a, "choice"_a.noconvert(), "values"_a.noconvert(),
        "sweeps"_a, "threads"_a, "stop"_a = -1.0, "ends"_a = true);
    m.def(
        "sweep_by_priority",
        [](P matrix, Vector<double> reward, Vector<std::int64_t> first, double discount, P leads,
           Vector<std::int64_t> owner, InOut1<double> values, double tolerance, std::size_t limit) {
            constexpr const char *expected =
                "sweep_by_priority: expected P (pairs, states) as CSR, reward (pairs,), first (states + 1,) rising "
                "from 0 to pairs, leads (states, pairs), the transpose of P as CSR, owner (pairs,), values (states,)";
            const auto mdp = process(matrix, reward, first, discount, expected);
            const auto back = view(leads, expected);
            require(back.rows == mdp.states() && back.cols == mdp.P.rows && owner.shape(0) == mdp.P.rows &&
                        all_below(owner, std::max<std::size_t>(mdp.states(), 1)) && values.shape(0) == mdp.states(),
                    expected);
            nb::gil_scoped_release nogil;
            return sweep_by_priority(mdp, back, owner.data(), values.data(), tolerance, limit, Interrupts{});
        },
        "P"_a.noconvert(), "reward"_a, "first"_a, "discount"_a, "leads"_a.noconvert(), "owner"_a,
        "values"_a.noconvert(), "tolerance"_a, "limit"_a);
}

}  // namespace

void bind_control(nb::module_ &m) {
    bind_bellman<std::int32_t>(m);
    bind_bellman<std::int64_t>(m);
}

}  // namespace epicycle
