r"""Changes of two groups of units compared given covariates, where trends are parallel only for units that are alike.

With m(x) the least-squares fit of the change on the covariates in the comparison group, and p(x) the logistic
probability of belonging to the treated one,

    regression:      E[change - m(x) | treated]
    doubly robust:   the same, less the mean of change - m(x) in the comparison group with weights p(x) / (1 - p(x)),

of which the second is consistent if m or p is right (Sant'Anna and Zhao 2020). Influences of the units follow from the
equations that define m, p and the means, stacked. A fit is nearer to its own units than to others by their leverage h:
scores of each equation are divided by sqrt(1 - h), so that few units do not look more certain than they are (HC2,
MacKinnon and White 1985).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from epicycle.core._exceptions import DataError, SeparationWarning
from epicycle.linear.logistic._logistic_regression import LogisticRegression

Array = np.ndarray
_LARGEST_ODDS = 1e6
_LARGEST_LEVERAGE = 0.99


@dataclass(frozen=True)
class AdjustedTrends:
    """Covariates of units and times, (n, T, k), and whether the propensity is used beside the regression."""

    X: Array
    doubly_robust: bool

    def __call__(self, change: Array, mine: Array, others: Array, base: int, weight: Array) -> tuple[float, Array]:
        """(effect on `mine`, influences of all units) from changes since the time `base`, at which X is taken."""
        sub = mine | others
        D, y, w = mine[sub].astype(np.float64), change[sub], weight[sub]
        X = self.X[sub, base]
        spread = X.std(axis=0)
        Z = np.column_stack([np.ones(len(y)), (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)])
        n, k = float(w.sum()), Z.shape[1]
        gram = Z.T @ (Z * (w * (1 - D))[:, None]) / n
        if n - D @ w <= k or np.linalg.cond(gram) > 1e12:
            raise DataError(
                f"X: {int(others.sum())} units to compare with do not determine {k} coefficients at time {base}; leave "
                "out columns that are constant or combinations of others there"
            )
        inverse = np.linalg.inv(gram)
        m = Z @ (inverse @ (Z.T @ (w * (1 - D) * y) / n))
        r = y - m
        free = r / _out_of_sample((1 - D) * _leverage(Z, inverse) / n)
        of_line = (Z * ((1 - D) * free)[:, None]) @ inverse

        def mean(v: Array) -> tuple[float, Array, float]:
            """(mean of r, its influence without that of v, the mean of v) with weights v."""
            size = float(w @ v) / n
            eta = float(w @ (v * r)) / n / size
            own = v * (free - eta) / _out_of_sample(v / (n * size))
            return eta, (own - of_line @ ((w * v) @ Z / n)) / size, size

        effect, influence, _ = mean(D)
        if self.doubly_robust:
            p = _propensity(Z, D, w)
            odds = np.where(D == 1, 0.0, p / np.where(D == 1, 1.0, 1 - p))
            shift, of_shift, size = mean(odds)
            curvature = np.linalg.inv(Z.T @ (Z * (w * p * (1 - p))[:, None]) / n)
            slope = (w * odds * (r - shift)) @ Z / n
            surprise = (D - p) / _out_of_sample(p * (1 - p) * _leverage(Z, curvature) / n)
            of_shift += (Z * surprise[:, None]) @ (curvature @ slope) / size
            effect, influence = effect - shift, influence - of_shift
        full = np.zeros(len(change))
        full[sub] = influence * float(weight.sum()) / n
        return effect, full


def _leverage(Z: Array, inverse: Array) -> Array:
    """z' inverse z of every row z."""
    return np.asarray(np.einsum("ij,jk,ik->i", Z, inverse, Z))


def _out_of_sample(leverage: Array) -> Array:
    """sqrt(1 - h)."""
    return np.asarray(np.sqrt(1 - np.minimum(leverage, _LARGEST_LEVERAGE)))


def _propensity(Z: Array, D: Array, w: Array) -> Array:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)
        model = LogisticRegression(penalty=None, fit_intercept=False).fit(Z, D.astype(np.int64), sample_weight=w)
    p = np.asarray(model.predict_proba(Z))[:, 1]
    if p[D == 0].max() > 1 - 1 / _LARGEST_ODDS or p[D == 0].max() < p[D == 1].min():
        raise DataError("X: tells treated units from those to compare with; expected groups that overlap in X")
    return p
