"""`RegressionDiscontinuity`: the jump of an outcome where a rule changes the treatment."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from epicycle.causal.designs._design import Design
from epicycle.causal.designs._hypothesis_test import HypothesisTest
from epicycle.causal.designs._inputs import column, repetitions, unit_of
from epicycle.causal.designs._local_polynomial import PILOT, Side, bandwidths, kernel_weights, neighbour_residuals
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Integer, NoneOr, Real, check_parameter, check_parameters
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, labels_clear, styled
from epicycle.core.estimator import in_catalogue, stores_arguments
from epicycle.stats._summary import Summary, central_quantile

Array = np.ndarray


@in_catalogue("causal", "H1", certificate="stationarity")
class RegressionDiscontinuity(Design):
    r"""Effect at a cutoff, by local polynomials on both sides with robust bias-corrected intervals.

    .. math:: \tau = \lim_{x \downarrow c} \mathrm{E}[y \mid x] - \lim_{x \uparrow c} \mathrm{E}[y \mid x]

    in a sharp design; in a fuzzy one, where the rule moves only the share of treated, :math:`\tau` is divided by the
    jump of the treatment. The bias of the local polynomial is estimated by one of the next degree and taken off, and
    the interval counts the noise of this correction (Calonico, Cattaneo and Titiunik 2014).

    Parameters
    ----------
    cutoff : float, default=0
        c; rows at the cutoff belong to the right.
    order : int, default=1
        Degree of the local polynomials.
    kernel : {"triangular", "epanechnikov", "uniform"}, default="triangular"
        Weights of rows by their distance from the cutoff.
    bandwidth : float, optional
        h; by default that of the least mean squared error of the jump, of the outcome also in a fuzzy design.
    bias_bandwidth : float, optional
        b of the polynomial that estimates the bias; by default chosen likewise, or h where h is given.
    confidence : float, default=0.95
        Level of the interval.

    Attributes
    ----------
    effect_ : float
        Local polynomial estimate.
    standard_error_ : float
        Its standard error, which does not count the bias.
    effect_bias_corrected_ : float
        Centre of the interval.
    robust_standard_error_ : float
        Standard error of the corrected estimate.
    interval_ : array (2,)
        Robust bias-corrected interval.
    p_value_ : float
        That there is no effect, robust.
    bandwidth_, bias_bandwidth_ : float
        h and b.
    n_effective_ : tuple of int
        Rows with weight on the left and on the right.
    first_stage_ : float
        Jump of the treatment; 1 in a sharp design.
    density_test_ : HypothesisTest
        Whether the density of the running variable jumps.
    certificate_ : Certificate
        Residual of the normal equations.
    history_ : History
        One row.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.causal import RegressionDiscontinuity
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1, 1, size=2000)
    >>> y = np.sin(2 * x) + 0.5 * (x >= 0) + 0.2 * rng.normal(size=2000)
    >>> model = RegressionDiscontinuity().fit(x, y)
    >>> round(model.effect_, 2), bool(model.interval_[0] < 0.5 < model.interval_[1])
    (0.42, True)
    """

    _parameters: ClassVar = {
        "cutoff": Real(),
        "order": Integer(0, 4),
        "kernel": Choice("triangular", "epanechnikov", "uniform"),
        "bandwidth": NoneOr(Real(0, inclusive=False)),
        "bias_bandwidth": NoneOr(Real(0, inclusive=False)),
        "confidence": Real(0, 1, inclusive=False),
    }

    @stores_arguments
    def __init__(
        self,
        cutoff: float = 0.0,
        *,
        order: int = 1,
        kernel: str = "triangular",
        bandwidth: float | None = None,
        bias_bandwidth: float | None = None,
        confidence: float = 0.95,
    ) -> None: ...

    def fit(self, running: Any, y: Any, *, treatment: Any = None, sample_weight: Any = None) -> RegressionDiscontinuity:
        """Estimate the jump.

        Parameters
        ----------
        running : array (n,)
            Variable that decides on the treatment.
        y : array (n,)
            Outcome.
        treatment : array (n,), optional
            Treatment that was received, in a fuzzy design.
        sample_weight : array (n,), optional
            How often each row counts, in whole numbers: neighbours of rows are counted.

        Returns
        -------
        RegressionDiscontinuity
        """
        check_parameters(self, self._parameters)
        y = column("y", y)
        x = column("running", running, len(y)) - self.cutoff
        t = None if treatment is None else column("treatment", treatment, len(y))
        if sample_weight is not None:
            rows = repetitions(sample_weight, len(y))
            x, y, t = x[rows], y[rows], None if t is None else t[rows]
        unit = unit_of(x)
        order = np.argsort(x, kind="stable")
        x, y, t = x[order] / unit, y[order], None if t is None else t[order]
        masks = x < 0, x >= 0
        if min(m.sum() for m in masks) < 2 * (self.order + 3):
            few = [int(m.sum()) for m in masks]
            raise DataError(f"cutoff: {few[0]} rows lie left of it and {few[1]} right; expected {2 * (self.order + 3)}")
        sides = [[self._side(x[m], v[m]) for m in masks] for v in (y, t) if v is not None]
        h, b = (None if given is None else min(given / unit, 1e300) for given in (self.bandwidth, self.bias_bandwidth))
        if h is None or b is None:
            chosen = bandwidths(sides[0][0], sides[0][1], self.order) if h is None else (h, h)
            h, b = (chosen[0] if h is None else h), (chosen[1] if b is None else b)
        self.n_obs_ = len(y)
        self.n_effective_ = tuple(int(np.count_nonzero(np.abs(x[m]) < h)) for m in masks)
        with np.errstate(over="ignore", invalid="ignore"):  # what is no number in the end is refused there
            self._jump(sides, h, b)
        self.density_test_: HypothesisTest
        self.density_test_, density = density_test(x)
        with np.errstate(over="ignore"):
            self.density_ = density / unit
        self._bins_ = [_bins(x[m], y[m], h) for m in masks]
        self._curves_ = [side.fit(self.order, h)[0] for side in sides[0]]
        self._unit_ = unit
        self.bandwidth_, self.bias_bandwidth_ = float(h) * unit, float(b) * unit
        self.history_ = History(bandwidth=[self.bandwidth_], bias_bandwidth=[self.bias_bandwidth_])
        return self

    def _side(self, x: Array, y: Array) -> Side:
        return Side(x, y, neighbour_residuals(x, y)[0], self.kernel)

    def _jump(self, sides: list[list[Side]], h: float, b: float) -> None:
        """Plain and corrected jumps of outcome and treatment, and their standard errors from the rows' influences."""
        plain, corrected, error = [], [], 0.0
        influences = []
        for left, right in sides:
            ends = [self._end(side, h, b) for side in (left, right)]
            plain.append(ends[1][0] - ends[0][0])
            corrected.append(ends[1][1] - ends[0][1])
            influences.append([(end[2], end[3], side.noise) for end, side in zip(ends, (left, right), strict=True)])
            error = max(error, *(end[4] for end in ends))
        if len(sides) == 1:
            self.first_stage_ = 1.0
            weights = [1.0]
            self.effect_, self.effect_bias_corrected_ = plain[0], corrected[0]
        else:
            self.first_stage_ = plain[1]
            if abs(plain[1]) <= 1e-10 * max(float(np.abs(side.y).max()) for side in sides[1]):
                raise DataError("treatment: does not change at the cutoff; expected a jump of its mean")
            # The ratio is linear in both jumps near the estimate.
            weights = [1 / plain[1], -plain[0] / plain[1] / plain[1]]
            self.effect_ = plain[0] / plain[1]
            bias = sum(s * (p - c) for s, p, c in zip(weights, plain, corrected, strict=True))
            self.effect_bias_corrected_ = self.effect_ - bias
        variances = [0.0, 0.0]
        for i in range(2):  # left and right
            noise = sum(s * influences[k][i][2] for k, s in enumerate(weights))
            for kind in range(2):
                variances[kind] += float(np.sum((influences[0][i][kind] * noise) ** 2))
        self.standard_error_, self.robust_standard_error_ = map(float, np.sqrt(variances))
        half = central_quantile(self.confidence, None) * self.robust_standard_error_
        centre = self.effect_bias_corrected_
        self.interval_ = np.array([centre - half, centre + half])
        self.p_value_ = float(2 * ndtr(-_z(centre, self.robust_standard_error_)))
        if not np.isfinite([self.effect_, *self.interval_]).all():
            raise DataError(f"y: the effect is {self.effect_:.1e}, beyond the range of numbers; divide by a constant")
        meaning = "both local polynomials are at the minimum of their weighted squares"
        self.certificate_ = Certificate("stationarity", error, 1e-8, meaning)

    def _end(self, side: Side, h: float, b: float) -> tuple[float, float, Array, Array, float]:
        """Value at the cutoff, corrected value, the rows' influence on both, and the error of the normal equations."""
        p = self.order
        beta, influence, w = side.fit(p, h)
        wide, wide_influence, _ = side.fit(p + 1, b)
        constant = float(influence[0] @ side.x ** (p + 1))
        size = min(h, float(np.abs(side.x).max()))
        R = (side.x[:, None] / size) ** np.arange(p + 1)
        residual = (R * w[:, None]).T @ (side.y - R @ (beta * size ** np.arange(p + 1)))
        error = float(np.abs(residual).max()) / max(float(w @ np.abs(side.y)), np.finfo(float).tiny)
        corrected = influence[0] - constant * wide_influence[p + 1]
        return float(beta[0]), float(beta[0] - constant * wide[p + 1]), influence[0], corrected, error

    def summary(self) -> Summary:
        """Estimates with their standard errors as a table."""
        self._check()
        z = central_quantile(self.confidence, None)
        values = np.array([self.effect_, self.effect_bias_corrected_, self.effect_bias_corrected_])
        errors = np.array([self.standard_error_, self.standard_error_, self.robust_standard_error_])
        columns = {
            "effect": values,
            "std err": errors,
            "P>|z|": 2 * ndtr(-_z(values, errors)),
            "lower": values - z * errors,
            "upper": values + z * errors,
        }
        facts = {
            "bandwidth": self.bandwidth_,
            "of the bias": self.bias_bandwidth_,
            "rows left": self.n_effective_[0],
            "rows right": self.n_effective_[1],
            "jump of the treatment": self.first_stage_,
            "density test p": self.density_test_.p_value,
        }
        title = f"Regression discontinuity at {self.cutoff:g}"
        return Summary(title, ("conventional", "bias-corrected", "robust"), columns, facts, str(self.density_test_))

    @styled
    def plot(self, ax: Axes | None = None, *, reach: float = 2.0) -> Axes:
        """Draw means of bins on both sides with the local polynomials.

        Parameters
        ----------
        reach : float, default=2
            How far from the cutoff bins are drawn, in bandwidths.
        """
        self._check()
        check_parameter("plot", "reach", reach, Real(0, inclusive=False))
        ax = axes_of(ax)
        unit = self._unit_
        h = self.bandwidth_ / unit
        for bins, beta, sign in zip(self._bins_, self._curves_, (-1, 1), strict=True):
            kept = np.abs(bins[0]) <= reach * h
            ax.errorbar(
                bins[0][kept] * unit + self.cutoff,
                bins[1][kept],
                yerr=bins[2][kept],
                fmt="o",
                ms=4,
                lw=1,
                color=COLOURS["sky"],
                label="means of bins" if sign < 0 else None,
            )
            x = sign * np.linspace(0, min(h, float(np.abs(bins[0]).max())), 60)
            value = (x[:, None] ** np.arange(len(beta))) @ beta
            ax.plot(
                x * unit + self.cutoff,
                value,
                color=COLOURS["vermilion"],
                label="local polynomial" if sign < 0 else None,
            )
        ax.axvline(self.cutoff, color=ink(ax, 0.5), lw=1, ls="--")
        low, high = self.interval_
        ax.set(xlabel="running variable", ylabel="outcome")
        ax.set_title(f"effect {self.effect_:.3g}, {100 * self.confidence:g}% interval {low:.3g} to {high:.3g}")
        return labels_clear(ax)


def _z(value: Any, error: Any) -> Array:
    """|value| / error; zero where there is neither."""
    value, error = np.abs(value), np.asarray(error)
    return np.where(error > 0, value / np.where(error > 0, error, 1.0), np.where(value > 0, np.inf, 0.0))


def _bins(x: Array, y: Array, h: float, per_bandwidth: int = 8) -> tuple[Array, Array, Array]:
    """Centres, means and standard errors of bins, eight in a bandwidth."""
    code = np.floor(x / (h / per_bandwidth)).astype(np.int64)
    values, index, count = np.unique(code, return_inverse=True, return_counts=True)
    mean = np.bincount(index, y) / count
    square = np.bincount(index, (y - mean[index]) ** 2) / np.maximum(count - 1, 1)
    error = np.where(count > 1, np.sqrt(square / count), 0.0)
    return (values + 0.5) * h / per_bandwidth, mean, error


# Whether the density of the running variable jumps at the cutoff, which it does where units choose their side.
#
# The empirical distribution function is smoothed by a cubic on each side; its slope at the cutoff is the density there
# (Cattaneo, Jansson and Ma 2020). The distribution function is a mean over rows, so that the slope is linear in the
# indicators of the rows, and its variance is that of  psi_j = G^{-1} (1/n) sum_i r_i w_i (1{x_j <= x_i} - F(x_i)).


def density_test(x: Array, bandwidth: float | None = None, order: int = 3) -> tuple[HypothesisTest, Array]:
    """The test, and the densities left and right of the cutoff, which lies at 0."""
    x = np.sort(x)
    n = len(x)
    if bandwidth is None:
        q = np.percentile(x, [25, 75])
        spread = min(float(x.std(ddof=1)), float(q[1] - q[0]) / 1.349)
        bandwidth = PILOT["triangular"] * spread * n**-0.2
    F = np.searchsorted(x, x, side="right") / n
    slopes, influences = [], []
    for side in (x < 0, x >= 0):
        w = kernel_weights("triangular", x, bandwidth) * side
        if np.count_nonzero(w) <= order + 1:
            raise DataError(f"bandwidth: {bandwidth:.4g} leaves {np.count_nonzero(w)} rows on a side for the density")
        R = (x[:, None] / bandwidth) ** np.arange(order + 1)
        WR = R * w[:, None]
        row = np.linalg.solve(WR.T @ R, WR.T)[1] / bandwidth  # of the slope
        slopes.append(float(row @ F))
        # sum_i row_i 1{x_j <= x_i}: sums from the end, equal values together.
        above = np.concatenate([np.cumsum(row[::-1])[::-1], [0.0]])
        influences.append(above[np.searchsorted(x, x, side="left")] - row @ F)
    jump = slopes[1] - slopes[0]
    error = float(np.sqrt(np.mean((influences[1] - influences[0]) ** 2) / n))
    z = jump / error
    hypothesis = "the density of the running variable does not jump at the cutoff"
    return HypothesisTest("density test", z, float(2 * ndtr(-abs(z))), hypothesis), np.array(slopes)
