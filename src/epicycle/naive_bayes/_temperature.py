"""A temperature T > 0 for log-odds:  minimise  -sum_i w_i log softmax(s_i / T)_{c_i},  convex in b = 1 / T.

The scores s_i of a row come from the statistics of the rows outside its fold. Statistics add up, so five folds cost one
more pass, and no fit.
"""

from __future__ import annotations

import copy
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from epicycle import _native, engine
from epicycle.data import Batch, Data

_FOLDS = 5
#: Smallest and largest b: scores a million times too sharp or too flat are beyond what a temperature repairs.
_RANGE = (1e-6, 1e6)
_STEPS = 50


def fit_temperature(model: Any, data: Data, statistic_of: Any) -> float:
    """The temperature of a model whose other parameters are set, for rows with codes for labels."""
    n_classes, events = len(model.classes_), model._events(data)
    if n_classes < 2:
        return 1.0
    parts = engine.sum(_fold_statistics, data, statistic_of, events, n_classes, n_jobs=model.n_jobs)
    scorers = []
    for fold in range(_FOLDS):
        others = [part.terms for k, part in enumerate(parts) if k != fold and part.terms is not None]
        if not others:  # all rows are equal: nothing is known of new ones
            return 1.0
        scorers.append(_scorer(model, tuple(reduce(add, column) for column in zip(*others, strict=True))))
    b = 1.0
    for _ in range(_STEPS):
        slope, curvature = engine.sum(_derivatives, data, scorers, b, n_jobs=model.n_jobs)
        step = slope / curvature if curvature > 0 else 0.0
        # In log b a Newton step of at most one e-fold keeps b positive from any start.
        new = float(np.clip(b * np.exp(np.clip(-step / b, -1.0, 1.0)), *_RANGE))
        if abs(new - b) <= 1e-10 * b:
            break
        b = new
    return 1.0 / b


def _scorer(model: Any, statistic: Any) -> Any:
    """Likelihood and prior of the same model with other statistics."""
    other = copy.copy(model)
    other._learn(statistic)
    return other._likelihood(), other._log_prior(statistic[0])


class _Part:
    """The statistic of one fold; None where no row of it was seen yet."""

    def __init__(self, terms: Any) -> None:
        self.terms = terms

    def __add__(self, other: _Part) -> _Part:
        if self.terms is None or other.terms is None:
            return self if other.terms is None else other
        return _Part(tuple(a + b for a, b in zip(self.terms, other.terms, strict=True)))


def _folds(batch: Batch) -> np.ndarray:
    """The fold of every row, by what is in it: the same wherever the row is, and one for rows that are equal."""
    hashes = np.empty(batch.n_rows, dtype=np.uint64)
    _native.core.row_hashes(batch.X, hashes)
    return np.asarray(hashes % np.uint64(_FOLDS))


def _fold_batches(batch: Batch) -> list[Batch | None]:
    fold, parts = _folds(batch), []
    for k in range(_FOLDS):
        rows = np.flatnonzero(fold == k)
        weight = None if batch.weight is None else batch.weight[rows]
        parts.append(Batch(batch.X[rows], batch.y[rows], weight) if len(rows) else None)
    return parts


def _fold_statistics(batch: Batch, statistic_of: Any, events: Any, n_classes: int) -> tuple[_Part, ...]:
    return tuple(
        _Part(None if part is None else statistic_of(part, events, n_classes)) for part in _fold_batches(batch)
    )


def _derivatives(batch: Batch, scorers: list[Any], b: float) -> tuple[float, float]:
    """First and second derivative of the loss in b: differences of the mean and the variance of scores."""
    slope = curvature = 0.0
    for part, ((function, parameters), log_prior) in zip(_fold_batches(batch), scorers, strict=True):
        if part is None:
            continue
        s = function(part.X, *parameters) + np.maximum(log_prior, -1e9)
        s -= s.max(axis=1, keepdims=True)
        p = np.exp(b * s)
        p /= p.sum(axis=1, keepdims=True)
        mean = (p * s).sum(axis=1)
        w = np.ones(len(s)) if part.weight is None else part.weight
        own = s[np.arange(len(s)), np.asarray(part.y, dtype=np.intp)]
        slope += float(w @ (mean - own))
        curvature += float(w @ ((p * s**2).sum(axis=1) - mean**2))
    return slope, curvature
