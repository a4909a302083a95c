"""A plot of weights of attention."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from epicycle.core._docs import documented
from epicycle.core._exceptions import DataError
from epicycle.core._plot_style import Axes, axes_of, short, styled
from epicycle.plot._drawing import Drawing


@styled
@documented({})
def attention(weights: Any, read: Sequence[str], written: Sequence[str], ax: Axes | None = None) -> Drawing:
    """Draw where a network looked while it wrote each token: the darker a cell, the larger the weight.

    Parameters
    ----------
    weights : array-like of shape (n_written, n_read)
        As `attention_weights` of :class:`~epicycle.Seq2Seq` gives them for one text; rows beyond the tokens that were
        written, such as that of the end, are called "end".
    read : str, or sequence of str
        The tokens that were read; a text stands for its characters.
    written : str, or sequence of str
        The tokens that were written.
    ax : matplotlib axes, optional

    Returns
    -------
    Drawing
        With the columns written, read and weight, a row for each cell.

    Examples
    --------
    >>> from epicycle import plot
    >>> drawn = plot.attention([[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]], "ab", "ba")
    >>> drawn.data["weight"].shape
    (6,)
    """
    table = np.asarray(weights, dtype=np.float64)
    columns, rows = [str(token) for token in read], [str(token) for token in written]
    if table.ndim != 2 or not np.isfinite(table).all() or table.size == 0 or table.min() < 0:
        raise DataError(f"weights: shape {table.shape}; expected finite numbers (n_written, n_read), none below 0")
    if len(rows) == table.shape[0] - 1:
        rows = [*rows, "end"]
    if table.shape != (len(rows), len(columns)):
        raise DataError(
            f"weights: shape {table.shape} for {len(rows)} tokens that were written and {len(columns)} that were read; "
            f"expected ({len(rows)}, {len(columns)}), or one row more for the end"
        )
    ax = axes_of(ax, (1.6 + 0.32 * len(columns), 1.2 + 0.32 * len(rows)))
    ax.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ax.grid(visible=False)
    ax.set_xticks(range(len(columns)), [short(token, 12) for token in columns])
    ax.set_yticks(range(len(rows)), [short(token, 12) for token in rows])
    if max(map(len, columns)) > 3:
        ax.tick_params(axis="x", rotation=60)
    ax.set(xlabel="read", ylabel="written")
    data = {
        "written": np.repeat(np.array(rows), len(columns)),
        "read": np.tile(np.array(columns), len(rows)),
        "weight": table.ravel(),
    }
    return Drawing("attention", data, ax, {})
