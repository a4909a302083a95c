"""The trials of random sample consensus: rows that are drawn, fits to them, the rows near each fit.

Equal rows are drawn as one of their total weight, in an order that follows from what they hold: so a weight acts as
that many rows would, and the order of the rows does not matter.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.utils.validation import has_fit_parameter

from epicycle.core._exceptions import CollinearityWarning
from epicycle.core._random import stream
from epicycle.data import ArrayData
from epicycle.linear.least_squares._linear_regression import LinearRegression
from epicycle.stats._moments import target_columns

#: Numbers of a block of residuals, and trials of a block at most: 16 MB, and few enough that early ends waste little.
BLOCK_SIZE, MAX_BLOCK_TRIALS = 2_000_000, 16


@dataclass(frozen=True)
class Trial:
    """One trial: which rows are near its fit, or why it was skipped."""

    skipped: str = ""
    inliers: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))
    size: float = 0.0
    score: Callable[[], float] = lambda: -np.inf


@dataclass
class Consensus:
    """The best trial so far, its inliers by weight, and the number of trials that were skipped, by reason."""

    inliers: np.ndarray | None = None
    size: float = 0.0
    score: float = -np.inf
    n_trials: int = 0
    skips: dict[str, int] = field(default_factory=lambda: {"no_inliers": 0, "invalid_data": 0, "invalid_model": 0})

    def take(self, trial: Trial) -> bool:
        """Compare a trial with the best; whether it is better."""
        self.n_trials += 1
        reason = trial.skipped or ("no_inliers" if trial.size < self.size or not trial.size else "")
        if reason:
            self.skips[reason] += 1
            return False
        score = float(trial.score())
        if trial.size == self.size and score < self.score:
            return False
        self.inliers, self.size, self.score = trial.inliers, trial.size, score
        return True

    @property
    def n_skips(self) -> int:
        return sum(self.skips.values())

    def state(self, seed: int) -> dict[str, Any]:
        inliers = np.zeros(0, bool) if self.inliers is None else self.inliers
        return {
            "seed": seed,
            "n_trials": self.n_trials,
            "score": self.score,
            "size": self.size,
            "inliers": np.packbits(inliers),
            "skips": np.array(list(self.skips.values())),
        }

    @classmethod
    def resumed(cls, state: Mapping[str, Any], n_rows: int) -> Consensus:
        counts = dict(zip(cls().skips, map(int, state["skips"]), strict=True))
        bits = np.asarray(state["inliers"], dtype=np.uint8)
        inliers = np.unpackbits(bits, count=n_rows).astype(bool) if len(bits) else None
        return cls(inliers, float(state["size"]), float(state["score"]), int(state["n_trials"]), counts)


def _loss_of(loss: Any, vector: bool) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Losses of rows from (y, predictions)."""
    if callable(loss):
        return lambda y, shown: np.asarray(loss(y, shown))
    size = np.abs if loss == "absolute_error" else np.square
    if vector:
        return lambda y, shown: np.asarray(size(y - shown))
    return lambda y, shown: np.asarray(size(y - shown).sum(axis=1))


def weighted_median(values: np.ndarray, weight: np.ndarray) -> float:
    """The median of values that count by their weights, as of so many rows."""
    order = np.argsort(values)
    share = np.cumsum(weight[order]) / weight.sum()
    low = int(np.searchsorted(share, 0.5 * (1 - 1e-14)))
    high = int(np.searchsorted(share, 0.5 * (1 + 1e-14), side="right"))
    return float(values[order[low]] + values[order[min(high, len(values) - 1)]]) / 2


def rounding_of(y: np.ndarray) -> np.ndarray:
    """A row of what rounding leaves of residuals of zero: a thousand units in the last place of the largest target."""
    return np.asarray(1e3 * np.finfo(np.float64).eps * np.abs(y).max(axis=0, keepdims=True))


@dataclass(frozen=True)
class TrialRunner:
    """Trials by their numbers: one estimator each, or many least-squares fits at once.

    rows, weight : one row of every set of equal ones, and its total weight; None where all rows are different.
    """

    model: Any
    data: ArrayData
    base: Any
    n_drawn: int
    loss: Callable[[np.ndarray, np.ndarray], np.ndarray]
    threshold: float
    seed: int
    rows: np.ndarray
    weight: np.ndarray
    total: float

    @classmethod
    def of(cls, model: Any, data: ArrayData, base: Any, n_drawn: int, threshold: float, seed: int) -> TrialRunner:
        own = np.ones(data.n_rows) if data.weight is None else data.weight
        # A number for what a row holds: equal rows have the same, in whatever order they come.
        v = stream(0, "rows").normal(size=data.n_features + data.n_targets)
        X = data.X @ v[: data.n_features] if sp.issparse(data.X) else (data.X * v[: data.n_features]).sum(axis=1)
        key = np.asarray(X) + (target_columns(data.y) * v[data.n_features :]).sum(axis=1)
        _, rows, group = np.unique(key, return_index=True, return_inverse=True)
        weight = np.bincount(group, weights=own)
        kept = weight > 0
        n_drawn = min(n_drawn, int(np.count_nonzero(kept)))
        loss = _loss_of(model.loss, data.y.ndim == 1)
        if not callable(model.loss):
            # A threshold of zero (the median deviation of targets that are mostly equal) asks for fits that meet their
            # rows: whether rounding leaves 0 or 1e-16 of a residual must not decide.
            threshold = max(threshold, float(loss(rounding_of(data.y), np.zeros_like(data.y[:1])).max()))
        total = float(own.sum())
        return cls(model, data, base, n_drawn, loss, threshold, seed, rows[kept], weight[kept], total)

    @property
    def at_once(self) -> bool:
        plain = type(self.base) is LinearRegression and not self.base.positive and not sp.issparse(self.data.X)
        return plain and self.model.is_data_valid is None and self.model.is_model_valid is None

    def blocks(self, first: int, limit: float) -> Iterator[range]:
        """Numbers of trials, some at a time."""
        size = 1
        if self.at_once:
            size = max(1, min(MAX_BLOCK_TRIALS, BLOCK_SIZE // (self.data.n_rows * self.data.n_targets)))
        while first < limit:
            yield range(first, int(min(first + size, limit)))
            first += size

    def run(self, numbers: range) -> list[Trial]:
        if self.at_once:
            return self._least_squares(numbers)
        return [self._trial(t) for t in numbers]

    def _drawn(self, t: int) -> np.ndarray:
        """Different rows, one after the other with probabilities by weight: the first of so many waiting times."""
        waiting = stream(self.seed, "trial", t).exponential(size=len(self.rows)) / self.weight
        return np.sort(np.argpartition(waiting, self.n_drawn - 1)[: self.n_drawn])

    def _trial(self, t: int) -> Trial:
        data, model, drawn = self.data, self.model, self._drawn(t)
        rows = self.rows[drawn]
        X, y = data.X[rows], data.y[rows]
        if model.is_data_valid is not None and not model.is_data_valid(X, y):
            return Trial("invalid_data")
        fitted = self._fit(rows, self.weight[drawn], stream(self.seed, "estimator", t))
        if model.is_model_valid is not None and not model.is_model_valid(fitted, X, y):
            return Trial("invalid_model")
        inliers = self.loss(data.y, np.asarray(fitted.predict(data.X))) <= self.threshold
        extra = {} if data.weight is None else {"sample_weight": data.weight[inliers]}
        score = partial(fitted.score, data.X[inliers], data.y[inliers], **extra)
        return Trial("", inliers, self._size(inliers), score)

    def _size(self, inliers: np.ndarray) -> float:
        return float(np.count_nonzero(inliers) if self.data.weight is None else self.data.weight[inliers].sum())

    def _least_squares(self, numbers: range) -> list[Trial]:
        """Least squares of the rows of every trial, of least norm about their mean, by one call for all of them."""
        data, intercept = self.data, self.base.fit_intercept
        drawn = np.array([self._drawn(t) for t in numbers])
        rows, w = self.rows[drawn], self.weight[drawn]
        A, B = (
            np.asarray(data.X[rows], dtype=np.float64),
            target_columns(data.y)[rows],
        )  # (trials, m, p), (trials, m, k)
        share = w / w.sum(axis=1)[:, None]
        a, b = np.einsum("tm,tmp->tp", share, A), np.einsum("tm,tmk->tk", share, B)
        if not intercept:
            a, b = np.zeros_like(a), np.zeros_like(b)
        root = np.sqrt(w)[:, :, None]
        coef = np.linalg.pinv(root * (A - a[:, None])) @ (root * (B - b[:, None]))  # (trials, p, k)
        level = b - np.einsum("tp,tpk->tk", a, coef)
        p, k = coef.shape[1:]
        shown = (data.X @ coef.transpose(1, 0, 2).reshape(p, -1)).reshape(-1, len(rows), k) + level
        trials = []
        for t in range(len(rows)):
            predicted = shown[:, t, 0] if data.y.ndim == 1 else shown[:, t]
            trials.append(self._evaluated(predicted))
        return trials

    def _evaluated(self, predicted: np.ndarray) -> Trial:
        y = self.data.y
        inliers = self.loss(y, predicted) <= self.threshold
        own = None if self.data.weight is None else self.data.weight[inliers]
        score = partial(r2_score, y[inliers], predicted[inliers], sample_weight=own)
        return Trial("", inliers, self._size(inliers), score)

    def _fit(self, rows: np.ndarray, own: np.ndarray | None, rng: np.random.Generator) -> Any:
        fitted = clone(self.base)
        if "random_state" in fitted.get_params():
            fitted.set_params(random_state=int(rng.integers(2**31)))
        given = own is not None and not (own == 1).all() and has_fit_parameter(fitted, "sample_weight")
        weight = {"sample_weight": own} if given else {}
        return fitted.fit(self.data.X[rows], self.data.y[rows], **weight)

    def fitted_to(self, inliers: np.ndarray | None) -> Any:
        """The estimator fitted to all inliers; None where there are none yet."""
        if inliers is None:
            return None
        rows = np.flatnonzero(inliers)
        own = None if self.data.weight is None else self.data.weight[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", CollinearityWarning)  # few inliers need not tell features apart
            return self._fit(rows, own, stream(self.seed, "inliers"))
