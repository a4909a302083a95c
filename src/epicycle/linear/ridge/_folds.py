"""Cross-validation of ridge regression over folds, for all alphas from one factorisation of each fold.

Second moments add up, so where every row is tested once the moments of the folds are computed once, and those of a
training set are the sum of the others'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.linear.lasso._folds import Fold
from epicycle.linear.ridge._spectrum import Spectrum, spectrum_of, spectrum_of_moments
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._moments import Moments, moment_statistic, moments_of, shift_of

__all__ = ["PathProblem", "Scorer", "as_scorer", "fold_scores", "scores_of_stretches"]

#: (targets, predictions, weights or None) -> a score, the larger the better.
Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray | None], float]


@dataclass(frozen=True)
class PathProblem:
    """What every fold is fitted with."""

    penalty: QuadraticPenalty
    alphas: np.ndarray
    intercept: bool
    n_jobs: int | None

    @property
    def least(self) -> float:
        return float(self.alphas.min())


class _Same(RegressorMixin, BaseEstimator):
    """What a scorer takes for an estimator: its predictions are its input."""

    def fit(self, X: Any, y: Any = None) -> _Same:
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: np.ndarray) -> np.ndarray:
        return X


def as_scorer(scorer: Any) -> Scorer:
    """A scorer of scikit-learn's as a function of targets and predictions."""

    def score(y: np.ndarray, predictions: np.ndarray, weight: np.ndarray | None) -> float:
        extra = {} if weight is None else {"sample_weight": weight}
        return float(scorer(_Same(), predictions, y, **extra))

    return score


def fold_scores(data: ArrayData, folds: Sequence[Fold], problem: PathProblem, scorer: Scorer | None) -> np.ndarray:
    """Scores of shape (k, n_alphas, n_folds); without a scorer, weighted means of squared errors with a minus."""
    moments = _moments_of_folds(data, folds, problem)
    scores = []
    for f, fold in enumerate(folds):
        weight = np.zeros(data.n_rows)
        np.add.at(weight, fold.train, 1.0)
        if data.weight is not None:
            weight *= data.weight
        kept = np.flatnonzero(weight)
        if not len(kept):
            raise DataError("sample_weight: all rows that a fold is trained on have weight zero")
        wide = data.n_features >= len(kept)
        train = _rows(data, kept, weight[kept]) if wide else ArrayData(data.X, data.y, weight)
        rest = None if moments is None or wide else _others(moments, f)
        spectrum, _ = spectrum_of(
            train, problem.penalty, problem.least, intercept=problem.intercept, n_jobs=problem.n_jobs, moments=rest
        )
        scores.append(_score(_rows(data, fold.test, None), spectrum, problem, scorer))
    return np.stack(scores, axis=-1)


def _rows(data: ArrayData, rows: np.ndarray, weight: np.ndarray | None) -> ArrayData:
    if weight is None and data.weight is not None:
        weight = data.weight[rows]
    return ArrayData(data.X[rows], data.y[rows], weight)


def _moments_of_folds(data: ArrayData, folds: Sequence[Fold], problem: PathProblem) -> list[Moments] | None:
    """The moments of every test set, where the test sets divide the rows and train is all the others."""
    n = data.n_rows
    tested = np.concatenate([fold.test for fold in folds])
    divided = len(tested) == n and np.array_equal(np.sort(tested), np.arange(n))
    whole = all(len(np.unique(fold.train)) == len(fold.train) == n - len(fold.test) for fold in folds)
    if not (divided and whole and all(not np.isin(fold.train, fold.test).any() for fold in folds)):
        return None
    if data.n_features >= n - max(len(fold.test) for fold in folds):
        return None
    shift = shift_of(data) if problem.intercept else np.zeros(data.n_features + data.n_targets)
    return [moments_of(_rows(data, fold.test, None), shift, problem.n_jobs) for fold in folds]


def _others(moments: Sequence[Moments], left_out: int) -> Moments:
    rest = [m for f, m in enumerate(moments) if f != left_out]
    total = rest[0]
    for m in rest[1:]:
        total = total + m
    return total


def error_statistic(batch: Batch, coef: Any, intercept: np.ndarray) -> tuple[np.ndarray, float]:
    """(sum_i w_i e_i^2 of shape (k, n_alphas), total weight) for coef of shape (p, k, n_alphas)."""
    p, k, a = coef.shape
    y = batch.y[:, None] if batch.y.ndim == 1 else batch.y
    e = np.asarray(batch.X @ coef.reshape(p, k * a)).reshape(-1, k, a) + intercept - y[:, :, None]
    if batch.weight is None:
        return np.einsum("ika,ika->ka", e, e), float(len(e))
    return np.einsum("ika,ika,i->ka", e, e, batch.weight), float(batch.weight.sum())


def _score(test: ArrayData, spectrum: Spectrum, problem: PathProblem, scorer: Scorer | None) -> np.ndarray:
    coef, intercept = spectrum.along_path(problem.alphas)
    if test.weight is not None and not test.weight.any():
        test = ArrayData(test.X, test.y)  # rows of no weight are all there is to test on
    if scorer is None:
        squares, weight = engine.sum(error_statistic, test, coef, intercept, n_jobs=problem.n_jobs)
        return -squares / weight
    y = test.y[:, None] if test.y.ndim == 1 else test.y
    scores = np.empty(intercept.shape)
    for a in range(len(problem.alphas)):
        predictions = np.asarray(test.X @ coef[:, :, a]) + intercept[:, a]
        scores[:, a] = [scorer(y[:, t], predictions[:, t], test.weight) for t in range(y.shape[1])]
    return scores


# ------------------------------------------------------------------------------------------------ files and partitions


@dataclass(frozen=True)
class Stack:
    """Arrays that add up elementwise, one for each stretch."""

    parts: tuple[Any, ...]

    def __add__(self, other: Stack) -> Stack:
        return Stack(
            tuple(
                b if a is None else a if b is None else tuple(x + y for x, y in zip(a, b, strict=True))
                for a, b in zip(self.parts, other.parts, strict=True)
            )
        )


def by_stretch(batch: Batch, bounds: np.ndarray, statistic: Callable[..., Any], *parameters: Any) -> tuple[Stack]:
    """``statistic(rows, f, *parameters)`` for the part of a batch in every stretch bounds[f] <= row < bounds[f + 1]."""
    parts: list[Any] = [None] * (len(bounds) - 1)
    for f in range(len(parts)):
        first, last = (int(np.clip(b - batch.start, 0, batch.n_rows)) for b in bounds[f : f + 2])
        if first < last:
            rows = slice(first, last)
            weight = None if batch.weight is None else batch.weight[rows]
            parts[f] = statistic(Batch(batch.X[rows], batch.y[rows], weight, batch.start + first), f, *parameters)
    return (Stack(tuple(parts)),)


def stretch_moments(batch: Batch, _f: int, shift: np.ndarray) -> tuple[Any, ...]:
    return moment_statistic(batch, shift)


def stretch_errors(batch: Batch, f: int, paths: Sequence[tuple[np.ndarray, np.ndarray]]) -> tuple[Any, ...]:
    return error_statistic(batch, *paths[f])


def scores_of_stretches(data: Data, n_folds: int, problem: PathProblem, n_rows: int) -> np.ndarray:
    """The same for data that stay where they are: folds are stretches of consecutive rows, as KFold makes them."""
    if isinstance(data, DaskData) and data.sizes is None:
        raise DataError(
            "cv: a Dask collection that does not know the sizes of its partitions has no rows by number; call "
            "compute_chunk_sizes(), start a distributed.Client, or choose by leave-one-out (cv=None)"
        )
    if n_folds > n_rows:
        raise ParameterError(f"cv={n_folds}: there are {n_rows} rows; expected at most that many folds")
    sizes = np.full(n_folds, n_rows // n_folds)
    sizes[: n_rows % n_folds] += 1
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    shift = shift_of(data) if problem.intercept else np.zeros(data.n_features + data.n_targets)
    (stack,) = engine.sum(by_stretch, data, bounds, stretch_moments, shift, n_jobs=problem.n_jobs)
    moments = [Moments(M, shift, n, data.n_features, logs) for M, n, logs in stack.parts]
    paths = []
    for f in range(n_folds):
        rest = _others(moments, f)
        if not rest.weight > 0:
            raise DataError("sample_weight: all rows that a fold is trained on have weight zero")
        paths.append(spectrum_of_moments(rest, problem.penalty, problem.intercept).along_path(problem.alphas))
    (stack,) = engine.sum(by_stretch, data, bounds, stretch_errors, paths, n_jobs=problem.n_jobs)
    return np.stack([-squares / max(weight, np.finfo(float).tiny) for squares, weight in stack.parts], axis=-1)
