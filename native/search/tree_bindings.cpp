// Bindings of Monte-Carlo tree search. A tree lives on between calls, held by a capsule.
#include "core/threads.hpp"
#include "search/tree_search.hpp"
#include "search/with_game.hpp"

namespace epicycle {

namespace {

constexpr const char *NAME = "epicycle.search_tree";
using Planes = nb::ndarray<float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;

TreeSearch &tree_of(const nb::capsule &held) {
    require(held.name() != nullptr && std::string(held.name()) == NAME, "tree: expected what new_tree gives");
    return *static_cast<TreeSearch *>(held.data(NAME));
}

}  // namespace

void bind_tree_search(nb::module_ &m) {
    m.def(
        "new_tree",
        [](int game, int option, Moves moves, std::uint64_t seed, bool solver, std::size_t most_nodes) {
            require(most_nodes < (1ull << 32), "most_nodes: expected less than 2^32");
            return with_game(game, option, moves, [&](const auto &position) {
                using G = std::decay_t<decltype(position)>;
                TreeSearch *tree = new GameTree<G>(position, seed, solver, most_nodes);
                return nb::capsule(tree, NAME, [](void *p) noexcept { delete static_cast<TreeSearch *>(p); });
            });
        },
        "game"_a, "option"_a, "moves"_a, "seed"_a, "solver"_a, "most_nodes"_a);
    // The same number of simulations in each tree; each tree is a matter of its own seed, whoever runs it.
    m.def(
        "simulate",
        [](nb::list trees, std::int64_t simulations, double c, double seconds, int threads) {
            std::vector<TreeSearch *> all;
            for (const nb::handle held : trees) all.push_back(&tree_of(nb::cast<nb::capsule>(held)));
            const int size = std::min(team(threads), static_cast<int>(all.size()));
            const auto n = static_cast<std::ptrdiff_t>(all.size());
            // Between pieces there is a look at the clock: some hundredths of a second each, whatever the game, so that
            // threads seldom wait for each other. The trees do not depend on the pieces.
            std::int64_t piece = 256;
            nb::gil_scoped_release nogil;
            const Interrupts poll;
            using Seconds = std::chrono::duration<double>;
            const auto began = Interrupts::Clock::now();
            for (std::int64_t done = 0, now; done < simulations; done += now) {
                const auto started = Interrupts::Clock::now();
                now = std::min(piece, simulations - done);
#pragma omp parallel for schedule(dynamic, 1) num_threads(size) if (size > 1)
                for (std::ptrdiff_t i = 0; i < n; ++i) all[static_cast<std::size_t>(i)]->simulate(now, c);
                if (std::all_of(all.begin(), all.end(), [](const TreeSearch *tree) { return tree->settled(); })) break;
                const auto ended = Interrupts::Clock::now();
                if (Seconds(ended - began).count() > seconds) break;
                if (Seconds(ended - started).count() < 0.02) piece *= 2;
                poll();
            }
        },
        "trees"_a, "simulations"_a, "c"_a, "seconds"_a, "threads"_a);
    m.def(
        "select_leaves",
        [](nb::capsule tree, double c, Planes planes, InOut2<std::uint8_t> legal) {
            TreeSearch &search = tree_of(tree);
            const auto count = planes.shape(0);
            require(search.waiting() == 0, "select_leaves: leaves of the call before still wait for back_up");
            require(static_cast<int>(planes.shape(1)) == PLANES && legal.shape(0) == count &&
                        static_cast<int>(planes.shape(2) * planes.shape(3)) == search.plane_cells() &&
                        static_cast<int>(legal.shape(1)) == search.actions(),
                    "select_leaves: expected planes (count, 3, rows, columns) and legal (count, actions)");
            nb::gil_scoped_release nogil;
            return search.select(static_cast<int>(count), c, planes.data(), legal.data());
        },
        "tree"_a, "c"_a, "planes"_a.noconvert(), "legal"_a.noconvert());
    m.def(
        "back_up",
        [](nb::capsule tree, RowMajor<float> priors, Vector<float> values, double playout_share) {
            TreeSearch &search = tree_of(tree);
            const int count = search.waiting();
            require(static_cast<int>(values.shape(0)) == count && static_cast<int>(priors.shape(0)) == count &&
                        static_cast<int>(priors.shape(1)) == search.actions(),
                    "back_up: expected priors (leaves, actions) and values (leaves,) of the leaves that wait");
            nb::gil_scoped_release nogil;
            search.back_up(priors.data(), values.data(), count, playout_share);
        },
        "tree"_a, "priors"_a, "values"_a, "playout_share"_a);
    m.def(
        "mix_root",
        [](nb::capsule tree, Vector<double> noise, double share) {
            tree_of(tree).mix_root(noise.data(), static_cast<int>(noise.shape(0)), share);
        },
        "tree"_a, "noise"_a, "share"_a);
    m.def("advance", [](nb::capsule tree, int move) { tree_of(tree).advance(move); }, "tree"_a, "move"_a);
    m.def(
        "statistics",
        [](nb::capsule tree) {
            RootStatistics found = tree_of(tree).statistics();
            return nb::make_tuple(array_out(std::move(found.move)), array_out(std::move(found.visits)),
                                  array_out(std::move(found.value)), array_out(std::move(found.prior)),
                                  array_out(std::move(found.proven)), found.root_proven, found.root_visits,
                                  found.root_value, found.nodes);
        },
        "tree"_a);
}

}  // namespace epicycle
