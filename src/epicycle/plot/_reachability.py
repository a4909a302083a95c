"""The reachability plot of OPTICS."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._plot_style import COLOURS, CYCLE, Axes, axes_of, styled
from epicycle.plot._drawing import Drawing


@styled
@documented({})
def reachability(
    reachability: Any, ordering: Any, labels: Any = None, ax: Axes | None = None, *, eps: float | None = None
) -> Drawing:
    """Draw reachability in the order of OPTICS: clusters are valleys.

    Parameters
    ----------
    reachability : array-like of shape (n,)
        By row, as :class:`~epicycle.OPTICS` has it; infinite values are drawn above all others.
    ordering : array-like of int of shape (n,)
        The rows in order.
    labels : array-like of int of shape (n,), optional
        Clusters by row, drawn in colours; those below 0 are grey.
    eps : float, optional
        A height to draw as a line.

    Returns
    -------
    Drawing
        With the columns place, row, reachability and label, in the order of the plot, and the numbers rows, unreached
        (rows of infinite reachability) and clusters.

    Examples
    --------
    >>> from epicycle import OPTICS, plot
    >>> model = OPTICS(min_samples=2).fit([[0.0], [1.0], [9.0], [9.5]])
    >>> drawn = plot.reachability(model.reachability_, model.ordering_, model.labels_)
    >>> drawn.numbers["unreached"], drawn.data["row"]
    (1.0, array([0, 1, 2, 3]))
    """
    heights, order = np.asarray(reachability, dtype=np.float64), np.asarray(ordering)
    n = len(heights)
    if heights.ndim != 1 or n == 0 or np.isnan(heights).any():
        raise DataError(f"reachability: shape {heights.shape}; expected a number for every row, or infinity")
    if order.shape != (n,) or order.dtype.kind not in "iu" or not np.array_equal(np.sort(order), np.arange(n)):
        raise DataError(f"ordering: expected every row from 0 to {n - 1} once")
    groups = np.zeros(n, dtype=np.int64) if labels is None else np.asarray(labels)
    if groups.shape != (n,) or groups.dtype.kind not in "iu":
        raise DataError(f"labels: shape {groups.shape}; expected an integer for every one of {n} rows")
    heights, groups = heights[order], groups[order]
    finite = np.isfinite(heights)
    top = float(heights[finite].max(initial=0.0)) or 1.0
    shown = np.where(finite, heights, 1.1 * top)
    ax = axes_of(ax)
    place = np.arange(n)
    for group in np.unique(groups):
        colour = COLOURS["grey"] if group < 0 else CYCLE[int(group) % len(CYCLE)]
        inside = np.where(groups == group, shown, 0.0)
        ax.fill_between(place, inside, step="mid", color=colour, lw=0, rasterized=True)
    if eps is not None:
        ax.axhline(eps, color=COLOURS["vermilion"], lw=1.2, ls="--")
    ax.set(xlabel="rows in order", ylabel="reachability", xlim=(-0.5, n - 0.5), ylim=(0, 1.1 * top))
    data = {"place": place, "row": order, "reachability": heights, "label": groups}
    clusters = len(np.unique(groups[groups >= 0]))
    numbers = {"rows": float(n), "unreached": float((~finite).sum()), "clusters": float(clusters)}
    return Drawing("reachability", data, ax, numbers)
