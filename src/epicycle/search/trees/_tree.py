"""Trees of Monte-Carlo search: the compiled one, and the same in Python for games that are written in Python."""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from epicycle._native import search as native
from epicycle.core._exceptions import DataError
from epicycle.search.games._game import CHANCE, Game
from epicycle.search.games._native_game import NativeGame, Position

Array = np.ndarray
UNKNOWN = 2  # of the compiled tree: no result is proven


@dataclass(frozen=True)
class RootStatistics:
    """The moves at the root: visits, mean results, priors and proven results, for the player who moves there."""

    moves: Array
    visits: Array
    values: Array
    priors: Array
    proven: Array
    root_proven: float  # nan where it is unknown
    root_visits: int
    root_value: float
    n_nodes: int


class Tree(ABC):
    """A tree below one position."""

    @abstractmethod
    def select(self, count: int, c: float) -> tuple[Array, Array]:
        """Planes and legal moves of up to `count` leaves that now wait for `back_up`."""

    @abstractmethod
    def back_up(self, priors: Array, values: Array, playout_share: float = 0.0) -> None:
        """Priors of all moves and values for the player who moves, of the leaves that wait."""

    @abstractmethod
    def mix_root(self, noise: Array, share: float) -> None:
        """Mix noise into the priors of the moves at the root, once they are there."""

    @abstractmethod
    def advance(self, move: int) -> None:
        """Keep what is below a move."""

    @abstractmethod
    def statistics(self) -> RootStatistics:
        """The moves at the root."""


class NativeTree(Tree):
    """A tree of a compiled game."""

    def __init__(self, game: NativeGame, state: Position, seed: int, *, solver: bool, max_nodes: int) -> None:
        self.handle = native.new_tree(*state.arguments, seed=seed % 2**63, solver=solver, most_nodes=max_nodes)
        self._planes = np.empty((1, 3, game.rows, game.columns), dtype=np.float32)
        self._legal = np.empty((1, game.n_actions), dtype=np.uint8)

    def select(self, count: int, c: float) -> tuple[Array, Array]:
        if len(self._planes) != count:
            self._planes = np.empty((count, *self._planes.shape[1:]), dtype=np.float32)
            self._legal = np.empty((count, self._legal.shape[1]), dtype=np.uint8)
        found = native.select_leaves(self.handle, c, self._planes, self._legal)
        return self._planes[:found], self._legal[:found].astype(bool)

    def back_up(self, priors: Array, values: Array, playout_share: float = 0.0) -> None:
        p = np.ascontiguousarray(priors, dtype=np.float32)
        native.back_up(self.handle, p, np.ascontiguousarray(values, dtype=np.float32), playout_share)

    def mix_root(self, noise: Array, share: float) -> None:
        native.mix_root(self.handle, np.ascontiguousarray(noise, dtype=np.float64), share)

    def advance(self, move: int) -> None:
        native.advance(self.handle, move)

    def statistics(self) -> RootStatistics:
        moves, visits, values, priors, proven, root_proven, root_visits, root_value, n_nodes = native.statistics(
            self.handle
        )
        results = np.where(proven == UNKNOWN, np.nan, proven)
        known = math.nan if root_proven == UNKNOWN else float(root_proven)
        return RootStatistics(moves, visits, values, priors, results, known, root_visits, root_value, n_nodes)


class Node:
    """A node; sums and the proven result are for the player above, who picks among such nodes."""

    __slots__ = ("children", "move", "pending", "prior", "proven", "state", "total", "visits")

    def __init__(self, state: Any, move: int, proven: float | None) -> None:
        self.state, self.move, self.proven = state, move, proven
        self.total, self.visits, self.pending, self.prior = 0.0, 0, 0, 0.0
        self.children: list[Node] = []


@dataclass
class PythonTree(Tree):
    """A tree of a game that is written in Python; with given priors and values it grows as the compiled one does."""

    game: Game
    state: Any
    seed: int
    solver: bool
    max_nodes: int
    leaves: list[list[Node]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.root = Node(self.state, -1, None)
        self.random = random.Random(self.seed)
        self.n_nodes = 1

    def settled(self) -> bool:
        """Whether nothing below the root can change the choice."""
        return self.root.proven is not None

    def simulate(self, simulations: int, c: float) -> None:
        """Descents that end in random playouts (UCT)."""
        for _ in range(simulations):
            if self.settled():
                return
            path = [self.root]
            while path[-1].children:
                path.append(self._uct(path[-1], c))
            leaf = path[-1]
            if leaf.visits > 0 and leaf.proven is None and self._expand(leaf):
                path.append(self._uct(leaf, c))
                leaf = path[-1]
            known = leaf.proven
            self._record(path, self._playout(leaf.state, path) if known is None else known)
            if self.solver and known is not None:
                self._prove(path)

    def select(self, count: int, c: float) -> tuple[Array, Array]:
        known_in_a_row = 0
        while len(self.leaves) < count and not self.settled() and known_in_a_row < count:
            path = [self.root]
            while path[-1].children:
                path.append(self._puct(path[-1], c))
            leaf = path[-1]
            if leaf.proven is not None:
                self._record(path, leaf.proven)
                if self.solver:
                    self._prove(path)
                known_in_a_row += 1
                continue
            if leaf.pending > 0:
                break
            known_in_a_row = 0
            for node in path:
                node.pending += 1
            self.leaves.append(path)
        states = [path[-1].state for path in self.leaves]
        legal = np.zeros((len(states), self.game.n_actions), dtype=bool)
        for row, state in zip(legal, states, strict=True):
            row[self.game.legal_moves(state)] = True
        planes = [np.asarray(self.game.encode(state), dtype=np.float32) for state in states]
        return (np.stack(planes) if planes else np.empty((0, 1, 1, 1), dtype=np.float32)), legal

    def back_up(self, priors: Array, values: Array, playout_share: float = 0.0) -> None:
        for path, p, value in zip(self.leaves, np.asarray(priors, np.float32), values, strict=True):
            for node in path:
                node.pending -= 1
            leaf = path[-1]
            if self._expand(leaf):
                shares = [float(p[child.move]) for child in leaf.children]
                total = math.fsum(shares)
                for child, share in zip(leaf.children, shares, strict=True):
                    child.prior = share / total if total > 0 else 1 / len(shares)
            result = float(np.float32(value)) * (1.0 if self._above(path) == self.game.player(leaf.state) else -1.0)
            if playout_share > 0:
                result += playout_share * (self._playout(leaf.state, path) - result)
            self._record(path, result)
            if self.solver and any(child.proven is not None for child in leaf.children) and self._proves(path, -1):
                self._prove(path)
        self.leaves = []

    def mix_root(self, noise: Array, share: float) -> None:
        if len(noise) == len(self.root.children):
            for child, value in zip(self.root.children, noise, strict=True):
                child.prior += share * (float(value) - child.prior)

    def advance(self, move: int) -> None:
        kept = next((child for child in self.root.children if child.move == move), None)
        mover = self.game.player(self.root.state)
        self.root = Node(self.game.apply(self.root.state, move), -1, None) if kept is None else kept
        if mover == self.game.player(self.root.state):  # sums were for this player, from now on for the other one
            self.root.total = -self.root.total
            self.root.proven = None if self.root.proven is None else -self.root.proven
        self.leaves = []

    def statistics(self) -> RootStatistics:
        children, root = self.root.children, self.root
        # A sum at the root is for an imagined player above, who is the other one.
        return RootStatistics(
            np.array([child.move for child in children], dtype=np.int64),
            np.array([child.visits for child in children], dtype=np.int64),
            np.array([child.total / child.visits if child.visits else 0.0 for child in children]),
            np.array([child.prior for child in children]),
            np.array([math.nan if child.proven is None else child.proven for child in children]),
            math.nan if root.proven is None else -root.proven,
            root.visits,
            -root.total / root.visits if root.visits else 0.0,
            self.n_nodes,
        )

    # ------------------------------------------------------------------------------------------- a descent

    def _above(self, path: list[Node]) -> int:
        """The player who chose the last node of a path; of the root, the other one."""
        game = self.game
        return game.player(path[-2].state) if len(path) > 1 else 1 - game.player(path[-1].state)

    def _uct(self, node: Node, c: float) -> Node:
        fresh = [child for child in node.children if child.visits == 0 and not self._lost(child)]
        if fresh:
            return self.random.choice(fresh)
        above = c * c * math.log(max(node.visits, 1))
        scores = [self._uct_score(child, above) for child in node.children]
        best = max(scores)
        return self.random.choice([n for n, s in zip(node.children, scores, strict=True) if s == best])

    def _uct_score(self, child: Node, above: float) -> float:
        if self._lost(child):
            return -1e9
        return child.total / child.visits + math.sqrt(above / child.visits)

    def _puct(self, node: Node, c: float) -> Node:
        above = c * math.sqrt(max(node.visits + node.pending, 1))
        best, highest = node.children[0], -math.inf
        for child in node.children:
            n = child.visits + child.pending
            value = (child.total - child.pending) / n if n else 0.0
            score = -1e9 if self._lost(child) else value + child.prior * above / (1 + n)
            if score > highest:
                best, highest = child, score
        return best

    def _lost(self, child: Node) -> bool:
        return self.solver and child.proven == -1

    def _expand(self, leaf: Node) -> bool:
        if leaf.children or self.n_nodes >= self.max_nodes:
            return False
        game, state = self.game, leaf.state
        mover = game.player(state)
        if mover == CHANCE:
            raise DataError("MCTS: chance moves in this game; expected one without chance, or take SelfPlay")
        for move in game.legal_moves(state):
            after = game.apply(state, move)
            proven = game.result(after) * (1 if mover == 0 else -1) if game.is_over(after) else None
            leaf.children.append(Node(after, move, proven))
        if not leaf.children:
            raise DataError(f"game: no move is legal in {state!r:.60}, which is not over; expected at least one")
        self.n_nodes += len(leaf.children)
        return True

    def _playout(self, state: Any, path: list[Node]) -> float:
        """Result of random moves, for the player above the leaf."""
        above = self._above(path)
        while not self.game.is_over(state):
            state = self.game.apply(state, self.random.choice(self.game.legal_moves(state)))
        return self.game.result(state) * (1 if above == 0 else -1)

    def _record(self, path: list[Node], result: float) -> None:
        last = self._above(path)
        for i in range(len(path) - 1, -1, -1):
            path[i].visits += 1
            path[i].total += result if self._above(path[: i + 1]) == last else -result

    # ------------------------------------------------------------------------------------------- proofs

    def _prove(self, path: list[Node]) -> None:
        for i in range(len(path) - 2, -1, -1):
            if not self._proves(path, i):
                return

    def _proves(self, path: list[Node], i: int) -> bool:
        """Whether the children of a node on the path settle its result: one that is won, or all that are known."""
        node = path[i]
        if node.proven is not None:
            return True
        results = [child.proven for child in node.children]
        known = [result for result in results if result is not None]
        best = max(known, default=-math.inf)
        if best < 1 and len(known) < len(results):
            return False
        above = self._above(path[: i % len(path) + 1])
        node.proven = best if above == self.game.player(node.state) else -best
        return True
