"""Slices of the data with more loss than the rest, found by a small tree.

The tree is grown on one half of the rows and its leaves are measured on the other half, so that the search does not
bias the losses. Intervals hold for all slices at once (Bonferroni).
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import stdtrit
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from epicycle.core._checks import count, open_unit, optional_import
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, short, styled
from epicycle.core._random import seed_of, stream
from epicycle.core.estimator._catalogue import in_catalogue
from epicycle.diagnose._tree_rules import leaf_rules, splittable, whole_columns
from epicycle.report._finding import Finding
from epicycle.report._plain import brief
from epicycle.select._fit_and_score import out_of_fold
from epicycle.select._inputs import (
    CROSS_VALIDATION_DOCS,
    Rows,
    check_model,
    check_weights_taken,
    checked_rows,
    folds_of,
    seeded,
)
from epicycle.select._scorers import responses_of
from epicycle.stats._class_scores import ROW_LOSSES, row_losses
from epicycle.tree import DecisionTreeRegressor

if TYPE_CHECKING:
    import pandas as pd

_NOTE = "slices were found on one half of the rows and measured on the other; intervals hold for all at once"


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Slices(Finding):
    """Slices of the data by loss, and the rows with the largest losses.

    Attributes
    ----------
    rules : tuple of str
        Description of each slice.
    loss : float
        Mean loss of all rows.
    worst : str or None
        The slice with the largest loss, where it is significantly worse than the rest.
    level : float
        All intervals hold at once with this probability.
    metric : str
    examples : DataFrame
        The rows with the largest losses: index, loss, target and prediction.
    losses : ndarray of shape (n,)
        The loss of every row; NaN where it was not predicted.
    verdict, table, next_steps, notes
        The table has for each slice the rows in all and those it was measured on, its mean loss, how much that is above
        the rest, the interval of this difference, and its share of the total loss.
    """

    rules: tuple[str, ...]
    loss: float
    worst: str | None
    level: float
    metric: str
    worst_rows: Mapping[str, np.ndarray] = field(default_factory=dict)
    losses: np.ndarray = field(default_factory=lambda: np.zeros(0))

    @property
    def examples(self) -> pd.DataFrame:
        """The rows with the largest losses."""
        pd = optional_import("pandas", "Slices.examples")
        return pd.DataFrame({name: list(values) for name, values in self.worst_rows.items()})

    @styled
    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw by how much the loss of each slice differs from that of the rest, with its interval."""
        ax = axes_of(ax, (6.8, 1.2 + 0.36 * max(len(self.rules), 1)))
        y = np.arange(len(self.rules))[::-1]
        middle, low, high = (np.asarray(self.columns[c], dtype=np.float64) for c in ("above_rest", "lower", "upper"))
        for i, level in enumerate(y):
            colour = COLOURS["vermilion" if low[i] > 0 else "green" if high[i] < 0 else "grey"]
            ax.errorbar(
                middle[i], level, xerr=[[middle[i] - low[i]], [high[i] - middle[i]]], fmt="o", color=colour, capsize=3
            )
        ax.axvline(0, color=ink(ax), lw=0.8)
        rows = self.columns["rows"]
        ax.set_yticks(y, [_label(rule, n) for rule, n in zip(self.rules, rows, strict=True)])
        ax.set_ylim(-0.7, len(self.rules) - 0.3)
        ax.set(
            xlabel=f"{self.metric.replace('_', ' ')} above the rest\n(intervals at {self.level:.0%} for all at once)"
        )
        ax.locator_params(axis="x", nbins=6)
        ax.grid(visible=False, axis="y")
        return ax


@in_catalogue("diagnose", "J6", certificate="intervals for all slices at once", docs=CROSS_VALIDATION_DOCS)
def slices(
    model: Any,
    X: Any,
    y: Any,
    *,
    features: Any = None,
    loss: str | Callable[[np.ndarray, np.ndarray], Any] | None = None,
    cv: Any = 5,
    groups: Any = None,
    ordered: bool = False,
    sample_weight: Any = None,
    max_slices: int = 8,
    min_rows: int | None = None,
    n_examples: int = 10,
    level: float = 0.95,
    n_jobs: int | None = None,
    random_state: Any = 0,
) -> Slices:
    """Find slices of the data on which a model has more loss than on the rest.

    Every row is predicted by a model that was not fitted to it. A small tree is grown on the losses of one half of the
    rows; the other half measures its leaves.

    Parameters
    ----------
    model : regressor or classifier
        Fitted already with ``cv="prefit"``; X and y are then rows that it was not fitted to.
    features : frame or array with as many rows, optional
        Columns that describe the slices, where these are not X: raw columns in place of encoded ones, for example.
        Numbers, categories or text.
    loss : str or callable, optional
        "error" (wrong labels), "log_loss", "absolute_error", "squared_error", or ``loss(y, prediction)`` that gives a
        number for each row; by default "error" or "absolute_error".
    cv : int, splitter, splits or "prefit", default=5
    groups : array-like of shape (n,), optional
        Groups of rows; a group is in one fold and in one half, and intervals account for the dependence within groups.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows in the fits.
    ordered : bool, default=False
        Whether the rows are in order of time; the first ones are then never predicted, and left out.
    max_slices : int, default=8
    min_rows : int, optional
        Rows of a slice, in each half; by default a fiftieth of them, at least 10.
    n_examples : int, default=10
        Number of rows with the largest losses to list.
    level : float, default=0.95
        Confidence level of all intervals together.

    Examples
    --------
    >>> import numpy as np
    >>> from epicycle import LinearRegression, diagnose
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(1000, 3))
    >>> y = X[:, 0] + rng.normal(size=1000) * np.where(X[:, 1] > 0.8, 3.0, 0.1)
    >>> found = diagnose.slices(LinearRegression(), X, y, max_slices=2)
    >>> found.worst
    'x1 > 0.7985'
    """
    rows, seed = checked_rows(X, y, sample_weight, groups), seed_of(random_state)
    check_model(model, Rows(rows.X, rows.y))
    count("max_slices", max_slices, low=2)
    count("n_examples", n_examples)
    open_unit("level", level)
    name, predicted, losses = losses_of_rows(model, rows, loss, cv, ordered, n_jobs, seed)
    table, categorical, notes = splittable(X if features is None else features, rows.n)
    seen = np.flatnonzero(np.isfinite(losses))
    if min_rows is not None:
        count("min_rows", min_rows, low=2)
    # A hundredth of the rows in each half, at least ten: smaller slices have no useful interval.
    least = int(min_rows) if min_rows is not None else max(10, len(seen) // 100)
    if len(seen) < 4 * least:
        raise DataError(
            f"X: {len(seen)} predicted rows; expected at least {4 * least} for slices of {least} in each half"
        )
    search, measure = _halves(seen, rows.groups, seed)
    tree = DecisionTreeRegressor(
        max_depth=4,
        max_leaf_nodes=int(max_slices),
        min_samples_leaf=least,
        categorical_features=categorical or None,
        random_state=seed % 2**31,
        n_jobs=n_jobs,
    ).fit(_safe_indexing(table, search), losses[search])
    leaf = np.asarray(tree.apply(table))
    found = _measured(tree, leaf, losses, seen, measure, float(level), rows.groups, whole_columns(table))
    mean = float(losses[seen].mean())
    verdict, steps = _verdict(found, mean, name)
    order = seen[np.argsort(-losses[seen], kind="stable")][: int(n_examples)]
    return Slices(
        verdict=verdict,
        columns={column: [s[column] for s in found] for column in (found[0] if found else ())},
        next_steps=steps,
        notes=(*notes, _NOTE),
        rules=tuple(s["slice"] for s in found),
        loss=mean,
        worst=next((s["slice"] for s in found if s["lower"] > 0), None),
        level=float(level),
        metric=name,
        worst_rows={"row": order, "loss": losses[order], "target": rows.y[order], "prediction": predicted[order]},
        losses=losses,
    )


def _label(rule: str, rows: int) -> str:
    """A rule on two lines at most, with its number of rows."""
    lines = textwrap.wrap(short(f"{rule} ({rows:,} rows)", 64), 34)
    return "\n".join(lines)


def _halves(seen: np.ndarray, groups: np.ndarray | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to find slices on, and rows to measure them on; the rows of a group are all in one half."""
    rng = stream(seed, "halves")
    if groups is None:
        mixed = rng.permutation(seen)
        return np.sort(mixed[: len(mixed) // 2]), np.sort(mixed[len(mixed) // 2 :])
    names, member = np.unique(groups[seen], return_inverse=True)
    if len(names) < 4:
        raise DataError(f"groups: {len(names)} of them among the predicted rows; expected at least 4, two in each half")
    order = rng.permutation(len(names))
    first = np.isin(member.ravel(), order[: len(order) // 2])
    return seen[first], seen[~first]


def _difference(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Standard error of a difference of means, and its degrees of freedom (Welch)."""
    va, vb = a.var(ddof=1) / len(a), b.var(ddof=1) / len(b)
    error = float(np.sqrt(va + vb))
    freedom = (va + vb) ** 2 / (va**2 / (len(a) - 1) + vb**2 / (len(b) - 1)) if error > 0 else 1.0
    return error, float(freedom)


def _difference_of_groups(loss: np.ndarray, inside: np.ndarray, groups: np.ndarray) -> tuple[float, float]:
    """The same with dependence within groups: the contributions of a group to the difference are added up first."""
    parts = np.where(
        inside, (loss - loss[inside].mean()) / inside.sum(), -(loss - loss[~inside].mean()) / (~inside).sum()
    )
    member = np.unique(groups, return_inverse=True)[1].ravel()
    sums = np.bincount(member, parts)
    g, touched = len(sums), len(np.unique(member[inside]))
    return float(np.sqrt(g / (g - 1) * (sums**2).sum())), float(max(min(g, touched) - 1, 1))


def _measured(
    tree: Any,
    leaf: np.ndarray,
    losses: np.ndarray,
    seen: np.ndarray,
    measure: np.ndarray,
    level: float,
    groups: np.ndarray | None,
    whole: Mapping[int, tuple[float, float]],
) -> list[dict[str, Any]]:
    """Loss of every leaf on the second half against the rest, with simultaneous intervals."""
    rules = leaf_rules(tree, whole)
    m, total = len(rules), float(losses[measure].sum())
    found = []
    for node, rule in rules.items():
        inside = leaf[measure] == node
        a, b = losses[measure][inside], losses[measure][~inside]
        if len(a) < 2 or len(b) < 2:
            continue
        if groups is None:
            error, freedom = _difference(a, b)
        else:
            error, freedom = _difference_of_groups(losses[measure], inside, groups[measure])
        # Bonferroni over the m leaves, two-sided.
        reach = float(stdtrit(freedom, 1 - (1 - level) / (2 * m))) * error
        above = float(a.mean() - b.mean())
        found.append(
            {
                "slice": rule,
                "rows": int((leaf[seen] == node).sum()),
                "measured_on": len(a),
                "loss": float(a.mean()),
                "above_rest": above,
                "lower": above - reach,
                "upper": above + reach,
                "share_of_loss": float(a.sum()) / total if total > 0 else 0.0,
            }
        )
    return sorted(found, key=lambda s: -s["above_rest"])


def _verdict(found: list[dict[str, Any]], loss: float, metric: str) -> tuple[str, tuple[str, ...]]:
    """The verdict and the next steps, from the slices in order of their loss."""
    worse = [s for s in found if s["lower"] > 0]
    if worse:
        s = worse[0]
        verdict = (
            f"The errors are where {s['slice']}: mean {metric.replace('_', ' ')} {brief(s['loss'], 3)} there, "
            f"{brief(s['above_rest'], 3)} above the rest (between {brief(s['lower'], 3)} and {brief(s['upper'], 3)}), "
            f"on {s['rows']} rows that make up {s['share_of_loss']:.0%} of the total loss."
        )
        if len(worse) > 1:
            verdict += f" {len(worse) - 1} more slice{'s are' if len(worse) > 2 else ' is'} worse than the rest."
        return verdict, (
            f"inspect rows where {s['slice']}: are targets or features wrong there, or is a feature missing?",
            "add features, or rows, that distinguish such cases; or a separate model for them",
        )
    if len(found) < 2:
        name = metric.replace("_", " ")
        return f"The rows are too few, or too alike, to tell slices apart: the mean {name} is {brief(loss, 3)}.", ()
    verdict = (
        f"No slice is significantly worse than the rest: the mean {metric.replace('_', ' ')} is {brief(loss, 3)}, and "
        f"the differences between {len(found)} slices are within the noise."
    )
    return verdict, ()


def losses_of_rows(
    model: Any, rows: Rows, loss: Any, cv: Any, ordered: bool, n_jobs: int | None, seed: int
) -> tuple[str, np.ndarray, np.ndarray]:
    """The name of the loss, predictions and losses of all rows; NaN where a row was not predicted."""
    classifier = bool(is_classifier(model))
    name = loss if loss is not None else "error" if classifier else "absolute_error"
    _check_loss(name, rows.y)
    if isinstance(cv, str) and cv == "prefit":
        classes = getattr(model, "classes_", None)
        responses, seen = responses_of(model, rows.X, classes), np.ones(rows.n, dtype=bool)
    else:
        if rows.weight is not None:
            check_weights_taken("model", model)
        classes = np.unique(rows.y) if classifier else None
        splits = folds_of(rows, cv, classifier=classifier, ordered=ordered, seed=seed)
        responses, seen = out_of_fold(seeded(model, seed), rows, splits, classes, n_jobs)
    predicted = responses["predict"]
    if name == "log_loss" and "predict_proba" not in responses:
        raise ParameterError(f"loss='log_loss': {type(model).__name__} has no predict_proba")
    losses = np.full(rows.n, np.nan)
    if callable(name):
        losses[seen] = _given(name, rows.y[seen], predicted[seen])
        return getattr(name, "__name__", "loss"), predicted, losses
    used = responses["predict_proba"] if name == "log_loss" else predicted
    losses[seen] = row_losses(name, rows.y[seen], used[seen], classes)
    return name, predicted, losses


def _check_loss(name: Any, y: np.ndarray) -> None:
    if not callable(name) and name not in ROW_LOSSES:
        raise ParameterError(
            f"loss={name!r:.40}; expected 'error', 'log_loss', 'absolute_error', 'squared_error' or a callable"
        )
    if y.ndim != 1:
        raise DataError(f"y: shape {y.shape}; expected one target")
    if name in ("absolute_error", "squared_error") and y.dtype.kind not in "biuf":
        raise ParameterError(f"loss={name!r}: y has labels; expected 'error' or 'log_loss'")


def _given(loss: Any, y: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Losses by a function of the user."""
    values = np.asarray(loss(y, predicted), dtype=np.float64)
    if values.shape != y.shape or not np.isfinite(values).all():
        raise ParameterError(f"loss: gave shape {values.shape}; expected a finite number for each of {len(y)} rows")
    return values
