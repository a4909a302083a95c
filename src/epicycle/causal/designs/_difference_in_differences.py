"""`DifferenceInDifferences`: changes of treated units against those of untreated ones, at one date or at many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy import stats

from epicycle.causal.designs._adjusted_trends import AdjustedTrends
from epicycle.causal.designs._design import Design
from epicycle.causal.designs._group_time import (
    GroupTime,
    averaged,
    covariance_of,
    degrees_of,
    group_time_effects,
    plain_trends,
)
from epicycle.causal.designs._hypothesis_test import HypothesisTest
from epicycle.causal.designs._inputs import (
    codes,
    column,
    columns,
    correction,
    grouped,
    row_weights,
    taken,
    weights_of_units,
)
from epicycle.causal.designs._panel import Panel, panel_of
from epicycle.core._certificate import Certificate
from epicycle.core._exceptions import DataError
from epicycle.core._history import History
from epicycle.core._parameters import Choice, Integer, Real, check_parameters
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, labels_clear, styled
from epicycle.core.estimator import in_catalogue, stores_arguments
from epicycle.stats._summary import Summary, central_quantile

Array = np.ndarray


@in_catalogue("causal", "H1", certificate="stationarity")
class DifferenceInDifferences(Design):
    r"""Effect of a treatment that begins at some time for some units, on panels.

    .. math::

        \mathrm{ATT}(g, t) = \mathrm{E}[Y_t - Y_{g-1} \mid G = g] - \mathrm{E}[Y_t - Y_{g-1} \mid \text{comparison}]

    for the groups of units first treated at time g. The untreated outcomes of both are assumed to move in parallel.
    With treatments that begin at different dates, two-way fixed effects also compare late groups with early ones that
    are treated already, and give some effects negative weight; "group_time" never does (Callaway and Sant'Anna 2021).
    Covariates make trends comparable that are parallel only for units that are alike (Sant'Anna and Zhao 2020).

    Parameters
    ----------
    method : {"group_time", "two_way"}, default="group_time"
        Mean of the ATT(g, t) with t >= g, by the sizes of the groups; or least squares on the treatment with effects
        of units and times.
    comparison : {"never", "not_yet"}, default="never"
        Units to compare with: those never treated, or all not treated yet. With "two_way" it makes the event study.
    adjustment : {"doubly_robust", "regression"}, default="doubly_robust"
        With X and "group_time": trends of the comparison group by least squares on X, corrected by logistic weights of
        the chance to be treated or not. Doubly robust estimates need one of the two models to be right.
    anticipation : int, default=0
        Times before the treatment at which it may already have effects.
    confidence : float, default=0.95
        Level of intervals.

    Attributes
    ----------
    effect_ : float
        Mean effect on the treated.
    standard_error_ : float
        Its standard error, clustered by units or by the given clusters.
    interval_ : array (2,)
        Student's interval, with as many degrees of freedom as clusters less one for "two_way". For "group_time" they
        follow from how unequal the influences of the clusters are (Satterthwaite).
    group_time_ : Summary
        ATT(g, t).
    event_study_ : Summary
        Mean effects by the time since the treatment began; before it they should be zero.
    pretrend_test_ : HypothesisTest or None
        Wald test that all effects before the treatment are zero; None where there is no time for it.
    negative_weight_ : float
        Share of the two-way estimate's weights that are negative, by their size; 0 means that it averages effects.
    certificate_ : Certificate
        Residual of the estimating equations.
    history_ : History
        One row.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle.causal import DifferenceInDifferences
    >>> rng = np.random.default_rng(0)
    >>> unit, time = np.repeat(np.arange(200), 6), np.tile(np.arange(6), 200)
    >>> begins = np.repeat(rng.choice([2, 4, 99], size=200), 6)
    >>> treated = (time >= begins).astype(float)
    >>> y = unit / 50 + time + treated * (1 + time - begins) + 0.3 * rng.normal(size=1200)
    >>> model = DifferenceInDifferences().fit(None, y, unit=unit, time=time, treatment=treated)
    >>> model.event_study_["effect"].round(1)
    array([-0.1, -0.1, -0.1,  0.9,  1.9,  3. ,  3.9])
    """

    _parameters: ClassVar = {
        "method": Choice("group_time", "two_way"),
        "comparison": Choice("never", "not_yet"),
        "adjustment": Choice("doubly_robust", "regression"),
        "anticipation": Integer(0),
        "confidence": Real(0, 1, inclusive=False),
    }

    @stores_arguments
    def __init__(
        self,
        method: str = "group_time",
        *,
        comparison: str = "never",
        adjustment: str = "doubly_robust",
        anticipation: int = 0,
        confidence: float = 0.95,
    ) -> None: ...

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        unit: Any,
        time: Any,
        treatment: Any,
        clusters: Any = None,
        sample_weight: Any = None,
    ) -> DifferenceInDifferences:
        """Estimate the effect.

        Parameters
        ----------
        X : table (n, k) or None
            Covariates. "group_time" takes them at the last time before the treatment, "two_way" as controls that change
            with time.
        y : array (n,)
            Outcome, a row for each unit and time.
        unit, time : arrays (n,)
            Labels of units and times; times are ordered by value and taken as equally far apart.
        treatment : array (n,)
            1 from the time on at which the unit is treated, 0 before it.
        clusters : array (n,), optional
            Labels of clusters of units; by default each unit is one.
        sample_weight : array (n,), optional
            Weights of units, the same at all their times; a unit of weight 2 is the same as two units.

        Returns
        -------
        DifferenceInDifferences
        """
        check_parameters(self, self._parameters)
        y = column("y", y)
        weight = row_weights(sample_weight, len(y))
        W, _ = columns("X", X, len(y), "DifferenceInDifferences")
        if weight is not None and not weight.all():
            kept = weight > 0
            weight, W = weight[kept], W[kept]
            y, named = y[kept], {"unit": unit, "time": time, "treatment": treatment}
            unit, time, treatment = (taken(name, values, kept) for name, values in named.items())
            clusters = None if clusters is None else taken("clusters", clusters, kept)
        panel = panel_of(y, unit, time, treatment)
        cluster = None if clusters is None else codes("clusters", clusters, len(panel.y))[0]
        of_units = weights_of_units(weight, panel.unit, panel.shape[0])
        self.n_obs_, self.n_units_ = len(panel.y), panel.shape[0]
        self.certificate_ = Certificate("stationarity", 0.0, 1e-8, "means are exact up to rounding")
        full = len(panel.y) == panel.shape[0] * panel.shape[1]
        if full or self.method == "group_time":
            self._group_time(panel, W, _of_units(panel, cluster), of_units)
        self._two_way(panel, W, cluster, of_units)
        self.history_ = History(objective=[self.standard_error_])
        return self

    def _group_time(self, panel: Panel, W: Array, cluster: Array | None, weight: Array | None) -> None:
        Y = panel.table("method='group_time'")
        w = np.ones(len(Y)) if weight is None else weight
        trends = plain_trends(cluster)
        if W.shape[1] and self.method == "group_time":
            X = np.empty((*Y.shape, W.shape[1]))
            X[panel.unit, panel.time] = W
            trends = AdjustedTrends(X, self.adjustment == "doubly_robust")
        try:
            found = group_time_effects(Y, panel.start, self.comparison, self.anticipation, trends, w)
        except DataError:
            if self.method == "group_time":
                raise
            return
        T = panel.shape[1]
        post = found.event >= 0
        value, influence = averaged(found, post, panel.start, w)
        self._tables(found, cluster, panel, w)
        if self.method == "group_time":
            error = float(np.sqrt(covariance_of(influence[:, None], cluster, w)[0, 0]))
            self._conclude(value, error, float(degrees_of(influence[:, None], cluster, w)[0]))
        events = np.unique(found.event)
        pairs = [averaged(found, found.event == e, panel.start, w) for e in events]
        effects, influences = np.array([p[0] for p in pairs]), np.column_stack([p[1] for p in pairs])
        covariance = covariance_of(influences, cluster, w)
        names = [f"{e:+d}" for e in events]
        degrees = degrees_of(influences, cluster, w)
        self.event_study_ = self._table("Event study", names, effects, np.diag(covariance), degrees)
        self._events_ = events
        before = events < -self.anticipation
        self.pretrend_test_ = None
        if before.any():
            theta, V = effects[before], covariance[np.ix_(before, before)]
            if np.linalg.matrix_rank(V) == len(theta):
                statistic = float(theta @ np.linalg.solve(V, theta))
                p = float(stats.chi2.sf(statistic, len(theta)))
                hypothesis = f"no effect in {len(theta)} of {T} times before the treatment"
                self.pretrend_test_ = HypothesisTest("test of trends before the treatment", statistic, p, hypothesis)

    def _tables(self, found: GroupTime, cluster: Array | None, panel: Panel, weight: Array) -> None:
        variance = np.diag(covariance_of(found.influence, cluster, weight))
        names = [f"{panel.times[g]!s} at {panel.times[t]!s}" for g, t in zip(found.group, found.time, strict=True)]
        degrees = degrees_of(found.influence, cluster, weight)
        self.group_time_ = self._table("Effects by first treatment and time", names, found.effect, variance, degrees)

    def _table(self, title: str, rows: list[str], effect: Array, variance: Array, degrees: Array) -> Summary:
        error = np.sqrt(variance)
        half = np.array([central_quantile(self.confidence, nu) for nu in degrees]) * error
        return Summary(
            title, tuple(rows), {"effect": effect, "std err": error, "lower": effect - half, "upper": effect + half}
        )

    def _two_way(self, panel: Panel, W: Array, cluster: Array | None, weight: Array | None) -> None:
        controls = W if self.method == "two_way" else W[:, :0]
        try:
            found = two_way(panel, np.column_stack([panel.treated, controls]), cluster, weight)
        except DataError:
            if self.method == "two_way":
                raise
            self.negative_weight_ = np.nan
            return
        treated = found.columns[panel.treated == 1, 0]
        self.negative_weight_ = float(-treated[treated < 0].sum() / np.abs(treated).sum())
        if self.method == "two_way":
            self.certificate_ = Certificate("stationarity", found.error, 1e-8, "least squares is at its minimum")
            self.coef_ = found.coef
            self._conclude(float(found.coef[0]), float(np.sqrt(found.covariance[0, 0])), found.degrees)

    def _conclude(self, value: float, error: float, degrees: float) -> None:
        self.effect_, self.standard_error_ = value, error
        half = central_quantile(self.confidence, degrees) * error
        self.interval_ = np.array([value - half, value + half])

    def summary(self) -> Summary:
        """The effect and what supports it as a table."""
        self._check()
        columns = {
            "effect": np.array([self.effect_]),
            "std err": np.array([self.standard_error_]),
            "lower": self.interval_[:1],
            "upper": self.interval_[1:],
        }
        facts = {"rows": self.n_obs_, "units": self.n_units_, "negative weight of two-way": self.negative_weight_}
        test = getattr(self, "pretrend_test_", None)
        note = "trends before the treatment cannot be tested" if test is None else str(test)
        return Summary(f"Difference in differences ({self.method})", ("treatment",), columns, facts, note)

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the event study."""
        self._check()
        if not hasattr(self, "event_study_"):
            raise DataError("plot: an event study needs every unit at every time, and units to compare with")
        ax = axes_of(ax)
        e, table = self._events_, self.event_study_
        base = -1 - self.anticipation
        for chosen, colour, label in ((e < 0, "orange", "before"), (e >= 0, "blue", "after")):
            x, y = e[chosen], table["effect"][chosen]
            error = np.array([y - table["lower"][chosen], table["upper"][chosen] - y])
            ax.errorbar(x, y, yerr=error, fmt="o", ms=5, capsize=3, color=COLOURS[colour], label=label)
        ax.plot([base], [0], "o", ms=5, mfc="none", color=ink(ax), label="reference")
        ax.axhline(0, color=ink(ax, 0.5), lw=1)
        ax.axvline(-0.5, color=ink(ax, 0.5), lw=1, ls="--")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(xlabel="time since the treatment began", ylabel="effect")
        return labels_clear(ax)


def _of_units(panel: Panel, cluster: Array | None) -> Array | None:
    """The cluster of each unit."""
    if cluster is None:
        return None
    of_unit = np.full(panel.shape[0], -1)
    of_unit[panel.unit] = cluster
    if (of_unit[panel.unit] != cluster).any():
        raise DataError("clusters: a unit lies in two of them; expected units inside clusters")
    return of_unit


# Least squares with an effect of every unit and every time, on panels with or without gaps.


@dataclass(frozen=True)
class TwoWay:
    """Coefficients of columns with unit and time effects removed, and what is left."""

    coef: Array
    covariance: Array
    error: float
    columns: Array
    degrees: float


def _within(panel: Panel, values: Array) -> Array:
    """Values less the means of their units."""
    count = np.bincount(panel.unit)
    out = np.array(values, dtype=np.float64)
    for j in range(out.shape[1]):
        out[:, j] -= (np.bincount(panel.unit, out[:, j]) / count)[panel.unit]
    return out


def two_way(panel: Panel, D: Array, cluster: Array | None, weight: Array | None = None) -> TwoWay:
    """Regression of y on the columns D, unit effects and time effects; standard errors by cluster.

    `weight` is that of each unit: one of weight 2 is two units.
    """
    T = panel.shape[1]
    times = np.zeros((len(panel.y), T - 1))
    later = panel.time > 0
    times[later, panel.time[later] - 1] = 1.0
    both = _within(panel, np.column_stack([times, D, panel.y]))
    root = None if weight is None else np.sqrt(weight[panel.unit])[:, None]
    both = both if root is None else both * root
    Q = np.linalg.qr(both[:, : T - 1])[0]
    left = both[:, T - 1 :] - Q @ (Q.T @ both[:, T - 1 :])
    columns, y = left[:, :-1], left[:, -1]
    size = np.linalg.norm(D - D.mean(axis=0), axis=0)
    weak = np.linalg.norm(columns, axis=0) <= 1e-9 * np.maximum(size, 1e-300)
    gram = columns.T @ columns
    if weak.any() or np.linalg.cond(gram) > 1e16:
        raise DataError(
            "treatment: cannot be told from the effects of units and times; expected untreated units or times"
        )
    inverse = np.linalg.inv(gram)
    coef = inverse @ (columns.T @ y)
    residual = y - columns @ coef
    group = panel.unit if cluster is None else cluster
    scores = grouped(columns * residual[:, None], group) @ inverse
    rows, count = float(len(y)), None
    if weight is not None:
        rows = float(weight[panel.unit].sum())
        if cluster is None:  # copies of a unit are clusters of their own
            scores, count = scores / np.sqrt(weight)[:, None], float(weight.sum())
    # Effects of units that lie inside the clusters do not count as parameters, as usual for fixed effects.
    factor, degrees = correction(rows, D.shape[1] + T, group, count)
    scale = np.linalg.norm(columns, axis=0) * max(float(np.linalg.norm(y)), np.finfo(float).tiny)
    error = float(np.max(np.abs(columns.T @ residual) / scale))
    return TwoWay(coef, factor * scores.T @ scores, error, columns if root is None else columns * root, degrees)
