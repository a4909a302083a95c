"""The way of a greedy search: one feature more or one less, and the best set met of every size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from epicycle.core._exceptions import ParameterError
from epicycle.select._base import chosen_size, rounding
from epicycle.select._subsets import Subset, SubsetScores
from epicycle.select._uncertainty import standard_error

__all__ = ["Move", "SearchPath"]


class Move:
    """One step of the search: the feature that came or went, and where that led."""

    def __init__(self, subset: Subset, feature: float, scores: np.ndarray) -> None:
        self.subset, self.feature = subset, feature
        self.score = float(np.mean(scores))
        self.std_error = float(standard_error(scores))


class SearchPath:
    """The best subset of every size that the search has met."""

    def __init__(self, scores: SubsetScores, *, forward: bool, n_features: int, tol: float) -> None:
        self.scores, self.forward, self.p, self.tol = scores, forward, n_features, tol
        self.moves: list[Move] = []
        self.best: dict[int, Move] = {}

    def mask(self, subset: Subset) -> np.ndarray:
        x = np.zeros(self.p)
        x[list(subset)] = 1.0
        return x

    def step(self, subset: Subset, *, add: bool) -> tuple[Subset, int, np.ndarray]:
        """The best of all subsets with one feature more, or one less."""
        others = [j for j in range(self.p) if (j in subset) != add]
        neighbours = [subset | {j} if add else subset - {j} for j in others]
        scores = self.scores(neighbours)
        means = scores.mean(axis=1)
        if not np.isfinite(means).any():
            raise ParameterError("scoring: has no finite value on the folds; choose another metric, or other splits")
        means = np.where(np.isfinite(means), means, -np.inf)
        at = int(np.argmax(means >= means.max() - rounding(means)))  # of equals the first
        return neighbours[at], others[at], scores[at]

    def record(self, subset: Subset, feature: float, scores: np.ndarray) -> Move:
        move = Move(subset, feature, scores)
        self.moves.append(move)
        known = self.best.get(len(subset))
        if known is None or move.score > known.score:
            self.best[len(subset)] = move
        return move

    def walk(self, wanted: int | None, *, patience: int | None, floating: bool) -> Iterator[Move]:
        """The moves, one after the other; each is found when it is asked for."""
        if self.forward:
            current: Subset = frozenset()
            last = self.p if wanted is None else wanted
        else:
            current = frozenset(range(self.p))
            last = 1 if wanted is None else wanted
            yield self.record(current, np.nan, self.scores([current])[0])
        since, best = 0, -np.inf
        while len(current) != last:
            current, feature, found = self.step(current, add=self.forward)
            move = self.record(current, feature, found)
            yield move
            while floating and 1 < len(current) < self.p:
                # Back for as long as that leads to a better set than is known of its size.
                back, feature, found = self.step(current, add=not self.forward)
                if len(back) in self.best and self.best[len(back)].score >= np.mean(found) - rounding(found):
                    break
                yield self.record(back, feature, found)
                current = back
            if patience is not None:
                since, best = (0, move.score) if move.score > best + self.tol else (since + 1, best)
                if since >= patience:
                    return

    def choose(self, wanted: int | None, tol: float, one_se: bool) -> Subset:
        sizes = np.array(sorted(self.best))
        if wanted is not None:
            return self.best[wanted].subset
        moves = [self.best[k] for k in sizes]
        score, error = np.array([m.score for m in moves]), np.array([m.std_error for m in moves])
        return moves[chosen_size(sizes, score, error, tol, one_se)].subset

    def preference(self) -> list[int]:
        """All features, the most wanted first: in the order they came, or against that in which they went."""
        moved = [int(m.feature) for m in self.moves if m.feature == m.feature]
        order = list(dict.fromkeys(moved if self.forward else moved[::-1]))
        rest = [j for j in range(self.p) if j not in order]
        return order + rest if self.forward else rest + order

    def attributes(self) -> dict[str, Any]:
        sizes = sorted(self.best)
        return {
            "order_": np.array([int(m.feature) for m in self.moves if m.feature == m.feature], dtype=np.int64),
            "path_n_features_": np.array(sizes, dtype=np.int64),
            "path_scores_": np.array([self.best[k].score for k in sizes]),
            "path_std_errors_": np.array([self.best[k].std_error for k in sizes]),
        }
