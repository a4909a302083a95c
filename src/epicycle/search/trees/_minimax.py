r"""`minimax`: the value of a position by searching the tree of the game.

.. math:: v(s) = \max_a v(s a) \text{ where player 0 moves}, \qquad v(s) = \min_a v(s a) \text{ where player 1 does}

With alpha-beta, what cannot change the value at the root is left out: a move that is refuted once needs no second
refutation. With good moves first, b^(d/2) positions remain of b^d (Knuth and Moore 1975).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from epicycle._native import search as native
from epicycle.core import _parameters as domains
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, InstanceOf, Integer, NoneOr, Real, check_parameter
from epicycle.core.estimator import in_catalogue
from epicycle.search.games._game import CHANCE, Game, checked_state
from epicycle.search.games._native_game import NativeGame, Position

_DOMAINS = {
    "game": InstanceOf(Game),
    "method": Choice("alpha_beta", "plain"),
    "max_depth": NoneOr(Integer(minimum=1)),
    "max_nodes": NoneOr(Integer(minimum=1)),
    "time_limit": NoneOr(Real(0, inclusive=False)),
    "evaluate": NoneOr(domains.Callable()),
    "table_size": Integer(minimum=16, maximum=2**32),
}
_WIN = 1000  # of the compiled search
_DEEPEST = 254
_ALL = 2**62


@dataclass(frozen=True)
class MinimaxResult:
    """Value of a position with the line of play that leads to it.

    Attributes
    ----------
    action : int
        Best move that was found.
    value : float
        Value for the player who moves: proven, or an estimate where the search was limited.
    lower, upper : float
        Proven bounds of the value; equal where it is proven.
    line : tuple of int
        Principal variation: best moves of both from here, as far as they are known.
    depth : int
        Number of moves that the last finished search looked ahead.
    n_nodes : int
        Positions that were searched.
    history : History
        Value, positions and seconds of each depth.
    certificate : Certificate
        Distance of the proven bounds.
    """

    action: int
    value: float
    lower: float
    upper: float
    line: tuple[int, ...]
    depth: int
    n_nodes: int
    history: History = field(repr=False)
    certificate: Certificate


@in_catalogue("search", "G12", certificate="distance of the proven bounds", docs={})
def minimax(
    game: Game,
    state: Any = None,
    *,
    method: str = "alpha_beta",
    max_depth: int | None = None,
    max_nodes: int | None = None,
    time_limit: float | None = None,
    evaluate: Callable[[Any], float] | None = None,
    table_size: int = 2**20,
) -> MinimaxResult:
    """Value and best move of a position by minimax, with alpha-beta, iterative deepening and a table of positions.

    Parameters
    ----------
    game : Game
        The rules; without chance and hidden information.
    state : optional
        Position to search from; by default the start.
    method : {"alpha_beta", "plain"}, default="alpha_beta"
        "plain" visits the whole tree, in Python, and is there to be compared with.
    max_depth : int, optional
        Largest number of moves to look ahead; by default to the end of the game.
    max_nodes : int, optional
        Largest number of positions.
    time_limit : float, optional
        Seconds. What a search finds within a time limit depends on the machine.
    evaluate : callable, optional
        Estimate of a state for the player who moves, where the depth runs out; by default the game's own for compiled
        games and 0 for others. With it the search runs in Python.
    table_size : int, default=2**20
        Entries of the table of positions of the compiled search, rounded down to a power of two; 16 bytes each.

    Returns
    -------
    MinimaxResult

    Notes
    -----
    Positions of tic-tac-toe and Connect Four are told apart exactly, those of Othello and Go by 64 bits of a hash:
    a proof there is one up to collisions.

    Examples
    --------
    Tic-tac-toe is a draw:

    >>> from epicycle.search import TicTacToe, minimax
    >>> result = minimax(TicTacToe())
    >>> result.value, result.certificate.holds
    (0.0, True)
    """
    given = {"game": game, "method": method, "max_depth": max_depth, "max_nodes": max_nodes, "time_limit": time_limit}
    for name, value in {**given, "evaluate": evaluate, "table_size": table_size}.items():
        check_parameter("minimax", name, value, _DOMAINS[name])
    begin = checked_state("minimax", game, state)
    limits = (max_depth or _DEEPEST, max_nodes or _ALL, time_limit or math.inf)
    if isinstance(game, NativeGame) and evaluate is None and method == "alpha_beta":
        return _compiled(begin, limits, int(table_size).bit_length() - 1)
    search = _Search(game, evaluate, method == "alpha_beta", limits)
    return search.run(begin)


def _compiled(state: Position, limits: tuple[int, int, float], bits: int) -> MinimaxResult:
    depth, nodes, seconds = limits
    value, proven, reached, visited, line, trace = native.alpha_beta(
        *state.arguments, depth=min(depth, _DEEPEST), nodes=nodes, seconds=seconds, table_bits=bits
    )
    moves = tuple(int(move) for move in line)
    columns = dict(zip(("depth", "value", "n_nodes", "seconds"), trace.T, strict=True))
    columns["value"] = columns["value"] / _WIN
    action = moves[0] if moves else state.legal[0]
    bounds = (-1.0, 1.0)  # those of every such game
    return _result(action, value / _WIN, proven, bounds, moves, reached, visited, History(**columns))


def _result(
    action: int,
    value: float,
    proven: bool,
    bounds: tuple[float, float],
    line: tuple[int, ...],
    depth: int,
    n_nodes: int,
    history: History,
) -> MinimaxResult:
    lower, upper = (value, value) if proven else bounds
    meaning = (
        "with best play by both, the player who moves gets this value"
        if proven
        else "the search was limited: the value is an estimate, and nothing is proven"
    )
    certificate = Certificate("distance of the proven bounds", upper - lower, 0.0, meaning)
    return MinimaxResult(action, value, lower, upper, line, depth, n_nodes, history, certificate)


class _LimitReachedError(Exception):
    """The limit of positions or of time is reached."""


class _Search:
    """The search over any game, in Python; values are for player 0."""

    def __init__(
        self, game: Game, evaluate: Callable[[Any], float] | None, prune: bool, limits: tuple[int, int, float]
    ) -> None:
        self.game, self.evaluate, self.prune = game, evaluate, prune
        self.depth, self.most, self.seconds = limits
        self.nodes, self.began = 0, perf_counter()
        # key -> depth (infinite: to the end), value, lowest and highest value that it stands for, best move
        self.table: dict[Any, tuple[float, float, float, float, int]] = {}

    def run(self, state: Any) -> MinimaxResult:
        sign = 1.0 if self.game.player(state) == 0 else -1.0
        rows: list[tuple[float, ...]] = []
        action, value, proven = self.game.legal_moves(state)[0], 0.0, False
        line: tuple[int, ...] = (action,)
        try:
            for depth in range(1 if self.prune else self.depth, self.depth + 1):
                value, proven = self.search(state, depth, -math.inf, math.inf)
                line = self.line(state)
                action = line[0]
                rows.append((depth, sign * value, self.nodes, perf_counter() - self.began))
                if proven:
                    break
        except _LimitReachedError:
            pass
        names = ("depth", "value", "n_nodes", "seconds")
        columns = np.array(rows, dtype=np.float64).reshape(-1, 4).T
        history = History(**dict(zip(names, columns, strict=True)))
        reached = int(rows[-1][0]) if rows else 0
        final = rows[-1][1] if rows else 0.0
        nodes = min(self.nodes, self.most)
        return _result(action, final, proven, (-math.inf, math.inf), line, reached, nodes, history)

    def search(self, state: Any, left: int, alpha: float, beta: float) -> tuple[float, bool]:
        """Value for player 0 within (alpha, beta), or a bound of it; and whether no estimate went into it."""
        self.nodes += 1
        if self.nodes > self.most or perf_counter() - self.began > self.seconds:
            raise _LimitReachedError
        game = self.game
        if game.is_over(state):
            return self._number(game.result(state), "result"), True
        if game.player(state) == CHANCE:
            raise DataError("minimax: chance moves in this game; expected one without chance, or take SelfPlay")
        if left == 0:
            guess = 0.0 if self.evaluate is None else self._number(self.evaluate(state), "evaluate")
            return (guess if game.player(state) == 0 else -guess), False
        key = game.key(state)
        depth, _, low, high, first = self.table.get(key, (-1.0, 0.0, 0.0, 0.0, -1))
        if self.prune and depth >= left and (low == high or low >= beta or high <= alpha):
            return (low if low == high or low >= beta else high), depth == math.inf
        value, complete, best = self._best(state, first, left, alpha, beta)
        low = value if value > alpha or not self.prune else -math.inf
        high = value if value < beta or not self.prune else math.inf
        self.table[key] = (math.inf if complete else float(left), value, low, high, best)
        return value, complete

    def _best(self, state: Any, first: int, left: int, alpha: float, beta: float) -> tuple[float, bool, int]:
        game = self.game
        moves = sorted(game.legal_moves(state), key=lambda move: move != first)  # stable: the others keep their order
        if not moves:
            raise DataError(f"game: no move is legal in {state!r:.60}, which is not over; expected at least one")
        sign = 1.0 if game.player(state) == 0 else -1.0
        best, best_complete, all_complete, choice = -math.inf, False, True, moves[0]
        low, high = alpha, beta
        for move in moves:
            value, complete = self.search(game.apply(state, move), left - 1, low, high)
            all_complete = all_complete and complete
            if sign * value > best:
                best, best_complete, choice = sign * value, complete, move
            if sign > 0:
                low = max(low, value)
            else:
                high = min(high, value)
            if self.prune and low >= high:
                return sign * best, best_complete, choice
        return sign * best, all_complete, choice

    def line(self, state: Any) -> tuple[int, ...]:
        """Best moves from here, while the table has exact values."""
        found: list[int] = []
        seen = set()
        while not self.game.is_over(state) and (key := self.game.key(state)) not in seen:
            seen.add(key)
            entry = self.table.get(key)
            if entry is None or entry[2] != entry[3]:
                break
            found.append(entry[4])
            state = self.game.apply(state, entry[4])
        return tuple(found)

    @staticmethod
    def _number(value: Any, name: str) -> float:
        number = float(value)
        if not math.isfinite(number):
            raise DataError(f"{name}: got {value!r}; expected a finite number")
        return number
