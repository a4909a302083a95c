"""`SyntheticControl`: one treated unit against the mixture of others that moved as it did before."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from epicycle.causal.designs._design import Design
from epicycle.causal.designs._inputs import unit_of
from epicycle.causal.designs._panel import panel_of
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import ConvergenceWarning, DataError
from epicycle.core._history import History
from epicycle.core._parameters import Boolean, Real, check_parameters
from epicycle.core._plot_style import COLOURS, axes_grid, ink, labels_clear, styled
from epicycle.core.estimator import in_catalogue, stores_arguments
from epicycle.stats._summary import Summary

Array = np.ndarray


@in_catalogue("causal", "H1", certificate="duality gap")
class SyntheticControl(Design):
    r"""Effect on a treated unit, whose untreated path is a weighted mean of other units.

    .. math:: \min_w \; \tfrac12 \sum_{t < T_0} \Big( y_{1t} - \sum_j w_j y_{jt} \Big)^2 + \tfrac{\lambda}{2} \|w\|^2
              \quad\text{with}\quad w_j \ge 0, \; \sum_j w_j = 1

    over the times before the treatment; after it the gap is the effect (Abadie, Diamond and Hainmueller 2010, with the
    outcomes before the treatment as predictors). In the placebo test every other unit plays the treated one.

    Parameters
    ----------
    ridge : float, default=0
        :math:`\lambda` relative to the mean square of the differences; above 0 the weights are unique and spread.
    demean : bool, default=False
        Whether levels before the treatment are taken off, so that only movements have to agree.
    max_pre_ratio : float, default=20
        Placebo units whose mean square before the treatment is more than so many times that of the treated one are
        left out of the placebo test.
    tol : float, default=1e-8
        Bound on what could still be gained, relative to the largest squared distance of a unit, at which the
        certificate holds.
    confidence : float, default=0.95
        Level of the interval.

    Attributes
    ----------
    effect_ : float
        Mean gap after the treatment began.
    interval_ : array (2,)
        Mean effects that the placebo test does not reject: `effect_` plus and minus `pre_rmse_` times the quantile of
        the placebo units' mean gaps after the treatment, each divided by its root mean square before. It covers where
        the treated unit could have been any of them, and is the whole line with fewer than 19 of them at 95%.
    gaps_ : array (T,)
        Treated less synthetic at every time.
    weights_ : array (units,)
        Weights of the untreated units, named in `donors_`.
    pre_rmse_ : float
        Root mean square of the gaps before the treatment.
    p_value_ : float
        Share of units, the treated one included, whose ratio of mean squares after and before is at least as large.
    placebo_gaps_ : array (placebos, T)
        Gaps of the units of the placebo test.
    certificate_ : Certificate
        Bound on the distance of the objective from its minimum.
    history_ : History
        Objective at every step.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.causal import SyntheticControl
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.normal(size=30).cumsum()
    >>> loading = np.append(0.5, np.linspace(0, 1, 20))
    >>> Y = loading[:, None] * factor + 0.05 * rng.normal(size=(21, 30))
    >>> Y[0, 20:] += 1.0
    >>> unit, time = np.repeat(np.arange(21), 30), np.tile(np.arange(30), 21)
    >>> treated = ((unit == 0) & (time >= 20)).astype(float)
    >>> model = SyntheticControl().fit(Y.ravel(), unit=unit, time=time, treatment=treated)
    >>> round(model.effect_, 1), round(model.p_value_, 3)
    (1.0, 0.048)
    """

    _parameters: ClassVar = {
        "ridge": Real(0),
        "demean": Boolean(),
        "max_pre_ratio": Real(1, allow_inf=True),
        "tol": Real(0, inclusive=False),
        "confidence": Real(0, 1, inclusive=False),
    }

    @stores_arguments
    def __init__(
        self,
        *,
        ridge: float = 0.0,
        demean: bool = False,
        max_pre_ratio: float = 20.0,
        tol: float = 1e-8,
        confidence: float = 0.95,
    ) -> None: ...

    def fit(self, y: Any, *, unit: Any, time: Any, treatment: Any) -> SyntheticControl:
        """Find the weights and the effect.

        Parameters
        ----------
        y : array (n,)
            Outcome, a row for each unit and time.
        unit, time : arrays (n,)
            Labels of units and times.
        treatment : array (n,)
            1 from the time on at which a unit is treated. Several treated units have to begin together; their mean
            is taken.

        Returns
        -------
        SyntheticControl
        """
        check_parameters(self, self._parameters)
        panel = panel_of(y, unit, time, treatment)
        Y = panel.table("SyntheticControl")
        treated = panel.start < panel.shape[1]
        begins = np.unique(panel.start[treated])
        if len(begins) > 1:
            raise DataError(
                f"treatment: begins at {panel.times[begins].tolist()}; expected one date for all treated units"
            )
        start, donors = int(begins[0]), np.flatnonzero(~treated)
        if start < 2 or len(donors) < 2:
            raise DataError(f"treatment: {start} times before it and {len(donors)} untreated units; expected 2 of each")
        self.placebo_gaps_: Array
        unit_of_y = unit_of(Y)
        Y = Y / unit_of_y
        target, pool = Y[treated].mean(axis=0), Y[donors]
        point, self.gaps_, scale = self._gap(target, pool, start)
        self.weights_, self.donors_ = point.weights, panel.units[donors]
        self.treated_, self.times_ = panel.units[treated], panel.times
        self._start_, self._paths_ = start, np.vstack([target, target - self.gaps_]) * unit_of_y
        self.pre_rmse_ = float(np.sqrt(np.mean(self.gaps_[:start] ** 2)))
        self.certificate_ = Certificate(
            "duality gap", point.gap / scale, self.tol, "no weights come closer before the treatment, up to this"
        )
        self.history_ = History(objective=point.objectives)
        if not self.certificate_.holds:
            warnings.warn(f"SyntheticControl: {self.certificate_}", ConvergenceWarning, stacklevel=2)
        self._placebos(pool, start, panel.units[donors])
        half = self._half_width(start)
        self.effect_ = float(self.gaps_[start:].mean()) * unit_of_y
        self.interval_ = np.array([self.effect_ - half * unit_of_y, self.effect_ + half * unit_of_y])
        self.gaps_, self.placebo_gaps_ = self.gaps_ * unit_of_y, self.placebo_gaps_ * unit_of_y
        self.pre_rmse_ *= unit_of_y
        return self

    def _half_width(self, start: int) -> float:
        """pre_rmse times the quantile of |mean gap after| / root mean square before over the placebo units."""
        before = np.sqrt(np.mean(self.placebo_gaps_[:, :start] ** 2, axis=1))
        ratios = np.abs(self.placebo_gaps_[:, start:].mean(axis=1)) / np.maximum(before, np.finfo(float).tiny)
        rank = int(np.ceil(self.confidence * (len(ratios) + 1) - 1e-9))  # the treated unit is one of them
        return float(np.sort(ratios)[rank - 1]) * self.pre_rmse_ if rank <= len(ratios) else np.inf

    def _gap(self, target: Array, pool: Array, start: int) -> Any:
        level, levels = 0.0, np.zeros((len(pool), 1))
        if self.demean:
            level, levels = float(target[:start].mean()), pool[:, :start].mean(axis=1, keepdims=True)
        A, b = (pool - levels)[:, :start].T, target[:start] - level
        ridge = min(self.ridge * float(np.mean((A - b[:, None]) ** 2)), 1e300)
        point = nearest_in_hull(A, b, ridge)
        return point, target - level - point.weights @ (pool - levels), point.scale

    def _placebos(self, pool: Array, start: int, names: Array) -> None:
        gaps = np.array([self._gap(pool[j], np.delete(pool, j, axis=0), start)[1] for j in range(len(pool))])
        before = np.mean(gaps[:, :start] ** 2, axis=1)
        kept = before <= self.max_pre_ratio * self.pre_rmse_**2
        self.placebo_gaps_, self.placebo_units_ = gaps[kept], names[kept]
        tiny = np.finfo(float).tiny
        with np.errstate(over="ignore"):  # a perfect fit before, and a gap after
            ratios = np.mean(gaps[kept][:, start:] ** 2, axis=1) / np.maximum(before[kept], tiny)
            self.ratio_ = float(np.mean(self.gaps_[start:] ** 2) / np.maximum(self.pre_rmse_**2, tiny))
        self.p_value_ = float((1 + np.sum(ratios >= self.ratio_)) / (1 + len(ratios)))

    def summary(self) -> Summary:
        """The weights of the units that make the synthetic control, largest first."""
        self._check()
        order = [j for j in np.argsort(-self.weights_, kind="stable") if self.weights_[j] > 1e-6]
        facts = {
            "effect": self.effect_,
            "lower": self.interval_[0],
            "upper": self.interval_[1],
            "placebo p": self.p_value_,
            "placebo units": len(self.placebo_gaps_),
            "root mean square before": self.pre_rmse_,
        }
        note = (
            f"with {len(self.placebo_gaps_)} placebo units no p-value is below {1 / (1 + len(self.placebo_gaps_)):.3g}"
        )
        rows = tuple(str(self.donors_[j]) for j in order)
        return Summary("Synthetic control", rows, {"weight": self.weights_[order]}, facts, note)

    @styled
    def plot(self) -> Array:
        """Draw both paths, and the gap among those of the placebo units.

        Returns
        -------
        array of Axes
        """
        self._check()
        left, right = axes_grid(1, 2, (10.0, 3.6))[0]
        t = self.times_ if np.issubdtype(self.times_.dtype, np.number) else np.arange(len(self.times_))
        left.plot(t, self._paths_[0], color=COLOURS["blue"], label="treated")
        left.plot(t, self._paths_[1], color=COLOURS["orange"], ls="--", label="synthetic")
        left.set(xlabel="time", ylabel="outcome")
        for i, gap in enumerate(self.placebo_gaps_):
            label = "placebo units" if i == 0 else None
            right.plot(t, gap, color=COLOURS["grey"], lw=0.8, alpha=0.5, label=label)
        right.plot(t, self.gaps_, color=COLOURS["blue"], label="treated")
        right.axhline(0, color=ink(right, 0.5), lw=1)
        right.set(xlabel="time", ylabel="gap")
        for ax in (left, right):
            ax.axvline(t[self._start_], color=ink(ax, 0.5), lw=1, ls="--")
            labels_clear(ax)
        return np.array([left, right])


# The point of a convex hull nearest to a target:  minimise 1/2 ||A w - b||^2 + ridge/2 ||w||^2  over the simplex.
#
# Wolfe's (1976) method for the point of least norm: a set of columns with positive weights, the affine minimiser over
# them, and steps to the border where a weight would turn negative. It ends after finitely many steps. For any w of the
# simplex f(w) - min f <= g'w - min_j g_j with the gradient g, which is the certificate.


@dataclass(frozen=True)
class HullPoint:
    """Weights, the bound g'w - min g on what could be gained, the objective at each step, and the objective's scale."""

    weights: Array
    gap: float
    objectives: list[float]
    scale: float


def _affine(G: Array, c: Array, active: list[int]) -> Array:
    """Minimiser of 1/2 w'Gw - c'w over the weights of the active columns that sum to one."""
    k = len(active)
    K = np.zeros((k + 1, k + 1))
    K[:k, :k] = G[np.ix_(active, active)]
    K[:k, k] = K[k, :k] = 1.0
    return np.asarray(np.linalg.lstsq(K, np.append(c[active], 1.0), rcond=None)[0][:k])


def nearest_in_hull(A: Array, b: Array, ridge: float = 0.0, tol: float = 1e-12) -> HullPoint:
    """Weights on the columns of A, none negative, that sum to one and come nearest to b."""
    n = A.shape[1]
    # Differences from b keep the digits that squares of large outcomes would lose.
    D = A - b[:, None]
    G, c = D.T @ D + ridge * np.eye(n), np.zeros(n)
    scale = max(float(np.diag(G).max()), np.finfo(float).tiny)
    G /= scale
    w = np.zeros(n)
    active = [int(np.diag(G).argmin())]
    w[active] = 1.0
    objectives: list[float] = []
    for _ in range(20 * n + 100):
        g = G @ w
        objectives.append(float(w @ g) / 2 * scale)
        j = int(g.argmin())
        if float(g @ w - g[j]) <= tol or j in active:
            break
        active.append(j)
        for _ in range(n + 1):
            v = _affine(G, c, active)
            if v.min() > 1e-14:
                break
            now = w[active]
            down = v < now
            with np.errstate(divide="ignore", invalid="ignore"):
                steps = np.where(down & (v <= 1e-14), now / (now - v), np.inf)
            step = min(float(steps.min()), 1.0)
            moved = now + step * (v - now)
            moved[int(steps.argmin())] = 0.0
            w[:] = 0.0
            w[active] = np.maximum(moved, 0.0)
            active = [a for a in active if w[a] > 0.0]
        w[:] = 0.0
        w[active] = np.maximum(v if len(v) == len(active) else _affine(G, c, active), 0.0)
        w /= w.sum()
    g = G @ w
    return HullPoint(w, max(float(g @ w - g.min()), 0.0) * scale, objectives, scale)
