"""Scores of subsets of features over folds, each computed once.

Least squares and ridge need the second moments of the folds alone. With the training rows of a fold about their mean,
A = Z'WZ and b = Z'Wy, the coefficients on a subset S solve (A_SS + alpha I) w = b_S. With the moments M of (x, y) over
the test rows, about the same means, the squared error there is (w, -1)' M (w, -1). After one pass over the rows a
subset costs a small Cholesky factor, whatever the number of rows.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from epicycle.data._frames import frame_to_matrix, is_frame
from epicycle.linear import LinearRegression, Ridge
from epicycle.select._fit_and_score import Task, run_tasks
from epicycle.select._inputs import Rows, Split
from epicycle.select._scorers import Scorer

Subset = frozenset[int]


class SubsetScores:
    """Scores of subsets over folds; every subset is fitted once."""

    def __init__(
        self, model: Any, rows: Rows, splits: Sequence[Split], scorer: Scorer, n_features: int, n_jobs: int | None
    ) -> None:
        self.model, self.rows, self.splits, self.scorer = model, rows, splits, scorer
        self.n_features, self.n_jobs = n_features, n_jobs
        self.known: dict[Subset, np.ndarray] = {}
        self.asked = 0

    def __call__(self, subsets: Sequence[Subset]) -> np.ndarray:
        """Scores of shape (subsets, folds)."""
        self.asked += len(subsets)
        unknown = [subset for subset in dict.fromkeys(subsets) if subset not in self.known]
        if unknown:
            scores = self.compute(unknown)
            self.known.update(zip(unknown, scores, strict=True))
        return np.stack([self.known[subset] for subset in subsets])

    def compute(self, subsets: Sequence[Subset]) -> np.ndarray:
        """The scores by fitting the model to every subset and fold."""
        tasks = [
            Task("", self.model, j, split, np.array(sorted(subset)))
            for subset in subsets
            for j, split in enumerate(self.splits)
        ]
        results = run_tasks(tasks, self.rows, self.scorer, self.n_jobs, forgive=False)
        return np.array([result.score for result in results]).reshape(len(subsets), len(self.splits))

    def state(self) -> dict[str, Any]:
        """The scores so far, for a checkpoint."""
        masks = np.zeros((len(self.known), self.n_features), dtype=bool)
        for i, subset in enumerate(self.known):
            masks[i, list(subset)] = True
        return {"subsets": masks, "scores": np.array(list(self.known.values()))}

    def restore(self, state: Mapping[str, Any]) -> None:
        for mask, scores in zip(state.get("subsets", ()), state.get("scores", ()), strict=True):
            self.known[frozenset(np.flatnonzero(mask).tolist())] = np.asarray(scores)


_METRICS = ("r2", "neg_mean_squared_error", "neg_root_mean_squared_error")
#: Features up to which the moments are kept: two matrices of 32 MB for every fold.
_MAX_MOMENT_FEATURES = 2000
#: Relative pivots above which a feature is independent of the others, and below which it is dependent up to rounding
#: (1e-13 is some 500 units in the last place). In between the moments cannot decide, and the model is fitted to the
#: rows.
_INDEPENDENT, _DEPENDENT = 1e-9, 1e-13


def subset_scores(
    model: Any, rows: Rows, splits: Sequence[Split], scorer: Scorer, metric: str, n_features: int, n_jobs: int | None
) -> SubsetScores:
    """Scores by moments where these are enough, otherwise by fits."""
    quick = (
        _from_moments(model)
        and metric in _METRICS
        and hasattr(scorer, "_score_func")
        and n_features <= _MAX_MOMENT_FEATURES
        and rows.y.ndim == 1
    )
    kind = MomentScores if quick else SubsetScores
    found = kind(model, rows, splits, scorer, n_features, n_jobs)
    if isinstance(found, MomentScores):
        found.prepare(metric)
    return found


def _from_moments(model: Any) -> bool:
    if type(model) is LinearRegression:
        return True
    return (
        type(model) is Ridge
        and isinstance(model.alpha, numbers.Real)
        and model.penalty_weights is None
        and model.penalty_matrix is None
    )


class MomentScores(SubsetScores):
    """Scores of least squares and ridge from moments; subsets that are close to collinear are fitted to the rows."""

    def prepare(self, metric: str) -> None:
        """Compute the moments of every fold."""
        self.metric = metric
        self.alpha = float(self.model.alpha) if type(self.model) is Ridge else 0.0
        X: Any = frame_to_matrix(self.rows.X) if is_frame(self.rows.X) else self.rows.X
        X = X.tocsr() if sp.issparse(X) else np.asarray(X)
        y = self.rows.y.astype(np.float64)
        weight = np.ones(len(y)) if self.rows.weight is None else self.rows.weight
        centre = bool(self.model.fit_intercept)
        self.folds = [_moments(X, y, weight, split, centre) for split in self.splits]

    def compute(self, subsets: Sequence[Subset]) -> np.ndarray:
        scores = np.full((len(subsets), len(self.folds)), np.nan)
        sizes = np.array([len(subset) for subset in subsets])
        for size in np.unique(sizes):
            at = np.flatnonzero(sizes == size)
            S = np.array([sorted(subsets[i]) for i in at.tolist()])
            step = max(1, int(2e7 / (size * size)))  # matrices in flight stay below some 160 MB
            for start in range(0, len(at), step):
                part = slice(start, start + step)
                scores[at[part]] = self._scores_of(S[part])
        unsafe = np.flatnonzero(np.isnan(scores).any(axis=1))
        if len(unsafe):
            scores[unsafe] = super().compute([subsets[i] for i in unsafe.tolist()])
        return scores

    def _scores_of(self, S: np.ndarray) -> np.ndarray:
        """Scores of subsets of one size, NaN where a fit to the rows is needed."""
        out = np.full((len(S), len(self.folds)), np.nan)
        for f, (A, b, M, total, spread) in enumerate(self.folds):
            if not (np.isfinite(A).all() and np.isfinite(b).all() and np.isfinite(M).all()):
                continue  # the squares of huge values overflow: the estimator says so, or knows better
            # Unit diagonal: pivots of the Cholesky factor are then shares of variance not explained by other features.
            scale = np.sqrt(np.maximum(np.diag(A) + self.alpha, np.finfo(float).tiny))
            G = A[S[:, :, None], S[:, None, :]]
            G[:, np.arange(S.shape[1]), np.arange(S.shape[1])] += self.alpha
            s = scale[S]
            G /= s[:, :, None] * s[:, None, :]
            try:
                L = np.linalg.cholesky(G)
            except np.linalg.LinAlgError:
                L = np.stack([_factor(g) for g in G])
            # A pivot below the limit means that the feature is (nearly) a combination of the others.
            ok = np.diagonal(L, axis1=1, axis2=2).min(axis=1) ** 2 > _INDEPENDENT
            w = np.full(S.shape, np.nan)
            if ok.any():
                z = np.linalg.solve(L[ok], (b[S] / s)[ok][:, :, None])
                w[ok] = np.linalg.solve(L[ok].transpose(0, 2, 1), z)[:, :, 0] / s[ok]
            for i in np.flatnonzero(~ok):
                w[i] = _least_norm(A[np.ix_(S[i], S[i])] + self.alpha * np.eye(S.shape[1]), b[S[i]])
            ok = np.isfinite(w).all(axis=1)
            w = w[ok]
            V = M[:-1, :-1][S[ok][:, :, None], S[ok][:, None, :]]
            # (w, -1)' M (w, -1) for all subsets at once.
            squares = np.einsum("ij,ijk,ik->i", w, V, w) - 2 * np.einsum("ij,ij->i", w, M[-1, :-1][S[ok]]) + M[-1, -1]
            out[ok, f] = self._score(np.maximum(squares, 0.0), total, spread)
        return out

    def _score(self, squares: np.ndarray, total: float, spread: float) -> np.ndarray:
        if self.metric == "r2":
            if spread == 0:
                return np.where(squares == 0, 1.0, 0.0)
            with np.errstate(over="ignore"):  # minus infinity where next to nothing is to be explained
                return 1 - squares / spread
        mean = squares / total
        return -mean if self.metric == "neg_mean_squared_error" else -np.sqrt(mean)


def _least_norm(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The least-squares solution of least norm; NaN where the moments do not determine the rank."""
    try:
        values, Q = np.linalg.eigh(A)
    except np.linalg.LinAlgError:  # entries beyond what its sums hold
        return np.full(len(b), np.nan)
    top = max(float(values[-1]), 0.0)
    inside = values > _INDEPENDENT * top
    if top > 0 and (values[~inside] > _DEPENDENT * top).any():
        return np.full(len(b), np.nan)
    return np.asarray(Q[:, inside] @ ((Q[:, inside].T @ b) / values[inside]))


def _factor(G: np.ndarray) -> np.ndarray:
    try:
        return np.asarray(np.linalg.cholesky(G))
    except np.linalg.LinAlgError:
        return np.zeros_like(G)


def _moments(
    X: Any, y: np.ndarray, weight: np.ndarray, split: Split, centre: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """(A, b, M, weight of the test rows, their sum of squares of y about their own mean); infinite where too large."""
    train, test = split
    w, v = weight[train], weight[test]
    p = X.shape[1]
    at_x, at_y = np.zeros(p), 0.0
    if centre and w.sum() > 0:
        # Test rows are centred at the training means, which is what the intercept does.
        at_x = np.asarray(w @ X[train], dtype=np.float64).ravel() / w.sum()
        at_y = float(w @ y[train] / w.sum())
    with np.errstate(over="ignore", invalid="ignore"):
        A, b, _ = _about(X[train], y[train] - at_y, w, at_x)
        V, d, squares = _about(X[test], y[test] - at_y, v, at_x)
        M = np.empty((p + 1, p + 1))
        M[:-1, :-1], M[-1, :-1], M[:-1, -1], M[-1, -1] = V, d, d, squares
        own = v @ y[test] / v.sum() if v.sum() > 0 else 0.0
        return A, b, M, float(v.sum()), float(v @ (y[test] - own) ** 2)


def _about(X: Any, y: np.ndarray, w: np.ndarray, at: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Second moments of X about `at`, its products with y, and the squares of y; sparse rows are not made dense."""
    if sp.issparse(X):
        X = X.astype(np.float64)
        weighted = X.multiply(w[:, None]).tocsr()
        sums = np.asarray(weighted.sum(axis=0)).ravel()
        cross = np.outer(at, sums)
        second = np.asarray((X.T @ weighted).todense()) - cross - cross.T + w.sum() * np.outer(at, at)
        return second, np.asarray(X.T @ (w * y)).ravel() - at * (w @ y), float(w @ y**2)
    Z = X.astype(np.float64) - at
    weighted = Z * w[:, None]
    return Z.T @ weighted, weighted.T @ y, float(w @ y**2)
