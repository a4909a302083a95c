"""Plots of topics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, short, styled
from epicycle.plot._drawing import Drawing


@styled
@documented({})
def topics(
    components: Any, vocabulary: Sequence[str], n_words: int = 6, most: int = 10, ax: Axes | None = None
) -> Drawing:
    """Draw topics as bars of their shares of all words, with their most probable words beside.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features)
        As :class:`~epicycle.LatentDirichletAllocation` or :class:`~epicycle.NMF` have them: the more a topic has of a
        word, the larger the number.
    vocabulary : sequence of str
        Names of the features.
    n_words : int, default=6
        Words beside each bar.
    most : int, default=10
        Topics that are drawn, those with the largest shares.
    ax : matplotlib axes, optional

    Returns
    -------
    Drawing
        With the columns topic and share, the largest first.

    Examples
    --------
    >>> from epicycle import plot
    >>> drawn = plot.topics([[5, 4, 0.1], [0.1, 0.2, 1]], ["goal", "team", "vote"], n_words=2)
    >>> drawn.data["topic"]
    array([0, 1])
    """
    parts = np.asarray(components, dtype=np.float64)
    names = [str(name) for name in vocabulary]
    if parts.ndim != 2 or parts.shape[1] != len(names) or not np.isfinite(parts).all() or parts.min() < 0:
        raise DataError(
            f"components: shape {parts.shape} for {len(names)} names; expected (n_components, {len(names)}), finite "
            "numbers of which none is below 0"
        )
    total = parts.sum()
    share = parts.sum(axis=1) / (total if total > 0 else 1.0)
    order = np.argsort(-share, kind="stable")[: int(most)]
    ax, place = axes_of(ax), np.arange(len(order))
    ax.barh(place, share[order], color=COLOURS["blue"], height=0.72)
    for at, k in zip(place, order, strict=True):
        best = np.argsort(-parts[k], kind="stable")[: int(n_words)]
        words = ", ".join(short(names[w], 18) for w in best)
        ax.text(share[k], at, "  " + words, va="center", ha="left", fontsize="small", color=ink(ax))
    ax.set(yticks=place, yticklabels=[f"topic {k}" for k in order], xlabel="share of all words")
    ax.set_xlim(0, 2.6 * float(share.max(initial=1e-9)))  # room for the words
    ax.invert_yaxis()
    return Drawing("topics", {"topic": order, "share": share[order]}, ax, {})
