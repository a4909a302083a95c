"""Trees of several positions of one game, which grow side by side: an evaluator sees one leaf of each in one call."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from epicycle._native import search as native
from epicycle.core._threads import n_threads
from epicycle.search.games._game import Game
from epicycle.search.games._native_game import NativeGame
from epicycle.search.trees._tree import NativeTree, PythonTree, RootStatistics, Tree

Array = np.ndarray
_WORK = 20_000  # multiply-adds that stand for the descent in one tree
_MAX_NODES = 1_000_000  # of a tree


class Forest:
    """Trees below states, each with a seed of its own.

    Parameters
    ----------
    game : Game
        The rules.
    states : list
        Where the trees begin.
    seeds : list of int
        Of the trees.
    """

    def __init__(self, game: Game, states: list[Any], seeds: list[int]) -> None:
        self.compiled = isinstance(game, NativeGame)
        self.trees: list[Tree]
        if isinstance(game, NativeGame):
            pairs = zip(states, seeds, strict=True)
            made = [NativeTree(game, state, seed, solver=True, max_nodes=_MAX_NODES) for state, seed in pairs]
            self.trees, self._handles = list(made), [tree.handle for tree in made]
            n = len(made)
            self._planes = np.empty((n, 3, game.rows, game.columns), dtype=np.float32)
            self._legal = np.empty((n, game.n_actions), dtype=np.uint8)
            self._found = np.zeros(n, dtype=np.uint8)
        else:
            self.trees = [PythonTree(game, s, seed, True, _MAX_NODES) for s, seed in zip(states, seeds, strict=True)]
            self._found = np.zeros(len(self.trees), dtype=np.uint8)

    def select(self, c: float) -> tuple[Array, Array]:
        """Planes and legal moves of one leaf of each tree that has one; they wait for `back_up`."""
        if self.compiled:
            threads = n_threads(_WORK * len(self.trees))
            native.select_each(self._handles, c, self._planes, self._legal, self._found, threads)
            rows = self._found.astype(bool)
            whole = rows.all()
            planes, legal = (self._planes, self._legal) if whole else (self._planes[rows], self._legal[rows])
            return planes, legal.astype(bool)
        leaves = [tree.select(1, c) for tree in self.trees]
        self._found[:] = [len(planes) for planes, _ in leaves]
        some = [leaf for leaf in leaves if len(leaf[0])] or leaves[:1]
        return np.concatenate([planes for planes, _ in some]), np.concatenate([legal for _, legal in some])

    def back_up(self, priors: Array, values: Array, playout_share: float) -> None:
        """Take the values and priors that an evaluator found for the leaves that wait."""
        if self.compiled:
            p, v = (np.ascontiguousarray(part, dtype=np.float32) for part in (priors, values))
            threads = n_threads(_WORK * len(self.trees))
            native.back_up_each(self._handles, self._found, p, v, playout_share, threads)
            return
        for row, i in enumerate(np.flatnonzero(self._found)):
            self.trees[i].back_up(priors[row : row + 1], values[row : row + 1], playout_share)

    def simulate(self, simulations: int, c: float) -> None:
        """Simulations with random playouts in each tree."""
        if self.compiled:
            native.simulate(self._handles, simulations, c, math.inf, n_threads(_WORK * simulations * len(self.trees)))
            return
        for tree in self.trees:
            assert isinstance(tree, PythonTree)
            tree.simulate(simulations, c)

    def statistics(self) -> list[RootStatistics]:
        """The moves at each root."""
        return [tree.statistics() for tree in self.trees]
