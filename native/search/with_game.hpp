// From a number to the rules of a game; the order is that of `NATIVE_GAMES` in Python.
#pragma once

#include <string>

#include "core/binding.hpp"
#include "search/board_games.hpp"
#include "search/go.hpp"

namespace epicycle {

using Moves = Vector<std::int64_t>;

// Calls run(position) for the position of a game after these moves.
template <class G>
G after_moves(int option, const Moves &moves) {
    G game(option);
    for (std::size_t i = 0; i < moves.shape(0); ++i) {
        const std::int64_t move = moves.data()[i];
        if (game.over() || move < 0 || move >= G::ACTIONS || !game.legal(static_cast<int>(move)))
            throw nb::value_error(
                ("moves: number " + std::to_string(i + 1) + ", " + std::to_string(move) + ", is not legal there")
                    .c_str());
        game.play(static_cast<int>(move));
    }
    return game;
}

template <class Run>
auto with_game(int number, int option, const Moves &moves, Run run) {
    switch (number) {
        case 0:
            return run(after_moves<TicTacToe>(option, moves));
        case 1:
            return run(after_moves<ConnectFour>(option, moves));
        case 2:
            return run(after_moves<Othello>(option, moves));
        case 3:
            return run(after_moves<Go<5>>(option, moves));
        case 4:
            return run(after_moves<Go<7>>(option, moves));
        default:
            throw nb::value_error("game: expected a number from 0 to 4");
    }
}

}  // namespace epicycle
