"""Figures of regressors, importances and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicycle.core._checks import count
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, band, bars, ink, styled
from epicycle.plot._drawing import DOCS, Drawing, column
from epicycle.report.curves import checked_weights

#: Points of a cloud that are drawn, evenly taken from all rows.
_POINTS = 2000


@styled
@documented(DOCS)
def residuals(
    y: Any,
    predicted: Any,
    ax: Axes | None = None,
    *,
    sample_weight: Any = None,
    n_bins: int = 12,
) -> Drawing:
    """Draw residuals, targets minus predictions, against the predictions.

    In bins of equal weight the median and the middle 80% of the residuals are drawn; a good model's median follows the
    zero line, and its band is of one width.

    Parameters
    ----------
    y, predicted : array-like of shape (n,)
    n_bins : int, default=12
        At most; fewer where bins would have less than 10 rows.

    Returns
    -------
    Drawing
        With the columns predicted, lower, median, upper and rows, one row for each bin, and the numbers mean,
        std_deviation, and r2.

    Examples
    --------
    >>> from epicycle import plot
    >>> drawn = plot.residuals([1.0, 2.0, 4.0], [1.0, 2.0, 3.0])
    >>> round(drawn.numbers["mean"], 4), round(drawn.numbers["r2"], 4)
    (0.3333, 0.7857)
    """
    target = column("y", y)
    n = len(target)
    fitted, w = column("predicted", predicted, n), checked_weights(sample_weight, n)
    count("n_bins", n_bins, low=1)
    residual = target - fitted
    order = np.argsort(fitted, kind="stable")
    mass = np.cumsum(w[order])
    # Quantiles at 10% and 90% need about ten rows.
    k = int(max(1, min(n_bins, n // 10)))
    place = np.minimum(((mass - w[order] / 2) / mass[-1] * k).astype(np.int64), k - 1)
    pieces = [order[place == b] for b in range(k) if (w[order[place == b]] > 0).any()]
    levels = np.array([_quantiles(residual[rows], w[rows], (0.1, 0.5, 0.9)) for rows in pieces])
    at = np.array([np.average(fitted[rows], weights=w[rows]) for rows in pieces])
    mean = float(np.average(residual, weights=w))
    total = float(w @ (target - np.average(target, weights=w)) ** 2)
    numbers = {
        "mean": mean,
        "std_deviation": float(np.sqrt(np.average((residual - mean) ** 2, weights=w))),
        "r2": 1 - float(w @ residual**2) / total if total > 0 else np.nan,
    }
    ax = axes_of(ax)
    shown = np.unique(np.linspace(0, n - 1, min(n, _POINTS)).astype(np.int64))
    faint = float(np.clip(60 / np.sqrt(len(shown)) / 4, 0.2, 0.7))
    ax.plot(
        fitted[shown], residual[shown], ".", ms=4, color=COLOURS["grey"], alpha=faint, mew=0, zorder=1, rasterized=True
    )
    ax.axhline(0, color=ink(ax), lw=0.9, zorder=2)
    if len(at) > 1:
        ax.fill_between(at, levels[:, 0], levels[:, 2], color=COLOURS["sky"], alpha=0.3, lw=0, label="middle 80%")
        ax.plot(at, levels[:, 1], "o-", ms=4, color=COLOURS["blue"], label="median", zorder=3)
        ax.legend(loc="best")
    ax.set(xlabel="prediction", ylabel="target minus prediction")
    data = {
        "predicted": at,
        "lower": levels[:, 0],
        "median": levels[:, 1],
        "upper": levels[:, 2],
        "rows": np.array([len(rows) for rows in pieces], dtype=float),
    }
    return Drawing("residuals", data, ax, numbers)


def _quantiles(values: np.ndarray, w: np.ndarray, levels: Sequence[float]) -> list[float]:
    order = np.argsort(values, kind="stable")
    share = (np.cumsum(w[order]) - w[order] / 2) / w.sum()
    return [float(np.interp(level, share, values[order])) for level in levels]


@styled
@documented(DOCS)
def importances(
    values: Any,
    names: Sequence[Any] | None = None,
    ax: Axes | None = None,
    *,
    errors: Any = None,
    most: int = 20,
    what: str = "importance",
) -> Drawing:
    """Draw importances of features, the largest on top, with two standard errors where they are known.

    Parameters
    ----------
    values : array-like of shape (n_features,)
    names : sequence, optional
        Of the features; by default x0, x1, ...
    errors : array-like of shape (n_features,), optional
        Standard errors.
    most : int, default=20
        Number of features to draw; the others are added up in a last bar.
    what : str, default="importance"
        Label of the values.

    Returns
    -------
    Drawing
        With the columns feature, value and error of all features, from the largest on.

    Examples
    --------
    >>> from epicycle import plot
    >>> plot.importances([0.2, 0.7, 0.1], ["age", "dose", "town"]).data["feature"].tolist()
    ['dose', 'age', 'town']
    """
    importance = column("values", values)
    called = [f"x{j}" for j in range(len(importance))] if names is None else [str(name) for name in names]
    if len(called) != len(importance):
        raise DataError(f"names: {len(called)}; expected one for each of {len(importance)} values")
    count("most", most, low=1)
    spread = np.full(len(importance), np.nan)
    if errors is not None:
        spread = np.asarray(errors, dtype=np.float64)
        if spread.shape != importance.shape:
            raise DataError(f"errors: shape {spread.shape}; expected {importance.shape}")
    order = np.argsort(-importance, kind="stable")
    top, rest = order[:most], order[most:]
    labels, lengths, whiskers = [called[j] for j in top], importance[top], 2 * spread[top]
    colours = ["blue"] * len(top)
    if len(rest):
        labels.append(f"{len(rest)} others together")
        lengths, whiskers = np.append(lengths, importance[rest].sum()), np.append(whiskers, np.nan)
        colours.append("grey")
    ax = axes_of(ax, (6.4, 1.1 + 0.27 * len(labels)))
    bars(ax, labels, lengths, whiskers, colour=colours)
    known = np.isfinite(whiskers).any()
    ax.set(xlabel=f"{what}\n(whiskers: two standard errors)" if known else what)
    if (lengths < 0).any():
        ax.axvline(0, color=ink(ax), lw=0.8)
    return Drawing(
        "importances", {"feature": np.array(called)[order], "value": importance[order], "error": spread[order]}, ax
    )


@styled
@documented(DOCS)
def learning_curve(
    x: Any,
    train: Any,
    validation: Any,
    ax: Axes | None = None,
    *,
    desired: float | None = None,
    desired_label: str = "can be reached",
    xlabel: str = "training rows",
    ylabel: str = "score",
) -> Drawing:
    """Draw scores on training and validation rows, with bands of one standard error over the folds.

    Parameters
    ----------
    x : sequence of length m
        Numbers of rows, or values of a parameter; what is no number is drawn as a category.
    train, validation : array-like of shape (m, n_folds) or (m,)
    desired : float, optional
        A level to draw.
    desired_label : str, default="can be reached"
    xlabel, ylabel : str

    Returns
    -------
    Drawing
        With the columns x, train, train_error, validation and validation_error.

    Examples
    --------
    >>> from epicycle import plot
    >>> drawn = plot.learning_curve([10, 20], [[0.9, 1.0], [0.8, 0.9]], [[0.4, 0.6], [0.6, 0.8]])
    >>> drawn.data["validation"].round(2).tolist()
    [0.5, 0.7]
    """
    values = np.asarray(x)
    if values.ndim != 1 or len(values) == 0:
        raise DataError(f"x: shape {values.shape}; expected a value for every point of the curve")
    data: dict[str, np.ndarray] = {"x": values}
    for name, given in (("train", train), ("validation", validation)):
        scores = np.asarray(given, dtype=np.float64)
        scores = scores[:, None] if scores.ndim == 1 else scores
        if scores.ndim != 2 or len(scores) != len(values):
            raise DataError(f"{name}: shape {scores.shape}; expected scores for each of {len(values)} points")
        k = scores.shape[1]
        data[name] = scores.mean(axis=1)
        data[f"{name}_error"] = scores.std(axis=1, ddof=1) / np.sqrt(k) if k > 1 else np.full(len(values), np.nan)
    named = values.dtype.kind not in "iuf"
    at = np.arange(len(values)) if named else values.astype(np.float64)
    ax = axes_of(ax)
    looks = (("train", "vermilion", "training rows", "s"), ("validation", "blue", "validation rows", "o"))
    for name, colour, label, marker in looks:
        band(ax, at, data[name], data[f"{name}_error"], colour=colour, label=label, marker=marker)
    if desired is not None:
        # A line with ends, unlike axhline, so that the legend avoids it.
        ax.plot([at.min(), at.max()], [desired] * 2, color=COLOURS["green"], ls="--", lw=1.2, label=desired_label)
    if named:
        ax.set_xticks(at, [str(value) for value in values])
    elif at.min() > 0 and at.max() / at.min() >= 50:
        ax.set_xscale("log")
    ax.set(xlabel=xlabel, ylabel=ylabel)
    ax.legend(loc="best")
    return Drawing("learning_curve", data, ax)
