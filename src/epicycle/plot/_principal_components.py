"""Plots of principal components."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._plot_style import COLOURS, CYCLE, Axes, axes_of, ink, styled
from epicycle.plot._drawing import Drawing

_NAMED = 12  # features whose arrows a biplot names


@styled
@documented({})
def scree(explained_variance_ratio: Any, ax: Axes | None = None) -> Drawing:
    """Draw the share of the variance of every component, and of all up to it.

    Parameters
    ----------
    explained_variance_ratio : array-like of shape (n_components,)
        As :class:`~epicycle.PCA` has it.

    Returns
    -------
    Drawing
        With the columns component, share and cumulative.

    Examples
    --------
    >>> from epicycle import PCA, plot
    >>> drawn = plot.scree(PCA().fit([[0.0, 0.0], [2.0, 1.0], [4.0, 2.0]]).explained_variance_ratio_)
    >>> drawn.data["cumulative"].round(2)
    array([1., 1.])
    """
    share = np.asarray(explained_variance_ratio, dtype=np.float64)
    if share.ndim != 1 or not len(share) or not np.isfinite(share).all():
        raise DataError(f"explained_variance_ratio: shape {share.shape}; expected a finite number for every component")
    ax, component = axes_of(ax), np.arange(1, len(share) + 1)
    total = np.cumsum(share)
    ax.bar(component, share, color=COLOURS["blue"], width=0.8, label="one component")
    marker = "o" if len(share) <= 40 else ""
    ax.plot(component, total, color=COLOURS["vermilion"], marker=marker, ms=3.5, label="up to it")
    ax.set(xlabel="component", ylabel="share of the variance", ylim=(0, 1.05), xlim=(0.4, len(share) + 0.6))
    ax.legend(frameon=False, loc="center right")
    return Drawing("scree", {"component": component, "share": share, "cumulative": total}, ax, {})


@styled
@documented({})
def biplot(
    coordinates: Any, components: Any, labels: Any = None, feature_names: Any = None, ax: Axes | None = None
) -> Drawing:
    """Draw rows by their first two coordinates, and features as arrows along which they grow.

    Parameters
    ----------
    coordinates : array-like of shape (n, k)
        Of the rows, k >= 2; the first two are drawn.
    components : array-like of shape (k, p)
        Axes as rows.
    labels : array-like of shape (n,), optional
        Groups of rows, drawn in colours.
    feature_names : sequence of str, optional
        Names of the p features; those of the longest arrows are written.

    Returns
    -------
    Drawing
        With the columns x, y and label of the rows, and the numbers rows and features.

    Examples
    --------
    >>> from epicycle import PCA, plot
    >>> X = [[0.0, 0.1], [2.0, 0.9], [4.0, 2.2], [1.0, 1.0]]
    >>> model = PCA().fit(X)
    >>> plot.biplot(model.transform(X), model.components_, feature_names=["a", "b"]).numbers["features"]
    2.0
    """
    Z, V = np.asarray(coordinates, dtype=np.float64), np.asarray(components, dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] < 2 or V.ndim != 2 or len(V) != Z.shape[1]:
        raise DataError(
            f"coordinates: shape {Z.shape}, components: shape {V.shape}; expected (n, k) and (k, p) with k >= 2"
        )
    groups = np.zeros(len(Z), dtype=np.int64) if labels is None else np.asarray(labels)
    if groups.shape != (len(Z),):
        raise DataError(f"labels: shape {groups.shape}; expected one for each of {len(Z)} rows")
    p = V.shape[1]
    names = [f"x{j}" for j in range(p)] if feature_names is None else [str(name) for name in feature_names]
    if len(names) != p:
        raise DataError(f"feature_names: {len(names)} names; expected one for each of {p} features")
    ax = axes_of(ax)
    for i, group in enumerate(np.unique(groups)):
        inside = groups == group
        ax.scatter(Z[inside, 0], Z[inside, 1], s=12, color=CYCLE[i % len(CYCLE)], lw=0, alpha=0.8, label=str(group))
    length = np.hypot(V[0], V[1])
    reach = 0.9 * np.abs(Z[:, :2]).max(initial=0.0) / (length.max(initial=0.0) or 1.0)
    drawn = np.argsort(-length)[:_NAMED]
    for j in drawn:
        ax.annotate("", reach * V[:2, j], (0, 0), arrowprops={"arrowstyle": "->", "color": COLOURS["grey"], "lw": 1.2})
        ground = {"facecolor": ax.get_facecolor(), "alpha": 0.7, "lw": 0, "pad": 1}  # points do not run through it
        place = {"ha": "center", "va": "center", "fontsize": "small"}
        ax.annotate(names[j], 1.1 * reach * V[:2, j], color=ink(ax), bbox=ground, **place)
    if labels is not None:
        ax.legend(frameon=False)
    ax.set(xlabel="first component", ylabel="second component")
    ax.margins(0.12)
    numbers = {"rows": float(len(Z)), "features": float(p)}
    return Drawing("biplot", {"x": Z[:, 0], "y": Z[:, 1], "label": groups}, ax, numbers)
