// Bindings of the rules of games and of alpha-beta.
#include "search/alpha_beta.hpp"
#include "search/with_game.hpp"

namespace epicycle {

void bind_games(nb::module_ &m) {
    m.def(
        "position",
        [](int game, int option, Moves moves) {
            return with_game(game, option, moves, [](const auto &position) {
                using G = std::decay_t<decltype(position)>;
                constexpr int cells = G::ROWS * G::COLUMNS;
                std::vector<std::int64_t> board(cells), legal;
                for (int i = 0; i < cells; ++i) board[static_cast<std::size_t>(i)] = position.stone(i);
                if (!position.over()) {
                    std::uint8_t found[G::ACTIONS];
                    legal.assign(found, found + position.moves(found));
                }
                const int result = position.over() ? position.result() : 0;
                return nb::make_tuple(array_out(std::move(board), G::ROWS, G::COLUMNS), array_out(std::move(legal)),
                                      position.player(), position.over(), result, position.key());
            });
        },
        "game"_a, "option"_a, "moves"_a);
    m.def(
        "perft",
        [](int game, int option, Moves moves, int depth, bool ended_too) {
            return with_game(game, option, moves, [&](const auto &position) {
                require(depth >= 0, "depth: expected at least 0");
                nb::gil_scoped_release nogil;
                return count_games(position, depth, ended_too, Interrupts{});
            });
        },
        "game"_a, "option"_a, "moves"_a, "depth"_a, "ended_too"_a);
    m.def(
        "playouts",
        [](int game, int option, Moves moves, std::int64_t count, std::uint64_t seed) {
            return with_game(game, option, moves, [&](const auto &position) {
                std::int64_t results[3] = {0, 0, 0}, steps = 0;
                {
                    nb::gil_scoped_release nogil;
                    const Interrupts poll;
                    SplitMix generator{seed};
                    for (std::int64_t i = 0; i < count; ++i) {
                        auto now = position;
                        for (; !now.over(); ++steps) now.play(now.random_move(generator));
                        ++results[now.result() + 1];
                        if ((i & 1023) == 0) poll();
                    }
                }
                return nb::make_tuple(results[0], results[1], results[2], steps);
            });
        },
        "game"_a, "option"_a, "moves"_a, "count"_a, "seed"_a);
    m.def(
        "alpha_beta",
        [](int game, int option, Moves moves, int depth, std::int64_t nodes, double seconds, std::size_t table_bits) {
            return with_game(game, option, moves, [&](const auto &position) {
                using G = std::decay_t<decltype(position)>;
                require(table_bits >= 4 && table_bits <= 32 && depth >= 1 && nodes >= 1,
                        "alpha_beta: expected depth and nodes of at least 1, table_bits from 4 to 32");
                const Interrupts poll;
                std::vector<std::int64_t> line;
                std::vector<double> trace;
                int value, depth_reached;
                std::int64_t visited;
                bool proven;
                {
                    nb::gil_scoped_release nogil;
                    AlphaBeta<G, Interrupts> search(table_bits, {depth, nodes, seconds}, poll);
                    search.run(position);
                    line.assign(search.line.begin(), search.line.end());
                    for (const DepthRecord &row : search.trace)
                        trace.insert(trace.end(), {static_cast<double>(row.depth), static_cast<double>(row.value),
                                                   static_cast<double>(row.nodes), row.seconds});
                    value = search.value, depth_reached = search.depth;
                    visited = search.nodes, proven = search.proven;
                }
                const std::size_t rows = trace.size() / 4;
                return nb::make_tuple(value, proven, depth_reached, visited, array_out(std::move(line)),
                                      array_out(std::move(trace), rows, 4));
            });
        },
        "game"_a, "option"_a, "moves"_a, "depth"_a, "nodes"_a, "seconds"_a, "table_bits"_a);
}

}  // namespace epicycle
