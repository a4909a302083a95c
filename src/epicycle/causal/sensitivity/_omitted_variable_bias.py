r"""`OmittedVariableBias`: what an omitted variable could do to a coefficient (Cinelli and Hazlett 2020).

An omitted z with partial R^2 of r_d with the treatment and of r_y with the outcome (given everything else) has moved
the coefficient by exactly  se sqrt(df) sqrt(r_y r_d / (1 - r_d)),  up or down.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import t as student

from epicycle.causal.designs._inputs import column, columns, residuals_after
from epicycle.core._checks import items, number, open_unit
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, styled
from epicycle.core.estimator import in_catalogue
from epicycle.data._target import as_numbers
from epicycle.stats._summary import Summary

Array = np.ndarray
_LARGEST = 1e150  # a strength beyond it is as good as infinite, and its square is a number


@dataclass(frozen=True)
class OmittedVariableBias:
    r"""Sensitivity of a coefficient of least squares to a variable that was left out.

    Parameters
    ----------
    estimate, standard_error : float
        The coefficient of the treatment.
    degrees_of_freedom : int
        Rows less coefficients.
    benchmarks : mapping, optional
        For names of controls, their partial :math:`R^2` with the treatment and with the outcome.

    Examples
    --------
    Attitudes to peace in Darfur, table 1 of Cinelli and Hazlett:

    >>> from epicycle.causal import OmittedVariableBias
    >>> darfur = OmittedVariableBias(0.097, 0.0232, 783)
    >>> round(darfur.partial_r2, 3), round(darfur.robustness_value(), 3), round(darfur.robustness_value(alpha=0.05), 3)
    (0.022, 0.139, 0.076)
    """

    estimate: float
    standard_error: float
    degrees_of_freedom: int
    benchmarks: dict[str, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        number("estimate", self.estimate)
        number("standard_error", self.standard_error, low=np.nextafter(0, 1))
        number("degrees_of_freedom", self.degrees_of_freedom, low=2)

    @property
    def partial_r2(self) -> float:
        """Share of the outcome's variance that the treatment explains, given the controls."""
        f = self._strength
        return f * f / (1 + f * f)

    @property
    def _strength(self) -> float:
        """Cohen's f = |t| / sqrt(df), kept where its square is a number."""
        t = abs(float(self.estimate) / float(self.standard_error))
        return min(t / math.sqrt(self.degrees_of_freedom), _LARGEST)

    def robustness_value(self, q: float = 1.0, alpha: float | None = None) -> float:
        """Partial R^2 with treatment and outcome, equal for both, that takes away the share q of the estimate.

        Parameters
        ----------
        q : float, default=1
            Share of the estimate.
        alpha : float, optional
            What is left need only be insignificant at this level.
        """
        f = min(number("q", q, low=0) * self._strength, _LARGEST)
        critical = 0.0
        if alpha is not None:
            df = self.degrees_of_freedom - 1
            critical = float(student.ppf(1 - open_unit("alpha", alpha) / 2, df) / np.sqrt(df))
        gap = f - critical
        if gap <= 0:
            return 0.0
        if critical > 0 and f > 1 / critical:  # a variable that explains the treatment alone is enough
            return float((f**2 - critical**2) / (1 + f**2))
        return 2 * gap / (math.hypot(gap, 2) + gap)

    def adjusted(self, r2_treatment: Any, r2_outcome: Any) -> tuple[Array, Array]:
        """Estimate and standard error that a variable of this strength would leave, if it drew towards zero.

        Parameters
        ----------
        r2_treatment, r2_outcome : float or arrays
            Partial R^2 of the variable with the treatment and with the outcome.
        """
        r_d, r_y = _shares("r2_treatment", r2_treatment), _shares("r2_outcome", r2_outcome)
        try:
            r_d, r_y = np.broadcast_arrays(r_d, r_y)
        except ValueError:
            raise DataError(f"r2_outcome: has shape {r_y.shape}; expected that of r2_treatment, {r_d.shape}") from None
        if not ((r_d >= 0) & (r_d < 1) & (r_y >= 0) & (r_y <= 1)).all():
            raise ParameterError("r2_treatment, r2_outcome: expected numbers from 0 to 1, the first below 1")
        df = self.degrees_of_freedom
        bias = self.standard_error * np.sqrt(df) * np.sqrt(r_y * r_d / (1 - r_d))
        error = self.standard_error * np.sqrt((1 - r_y) / (1 - r_d)) * np.sqrt(df / (df - 1))
        return np.asarray(self.estimate - np.sign(self.estimate) * bias), np.asarray(error)

    def bounds(self, multiples: Sequence[float] = (1, 2, 3)) -> Summary:
        """The estimate under variables k times as strong as each benchmark.

        Parameters
        ----------
        multiples : sequence of float, default=(1, 2, 3)
            k.
        """
        rows, values = [], []
        for name, (with_d, with_y) in self.benchmarks.items():
            for k in multiples:
                r_d, r_y = _bound(with_d, with_y, k)
                effect, error = self.adjusted(r_d, r_y) if r_d < 1 else (np.nan, np.nan)
                rows.append(f"{k:g} x {name}")
                values.append((r_d, r_y, float(effect), float(error)))
        table = np.array(values).reshape(-1, 4).T
        names = ("R2 treatment", "R2 outcome", "effect", "std err")
        return Summary("Bounds on an omitted variable", tuple(rows), dict(zip(names, table, strict=True)))

    def __str__(self) -> str:
        one, significant = self.robustness_value(), self.robustness_value(alpha=0.05)
        words = (
            f"an omitted variable that explains {100 * one:.1f}% of what is left of both treatment and outcome would "
            f"bring the estimate to zero"
        )
        if significant > 0:
            return f"{words}; {100 * significant:.1f}% would make it insignificant at 5%"
        return f"{words}; it is not significant at 5% as it stands"

    @styled
    def plot(self, ax: Axes | None = None, *, largest: float = 0.4) -> Axes:
        """Draw the estimate that variables of every strength would leave, with the benchmarks.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axis to draw on; by default a new one.
        largest : float, default=0.4
            End of both axes.
        """
        largest = open_unit("largest", largest)
        ax = axes_of(ax, (5.6, 4.4))
        grid = np.linspace(0, largest, 120)
        R_d, R_y = np.meshgrid(grid, grid)
        effect, _ = self.adjusted(R_d, R_y)
        lines = ax.contour(R_d, R_y, effect, levels=8, colors=ink(ax, 0.45), linewidths=0.9)
        ax.clabel(lines, fontsize=8)
        ax.contour(R_d, R_y, effect, levels=[0.0], colors=COLOURS["vermilion"], linewidths=2)
        ax.plot([0], [0], "^", color=ink(ax), ms=7, clip_on=False, label=f"estimate {self.estimate:.3g}")
        for i, (name, (with_d, with_y)) in enumerate(self.benchmarks.items()):
            r_d, r_y = _bound(with_d, with_y, 1.0)
            if r_d <= largest and r_y <= largest:
                colour = list(COLOURS.values())[i % 5]
                ax.plot([r_d], [r_y], "D", color=colour, ms=6, label=f"as strong as {name}")
        ax.plot([], [], color=COLOURS["vermilion"], label="nothing left")
        ax.set(xlabel="partial R² with the treatment", ylabel="partial R² with the outcome")
        ax.legend(loc="upper right", frameon=True, framealpha=0.9)
        return ax


def _shares(name: str, values: Any) -> Array:
    """A number, or an array of any shape."""
    return np.asarray(number(name, values)) if np.ndim(values) == 0 else as_numbers(values, name)


def _bound(with_d: float, with_y: float, k: float) -> tuple[float, float]:
    """Partial R^2 of a variable k times as strong as a control, given it."""
    if k * with_d >= 1:
        return 1.0, 1.0
    r_d = k * with_d / (1 - with_d)
    between = k * with_d**2 / ((1 - k * with_d) * (1 - with_d))
    if r_d >= 1 or between >= 1 or with_y >= 1:
        return 1.0, 1.0
    r_y = ((np.sqrt(k) + np.sqrt(between)) / np.sqrt(1 - between)) ** 2 * with_y / (1 - with_y)
    return float(r_d), float(min(r_y, 1.0))


@in_catalogue("causal", "H2", certificate="none")
def omitted_variable_bias(
    X: Any, y: Any, treatment: Any, *, benchmarks: Sequence[str | int] = ()
) -> OmittedVariableBias:
    r"""Sensitivity of least squares of y on the treatment and X to a variable that was left out.

    .. math:: |\mathrm{bias}| = \mathrm{se} \sqrt{\mathrm{df}} \sqrt{\frac{R^2_{y} R^2_{d}}{1 - R^2_{d}}}

    Parameters
    ----------
    X : table (n, k) or None
        Controls.
    y : array (n,)
        Outcome.
    treatment : array (n,)
        Treatment.
    benchmarks : sequence of str or int, default=()
        Columns of X to compare an omitted variable with.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.causal import omitted_variable_bias
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 2))
    >>> d = X[:, 0] + rng.normal(size=500)
    >>> y = d + X.sum(axis=1) + rng.normal(size=500)
    >>> found = omitted_variable_bias(X, y, d, benchmarks=[0])
    >>> bool(found.robustness_value() > 0.4)
    True
    """
    y = column("y", y)
    d = column("treatment", treatment, len(y))
    W, names = columns("X", X, len(y), "omitted_variable_bias")
    n, k = len(y), W.shape[1] + 2
    if n - k < 2:
        raise DataError(f"y: has {n} rows; expected at least {k + 2}, two more than coefficients")
    constant = np.ones((n, 1))
    d_left, y_left = residuals_after(np.hstack([constant, W]), d, y)
    if d_left @ d_left <= 1e-20 * max(d @ d, 1e-300):
        raise DataError("treatment: is a combination of X; expected one that varies given X")
    with np.errstate(over="ignore", invalid="ignore"):
        b = float(d_left @ y_left / (d_left @ d_left))
        e = y_left - b * d_left
        error = float(np.sqrt(e @ e / (n - k) / (d_left @ d_left)))
    if not (np.isfinite(b) and 0 < error < np.inf):
        raise DataError(
            f"y: the coefficient is {b:.1e} with standard error {error:.1e}, of which nothing follows; y may be a "
            "combination of treatment and X; divide it by a constant where its squares are no numbers"
        )
    found = {}
    for which in items("benchmarks", benchmarks):
        if which not in names and not (isinstance(which, int) and 0 <= which < len(names)):
            raise ParameterError(f"benchmarks: holds {which!r}; expected columns of X: {', '.join(names)}")
        j = names.index(which) if isinstance(which, str) else int(which)
        others = np.hstack([constant, np.delete(W, j, axis=1)])
        x_d, d_d = residuals_after(others, W[:, j], d)
        x_y, y_y = residuals_after(np.column_stack([others, d]), W[:, j], y)
        found[names[j]] = (_r2(x_d, W[:, j], d_d), _r2(x_y, W[:, j], y_y))
    return OmittedVariableBias(b, error, n - k, found)


def _r2(left: Array, control: Array, b: Array) -> float:
    """Partial R^2 of what is left of a control: zero where the others leave nothing of it, or nothing of b."""
    if np.abs(left).max() <= 1e-10 * np.abs(control).max() or not b.any():
        return 0.0
    left, b = left / np.abs(left).max(), b / np.abs(b).max()  # squares of tiny numbers are zero
    return float((left @ b) ** 2 / ((left @ left) * (b @ b)))
