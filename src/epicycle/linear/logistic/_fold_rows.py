"""The rows of one fold of data that is not in memory: batches come with the weights that rows have in the fold."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from epicycle import engine
from epicycle.data import Batch, Data
from epicycle.data._data import TargetEncoder
from epicycle.engine._fold import State


class FoldRows(Data):
    """A data set in which each row counts `times` times, an array with one number for each row of it."""

    def __init__(self, data: Data, times: np.ndarray) -> None:
        self.data, self.times = data, times
        self.n_features, self.feature_names, self.n_rows = data.n_features, data.feature_names, len(times)
        self.dtype, self.sparse, self.has_weight = data.dtype, data.sparse, True
        self.n_targets, self.target_is_vector = data.n_targets, data.target_is_vector

    def batches(self) -> Iterator[Batch]:
        for batch in self.data.batches():
            yield _weighted(batch, self.times)

    def encode_target(self, function: TargetEncoder, n_columns: int | None = None) -> FoldRows:
        return FoldRows(self.data.encode_target(function, n_columns), self.times)

    def head(self) -> Batch:
        return self.data.head()


def sum_rows(statistic: Callable[..., State], data: Data, *parameters: Any, n_jobs: int | None = None) -> State:
    """``engine.sum`` over all rows, or over those of a fold."""
    if isinstance(data, FoldRows):
        return engine.sum(_of_fold, data.data, statistic, data.times, *parameters, n_jobs=n_jobs)
    return engine.sum(statistic, data, *parameters, n_jobs=n_jobs)


def _of_fold(batch: Batch, statistic: Callable[..., State], times: np.ndarray, *parameters: Any) -> State:
    return statistic(_weighted(batch, times), *parameters)


def _weighted(batch: Batch, times: np.ndarray) -> Batch:
    part = times[batch.start : batch.start + batch.n_rows]
    return replace(batch, weight=part if batch.weight is None else part * batch.weight)


def codes_in_order(data: Data, n_jobs: int | None) -> np.ndarray:
    """The codes of the classes of all rows, in memory."""
    return np.asarray(engine.map(_codes, data, n_jobs=n_jobs)).astype(np.intp)


def _codes(batch: Batch) -> np.ndarray:
    return np.asarray(batch.y)


def class_totals(batch: Batch, n_classes: int) -> tuple[np.ndarray]:
    """The weights of the classes."""
    return (np.bincount(np.asarray(batch.y).astype(np.intp), batch.weight, minlength=n_classes).astype(np.float64),)


def score_statistic(batch: Batch, params: np.ndarray, name: str) -> tuple[np.ndarray, float]:
    """The sum of minus the log losses, or of hits, of models `params` (n, rows, p + 1); and the weight of the rows."""
    codes = np.asarray(batch.y).astype(np.intp)
    n, rows, d = params.shape
    flat = params.reshape(n * rows, d)
    Z = (np.asarray(batch.X @ flat[:, :-1].T) + flat[:, -1]).reshape(len(codes), n, rows)
    if rows == 1:
        Z = np.concatenate([np.zeros_like(Z), Z], axis=2)
    if name == "accuracy_score":
        of_rows = (Z.argmax(axis=2) == codes[:, None]).astype(np.float64)
    else:
        most = Z.max(axis=2, keepdims=True)
        of_rows = Z[np.arange(len(codes)), :, codes] - most[:, :, 0] - np.log(np.exp(Z - most).sum(axis=2))
    weight = np.ones(len(codes)) if batch.weight is None else batch.weight
    return weight @ of_rows, float(weight.sum())
