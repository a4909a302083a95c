"""Losses for boosting: what is minimised, where it starts, and what a score means.

A loss L(y, s) of a target and a score has value, gradient L' and curvature L'' at every row; :meth:`Loss.evaluate`
gives all three in one pass. Where L'' is zero (absolute, quantile) trees are grown with curvature one, as in least
squares, and their leaves then take the best constant for the loss itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import logsumexp

from epicycle import _native
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.tree._exact_sums import exact_sum, exact_total, power_above

__all__ = [
    "LOSS_METHODS",
    "Evaluation",
    "Loss",
    "UserLoss",
    "classification_loss",
    "regression_loss",
    "weighted_quantile",
]

_KINDS = ("squared", "absolute", "huber", "quantile", "poisson", "gamma", "tweedie", "logistic", "softmax")
#: What a user's loss has to have.
LOSS_METHODS = ("value", "gradient", "curvature")
_LOG_LINK = ("poisson", "gamma", "tweedie")
_SELF_CONCORDANT = (*_LOG_LINK, "logistic", "softmax")


@dataclass(frozen=True)
class Evaluation:
    """Total loss, and for each output the sums of |gradient| and of curvature."""

    loss: float
    abs_gradient: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True)
class Loss:
    """A loss that the native kernel knows.

    Parameters
    ----------
    name : str
    parameter : float
        Delta of Huber, tau of quantile, power of Tweedie.
    n_outputs : int
        Scores of a row: the number of classes for softmax, else 1.
    """

    name: str
    parameter: float = 0.0
    n_outputs: int = 1

    @property
    def leaf_quantile(self) -> float | None:
        """The quantile of residuals that is the best value of a leaf; None where a Newton step gives the value."""
        return {"absolute": 0.5, "quantile": self.parameter}.get(self.name)

    @property
    def bounded_steps(self) -> bool:
        """Whether the scores are logarithms, so that steps beyond a bound are too long for any leaf."""
        return self.name in _SELF_CONCORDANT

    def longest_step(self, learning_rate: float) -> float:
        r"""The longest change of a score that surely lowers the loss of a leaf.

        The losses with exponentials have :math:`|L^{(3)}| \le L''`, so adding x to the scores of a leaf changes its
        loss by no more than :math:`G x + H (e^{|x|} - 1 - |x|)`. At :math:`x = -\eta G / H` that is negative as long as
        :math:`(e^{|x|} - 1 - |x|) / x^2 < 1 / \eta`. Where L'' is one (or bounded by it) any rate below two will do.
        """
        if self.name not in _SELF_CONCORDANT or learning_rate >= 2:
            return np.inf
        return float(brentq(lambda x: (np.expm1(x) - x) / x**2 - 1 / learning_rate, 1e-3, 100.0))

    def check_target(self, y: np.ndarray) -> None:
        """Raise where the loss is not defined."""
        if self.name in ("poisson", "tweedie") and (y < 0).any():
            raise DataError(f"y: loss={self.name!r} expects targets >= 0, got {y.min():g}")
        if self.name in ("poisson", "tweedie") and not y.any():
            raise DataError(
                f"y: loss={self.name!r} expects a positive target among those of positive weight, got zeros"
            )
        if self.name == "gamma" and (y <= 0).any():
            raise DataError(f"y: loss='gamma' expects targets > 0, got {y.min():g}")

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The best constant score, for each output."""
        if self.name == "softmax":
            totals = [_sum(np.ones(len(y)) if weight is None else weight, y == k) for k in range(self.n_outputs)]
            return self.start_of_classes(np.array(totals))
        if self.starts_at is not None:
            return np.array([weighted_quantile(y, weight, self.starts_at)])
        if weight is None:
            return self.start_of_mean(_sum(y) / len(y))
        return self.start_of_mean(_sum(y * weight) / _sum(weight))

    @property
    def starts_at(self) -> float | None:
        """The quantile of the target that the scores start from; None for those that start from its mean."""
        return 0.5 if self.name == "huber" else self.leaf_quantile

    def start_of_mean(self, mean: float) -> np.ndarray:
        """The best constant score where the target has this mean."""
        if self.name == "logistic":
            return np.array([np.log(mean) - np.log1p(-mean)])
        return np.array([np.log(mean) if self.name in _LOG_LINK else mean])

    def start_of_classes(self, totals: np.ndarray) -> np.ndarray:
        """The best constant scores where the classes have these total weights."""
        return np.log(np.maximum(totals / totals.sum(), np.finfo(float).tiny))

    def evaluate(
        self,
        y: np.ndarray,
        weight: np.ndarray | None,
        score: np.ndarray,
        gh: np.ndarray | None,
        threads: int,
        normal: np.ndarray | None = None,
    ) -> Evaluation:
        """Loss at `score` (K, n); gradient and curvature, times the weight, go to `gh` (K, n, 2) where it is given.

        What :meth:`evaluate_class` needs to know of other classes goes to `normal` (2, n).
        """
        sums = _native.tree.loss_rows(_KINDS.index(self.name), self.parameter, y, weight, score, gh, normal, threads)
        return Evaluation(float(sums[0]), sums[1::2], sums[2::2])

    def evaluate_class(
        self, k: int, y: np.ndarray, weight: np.ndarray | None, score: np.ndarray, normal: np.ndarray, gh: np.ndarray,
        threads: int,
    ) -> None:  # fmt: skip
        """Gradient and curvature by the scores of class k (n,) alone, to `gh` (n, 2), with the bits of `evaluate`."""
        _native.tree.class_rows(y, weight, score, normal, k, self.n_outputs, gh, threads)

    def row_values(self, y: np.ndarray, score: np.ndarray) -> np.ndarray:
        """The loss of every row at `score` (n, K)."""
        if self.name == "softmax":
            return logsumexp(score, axis=1) - score[np.arange(len(y)), y.astype(np.intp)]
        s = score[:, 0]
        if self.name == "logistic":
            return np.logaddexp(0.0, s) - y * s
        if self.name in _LOG_LINK:
            power = {"poisson": 1.0, "gamma": 2.0}.get(self.name, self.parameter)
            first = s if power == 2 else np.exp((2 - power) * s) / (2 - power)
            return first - (y * s if power == 1 else y * np.exp((1 - power) * s) / (1 - power))
        r = y - s
        if self.name == "squared":
            return r * r / 2
        if self.name == "huber":
            delta = self.parameter
            return np.where(np.abs(r) <= delta, r * r / 2, delta * (np.abs(r) - delta / 2))
        tau = self.parameter if self.name == "quantile" else 0.5
        return np.maximum(tau * r, (tau - 1) * r) * (1.0 if self.name == "quantile" else 2.0)

    def response(self, score: np.ndarray) -> np.ndarray:
        """What is predicted for scores: the mean for losses with a logarithmic link, else the score itself."""
        return np.exp(score) if self.name in _LOG_LINK else score


@dataclass(frozen=True)
class UserLoss:
    """A user's object with ``value(y, s)``, ``gradient(y, s)`` and ``curvature(y, s)``, each an array like y."""

    of_user: Any
    n_outputs: int = 1
    leaf_quantile = None
    bounded_steps = False

    def longest_step(self, learning_rate: float) -> float:
        """Not known."""
        return np.inf

    def check_target(self, y: np.ndarray) -> None:
        """A user's loss takes any number."""

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The best constant score, by Newton's method from the mean."""
        return self.newton_start(float(np.average(y, weights=weight)), lambda s: self.slopes(y, weight, s))

    def slopes(self, y: np.ndarray, weight: np.ndarray | None, s: float) -> tuple[float, float]:
        """Sums of gradient and curvature at one score for all rows."""
        w, at = np.ones(len(y)) if weight is None else weight, np.full(len(y), s)
        return float(w @ self._terms("gradient", y, at)), float(w @ self._terms("curvature", y, at))

    @staticmethod
    def newton_start(s: float, slopes: Callable[[float], tuple[float, float]]) -> np.ndarray:
        """The score at which the first of `slopes` is zero, from s on."""
        for _ in range(50):
            g, h = slopes(s)
            step = g / h if h > 0 else 0.0
            s -= step
            if abs(step) <= 1e-12 * max(1.0, abs(s)):
                break
        return np.array([s])

    def evaluate(
        self, y: np.ndarray, weight: np.ndarray | None, score: np.ndarray, gh: np.ndarray | None, threads: int
    ) -> Evaluation:
        """As :meth:`Loss.evaluate`."""
        gh = np.empty((1, len(y), 2), np.float32) if gh is None else gh
        s, w = score[0], 1.0 if weight is None else weight
        gh[0, :, 0] = w * self._terms("gradient", y, s)
        h = w * self._terms("curvature", y, s)
        if h.min(initial=0.0) < 0:
            raise ParameterError(f"loss: curvature(y, s) is {h.min():g} at a row; expected none below 0")
        gh[0, :, 1] = h
        loss = float(np.sum(w * self._terms("value", y, s)))
        sums = np.abs(gh).sum(axis=1, dtype=np.float64)
        return Evaluation(loss, sums[:, 0], sums[:, 1])

    def row_values(self, y: np.ndarray, score: np.ndarray) -> np.ndarray:
        """As :meth:`Loss.row_values`."""
        return self._terms("value", y, score[:, 0])

    def response(self, score: np.ndarray) -> np.ndarray:
        """The score itself."""
        return score

    def _terms(self, method: str, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        terms = np.asarray(getattr(self.of_user, method)(y, s), dtype=np.float64)
        if terms.shape != y.shape:
            raise ParameterError(f"loss: {method}(y, s) has shape {terms.shape}; expected that of y, {y.shape}")
        return terms


def regression_loss(loss: Any, *, delta: float, quantile: float, power: float) -> Loss | UserLoss:
    """The loss that a regressor was asked for, by name or as an object."""
    if isinstance(loss, str):
        parameter = {"huber": delta, "quantile": quantile, "tweedie": power}.get(loss, 0.0)
        return Loss(loss, float(parameter))
    return UserLoss(loss)


def classification_loss(n_classes: int) -> Loss:
    """Logistic loss for two classes, softmax for more."""
    return Loss("logistic") if n_classes == 2 else Loss("softmax", n_outputs=n_classes)


def weighted_quantile(x: np.ndarray, weight: np.ndarray | None, tau: float) -> float:
    """The middle of the numbers that minimise the weighted quantile loss of x."""
    if weight is None:
        below = int(np.ceil(tau * len(x) - 1e-9)) - 1
        above = int(np.floor(tau * len(x) + 1e-9))
        low, high = max(below, 0), min(above, len(x) - 1)
        part = np.partition(x, (low, high))
        return float(part[low] + (part[high] - part[low]) / 2)
    order = np.argsort(x, kind="stable")
    cumulative = np.cumsum(weight[order])
    target = tau * cumulative[-1]
    slack = 1e-9 * cumulative[-1] / len(x)
    low = int(np.searchsorted(cumulative, target - slack))
    high = int(np.searchsorted(cumulative, target + slack, side="right"))
    last = len(x) - 1
    a, b = x[order[min(low, last)]], x[order[min(high, last)]]
    return float(a + (b - a) / 2)


def _sum(x: np.ndarray, which: np.ndarray | None = None) -> float:
    """The sum of x that also other divisions of the rows would give."""
    scale = power_above(float(np.abs(x).max(initial=0.0)))
    return exact_total(exact_sum(x if which is None else x[which], scale), scale)
