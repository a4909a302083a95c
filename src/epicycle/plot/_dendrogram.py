"""Figures of trees of clusters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicycle.cluster.hierarchy._cut import by_height, by_number, children_of
from epicycle.core._checks import count
from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._plot_style import COLOURS, CYCLE, Axes, axes_of, styled
from epicycle.plot._drawing import DOCS, Drawing

_MOST_LABELS = 100  # leaves whose labels can be read


@styled
@documented(DOCS)
def dendrogram(
    tree: Any,
    labels: Sequence[Any] | None = None,
    ax: Axes | None = None,
    *,
    n_clusters: int | None = None,
    distance_threshold: float | None = None,
    most: int = 80,
) -> Drawing:
    """Draw a tree of clusters, with the clusters of a cut in colours.

    Parameters
    ----------
    tree : fitted AgglomerativeClustering, or linkage matrix of shape (n - 1, 4)
    labels : sequence of length n, optional
        Of the leaves; by default their numbers.
    n_clusters : int, optional
        Number of clusters in colours; by default that of the fit. Without one all lines have one colour.
    distance_threshold : float, optional
        Height of the cut instead.
    most : int, default=80
        Leaves to draw; of larger trees the last merges are drawn, and a leaf is a cluster with its number of rows in
        brackets.

    Returns
    -------
    Drawing
        With the columns node, x, height, count and cluster (-1 above the cut) of the drawn nodes, leaves first, from
        left to right, and the numbers highest and clusters.

    Examples
    --------
    >>> from epicycle import AgglomerativeClustering, plot
    >>> drawn = plot.dendrogram(AgglomerativeClustering().fit([[0.0], [1.0], [5.0]]), ["a", "b", "c"])
    >>> drawn.data["node"].tolist(), drawn.data["height"].round(2).tolist()
    ([2, 0, 1, 3, 4], [0.0, 0.0, 0.0, 1.0, 5.2])
    """
    Z = _checked(getattr(tree, "linkage_", tree))
    n = len(Z) + 1
    count("most", most, low=2)
    if n_clusters is None and distance_threshold is None:
        n_clusters = getattr(tree, "n_clusters_", None)
    if labels is not None and len(labels) != n:
        raise DataError(f"labels: {len(labels)}; expected one for each of {n} leaves")
    cluster = _clusters(Z, n, n_clusters, distance_threshold)
    x, leaves = _positions(children_of(Z), n, max(n - most, 0))
    drawn = [*leaves, *sorted(node for node in x if node not in set(leaves))]
    counts = np.concatenate([np.ones(n), Z[:, 3]])
    bottom = {node: 0.0 for node in leaves}
    height = {node: bottom.get(node, float(Z[node - n, 2]) if node >= n else 0.0) for node in drawn}

    ax = axes_of(ax, (max(6.4, 0.13 * len(leaves)), 4.0))
    for node in drawn[len(leaves) :]:
        a, b = (int(child) for child in Z[node - n, :2])
        top = height[node]
        colour = COLOURS["grey"] if cluster[node] < 0 else CYCLE[cluster[node] % len(CYCLE)]
        for child in (a, b):
            own = colour if cluster[child] < 0 or cluster[node] >= 0 else CYCLE[cluster[child] % len(CYCLE)]
            ax.plot([x[child]] * 2, [height[child], top], color=own, lw=1.1, solid_capstyle="butt")
        ax.plot([x[a], x[b]], [top, top], color=colour, lw=1.1)
    names = [f"({counts[node]:.0f})" if node >= n else str(node if labels is None else labels[node]) for node in leaves]
    if len(leaves) <= _MOST_LABELS:
        upright = len(leaves) > 12 or max(map(len, names)) > 4
        ax.set_xticks([x[node] for node in leaves], names, rotation=90 if upright else 0)
        ax.tick_params(axis="x", length=0, labelsize=8 if len(leaves) <= 30 else 6.5)
    else:
        ax.set_xticks([])
    if distance_threshold is not None:
        ax.axhline(distance_threshold, color=COLOURS["grey"], lw=0.9, ls="--")
    ax.grid(visible=False, axis="x")
    highest = float(Z[:, 2].max())
    ax.set(ylabel="height", ylim=(0, 1.04 * highest if highest > 0 else 1.0), xlim=(-0.7, len(leaves) - 0.3))
    data = {
        "node": np.array(drawn),
        "x": np.array([x[node] for node in drawn]),
        "height": np.array([height[node] for node in drawn]),
        "count": counts[drawn],
        "cluster": cluster[drawn],
    }
    return Drawing("dendrogram", data, ax, {"highest": highest, "clusters": float(cluster.max() + 1)})


def _checked(tree: Any) -> np.ndarray:
    Z = np.ascontiguousarray(tree, dtype=np.float64)
    if Z.ndim != 2 or Z.shape[1] != 4 or len(Z) == 0 or not np.isfinite(Z).all():
        raise DataError(f"tree: shape {Z.shape}; expected a fitted model or a linkage matrix of shape (n - 1, 4)")
    n = len(Z) + 1
    children = children_of(Z)
    if (children < 0).any() or (children >= np.arange(n, n + len(Z))[:, None]).any():
        raise DataError("tree: a merge joins nodes that are not there yet; expected a linkage matrix of a whole tree")
    if len(np.unique(children)) != children.size:
        raise DataError("tree: a node is merged twice; expected a linkage matrix of a whole tree")
    return Z


def _clusters(Z: np.ndarray, n: int, n_clusters: int | None, distance_threshold: float | None) -> np.ndarray:
    """The cluster of every node; -1 above the cut."""
    cluster = np.full(2 * n - 1, -1, dtype=np.int64)
    if n_clusters is None and distance_threshold is None:
        cluster[:] = 0
        return cluster
    cluster[:n] = (
        by_number(Z, n, n_clusters or 1) if distance_threshold is None else by_height(Z, n, distance_threshold)
    )
    for t, (a, b) in enumerate(children_of(Z)):
        if cluster[a] == cluster[b]:
            cluster[n + t] = cluster[a]
    return cluster


def _positions(children: np.ndarray, n: int, hidden: int) -> tuple[dict[int, float], list[int]]:
    """Places of the drawn nodes, and the drawn leaves from left to right; the first `hidden` merges are not drawn."""
    leaves: list[int] = []
    order: list[int] = []
    stack = [2 * n - 2]
    while stack:
        node = stack.pop()
        if node < n + hidden:
            leaves.append(node)
        else:
            order.append(node)
            stack.extend(int(child) for child in children[node - n][::-1])
    x = {node: float(at) for at, node in enumerate(leaves)}
    for node in sorted(order):
        a, b = children[node - n]
        x[node] = (x[int(a)] + x[int(b)]) / 2
    return x, leaves
