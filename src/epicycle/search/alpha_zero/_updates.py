"""Updates of a network from positions of games, each seen under a random symmetry of the board."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from epicycle.search.alpha_zero._parallel_games import Record
from epicycle.search.games._game import Game

if TYPE_CHECKING:
    from epicycle.search.alpha_zero._policy_value_net import Network

Array = np.ndarray
Positions = tuple[Array, Array | None, Array | None]  # planes, policies, results for the player who moves


def positions(records: list[Record]) -> tuple[Array, Array, Array]:
    """All positions of some games."""
    results = [r.result * (1.0 if player == 0 else -1.0) for r in records for player in r.players]
    return (
        np.stack([planes for r in records for planes in r.planes]),
        np.stack([policy for r in records for policy in r.policies]),
        np.array(results, dtype=np.float32),
    )


def fit(
    network: Network, game: Game, data: Positions, steps: int, batch_size: int, random: np.random.Generator
) -> tuple[float, float]:
    """Updates of a network by what is given of policies and results; the mean losses of both."""
    planes, policies, results = data
    cells, moves = symmetry_tables(game, planes.shape[2:])
    found = []
    for _ in range(steps):
        rows = random.integers(len(planes), size=min(batch_size, len(planes)))
        which = random.integers(len(cells), size=len(rows))
        flat = planes[rows].reshape(len(rows), planes.shape[1], -1)
        turned = np.take_along_axis(flat, cells[which][:, None, :], axis=2).reshape(-1, *planes.shape[1:])
        policy = None if policies is None else np.take_along_axis(policies[rows], moves[which], axis=1)
        found.append(network.step(turned, policy, None if results is None else results[rows]))
    return float(np.mean([a for a, _ in found])), float(np.mean([b for _, b in found]))


def symmetry_tables(game: Game, board: tuple[int, ...]) -> tuple[Array, Array]:
    """For each symmetry, where the cells and the moves come from."""
    n = board[0] * board[1]
    pairs = game.symmetries(np.arange(n).reshape(1, *board), np.arange(game.n_actions))
    cells = np.stack([np.asarray(planes).reshape(n) for planes, _ in pairs])
    return cells, np.stack([np.asarray(policy) for _, policy in pairs])
