r"""Causal forest: effects of rows by honest trees on residuals, with intervals (Athey, Tibshirani and Wager 2019).

With cross-fitted residuals y - m(x) and t - e(x), a tree splits where their slope changes most. One half of a tree's
sample chooses the splits, the other gives the leaves their moments, and

    tau(x) = sum over trees of E[(t - e)(y - m) | leaf] / sum over trees of E[(t - e)^2 | leaf].

Trees come in groups that share a half of the rows: the variation of the groups about tau(x), less the noise of single
trees, estimates the variance of tau(x) (bootstrap of little bags). The estimate is uncertain itself, for it comes from
few groups and few rows, so that intervals are those of Student's t (Satterthwaite 1946).

With N the variance of a tree given its half and V that of the half, G groups of l = T/G trees give V with a variance of
about 2 (V + N/l)^2 / G, which is least at l = N/V: some ten trees, where grf has two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from epicycle import _native
from epicycle.causal.effects._study import Study
from epicycle.core._exceptions import DataError
from epicycle.core._threads import n_threads

_PER_GROUP = 10  # about N/V; fewer where there would not be two groups
_MAX_SAMPLES = 0.45  # of all rows in a tree; at most half of them belong to a group
_BALANCE = 0.05  # least share of a node in a child
_MAX_EDGES = 127  # between 128 bins, as many as the kernel has


@dataclass
class CausalForest:
    """A grown forest.

    edges : for each feature the bounds of its bins; bin b holds edges[b - 1] < x <= edges[b].
    first : the first node of each tree, and the number of all.
    splits : feature (-1 in a leaf), last bin that goes left and left child of every node.
    moments : mean (t - e)(y - m) and mean (t - e)^2 in every leaf.
    per_group : trees that share a half of the rows.
    min_samples_leaf : least rows in a leaf.
    """

    edges: list[np.ndarray]
    first: np.ndarray
    splits: np.ndarray
    moments: np.ndarray
    per_group: int
    min_samples_leaf: int

    def predict(self, X: Any) -> np.ndarray:
        """Effects of rows."""
        return self._effects(X)[0]

    def half_widths(self, X: Any, level: float) -> np.ndarray:
        """Half the widths of the intervals of rows; NaN where fewer than four trees give no variance."""
        _, variance, degrees = self._effects(X)
        return np.asarray(stdtrit(degrees, 0.5 + level / 2) * np.sqrt(variance))

    def standard_errors(self, X: Any) -> np.ndarray:
        """Standard errors of the effects of rows."""
        return np.asarray(np.sqrt(self._effects(X)[1]))

    def _effects(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Effects, their variances, and the degrees of freedom of these."""
        bins = _binned(X, self.edges)
        effect, variance, degrees = (np.empty(len(bins)) for _ in range(3))
        threads = n_threads(20.0 * len(bins) * (len(self.first) - 1), None)
        shape = (self.per_group, self.min_samples_leaf)
        _native.tree.predict_causal(
            self.first, self.splits, self.moments, *shape, bins, effect, variance, degrees, threads
        )
        return effect, variance, degrees


def _edges(column: np.ndarray) -> np.ndarray:
    """Bounds of at most 128 bins of about equal size: between all values where there are few."""
    values = np.unique(column)
    if len(values) > _MAX_EDGES:
        values = np.unique(np.quantile(column, np.linspace(0, 1, _MAX_EDGES + 1)[1:-1], method="lower"))
        return np.asarray(values)
    return np.asarray((values[:-1] + values[1:]) / 2)


def _binned(X: Any, edges: list[np.ndarray]) -> np.ndarray:
    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
    bins = np.empty(X.shape, dtype=np.uint8)
    for j, bounds in enumerate(edges):
        bins[:, j] = np.searchsorted(bounds, X[:, j], side="left")
    return bins


def grow_forest(
    study: Study,
    nuisances: tuple[np.ndarray, np.ndarray, np.ndarray],
    *,
    n_estimators: int,
    min_samples_leaf: int,
    seed: int,
    n_jobs: int | None,
) -> CausalForest:
    """Grow a forest on the residuals of cross-fitted (e, Q0, Q1); m = e Q1 + (1 - e) Q0."""
    e, Q0, Q1 = nuisances
    X = study.dense()
    n, p = X.shape
    if p == 0 or n < 8 * min_samples_leaf:
        raise DataError(
            f"X: {n} rows and {p} covariates; a causal forest needs a covariate and {8 * min_samples_leaf} rows"
        )
    edges = [_edges(X[:, j]) for j in range(p)]
    y = np.ascontiguousarray(study.y - e * Q1 - (1 - e) * Q0)
    t = np.ascontiguousarray(study.t - e)
    tried = min(p, int(np.ceil(np.sqrt(p) + 20)))
    per_group = max(1, min(_PER_GROUP, n_estimators // 2))
    first, splits, moments = _native.tree.grow_causal(
        _binned(X, edges),
        y,
        t,
        study.w,
        min_leaf=min_samples_leaf,
        max_features=tried,
        max_samples=_MAX_SAMPLES,
        balance=_BALANCE,
        groups=-(-n_estimators // per_group),
        per_group=per_group,
        seed=seed,
        threads=n_threads(50.0 * n * p * n_estimators, n_jobs),
    )
    return CausalForest(edges, first, splits, moments, per_group, min_samples_leaf)
