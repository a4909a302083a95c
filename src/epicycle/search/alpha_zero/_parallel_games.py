"""Many games at once, so that a network values one position of each in one call."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle.core._random import stream
from epicycle.search.games._game import Game
from epicycle.search.games._native_game import NativeGame
from epicycle.search.trees._mcts import Evaluator
from epicycle.search.trees._tree import NativeTree, PythonTree, Tree

Array = np.ndarray
_MAX_NODES = 1_000_000  # of a tree


@dataclass(frozen=True)
class SearchSettings:
    """Of the searches in such games.

    temperature_moves : moves at the start of a game that are drawn in proportion to visits; later the best is taken.
    """

    simulations: int
    exploration: float
    noise: float
    noise_share: float
    temperature_moves: int
    playout_share: float


@dataclass
class Record:
    """One game: for each move the planes, the policy of the search and the player; the result for player 0."""

    planes: list[Array] = field(default_factory=list)
    policies: list[Array] = field(default_factory=list)
    players: list[int] = field(default_factory=list)
    moves: list[int] = field(default_factory=list)
    result: float = 0.0


def play_games(
    game: Game,
    evaluators: Sequence[tuple[Evaluator, Evaluator]],
    settings: SearchSettings,
    seed: int,
    keys: tuple[Any, ...],
) -> list[Record]:
    """Play one game for each pair of evaluators, of players 0 and 1; the games do not depend on each other."""
    states = [game.initial_state() for _ in evaluators]
    records = [Record() for _ in evaluators]
    randoms = [stream(seed, *keys, "game", i) for i in range(len(evaluators))]
    running = list(range(len(evaluators)))
    while running:
        trees = {i: _new_tree(game, states[i], int(randoms[i].integers(2**62))) for i in running}
        movers = {i: game.player(states[i]) for i in running}
        by_evaluator: dict[int, list[int]] = {}
        for i in running:
            by_evaluator.setdefault(id(evaluators[i][movers[i]]), []).append(i)
        for numbers in by_evaluator.values():
            _grow(
                [trees[i] for i in numbers],
                evaluators[numbers[0]][movers[numbers[0]]],
                settings,
                [randoms[i] for i in numbers],
            )
        for i in running:
            move, policy = _choose(trees[i], game.n_actions, settings, len(records[i].moves), randoms[i])
            record = records[i]
            record.planes.append(np.asarray(game.encode(states[i]), dtype=np.float32))
            record.policies.append(policy)
            record.players.append(movers[i])
            record.moves.append(move)
            states[i] = game.apply(states[i], move)
            if game.is_over(states[i]):
                record.result = game.result(states[i])
        running = [i for i in running if not game.is_over(states[i])]
    return records


def _new_tree(game: Game, state: Any, seed: int) -> Tree:
    if isinstance(game, NativeGame):
        return NativeTree(game, state, seed, solver=True, max_nodes=_MAX_NODES)
    return PythonTree(game, state, seed, True, _MAX_NODES)


def _grow(trees: list[Tree], evaluator: Evaluator, settings: SearchSettings, randoms: list[Any]) -> None:
    """Simulations in all trees, one leaf of each at a time."""
    for number in range(settings.simulations):
        leaves = [tree.select(1, settings.exploration) for tree in trees]
        waiting = [i for i, (planes, _) in enumerate(leaves) if len(planes)]
        if not waiting:
            if all(not math.isnan(tree.statistics().root_proven) for tree in trees):
                return
            continue
        planes = np.concatenate([leaves[i][0] for i in waiting])
        priors, values = evaluator(planes, np.concatenate([leaves[i][1] for i in waiting]))
        for row, i in enumerate(waiting):
            trees[i].back_up(priors[row : row + 1], values[row : row + 1], settings.playout_share)
        if number == 0 and settings.noise_share > 0:
            for tree, random in zip(trees, randoms, strict=True):
                n = len(tree.statistics().moves)
                if n:
                    tree.mix_root(random.dirichlet(np.full(n, settings.noise)), settings.noise_share)


def _choose(tree: Tree, n_actions: int, settings: SearchSettings, done: int, random: Any) -> tuple[int, Array]:
    """A move, and the policy that the network is to learn: shares of visits, of proven moves where there are any."""
    found = tree.statistics()
    weights = found.visits.astype(np.float64)
    if not math.isnan(found.root_proven):
        weights = np.where(found.proven == found.root_proven, weights + 1.0, 0.0)
    elif (found.proven != -1).any():
        weights = np.where(found.proven == -1, 0.0, weights)
    if not weights.sum() > 0:
        weights = np.ones(len(weights))
    policy = np.zeros(n_actions, dtype=np.float32)
    policy[found.moves] = weights / weights.sum()
    if done < settings.temperature_moves:
        move = int(random.choice(found.moves, p=weights / weights.sum()))
    else:
        move = int(found.moves[np.argmax(weights)])
    return move, policy
