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

std::vector<TreeSearch *> trees_of(const nb::list &held) {
    std::vector<TreeSearch *> all;
    for (const nb::handle tree : held) all.push_back(&tree_of(nb::cast<nb::capsule>(tree)));
    return all;
}

void require_rows(const std::vector<TreeSearch *> &all, std::size_t rows, const InOut2<std::uint8_t> &legal,
                  const InOut1<std::uint8_t> &found) {
    require(rows == all.size() && legal.shape(0) == rows && found.shape(0) == rows,
            "trees: expected one row of planes, legal and found for each");
    for (const TreeSearch *tree : all)
        require(tree->actions() == static_cast<int>(legal.shape(1)), "trees: expected trees of one game");
}

// Trees are matters of their own seeds, whichever thread grows them.
template <class Grow>
void each_tree(const std::vector<TreeSearch *> &all, int threads, Grow grow) {
    const int size = std::min(team(threads), static_cast<int>(all.size()));
    const auto n = static_cast<std::ptrdiff_t>(all.size());
    nb::gil_scoped_release nogil;
#pragma omp parallel for schedule(dynamic, 16) num_threads(size) if (size > 1)
    for (std::ptrdiff_t i = 0; i < n; ++i) grow(static_cast<std::size_t>(i));
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
            const std::vector<TreeSearch *> all = trees_of(trees);
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
    // One leaf of each tree; `found` says which trees have one, and the rows of the others are left alone.
    m.def(
        "select_each",
        [](nb::list trees, double c, Planes planes, InOut2<std::uint8_t> legal, InOut1<std::uint8_t> found,
           int threads) {
            const std::vector<TreeSearch *> all = trees_of(trees);
            for (const TreeSearch *tree : all) require(tree->waiting() == 0, "select_each: leaves still wait");
            require_rows(all, planes.shape(0), legal, found);
            require(all.empty() || (static_cast<int>(planes.shape(1)) == PLANES &&
                                    static_cast<int>(planes.shape(2) * planes.shape(3)) == all[0]->plane_cells()),
                    "select_each: expected planes (trees, 3, rows, columns)");
            const std::size_t cells = planes.shape(1) * planes.shape(2) * planes.shape(3), moves = legal.shape(1);
            each_tree(all, threads, [&](std::size_t i) {
                found.data()[i] = static_cast<std::uint8_t>(
                    all[i]->select(1, c, planes.data() + i * cells, legal.data() + i * moves));
            });
        },
        "trees"_a, "c"_a, "planes"_a.noconvert(), "legal"_a.noconvert(), "found"_a.noconvert(), "threads"_a);
    m.def(
        "back_up_each",
        [](nb::list trees, InOut1<std::uint8_t> found, RowMajor<float> priors, Vector<float> values,
           double playout_share, int threads) {
            const std::vector<TreeSearch *> all = trees_of(trees);
            std::vector<std::size_t> row(all.size());
            std::size_t rows = 0;
            require(found.shape(0) == all.size(), "back_up_each: expected found (trees,)");
            for (std::size_t i = 0; i < all.size(); ++i) {
                require(all[i]->waiting() == found.data()[i], "back_up_each: expected what select_each found");
                row[i] = rows;
                rows += found.data()[i];
            }
            require(priors.shape(0) == rows && values.shape(0) == rows &&
                        (all.empty() || static_cast<int>(priors.shape(1)) == all[0]->actions()),
                    "back_up_each: expected priors (leaves, actions) and values (leaves,) of the leaves that wait");
            each_tree(all, threads, [&](std::size_t i) {
                if (found.data()[i] == 0) return;
                all[i]->back_up(priors.data() + row[i] * priors.shape(1), values.data() + row[i], 1, playout_share);
            });
        },
        "trees"_a, "found"_a.noconvert(), "priors"_a, "values"_a, "playout_share"_a, "threads"_a);
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
