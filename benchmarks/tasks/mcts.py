"""Monte-Carlo tree search with random playouts on Connect Four."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import ratio, speedup_over_best_peer
from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task

#: Positions of which the value is known, as columns from 1.
POSITIONS = ("74223417356477411661", "23163416124767223154", "22525762534622441115", "7422341735647741166133", "")
C = 2**0.5


def make(directory: Path, quick: bool) -> Data:
    return {"simulations": np.array([2_000 if quick else 50_000])}


def moves_of(text: str) -> list[int]:
    return [int(column) - 1 for column in text]


def epicycle_search(data: Data, threads: int = 1) -> Solution:
    from epicycle.search import MCTS, ConnectFour

    game, simulations = ConnectFour(), int(data["simulations"][0])
    # Without proofs, which would end some of the searches early; a tree for each thread.
    settings: dict[str, Any] = {
        "exploration": C,
        "solver": False,
        "random_state": 0,
        "n_jobs": threads,
        "n_trees": threads,
    }
    search = MCTS(game, simulations=simulations, **settings)
    return {"moves": np.array([search.act(game.position(moves_of(text))) for text in POSITIONS])}


def epicycle_on_two(data: Data) -> Solution:
    return epicycle_search(data, 2)


def open_spiel_search(data: Data) -> Solution:
    import pyspiel

    game = pyspiel.load_game("connect_four")
    found = []
    for text in POSITIONS:
        state = game.new_initial_state()
        for move in moves_of(text):
            state.apply_action(move)
        evaluator = pyspiel.RandomRolloutEvaluator(1, 0)
        bot = pyspiel.MCTSBot(game, evaluator, C, int(data["simulations"][0]), 2000, False, 0, False)
        found.append(bot.step(state))
    return {"moves": np.array(found)}


def loss(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Share of the positions whose move gives away half a point or more; in the first ones alpha-beta says so."""
    from epicycle.search import ConnectFour, minimax

    game = ConnectFour()
    found = {}
    for name, solution in solutions.items():
        lost = []
        for text, move in zip(POSITIONS, solution["moves"], strict=True):
            if len(text) < 20:  # at the start the middle column wins, all others do not (V. Allis 1988)
                lost.append(move != 3)
                continue
            state = game.position(moves_of(text))
            after = game.apply(state, int(move))
            kept = float(game.result(after) != 0) if game.is_over(after) else -minimax(game, after).value
            lost.append(kept < minimax(game, state).value)
        found[name] = {"loss": float(np.mean(lost))}
    return found


def million_simulations(outcomes: Mapping[str, Outcome]) -> float:
    return len(POSITIONS) * 50_000 / 1e6 / outcomes["epicycle"].median


TASK = Task(
    name="mcts",
    title="Monte-Carlo tree search on Connect Four: 50,000 simulations from each of five positions",
    description="""\
UCT with one random playout for each simulation, the same constant, no proofs, on one thread; and by two trees with
half of the simulations each on two threads. At equal quality the share of positions in which a move gives away a
result is at most 0.21.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_search, threads=1),
        Implementation("epicycle, two threads", "baseline", epicycle_on_two, threads=2),
        Implementation("OpenSpiel", "peer", open_spiel_search, threads=1),
    ),
    quality=loss,
    tolerance=0.21,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
        Target("million simulations a second", million_simulations, at_least=1.0),
        Target("one thread over two", ratio("epicycle", "epicycle, two threads"), at_least=1.7),
    ),
)
