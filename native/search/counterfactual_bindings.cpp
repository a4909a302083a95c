// Bindings of counterfactual regret minimisation.
#include "core/binding.hpp"
#include "search/counterfactual.hpp"

namespace epicycle {

namespace {

constexpr const char *EXPECTED =
    "expected a tree: player, first, count, set, chance and payoff of each node, parents before children, children one "
    "after the other, and first_action of each information set and of the end";

struct TreeArrays {
    Vector<std::int64_t> player, first, count, set;
    Vector<double> chance, payoff;
    Vector<std::int64_t> first_action;
};

// A tree whose indices are in range and whose actions fit.
ExtensiveTree tree_of(const TreeArrays &arrays) {
    const auto &[player, first, count, set, chance, payoff, first_action] = arrays;
    const std::size_t n = player.shape(0);
    require(n > 0 && first.shape(0) == n && count.shape(0) == n && set.shape(0) == n && chance.shape(0) == n &&
                payoff.shape(0) == n && first_action.shape(0) > 0 && first_action.data()[0] == 0,
            EXPECTED);
    const std::size_t sets = first_action.shape(0) - 1;
    for (std::size_t s = 0; s < sets; ++s) require(first_action.data()[s] < first_action.data()[s + 1], EXPECTED);
    for (std::size_t h = 0; h < n; ++h) {
        const std::int64_t who = player.data()[h];
        require(who >= 0 && who <= ExtensiveTree::END, EXPECTED);
        if (who == ExtensiveTree::END) continue;
        const std::int64_t from = first.data()[h], k = count.data()[h];
        require(k > 0 && from > static_cast<std::int64_t>(h) && from <= static_cast<std::int64_t>(n) - k, EXPECTED);
        if (who == ExtensiveTree::CHANCE) continue;
        const std::int64_t s = set.data()[h];
        require(s >= 0 && s < static_cast<std::int64_t>(sets) &&
                    first_action.data()[s + 1] - first_action.data()[s] == k,
                EXPECTED);
    }
    return {player.data(), first.data(), count.data(), set.data(), chance.data(), payoff.data(), first_action.data(), n,
            sets};
}

}  // namespace

void bind_counterfactual(nb::module_ &m) {
    using Numbers = Vector<std::int64_t>;
    nb::class_<TreeArrays>(m, "ExtensiveTree")
        .def(nb::init<Numbers, Numbers, Numbers, Numbers, Vector<double>, Vector<double>, Numbers>(), nb::kw_only(),
             "player"_a, "first"_a, "count"_a, "set"_a, "chance"_a, "payoff"_a, "first_action"_a);
    m.def(
        "minimize_regret",
        [](const TreeArrays &arrays, InOut1<double> regret, InOut1<double> total, std::int64_t done,
           std::int64_t iterations, double positive, double negative, double average, bool clip) {
            const ExtensiveTree tree = tree_of(arrays);
            const auto actions = static_cast<std::size_t>(tree.first_action[tree.sets]);
            require(regret.shape(0) == actions && total.shape(0) == actions && done >= 0,
                    "minimize_regret: expected regret and total of each action");
            nb::gil_scoped_release nogil;
            const Interrupts poll;
            RegretMinimizer learner(tree, {positive, negative, average, clip}, regret.data(), total.data());
            for (std::int64_t t = 1; t <= iterations; ++t) {
                learner.iterate(done + t);
                poll();
            }
        },
        "tree"_a, "regret"_a.noconvert(), "total"_a.noconvert(), "done"_a, "iterations"_a, "positive"_a, "negative"_a,
        "average"_a, "clip"_a);
    m.def(
        "best_reply",
        [](const TreeArrays &arrays, Vector<double> strategy, int me) {
            const ExtensiveTree tree = tree_of(arrays);
            require(strategy.shape(0) == static_cast<std::size_t>(tree.first_action[tree.sets]) && (me == 0 || me == 1),
                    "best_reply: expected the strategy of each action, and me=0 or 1");
            std::optional<BestReply> reply;
            {
                nb::gil_scoped_release nogil;
                reply.emplace(tree, strategy.data(), me);
            }
            return nb::make_tuple(reply->value, array_out(std::move(reply->action)));
        },
        "tree"_a, "strategy"_a, "me"_a);
}

}  // namespace epicycle
