"""Results of a fitted effect: intervals, effects of rows, balance, overlap, a summary and figures."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import ndtr, ndtri

from epicycle.causal.effects._balance import balance_table, draw_balance
from epicycle.causal.effects._overlap import draw_overlap
from epicycle.causal.effects._study import drop_position, without_column
from epicycle.core._exceptions import DataTypeError, ParameterError
from epicycle.core._plot_style import Axes, styled
from epicycle.core.estimator._estimator import Estimator
from epicycle.data import ArrayData
from epicycle.stats._summary import Summary

ESTIMANDS: dict[str, str] = {
    "ate": "average effect on all rows",
    "att": "average effect on the treated",
    "atc": "average effect on the controls",
    "ato": "average effect where the arms overlap",
    "cate": "effects on rows, and their average",
}


class EffectResults(Estimator):
    """An effect with its evidence."""

    estimand: str

    effect_: float
    standard_error_: float
    interval_: tuple[float, float]
    method_: str
    treatment_levels_: tuple[Any, ...]
    trimmed_: float
    _column_: int | str | None  # where the treatment stands in X
    _covariates_: list[str]
    _balance_: dict[str, np.ndarray]
    _sizes_: dict[str, float]
    _overlap_: dict[str, Any] | None
    _effects_: Any  # the model of row effects

    def _interval(self, level: float) -> tuple[float, float]:
        half = float(ndtri(0.5 + level / 2)) * self.standard_error_
        return self.effect_ - half, self.effect_ + half

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the confidence interval of the average effect.

        Parameters
        ----------
        level : float, default=0.95
            The probability with which such intervals cover the effect, over repeated samples.
        """
        self._check_fitted()
        if not 0 < level < 1:
            raise ParameterError(f"level={level!r}; expected a number between 0 and 1")
        return self._interval(level)

    def predict(self, X: Any) -> np.ndarray:
        """Predict the effects of rows; where `estimand` is not "cate", the average effect for each.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            As in :meth:`fit`. The column of the treatment is not looked at; where it was named it may be left out.
        """
        rows = self._effect_rows(X)
        if self._effects_ is None:
            return np.full(rows.shape[0], self.effect_)
        return np.asarray(self._effects_.predict(rows))

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Predict intervals of the effects of rows, for "regression" and "causal_forest" with ``estimand="cate"``.

        Those of a forest are Student's, with degrees of freedom that grow with the number of trees.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n_samples, n_features)
            As in :meth:`predict`.
        level : float, default=0.95
            The probability with which the interval of a row covers its effect, over repeated samples.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,)
        """
        self.confidence_interval(level)
        rows = self._effect_rows(X)
        if not hasattr(self._effects_, "half_widths"):
            raise ParameterError(f"method={self.method_!r} gives no intervals of the effects of rows")
        half = np.asarray(self._effects_.half_widths(rows, level))
        effects = np.asarray(self._effects_.predict(rows))
        return effects - half, effects + half

    def _effect_rows(self, X: Any) -> np.ndarray:
        """The covariates of new rows."""
        self._check_fitted()
        if isinstance(self._column_, str):
            X = without_column(X, self._column_)
        data = self._predict_data(X)
        if not isinstance(data, ArrayData):
            raise DataTypeError(f"X: {type(self).__name__} predicts in memory, got {type(X).__name__}")
        rows = drop_position(data.X, self._column_) if isinstance(self._column_, int) else data.X
        return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, dtype=np.float64)

    @property
    def balance_(self) -> Summary:
        """Standardised mean differences and variance ratios of the covariates, before and after the adjustment."""
        self._check_fitted()
        if not self._balance_:
            raise AttributeError("balance_: a numeric treatment has no arms to compare")
        return balance_table(self._covariates_, self._balance_, self._sizes_)

    @property
    def overlap_(self) -> dict[str, Any]:
        """The propensity scores: Crump's `threshold`, the share `outside`, extremes, and the `region` in words."""
        self._check_fitted()
        if self._overlap_ is None:
            raise AttributeError(f"overlap_: method={self.method_!r} has no propensity scores")
        return dict(self._overlap_)

    def summary(self) -> Summary:
        """Return the effect with its error, z value, p value and 95% interval, and the sizes of the arms."""
        self._check_fitted()
        error = self.standard_error_
        z = self.effect_ / error if error > 0 else np.copysign(np.inf, self.effect_) if self.effect_ else 0.0
        low, high = self.interval_
        values = (self.effect_, error, z, 2 * ndtr(-abs(z)), low, high)
        titles = ("effect", "std. error", "z", "p", "2.5%", "97.5%")
        columns = {title: np.array([value]) for title, value in zip(titles, values, strict=True)}
        facts = {name.replace("_", " "): value for name, value in self._sizes_.items()}
        if self.trimmed_ > 0:
            facts["trimmed"] = self.trimmed_
        who = "effect of one unit" if not self.treatment_levels_ else ESTIMANDS[self.estimand]
        return Summary(f"{who} ({self.method_})".capitalize(), (self.estimand,), columns, facts)

    @styled
    def plot_balance(self, ax: Axes | None = None) -> Axes:
        """Draw the standardised differences of the covariates before and after (love plot)."""
        _ = self.balance_
        return draw_balance(ax, self._covariates_, self._balance_)

    @styled
    def plot_overlap(self, ax: Axes | None = None) -> Axes:
        """Draw the propensity scores of both arms, with the bounds of Crump's trimming rule."""
        return draw_overlap(ax, self.overlap_, self.treatment_levels_)
