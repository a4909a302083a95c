"""Linear splines:  f(x) = b + sum_j [ s_j x_j + sum_k beta_jk max(0, x_j - a_jk) ],

    minimise  1/2 sum_i w_i (y_i - f(x_i))^2 + alpha/2 sum_jk beta_jk^2.

beta_jk is the change of slope of column j at its knot a_jk; the intercept b and the first slopes s_j are not penalised.
In the basis (1, x, hinges) this is ridge regression with the matrix D = diag(0, 0, ..., 1, 1, ...).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

import numpy as np

from epicycle.core._arguments import SharedArguments
from epicycle.core._exceptions import ParameterError
from epicycle.core._memory import require_memory
from epicycle.core._parameters import AnyOf, ArrayLike, Choice, Domain, Integer, Real
from epicycle.core._plot_style import Axes, ink
from epicycle.core.estimator._estimator import stores_arguments
from epicycle.data import Data
from epicycle.linear.basis._base import BasisRegressor, penalties_of
from epicycle.linear.basis._bases import HingeBasis
from epicycle.linear.basis._ranges import column_quantiles, column_ranges

# --------------------------------------------------------------------------------------------------------------------
# Where the knots of a spline lie: at quantiles, evenly spaced, or where the caller says.


#: Most knots or harmonics of a column: more is a mistake, which is refused before anything is allocated.
MAX_FUNCTIONS = 1_000_000

#: The domains of the arguments that :func:`place_knots` reads.
KNOTS: Mapping[str, Domain] = {
    "n_knots": Integer(minimum=1, maximum=MAX_FUNCTIONS),
    "knots": AnyOf(Choice("quantile", "uniform"), ArrayLike()),
}


def place_knots(owner: str, data: Data, knots: Any, n_knots: int, n_jobs: int | None) -> list[np.ndarray]:
    """The knots of every column: ascending, distinct, and inside the range of the data unless they were given."""
    p = data.n_features
    if not isinstance(knots, str):
        return _given(owner, knots, p)
    shares = np.arange(1, n_knots + 1) / (n_knots + 1)
    low, high = column_ranges(data, n_jobs)
    if knots == "uniform":
        placed = [a + (b - a) * shares for a, b in zip(low, high, strict=True)]
    else:
        placed = column_quantiles(data, shares, n_jobs)
    # A knot at either end would bend nothing.
    return [np.unique(k[(k > a) & (k < b)]) for k, a, b in zip(placed, low, high, strict=True)]


def _given(owner: str, knots: Any, p: int) -> list[np.ndarray]:
    expected = f"expected 'quantile', 'uniform', distinct finite numbers, or such an array for each of {p} column(s)"
    nested = not isinstance(knots, np.ndarray) and len(knots) and all(np.ndim(row) == 1 for row in knots)
    if nested and len(knots) != p:
        raise ParameterError(f"{owner}: knots has {len(knots)} arrays; {expected}")
    try:
        rows = [np.asarray(row, dtype=np.float64) for row in (knots if nested else [knots] * p)]
    except (TypeError, ValueError):
        raise ParameterError(f"{owner}: knots={knots!r:.80}; {expected}") from None
    if any(row.ndim != 1 or not np.isfinite(row).all() or len(np.unique(row)) != len(row) for row in rows):
        raise ParameterError(f"{owner}: knots={knots!r:.80}; {expected}")
    return [np.sort(row) for row in rows]


class LinearSpline(BasisRegressor):
    r"""A continuous, piecewise linear function of every column, with a penalty on the changes of slope.

    .. math:: f(x) = b + \sum_j \Bigl[ s_j x_j + \sum_k \beta_{jk} \max(0, x_j - a_{jk}) \Bigr], \qquad
              \min \; \tfrac12 \sum_i w_i \, (y_i - f(x_i))^2 + \tfrac{\alpha}{2} \sum_{jk} \beta_{jk}^2

    Several columns add up. Beyond the outermost knots the function goes on as a straight line.

    Parameters
    ----------
    n_knots : int, default=10
        Knots of every column, where they are not given.
    alpha : float, sequence of float or "loo", default=0.0
        Strength of the penalty on the changes of slope. A sequence leaves the choice to leave-one-out, which is
        computed without refitting, for the same knots; "loo" brings its own sequence.
    knots : {"quantile", "uniform"} or array-like, default="quantile"
        Knots at evenly spaced quantiles or values of each column, or the knots themselves: an array for one column (or
        for all alike), a sequence of arrays for each.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features + n_knots_in_all,) or (n_targets, n_features + n_knots_in_all)
        First slopes of all columns, then the changes of slope at all knots.
    intercept_ : float or ndarray of shape (n_targets,)
    knots_ : list of ndarray
        The knots of every column.
    alpha_ : float
        The penalty asked for or chosen.
    loo_errors_ : ndarray
        Mean squared leave-one-out error of every alpha, where there was a choice.
    data_range_ : ndarray of shape (2, n_features)
        Smallest and largest value of every column.
    rank_ : int
        Number of functions that the data and the penalty tell apart.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LinearSpline
    >>> x = np.linspace(-1, 1, 101)[:, None]
    >>> model = LinearSpline(knots=[0.0]).fit(x, np.abs(x[:, 0]))
    >>> model.coef_.round(6)
    array([-1.,  2.])
    >>> model.predict([[3.0]]).round(6)
    array([3.])
    """

    _parameters: ClassVar[Mapping[str, Domain]] = {
        **BasisRegressor._parameters,
        **KNOTS,
        "alpha": AnyOf(Real(minimum=0), Choice("loo"), ArrayLike()),
    }

    @stores_arguments(tol=1e-10, n_jobs=None, verbose=0)
    def __init__(
        self,
        n_knots: int = 10,
        alpha: float | str | Any = 0.0,
        *,
        knots: str | Any = "quantile",
        **shared: Unpack[SharedArguments],
    ) -> None: ...

    def _place(self, data: Data) -> None:
        self.knots_ = place_knots(type(self).__name__, data, self.knots, self.n_knots, self.n_jobs)
        d = data.n_features + sum(map(len, self.knots_))
        require_memory(48.0 * d * d, f"a spline with {d} coefficients", "lower n_knots")
        self.data_range_ = np.stack(column_ranges(data, self.n_jobs))

    def _basis(self) -> HingeBasis:
        owners = np.repeat(np.arange(len(self.knots_)), [len(k) for k in self.knots_])
        return HingeBasis(np.concatenate([np.empty(0), *self.knots_]), owners, len(self.knots_))

    def _candidates(self, factor: Any) -> list[tuple[Any, np.ndarray]]:
        p, d = self.n_features_in_, factor.R_x.shape[1]
        scale = float((factor.R_x[:, p:] ** 2).sum()) / max(d - p, 1)
        changes = np.append(np.zeros(p), np.ones(d - p))
        return [(alpha, alpha * changes) for alpha in penalties_of(self.alpha, scale, type(self).__name__)]

    def _keep_choice(self, candidates: list[Any], errors: np.ndarray | None, chosen: int) -> None:
        self.alpha_ = float(candidates[chosen])
        if errors is not None:
            self.loo_errors_ = errors

    def _chose(self) -> bool:
        return hasattr(self, "loo_errors_")

    def _penalty_value(self) -> float:
        return self.alpha_

    def _range(self, column: int) -> tuple[float, float]:
        low, high = self.data_range_[:, column]
        return float(low), float(high)

    def _facts(self, coef: np.ndarray) -> dict[str, float]:
        changes = coef[self.n_features_in_ :]
        return {"knots": float(len(changes)), "alpha": self.alpha_, "roughness": float(changes @ changes)}

    def _decorate(self, ax: Axes, column: int) -> None:
        for knot in self.knots_[column]:
            ax.axvline(knot, color=ink(ax, 0.25), lw=0.7, ls=":", zorder=0)

    def _penalty_line(self) -> str:
        alpha = getattr(self, "alpha_", self.alpha)
        return "no penalty" if np.array_equal(alpha, 0.0) else f"alpha/2 sum of squared changes of slope, alpha={alpha}"
