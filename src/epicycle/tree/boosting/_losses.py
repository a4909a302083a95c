"""Losses of boosting: a loss of a row from :mod:`epicycle.optim` with its start value, its link and its leaf values.

A loss L(y, s) of a target and a score has value, gradient L' and curvature L'' at every row, which
:meth:`NativeLoss.evaluate` computes in one pass. Where L'' is zero (absolute, quantile) trees are grown with curvature
one, as in least squares, and their leaves then take the best constant for the loss itself.

First-order boosting takes that best constant for every loss: the v that minimises

    sum_i w_i L(y_i, s_i + v) + l2/2 v^2

over the rows of a leaf. All leaves are solved at once by Newton's method between bounds that the sign of the derivative
tightens; where Newton would leave them, or has not halved the derivative, the interval is bisected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from scipy.optimize import brentq

from epicycle import _native
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.optim import _likelihoods as likelihoods, _losses as losses
from epicycle.optim._loss import Loss
from epicycle.tree.boosting._sums import total_of, weighted_quantile

# exp beyond this overflows the float32 of gradients.
_LARGEST_EXPONENT = 80.0
#: Methods of a user's loss.
LOSS_METHODS = ("value", "gradient", "curvature")
#: Scores at which a user's gradient is compared, in standard deviations of the target from its mean.
CHECKED_AT = np.array([-1.37, -0.61, 0.23, 0.89, 1.53])


@dataclass(frozen=True)
class Evaluation:
    """Total loss, and for each output the sums of |gradient| and of curvature."""

    loss: float
    abs_gradient: np.ndarray
    curvature: np.ndarray


@dataclass(frozen=True)
class NativeLoss:
    """A loss with a native twin.

    Parameters
    ----------
    of_row : Loss
    n_outputs : int
        Scores of a row: the number of classes for the multinomial loss, else 1.
    """

    of_row: Loss
    n_outputs: int = 1
    #: The quantile of the absolute residuals from which on Huber's loss is linear, taken anew in every round.
    delta_quantile: float | None = None

    def with_delta_of(self, residual: np.ndarray, weight: np.ndarray | None) -> NativeLoss:
        """Huber's loss with that quantile of these residuals; a residual that is not zero where it would be zero."""
        assert self.delta_quantile is not None
        size = np.abs(residual)
        delta = weighted_quantile(size, weight, self.delta_quantile)
        if not delta > 0:
            delta = float(np.min(size[size > 0], initial=np.inf))
        return replace(self, of_row=losses.Huber(delta)) if np.isfinite(delta) else self

    @property
    def name(self) -> str:
        """The name of the loss in messages."""
        return type(self.of_row).__name__.lower()

    @property
    def deviance_factor(self) -> float:
        """Factor from the mean loss to scikit-learn's train_score_: 2 for squared error and two classes."""
        return 2.0 if isinstance(self.of_row, losses.Squared | likelihoods.Logistic) else 1.0

    @property
    def unit_curvature(self) -> bool:
        """Whether the curvature is one, so that first- and second-order trees are the same."""
        return isinstance(self.of_row, losses.Squared)

    @property
    def leaf_quantile(self) -> float | None:
        """The quantile of residuals that is the best value of a leaf; None where a Newton step gives the value."""
        if isinstance(self.of_row, losses.Quantile):
            return self.of_row.tau
        return 0.5 if isinstance(self.of_row, losses.Absolute) else None

    @property
    def bounded_steps(self) -> bool:
        """Whether scores are logarithms, for which a bound holds on the useful length of a step."""
        return self.of_row.self_concordant

    def longest_step(self, learning_rate: float) -> float:
        r"""The longest change of a score that surely lowers the loss of a leaf.

        The losses with exponentials have :math:`|L^{(3)}| \le L''`, so adding x to the scores of a leaf changes its
        loss by no more than :math:`G x + H (e^{|x|} - 1 - |x|)`. At :math:`x = -\eta G / H` that is negative as long as
        :math:`(e^{|x|} - 1 - |x|) / x^2 < 1 / \eta`. Where L'' is one (or bounded by it) any rate below two will do.
        """
        if not self.of_row.self_concordant or learning_rate >= 2:
            return np.inf
        # The left side rises from 1/2 to above 10^39 between these ends: they bracket the root for every larger rate.
        learning_rate = max(learning_rate, 1e-38)
        return float(brentq(lambda x: (np.expm1(x) - x) / x**2 - 1 / learning_rate, 1e-3, 100.0))

    def check_target(self, y: np.ndarray) -> None:
        """Raise where the loss is not defined."""
        if isinstance(self.of_row, likelihoods.Poisson | likelihoods.Tweedie):
            if (y < 0).any():
                raise DataError(
                    f"y: loss={self.name!r} requires non-negative y and sum(y) > 0: expects targets >= 0, got "
                    f"{y.min():g}"
                )
            if not y.any():
                raise DataError(
                    f"y: loss={self.name!r} requires non-negative y and sum(y) > 0: expects a positive target among "
                    "those of positive weight, got zeros"
                )
        if isinstance(self.of_row, likelihoods.Gamma) and (y <= 0).any():
            raise DataError(f"y: loss='gamma' requires strictly positive y: expects targets > 0, got {y.min():g}")

    # ---------------------------------------------------------------------------------------- start and link

    @property
    def start_quantile(self) -> float | None:
        """The quantile of the target that the scores start from; None for losses that start from its mean."""
        return 0.5 if isinstance(self.of_row, losses.Huber) else self.leaf_quantile

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The best constant score, for each output."""
        if self.n_outputs > 1:
            totals = [total_of(np.ones(len(y)) if weight is None else weight, y == k) for k in range(self.n_outputs)]
            return self.start_of_classes(np.array(totals))
        if self.start_quantile is not None:
            return np.array([weighted_quantile(y, weight, self.start_quantile)])
        if weight is None:
            return self.start_of_mean(total_of(y) / len(y))
        return self.start_of_mean(total_of(y * weight) / total_of(weight))

    def start_of_mean(self, mean: float) -> np.ndarray:
        """The best constant score where the target has this mean."""
        # The gradient of a constant score is zero where the inverse link equals the mean: logit, log or identity.
        if isinstance(self.of_row, likelihoods.Logistic):
            # Next to huge weights the others may vanish in the sum: a class that is there has some probability.
            mean = min(max(mean, np.finfo(np.float64).tiny), 1 - np.finfo(np.float64).epsneg)
            return np.array([np.log(mean) - np.log1p(-mean)])
        if self.of_row.log_link:  # a mean of positive targets that underflows in the exact sums is not zero
            return np.array([np.log(max(mean, np.finfo(np.float64).tiny))])
        return np.array([mean])

    def start_of_classes(self, totals: np.ndarray) -> np.ndarray:
        """The best constant scores where the classes have these total weights."""
        return np.asarray(np.log(np.maximum(totals / totals.sum(), np.finfo(float).tiny)))

    def response(self, score: np.ndarray) -> np.ndarray:
        """Predictions for scores: the mean for losses with a logarithmic link, else the score itself."""
        return np.exp(score) if self.of_row.log_link else score

    # ---------------------------------------------------------------------------------------- rows

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

        The normalisers of the softmax, which :meth:`evaluate_class` needs, go to `normal` (2, n).
        """
        of_row, parameter = self.of_row, 0.0
        assert of_row.native is not None
        if isinstance(of_row, losses.Huber):
            parameter = of_row.delta
        elif isinstance(of_row, losses.Quantile):
            parameter = of_row.tau
        elif isinstance(of_row, likelihoods.Tweedie):
            parameter = of_row.power
        twin: Any = of_row.native  # every loss of boosting has one
        sums = _native.tree.loss_rows(twin, parameter, y, weight, score, gh, normal, threads)
        return Evaluation(float(sums[0]), sums[1::2], sums[2::2])

    def evaluate_class(
        self,
        k: int,
        y: np.ndarray,
        weight: np.ndarray | None,
        score: np.ndarray,
        normal: np.ndarray,
        gh: np.ndarray,
        threads: int,
    ) -> None:
        """Gradient and curvature by the scores of class k (n,) alone, to `gh` (n, 2), with the bits of `evaluate`."""
        _native.tree.class_rows(y, weight, score, normal, k, self.n_outputs, gh, threads)

    def row_values(self, y: np.ndarray, score: np.ndarray) -> np.ndarray:
        """The loss of every row at `score` (n, K)."""
        return self.of_row.value(score if self.n_outputs > 1 else score[:, 0], y)


class Exponential:
    """The loss exp(-u s) of AdaBoost for labels y of 0 and 1, with u = 2 y - 1."""

    def value(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """The loss of every row."""
        return np.asarray(np.exp(np.minimum(-(2 * y - 1) * s, _LARGEST_EXPONENT)))

    def gradient(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Its derivative by s."""
        return np.asarray(-(2 * y - 1) * self.value(y, s))

    def curvature(self, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        """Its second derivative by s."""
        return self.value(y, s)


@dataclass(frozen=True)
class UserLoss:
    """A user's object with ``value(y, s)``, ``gradient(y, s)`` and ``curvature(y, s)``, each an array like y."""

    of_user: Any
    n_outputs: int = 1
    leaf_quantile = start_quantile = delta_quantile = None
    unit_curvature = bounded_steps = False
    deviance_factor = 1.0

    def longest_step(self, learning_rate: float) -> float:
        """Infinity: no bound is known."""
        return np.inf

    def check_target(self, y: np.ndarray) -> None:
        """Accept any target, and refuse a gradient that is not the derivative of the value around these targets.

        The curvature is not compared: it may be a bound on the second derivative, or its expectation.
        """
        if not len(y):
            return
        rows = np.unique(np.asarray(y)[np.linspace(0, len(y) - 1, 64).astype(np.int64)])
        with np.errstate(all="ignore"):
            centre, spread = float(np.mean(rows, dtype=np.float64)), float(np.std(rows, dtype=np.float64))
            spread = spread if spread > 0 else max(abs(centre), 1.0)
            self._terms("gradient", y, np.full(len(y), centre))  # of the right shape
            at = np.repeat(rows, len(CHECKED_AT))
            s = centre + spread * np.tile(CHECKED_AT, len(rows))
            h = 2.0**-13 * spread
            above, below = self._terms("value", at, s + h), self._terms("value", at, s - h)
            given, numeric = self._terms("gradient", at, s), (above - below) / (2 * h)
            precision = np.finfo(np.result_type(self.of_user.value(at, s), np.float32)).eps
            rounding = 10 * precision * (np.abs(above) + np.abs(below)) / h
            differs = np.abs(given - numeric) > 1e-3 * np.maximum(np.abs(given), np.abs(numeric)) + rounding
            known = np.isfinite(given) & np.isfinite(numeric)
        if np.count_nonzero(differs & known) > 0.25 * np.count_nonzero(known):
            i = int(np.argmax(differs & known))
            raise ParameterError(
                f"loss: gradient(y={at[i]:g}, s={s[i]:g}) is {given[i]:g}, but value changes by {numeric[i]:g} there "
                "for every unit of s; gradient has to be the derivative of value in s"
            )

    def start(self, y: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
        """The best constant score, by Newton's method from the mean."""
        return self.newton_start(float(np.average(y, weights=weight)), lambda s: self.slopes(y, weight, s))

    def slopes(self, y: np.ndarray, weight: np.ndarray | None, s: float) -> tuple[float, float]:
        """Sums of gradient and curvature at one score for all rows."""
        w, at = np.ones(len(y)) if weight is None else weight, np.full(len(y), s)
        return float(w @ self._terms("gradient", y, at)), float(w @ self._terms("curvature", y, at))

    @staticmethod
    def newton_start(s: float, slopes: Callable[[float], tuple[float, float]]) -> np.ndarray:
        """The score at which the first of `slopes` is zero, by Newton's method from s."""
        for _ in range(50):
            g, h = slopes(s)
            step = g / h if h > 0 else 0.0
            s -= step
            if abs(step) <= 1e-12 * max(1.0, abs(s)):
                break
        return np.array([s])

    def response(self, score: np.ndarray) -> np.ndarray:
        """The score itself."""
        return score

    def evaluate(
        self, y: np.ndarray, weight: np.ndarray | None, score: np.ndarray, gh: np.ndarray | None, threads: int
    ) -> Evaluation:
        """As :meth:`NativeLoss.evaluate`."""
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
        """As :meth:`NativeLoss.row_values`."""
        return self._terms("value", y, score[:, 0])

    def _terms(self, method: str, y: np.ndarray, s: np.ndarray) -> np.ndarray:
        terms = np.asarray(getattr(self.of_user, method)(y, s), dtype=np.float64)
        if terms.shape != y.shape:
            raise ParameterError(f"loss: {method}(y, s) has shape {terms.shape}; expected that of y, {y.shape}")
        return terms


BoostingLoss: TypeAlias = NativeLoss | UserLoss


def regression_loss(
    loss: Any, *, delta: float, quantile: float, power: float, alpha: float | None = None
) -> BoostingLoss:
    """The loss of a regressor, given by name or as an object."""
    if alpha is not None and isinstance(loss, str):
        if loss == "huber":
            return NativeLoss(losses.Huber(float(delta)), delta_quantile=float(alpha))
        quantile = alpha
    if not isinstance(loss, str):
        return UserLoss(loss)
    parameter = {"huber": delta, "quantile": quantile, "tweedie": power}.get(loss)
    return NativeLoss(losses.loss_by_name(loss, None if parameter is None else float(parameter)))


def classification_loss(n_classes: int) -> NativeLoss:
    """Logistic loss for two classes, multinomial loss for more."""
    return NativeLoss(likelihoods.Logistic()) if n_classes == 2 else NativeLoss(likelihoods.Multinomial(), n_classes)
