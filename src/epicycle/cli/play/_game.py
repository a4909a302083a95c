"""``epicycle play connect-four``: a game in the terminal against a search."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from epicycle.core._exceptions import DataError, ParameterError
from epicycle.io import load
from epicycle.search import MCTS, AlphaGo, AlphaZero, MCTSResult, minimax
from epicycle.search.games._board_games import game_named

ENGINES = ("mcts", "minimax")
_LEVELS = {"easy": 50, "medium": 1000, "hard": 50_000}  # simulations of a move
_GUIDED = {"easy": 10, "medium": 100, "hard": 1000}  # the same with networks
_NODES = 2_000  # positions of alpha-beta for each simulation
Chooser = Callable[[Any], tuple[int, str]]


def run_game(name: str, *, engine: str, level: str, second: bool, seed: int) -> None:
    """Play one game; the moves of the user come from standard input."""
    if level not in _LEVELS:
        raise ParameterError(f"--level {level}: expected {', '.join(_LEVELS)}")
    game = game_named(name)
    choose: Chooser
    if engine in ENGINES:
        choose, opponent = (lambda state: _chosen(game, state, engine, level, seed)), f"{engine} search"
    else:
        learner = _learner(engine, game)
        game = learner.game  # a board of the size that it knows
        choose, opponent = (lambda state: _found(learner.search(state, simulations=_GUIDED[level]))), repr(learner)
    me = int(second)
    state = game.initial_state()
    print(f"{name}: you are {game.stones[me]}, the {opponent} is {game.stones[1 - me]}. Moves: {_words(game, state)}")
    print("q ends the game, u takes a move back, h asks for a hint.")
    while not game.is_over(state):
        if game.player(state) == me:
            print(f"\n{game.text(state)}")
            state = _asked(game, state, level, seed)
            if state is None:
                print("The game was given up.")
                return
        else:
            move, comment = choose(state)
            print(f"{game.stones[1 - me]} plays {game.move_text(move)}  ({comment})")
            state = game.apply(state, move)
    print(f"\n{game.text(state)}\n")
    result = game.result(state) * (1 if me == 0 else -1)
    print({1: "You have won.", 0: "A draw.", -1: "You have lost."}[int(result)])


def _words(game: Any, state: Any) -> str:
    names = [game.move_text(move) for move in game.legal_moves(state)]
    return " ".join(names) if len(names) <= 12 else f"{' '.join(names[:4])} ... {' '.join(names[-2:])}"


def _asked(game: Any, state: Any, level: str, seed: int) -> Any:
    """The state after a move of the user; None where the user has left."""
    while True:
        print("your move: ", end="", flush=True)
        line = sys.stdin.readline()
        word = line.strip().lower()
        if not line or word in ("q", "quit"):
            print()
            return None
        if word == "u":
            if len(state.moves) < 2:
                print("There is no move of yours to take back.")
                continue
            return game.position(state.moves[:-2])
        if word == "h":
            move, comment = _chosen(game, state, "mcts", level, seed)
            print(f"{game.move_text(move)} ({comment})")
            continue
        try:
            move = game.read_move(word)
        except DataError:
            move = -1
        if move in game.legal_moves(state):
            return game.apply(state, move)
        print(f"{word!r} is no legal move; expected one of {_words(game, state)}")


def _chosen(game: Any, state: Any, engine: str, level: str, seed: int) -> tuple[int, str]:
    """Move of the engine, and what it thinks of it."""
    effort = _LEVELS[level]
    if engine == "minimax":
        found = minimax(game, state, max_nodes=_NODES * effort // 10)
        sure = found.certificate.holds
        return found.action, f"{'proven ' if sure else ''}value {found.value:+.2f}, {found.depth} moves ahead"
    return _found(MCTS(game, simulations=effort, n_trees=2, random_state=seed).search(state))


def _learner(file: str, game: Any) -> Any:
    """The learner of this game that a file holds."""
    if not Path(file).is_file():
        raise ParameterError(f"--engine {file}: expected {', '.join(ENGINES)}, or a file of AlphaZero or AlphaGo")
    found = load(file)
    if not isinstance(found, AlphaZero | AlphaGo):
        raise ParameterError(f"--engine {file}: holds {found!r:.60}; expected AlphaZero or AlphaGo")
    if type(found.game) is not type(game):
        raise ParameterError(f"--engine {file}: has learnt {found.game!r}; expected {game!r}")
    return found


def _found(result: MCTSResult) -> tuple[int, str]:
    """Move of a Monte-Carlo search, and what it thinks of it."""
    if result.proven is not None:
        return result.action, {1: "it wins", 0: "it is a draw", -1: "it loses"}[int(result.proven)] + " with best play"
    return result.action, f"value {result.value:+.2f} after {result.n_simulations:,} simulations"
