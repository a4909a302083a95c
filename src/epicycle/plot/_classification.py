"""Figures of classifiers: calibration, confusion matrix, precision and recall, ROC."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._checks import count, open_unit
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError, ParameterError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, luminance, paper, short, styled
from epicycle.plot._drawing import DOCS, Drawing, column, two_classes
from epicycle.report.curves import along, checked_weights, cumulative_counts

#: Points of a curve that are drawn; more cannot be distinguished in a figure.
_POINTS = 500


@styled
@documented(DOCS)
def calibration(
    y: Any,
    p: Any,
    ax: Axes | None = None,
    *,
    n_bins: int = 10,
    positive: Any = None,
    sample_weight: Any = None,
    label: str = "model",
    level: float = 0.95,
) -> Drawing:
    r"""Draw a calibration curve: observed shares against predicted probabilities, with exact intervals.

    The rows are divided into bins of equal weight by their probabilities. The expected calibration error is
    :math:`\sum_b w_b \lvert \bar y_b - \bar p_b \rvert`.

    Parameters
    ----------
    p : array-like of shape (n,)
        Probabilities of the positive class.
    n_bins : int, default=10
    level : float, default=0.95
        Of the interval of each bin (Clopper and Pearson); with weights by the effective number of rows.

    Returns
    -------
    Drawing
        With the columns probability, share, lower, upper and rows, and the number calibration_error.

    Examples
    --------
    >>> from epicycle import plot
    >>> drawn = plot.calibration([0, 0, 1, 1], [0.2, 0.2, 0.8, 0.8], n_bins=2)
    >>> drawn.data["share"].tolist(), round(drawn.numbers["calibration_error"], 3)
    ([0.0, 1.0], 0.2)
    """
    from scipy.special import betaincinv

    truth, positive = two_classes(y, positive)
    n = len(truth)
    p, w = column("p", p, n), checked_weights(sample_weight, n)
    if p.min() < 0 or p.max() > 1:
        raise DataError(f"p: from {p.min():.3g} to {p.max():.3g}; expected probabilities")
    open_unit("level", level)
    place = _bins(p, w, count("n_bins", n_bins, low=1))
    total = np.bincount(place, w)
    keep = total > 0
    mean, share = (np.bincount(place, w * v)[keep] / total[keep] for v in (p, truth))
    # Kish's effective sample size; without weights it is the number of rows.
    effective = total[keep] ** 2 / np.bincount(place, w**2)[keep]
    k, tail = share * effective, (1 - level) / 2
    with np.errstate(invalid="ignore"):
        low = np.where(share > 0, betaincinv(np.maximum(k, 1e-300), effective - k + 1, tail), 0.0)
        high = np.where(share < 1, betaincinv(k + 1, np.maximum(effective - k, 1e-300), 1 - tail), 1.0)
    error = float(total[keep] @ np.abs(mean - share) / w.sum())
    ax = axes_of(ax, (4.6, 4.4))
    ax.plot([0, 1], [0, 1], color=ink(ax, 0.5), ls="--", lw=1.2, label="perfectly calibrated")
    reach = np.clip(np.stack([share - low, high - share]), 0, None)
    ax.errorbar(mean, share, yerr=reach, fmt="o-", ms=5, capsize=2.5, elinewidth=1, color=COLOURS["blue"], label=label)
    ax.set(
        xlabel=f"predicted probability of {short(str(positive), 16)}",
        ylabel="observed share",
        xlim=(-0.02, 1.02),
        ylim=(-0.02, 1.02),
        title=f"calibration error {error:.3g}",
    )
    ax.legend(loc="upper left")
    data = {
        "probability": mean,
        "share": share,
        "lower": low,
        "upper": high,
        "rows": np.bincount(place)[keep].astype(np.float64),
    }
    return Drawing("calibration", data, ax, {"calibration_error": error})


def _bins(p: np.ndarray, w: np.ndarray, n_bins: int) -> np.ndarray:
    """The bin of every row, of about equal weight; equal probabilities share a bin."""
    inverse = np.unique(p, return_inverse=True)[1]
    mass = np.bincount(inverse, w)
    middle = (np.cumsum(mass) - mass / 2) / mass.sum()
    return np.asarray(np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)[inverse])


@styled
@documented(DOCS)
def confusion(
    y: Any,
    predicted: Any,
    ax: Axes | None = None,
    *,
    labels: Any = None,
    sample_weight: Any = None,
    normalize: bool = True,
) -> Drawing:
    """Draw a confusion matrix, coloured by the share of the true class.

    Parameters
    ----------
    y, predicted : array-like of shape (n,)
        True and predicted labels.
    labels : array-like, optional
        Classes in the order of the rows and columns; by default sorted. Rows of others are left out.
    normalize : bool, default=True
        Whether shares of the true class are written under the counts.

    Returns
    -------
    Drawing
        With the columns true, predicted, count and share, one row for each cell, and the number accuracy.

    Examples
    --------
    >>> from epicycle import plot
    >>> drawn = plot.confusion(["a", "a", "b", "b"], ["a", "b", "b", "b"])
    >>> drawn.data["count"].reshape(2, 2).tolist()
    [[1.0, 1.0], [0.0, 2.0]]
    """
    y, predicted = np.asarray(y), np.asarray(predicted)
    if y.ndim != 1 or len(y) == 0 or y.shape != predicted.shape:
        raise DataError(f"y, predicted: shapes {y.shape} and {predicted.shape}; expected two labels for every row")
    w = checked_weights(sample_weight, len(y))
    names = np.unique(np.concatenate([y, predicted])) if labels is None else np.asarray(labels)
    if len(np.unique(names)) != len(names) or len(names) == 0:
        raise ParameterError(f"labels={labels!r:.60}; expected different labels")
    order = np.argsort(names, kind="stable")
    at = [order[np.minimum(np.searchsorted(names[order], v), len(names) - 1)] for v in (y, predicted)]
    known = (names[at[0]] == y) & (names[at[1]] == predicted)
    c = len(names)
    counts = np.bincount(at[0][known] * c + at[1][known], w[known], minlength=c * c).reshape(c, c)
    totals = counts.sum(axis=1, keepdims=True)
    share = np.divide(counts, totals, out=np.zeros_like(counts), where=totals > 0)
    ax = axes_of(ax, (max(3.6, 1.6 + 0.55 * min(c, 20)), max(3.2, 1.2 + 0.55 * min(c, 20))))
    _cells(ax, counts, share, normalize=normalize)
    _name_classes(ax, [short(str(name), 14) for name in names])
    ax.set(xlabel="predicted class", ylabel="true class")
    data = {
        "true": np.repeat(names, c),
        "predicted": np.tile(names, c),
        "count": counts.ravel(),
        "share": share.ravel(),
    }
    right = float(np.trace(counts) / counts.sum()) if counts.sum() > 0 else np.nan
    return Drawing("confusion", data, ax, {"accuracy": right})


def _cells(ax: Axes, counts: np.ndarray, share: np.ndarray, *, normalize: bool) -> None:
    from matplotlib.colors import LinearSegmentedColormap

    c = len(counts)
    scale = LinearSegmentedColormap.from_list("ground to blue", [paper(ax), COLOURS["blue"]])
    ax.imshow(share, cmap=scale, vmin=0, vmax=1)
    ax.grid(visible=False)
    ax.set_xticks(np.arange(c + 1) - 0.5, minor=True)
    ax.set_yticks(np.arange(c + 1) - 0.5, minor=True)
    ax.grid(which="minor", color=ink(ax, 0.25), lw=0.8, alpha=1)
    ax.tick_params(which="both", length=0)
    if c > 12:
        return
    for i in range(c):
        for j in range(c):
            bright = luminance(scale(share[i, j])) > 0.3
            text = f"{counts[i, j]:,.4g}" + (f"\n{share[i, j]:.0%}" if normalize and c <= 6 else "")
            ax.text(
                j, i, text, ha="center", va="center", size=9 if c <= 6 else 7, color="#111111" if bright else "white"
            )


def _name_classes(ax: Axes, names: list[str]) -> None:
    step = max(1, -(-len(names) // 24))
    ticks = np.arange(0, len(names), step)
    shown = [names[i] for i in ticks]
    long = max(map(len, shown)) > 5 or len(shown) > 12
    ax.set_xticks(ticks, shown, rotation=45 if long else 0, ha="right" if long else "center", rotation_mode="anchor")
    ax.set_yticks(ticks, shown)


def _cumulated(y: Any, score: Any, positive: Any, sample_weight: Any) -> tuple[np.ndarray, ...]:
    """True and false positives at or above every distinct score, from the largest, after a row of zeros."""
    truth, _ = two_classes(y, positive)
    s, w = column("score", score, len(truth)), checked_weights(sample_weight, len(truth))
    thresholds, tp, fp = cumulative_counts(s, truth.astype(np.float64), w)
    if tp[-1] <= 0 or fp[-1] <= 0:
        raise DataError("sample_weight: one of the classes has no weight")
    return tp, fp, thresholds


@styled
@documented(DOCS)
def precision_recall(
    y: Any,
    score: Any,
    ax: Axes | None = None,
    *,
    positive: Any = None,
    sample_weight: Any = None,
    threshold: float | None = None,
    label: str = "model",
) -> Drawing:
    r"""Draw precision against recall over all thresholds of a score.

    The average precision is :math:`\sum_i (R_i - R_{i-1}) P_i`, the area under the curve as a step function.

    Parameters
    ----------
    threshold : float, optional
        A threshold to mark.

    Returns
    -------
    Drawing
        With the columns recall, precision and threshold, reduced to visible points, and the numbers average_precision
        and prevalence.

    Examples
    --------
    >>> from epicycle import plot
    >>> drawn = plot.precision_recall([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    >>> round(drawn.numbers["average_precision"], 4)
    0.8333
    """
    tp, fp, thresholds = _cumulated(y, score, positive, sample_weight)
    recall, precision = tp[1:] / tp[-1], tp[1:] / (tp[1:] + fp[1:])
    area = float(np.diff(tp) / tp[-1] @ precision)
    prevalence = float(tp[-1] / (tp[-1] + fp[-1]))
    ax = axes_of(ax, (4.8, 4.0))
    kept = along(recall, precision, _POINTS)
    ax.step(
        np.append(0.0, recall[kept]),
        np.append(precision[0], precision[kept]),
        where="pre",
        color=COLOURS["blue"],
        label=label,
    )
    ax.axhline(prevalence, color=ink(ax, 0.5), ls="--", lw=1.2, label=f"chance, {prevalence:.3g}")
    if threshold is not None and (above := thresholds >= threshold).any():
        at = int(np.flatnonzero(above)[-1])
        ax.plot(recall[at], precision[at], "D", color=COLOURS["vermilion"], ms=7, label=f"threshold {threshold:.3g}")
    ax.set(xlabel="recall", ylabel="precision", xlim=(-0.01, 1.02), ylim=(0, 1.03))
    ax.set(title=f"average precision {area:.3g}")
    ax.legend(
        loc="upper right" if area < 0.6 else "lower left", bbox_to_anchor=None if area < 0.6 else (0, prevalence + 0.01)
    )
    data = {"recall": recall[kept], "precision": precision[kept], "threshold": thresholds[kept]}
    return Drawing("precision_recall", data, ax, {"average_precision": area, "prevalence": prevalence})


@styled
@documented(DOCS)
def roc(
    y: Any,
    score: Any,
    ax: Axes | None = None,
    *,
    positive: Any = None,
    sample_weight: Any = None,
    label: str = "model",
) -> Drawing:
    """Draw the ROC curve: true against false positive rate over all thresholds of a score.

    The standard error of the area is that of DeLong, DeLong and Clarke-Pearson; with weights there is none.

    Returns
    -------
    Drawing
        With the columns false_alarms, hits and threshold, reduced to visible points, and the numbers area and
        area_error.

    Examples
    --------
    >>> from epicycle import plot
    >>> plot.roc([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]).numbers["area"]
    0.75
    """
    tp, fp, thresholds = _cumulated(y, score, positive, sample_weight)
    hits, alarms = tp / tp[-1], fp / fp[-1]
    area = float(np.diff(alarms) @ (hits[1:] + hits[:-1]) / 2)
    error = np.nan
    if sample_weight is None and min(tp[-1], fp[-1]) > 1:
        # The share of the other class that every row of a class is ranked above, ties by half.
        above_negatives, below_positives = 1 - (alarms[1:] + alarms[:-1]) / 2, (hits[1:] + hits[:-1]) / 2
        parts = ((above_negatives, np.diff(tp)), (below_positives, np.diff(fp)))
        error = float(np.sqrt(sum(((v - area) ** 2 @ k) / (k.sum() * (k.sum() - 1)) for v, k in parts)))
    ax = axes_of(ax, (4.6, 4.2))
    kept = along(alarms, hits, _POINTS)
    ax.plot(alarms[kept], hits[kept], color=COLOURS["blue"], label=label)
    ax.plot([0, 1], [0, 1], color=ink(ax, 0.5), ls="--", lw=1.2, label="chance")
    ax.set(xlabel="false positive rate", ylabel="true positive rate")
    ax.set(title=f"area {area:.3f}" + (f" (standard error {error:.2g})" if np.isfinite(error) else ""))
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.legend(loc="lower right")
    data = {"false_alarms": alarms[kept], "hits": hits[kept], "threshold": np.append(np.inf, thresholds)[kept]}
    return Drawing("roc", data, ax, {"area": area, "area_error": error})
