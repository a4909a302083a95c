"""The whole tree of a small game in arrays, with its information sets, for regret minimisation and best replies."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from epicycle._native import search as native
from epicycle.core._exceptions import DataError, MemoryBudgetError
from epicycle.search.games._game import CHANCE, Game

Array = np.ndarray
END = 3
_MOST_NODES = 20_000_000


@dataclass(frozen=True)
class ExtensiveTree:
    """Nodes with parents before children, and the children of a node one after the other.

    player : of each node, 0, 1, 2 for chance, 3 for the end.
    first, count : first child and number of children of each node.
    information : number of the information set of each node of a player, -1 elsewhere.
    chance : probability with which chance comes to a node.
    payoff : of player 0, at ends.
    first_action : where the actions of each information set begin, and the number of all actions.
    keys, moves : name of each information set, and its moves.
    """

    player: Array
    first: Array
    count: Array
    information: Array
    chance: Array
    payoff: Array
    first_action: Array
    keys: list[tuple[int, Hashable]]
    moves: list[tuple[int, ...]]

    @property
    def native(self) -> native.ExtensiveTree:
        """The arguments of the kernels."""
        return native.ExtensiveTree(
            player=self.player,
            first=self.first,
            count=self.count,
            set=self.information,
            chance=self.chance,
            payoff=self.payoff,
            first_action=self.first_action,
        )

    @property
    def n_actions(self) -> int:
        """Number of actions of all information sets."""
        return int(self.first_action[-1])

    def best_reply(self, strategy: Array, player: int) -> tuple[float, Array]:
        """Largest payoff of a player against a strategy, and the best action of each information set."""
        weights = np.ascontiguousarray(strategy, dtype=np.float64)
        return native.best_reply(self.native, strategy=weights, me=player)

    def exploitability(self, strategy: Array) -> tuple[float, float, float]:
        """Half of what both could gain by best replies; and the bounds of the value that these replies prove."""
        upper, lower = self.best_reply(strategy, 0)[0], -self.best_reply(strategy, 1)[0]
        return max(upper - lower, 0.0) / 2, lower, upper

    def uniform(self) -> Array:
        """The strategy that takes all actions alike."""
        widths = np.diff(self.first_action)
        return np.repeat(1.0 / widths, widths)

    def normalized(self, weights: Array) -> Array:
        """Weights of actions as a strategy; uniform where there are none."""
        widths = np.diff(self.first_action)
        totals = np.repeat(np.add.reduceat(weights, self.first_action[:-1]), widths)
        return np.where(totals > 0, weights / np.where(totals > 0, totals, 1.0), self.uniform())


def lay_out(game: Game) -> ExtensiveTree:
    """The tree of a game, with players checked for perfect recall."""
    name, hides = type(game).__name__, type(game).information_set is not Game.information_set
    states: list[Any] = [game.initial_state()]
    # What each player has done so far, as a pair of the last own information set and action; for perfect recall.
    pasts: list[tuple[tuple[int, int], tuple[int, int]]] = [((-1, -1), (-1, -1))]
    player: list[int] = []
    first: list[int] = []
    count: list[int] = []
    information: list[int] = []
    chance, payoff = [1.0], []
    numbers: dict[tuple[int, Hashable], int] = {}
    moves_of: list[tuple[int, ...]] = []
    past_of: list[tuple[int, int]] = []
    h = 0
    while h < len(states):  # breadth first
        state, past = states[h], pasts[h]
        states[h] = None
        if game.is_over(state):
            for column, entry in zip((player, first, count, information), (END, 0, 0, -1), strict=True):
                column.append(entry)
            payoff.append(_finite(game.result(state)))
            h += 1
            continue
        who, moves = game.player(state), tuple(game.legal_moves(state))
        if not moves:
            raise DataError(f"{name}: no move is legal in {state!r:.60}, which is not over; expected at least one")
        for column, entry in zip((player, first, count), (who, len(states), len(moves)), strict=True):
            column.append(entry)
        payoff.append(0.0)
        if who == CHANCE:
            information.append(-1)
            chance.extend(_probabilities(name, game.chance(state), len(moves)))
            pasts.extend([past] * len(moves))
        else:
            # Where nothing is hidden each node is told apart, by whatever way it was reached: then nobody forgets.
            key = (who, game.information_set(state) if hides else h)
            number = numbers.setdefault(key, len(numbers))
            if number == len(moves_of):
                moves_of.append(moves)
                past_of.append(past[who])
            if moves_of[number] != moves or past_of[number] != past[who]:
                what = "the same legal moves" if moves_of[number] != moves else "the same own moves before (recall)"
                raise DataError(f"{name}.information_set: states of {key[1]!r:.60} differ; expected {what} in each")
            information.append(number)
            chance.extend([1.0] * len(moves))
            for a in range(len(moves)):
                mine = (number, a)
                pasts.append((mine, past[1]) if who == 0 else (past[0], mine))
        states.extend(game.apply(state, move) for move in moves)
        if len(states) > _MOST_NODES:
            raise MemoryBudgetError(f"{name}: its tree has more than {_MOST_NODES:,} nodes; take MCTS or AlphaZero")
        h += 1
    widths = [len(moves) for moves in moves_of]
    return ExtensiveTree(
        np.array(player, dtype=np.int64),
        np.array(first, dtype=np.int64),
        np.array(count, dtype=np.int64),
        np.array(information, dtype=np.int64),
        np.array(chance),
        np.array(payoff),
        np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
        list(numbers),
        moves_of,
    )


def _finite(value: Any) -> float:
    number = float(value)
    if not np.isfinite(number):
        raise DataError(f"result: got {value!r}; expected a finite number")
    return number


def _probabilities(name: str, given: Any, n: int) -> list[float]:
    p = np.asarray(given, dtype=np.float64)
    if p.shape != (n,) or not (p >= 0).all() or abs(p.sum() - 1) > 1e-9:
        raise DataError(f"{name}.chance: got {given!r:.60}; expected {n} probabilities that add up to 1")
    return [float(value) for value in p]
