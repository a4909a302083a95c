"""Cross-validation of ridge regression over folds, for all alphas from one factorisation of each fold.

Second moments add up, so where every row is tested once the moments of the folds are computed once, and those of a
training set are the sum of the others'.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from epicycle import engine
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.data import ArrayData, Batch, DaskData, Data
from epicycle.linear._folds import Cells, Fold, cell_moments, mean_squares, sum_of_cells, training_weights
from epicycle.linear.ridge._spectrum import Spectrum, spectrum_of, spectrum_of_moments
from epicycle.optim._quadratic_penalty import QuadraticPenalty
from epicycle.stats._moments import Moments, moments_of, shift_of, target_columns

#: (targets, predictions, weights or None) -> a score of each target or of all together, the larger the better.
Scorer = Callable[[np.ndarray, np.ndarray, np.ndarray | None], np.ndarray]


@dataclass(frozen=True)
class PathProblem:
    """The settings that every fold is fitted with."""

    penalty: QuadraticPenalty
    alphas: np.ndarray
    intercept: bool
    n_jobs: int | None

    @property
    def least(self) -> float:
        return float(self.alphas.min())


def fold_scores(data: ArrayData, folds: Sequence[Fold], problem: PathProblem, scorer: Scorer | None) -> np.ndarray:
    """Scores of shape (k or 1, n_alphas, n_folds); without a scorer, minus weighted means of squared errors."""
    moments = _moments_of_folds(data, folds, problem)
    scores = []
    for f, fold in enumerate(folds):
        weight = training_weights(data, fold)
        kept = np.flatnonzero(weight)
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
    return sum_of_cells(moments, 1.0 - np.eye(len(moments))[left_out])


def error_statistic(batch: Batch, coef: Any, intercept: np.ndarray) -> tuple[np.ndarray, float]:
    """(sum_i w_i e_i^2 of shape (k, n_alphas), total weight) for coef of shape (p, k, n_alphas)."""
    p, k, a = coef.shape
    y = target_columns(batch.y)
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
        return np.asarray(-squares / weight)
    y = target_columns(test.y)
    scores = []
    for a in range(len(problem.alphas)):
        predictions = np.asarray(test.X @ coef[:, :, a]) + intercept[:, a]
        scores.append(scorer(y, predictions, test.weight))
    return np.stack(scores, axis=-1)


# ------------------------------------------------------------------------------------------------ files and partitions


def scores_from_moments(data: Data, n_folds: int, problem: PathProblem, n_rows: int) -> np.ndarray:
    """The same for data that stay where they are: folds are runs of consecutive rows, as KFold makes them."""
    if isinstance(data, DaskData) and data.sizes is None:
        raise DataError(
            "cv: a Dask collection that does not know the sizes of its partitions has no rows by number; call "
            "compute_chunk_sizes(), start a distributed.Client, or choose by leave-one-out (cv=None)"
        )
    if n_folds > n_rows:
        raise ParameterError(f"cv={n_folds}: there are {n_rows} rows; expected at most that many folds")
    cells = Cells.of_splitter(KFold(n_folds), n_rows)
    parts = cell_moments(data, cells, centre=problem.intercept, n_jobs=problem.n_jobs)
    scores = np.empty((data.n_targets, len(problem.alphas), n_folds))
    for f in range(n_folds):
        train = sum_of_cells(parts, cells.train[f])
        if not train.weight > 0:
            raise DataError("sample_weight: all rows that a fold is trained on have weight zero")
        coef, intercept = spectrum_of_moments(train, problem.penalty, problem.intercept).along_path(problem.alphas)
        for t in range(data.n_targets):
            scores[t, :, f] = -mean_squares(parts[f], coef[:, t].T, intercept[t], t)
    return scores
