r"""`MCTS`: Monte-Carlo tree search.

A simulation goes down from the root by the move that maximises

.. math:: Q(s, a) + c \sqrt{\log N(s) / N(s, a)} \quad \text{(UCT)}, \qquad
          Q(s, a) + c \, P(s, a) \sqrt{N(s)} / (1 + N(s, a)) \quad \text{(PUCT)},

adds a node, values it by a random playout or by an evaluator, and adds the result to all nodes on its way.
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
from epicycle.core._parameters import (
    SHARED_PARAMETERS,
    Boolean,
    InstanceOf,
    Integer,
    NoneOr,
    Real,
    check_parameter,
)
from epicycle.core._random import Seed, seed_of, stream
from epicycle.core._threads import n_threads
from epicycle.core.estimator import in_catalogue
from epicycle.search.games._game import Game, checked_state
from epicycle.search.games._native_game import NativeGame, Position
from epicycle.search.trees._tree import NativeTree, PythonTree, RootStatistics, Tree

Array = np.ndarray
Evaluator = Callable[[Array, Array], tuple[Array, Array]]
_PIECE = 64  # simulations of a Python game between two looks at the clock
_WORK = 500.0  # operations of a simulation
_DOMAINS = {
    "game": InstanceOf(Game),
    "simulations": Integer(minimum=1),
    "exploration": NoneOr(Real(0)),
    "evaluator": NoneOr(domains.Callable()),
    "playout_share": Real(0, 1),
    "n_trees": Integer(minimum=1, maximum=1024),
    "batch_size": Integer(minimum=1, maximum=65536),
    "solver": Boolean(),
    "reuse": Boolean(),
    "time_limit": NoneOr(Real(0, inclusive=False)),
    "max_nodes": Integer(minimum=100, maximum=2**32 - 1),
    "random_state": SHARED_PARAMETERS["random_state"],
    "n_jobs": SHARED_PARAMETERS["n_jobs"],
}


@dataclass(frozen=True)
class MCTSResult:
    """Outcome of one search.

    Attributes
    ----------
    action : int
        A proven win if there is one, otherwise the move with most visits that is not proven lost.
    policy : array (n_actions,)
        Share of the visits of each move.
    visits : array (n_actions,)
        Number of simulations that began with each move.
    action_values : array (n_actions,)
        Mean result of each move for the player who moves, or the proven one; nan where there is none.
    value : float
        Mean result of all simulations for the player who moves, or the proven one.
    proven : float or None
        Result for the player who moves with best play by both, where the search has settled it.
    n_simulations, n_nodes : int
        Over all trees.
    seconds : float
        Time that the search took.
    certificate : Certificate
        Distance of the proven bounds.
    """

    action: int
    policy: Array = field(repr=False)
    visits: Array = field(repr=False)
    action_values: Array = field(repr=False)
    value: float
    proven: float | None
    n_simulations: int
    n_nodes: int
    seconds: float
    certificate: Certificate = field(repr=False)

    @property
    def simulations_per_second(self) -> float:
        """Simulations in each second of the search."""
        return self.n_simulations / max(self.seconds, 1e-9)


@in_catalogue("search", "G12", certificate="distance of the proven bounds")
class MCTS:
    """Monte-Carlo tree search: random playouts (UCT), or priors and values of an evaluator (PUCT).

    Results that are certain, such as a win in one move, are backed up as proofs (`solver`); a search ends when the
    position is settled. The result is a function of the seed, for any number of threads.

    Parameters
    ----------
    game : Game
        The rules. Games of this package run compiled, others in Python.
    simulations : int, default=1000
        Simulations of a search, over all trees.
    exploration : float, optional
        The constant c; by default the square root of 2 for UCT and 1.25 for PUCT.
    evaluator : callable, optional
        Planes (n, C, H, W) and legal moves (n, n_actions) to priors (n, n_actions) and values (n,), from -1 to 1 for
        the player who moves. Priors are put on a sum of 1 over the legal moves.
    playout_share : float, default=0
        Weight of a random playout beside the value of the evaluator.
    n_trees : int, default=1
        Trees that are grown apart from each other, on as many threads as there are; their visits are added up.
    batch_size : int, default=1
        Leaves that are evaluated in one call; their paths carry virtual losses in the meantime.
    solver : bool, default=True
        Whether proven results are backed up.
    reuse : bool, default=False
        Whether a search goes on with the tree of the one before where the position follows from that one's. Then the
        result depends on the searches before.
    time_limit : float, optional
        Seconds of a search. What it finds then depends on the machine.
    max_nodes : int, default=10_000_000
        Nodes of a tree, 40 bytes each, from which on it grows no more.

    Examples
    --------
    X wins by completing the diagonal:

    >>> from epicycle.search import MCTS, TicTacToe
    >>> game = TicTacToe()
    >>> result = MCTS(game, simulations=200, random_state=0).search(game.position([0, 1, 4, 2]))
    >>> result.action, result.proven
    (8, 1.0)
    """

    _arguments = tuple(_DOMAINS)

    def __init__(
        self,
        game: Game,
        *,
        simulations: int = 1000,
        exploration: float | None = None,
        evaluator: Evaluator | None = None,
        playout_share: float = 0.0,
        n_trees: int = 1,
        batch_size: int = 1,
        solver: bool = True,
        reuse: bool = False,
        time_limit: float | None = None,
        max_nodes: int = 10_000_000,
        random_state: Seed = None,
        n_jobs: int | None = None,
    ) -> None:
        self.game, self.simulations, self.exploration, self.evaluator = game, simulations, exploration, evaluator
        self.playout_share, self.n_trees, self.batch_size = playout_share, n_trees, batch_size
        self.solver, self.reuse, self.time_limit, self.max_nodes = solver, reuse, time_limit, max_nodes
        self.random_state, self.n_jobs = random_state, n_jobs
        for name, domain in _DOMAINS.items():
            check_parameter("MCTS", name, getattr(self, name), domain)
        self._kept: tuple[Any, list[Tree]] | None = None

    def __repr__(self) -> str:
        kind = "UCT" if self.evaluator is None else "PUCT"
        return f"MCTS({self.game!r}, {kind}, simulations={self.simulations})"

    def act(self, state: Any = None) -> int:
        """Move for a state, by default the first one.

        Parameters
        ----------
        state : optional
            Where to move.
        """
        return self.search(state).action

    def search(self, state: Any = None) -> MCTSResult:
        """Simulate from a state and count.

        Parameters
        ----------
        state : optional
            Where to search from; by default the start.

        Returns
        -------
        MCTSResult
        """
        root = checked_state("MCTS.search", self.game, state)
        began = perf_counter()
        trees = self._trees(root)
        before = sum(tree.statistics().root_visits for tree in trees)
        if self.evaluator is None:
            self._play_out(trees)
        else:
            deadline = began + (self.time_limit or math.inf)
            shares = _shares(self.simulations, len(trees))
            for tree, share in zip(trees, shares, strict=True):
                self._evaluate(tree, share, deadline)
        self._kept = (root, trees) if self.reuse else None
        found = [tree.statistics() for tree in trees]
        return _merged(self.game, root, found, before, perf_counter() - began)

    def _trees(self, root: Any) -> list[Tree]:
        if self._kept is not None:
            moves = self._between(self._kept[0], root)
            if moves is not None:
                for tree in self._kept[1]:
                    for move in moves:
                        tree.advance(move)
                return self._kept[1]
        seed = seed_of(self.random_state)
        seeds = [int(stream(seed, "tree", i).integers(2**62)) for i in range(self.n_trees)]
        return [self._new_tree(root, s) for s in seeds]

    def _new_tree(self, root: Any, seed: int) -> Tree:
        if isinstance(self.game, NativeGame):
            return NativeTree(self.game, root, seed, solver=bool(self.solver), max_nodes=int(self.max_nodes))
        return PythonTree(self.game, root, seed, bool(self.solver), int(self.max_nodes))

    def _between(self, before: Any, now: Any) -> list[int] | None:
        """Moves from one state to another, two at most; None where there are none."""
        if isinstance(now, Position):
            n = len(before.moves)
            same = now.rules == before.rules and now.moves[:n] == before.moves
            return list(now.moves[n:]) if same else None
        game, wanted = self.game, self.game.key(now)
        if game.key(before) == wanted:
            return []
        for first in game.legal_moves(before):
            after = game.apply(before, first)
            if game.key(after) == wanted:
                return [first]
            for second in [] if game.is_over(after) else game.legal_moves(after):
                if game.key(game.apply(after, second)) == wanted:
                    return [first, second]
        return None

    def _play_out(self, trees: list[Tree]) -> None:
        c = math.sqrt(2) if self.exploration is None else float(self.exploration)
        seconds, share = self.time_limit or math.inf, -(-self.simulations // len(trees))
        native_trees = [tree.handle for tree in trees if isinstance(tree, NativeTree)]
        if native_trees:
            threads = n_threads(_WORK * self.simulations, self.n_jobs)
            native.simulate(native_trees, share, c, seconds, threads)
            return
        began = perf_counter()
        for tree in trees:
            assert isinstance(tree, PythonTree)
            for done in range(0, share, _PIECE):
                if perf_counter() - began > seconds:
                    return
                tree.simulate(min(_PIECE, share - done), c)

    def _evaluate(self, tree: Tree, simulations: int, deadline: float) -> None:
        assert self.evaluator is not None
        c = 1.25 if self.exploration is None else float(self.exploration)
        start = tree.statistics().root_visits
        while (left := simulations + start - tree.statistics().root_visits) > 0:
            planes, legal = tree.select(min(self.batch_size, left), c)
            if len(planes):
                tree.back_up(*checked_evaluation(self.evaluator(planes, legal), legal), float(self.playout_share))
            elif not math.isnan(tree.statistics().root_proven):
                return
            if perf_counter() > deadline:
                return


def _shares(total: int, parts: int) -> list[int]:
    return [total // parts + (i < total % parts) for i in range(parts)]


def checked_evaluation(found: Any, legal: Array) -> tuple[Array, Array]:
    """The answer of an evaluator, as arrays; an error says what is wrong with it."""
    try:
        priors, values = (np.asarray(part, dtype=np.float32) for part in found)
    except (TypeError, ValueError):
        raise DataError("evaluator: expected priors (n, n_actions) and values (n,)") from None
    if priors.shape != legal.shape or values.shape != legal.shape[:1]:
        raise DataError(
            f"evaluator: got shapes {priors.shape} and {values.shape}; expected {legal.shape} and {legal.shape[:1]}"
        )
    if not (np.isfinite(priors).all() and (priors >= 0).all() and (np.abs(values) <= 1).all()):
        raise DataError("evaluator: expected priors that are not negative and values from -1 to 1")
    return priors, values


def _merged(game: Game, root: Any, trees: list[RootStatistics], before: int, seconds: float) -> MCTSResult:
    """One result of several trees: visits add up, what one has proven is known."""
    n = game.n_actions
    visits, totals, proven = np.zeros(n, dtype=np.int64), np.zeros(n), np.full(n, np.nan)
    for tree in trees:
        np.add.at(visits, tree.moves, tree.visits)
        np.add.at(totals, tree.moves, tree.values * tree.visits)
        known = ~np.isnan(tree.proven)
        proven[tree.moves[known]] = tree.proven[known]
    settled = [tree.root_proven for tree in trees if not math.isnan(tree.root_proven)]
    weight = sum(tree.root_visits for tree in trees)
    mean = sum(tree.root_value * tree.root_visits for tree in trees) / max(weight, 1)
    values = np.where(visits > 0, totals / np.maximum(visits, 1), np.nan)
    values = np.where(np.isnan(proven), values, proven)
    legal = np.array(game.legal_moves(root))
    result = settled[0] if settled else None
    action = _choice(legal, visits, proven, result)
    counted = int(visits.sum())
    policy = visits / counted if counted else np.bincount([action], minlength=n).astype(np.float64)
    lower, upper = (result, result) if result is not None else (-1.0, 1.0)
    meaning = (
        "with best play by both, the player who moves gets this value"
        if result is not None
        else "the value is a mean of simulations, and nothing is proven"
    )
    certificate = Certificate("distance of the proven bounds", upper - lower, 0.0, meaning)
    return MCTSResult(
        action=action,
        policy=policy,
        visits=visits,
        action_values=values,
        value=float(mean if result is None else result),
        proven=result,
        n_simulations=weight - before,
        n_nodes=sum(tree.n_nodes for tree in trees),
        seconds=seconds,
        certificate=certificate,
    )


def _choice(legal: Array, visits: Array, proven: Array, result: float | None) -> int:
    known = proven[legal]
    if result is not None:  # a move that keeps the proven result
        best = legal[known == result]
        legal = best if len(best) else legal
    elif len(legal[~(known == -1)]):
        legal = legal[~(known == -1)]
    return int(legal[np.argmax(visits[legal])])
