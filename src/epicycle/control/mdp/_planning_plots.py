"""Pictures of values and policies: over a plane where states are pairs of numbers, otherwise along a line."""

from __future__ import annotations

from typing import Any

import numpy as np

from epicycle.core._plot_style import Axes

Array = np.ndarray
_LABELLED = 30  # states along a line whose labels can be read


def cells_of(states: Array) -> tuple[Array, Array] | None:
    """Rows and columns of states that are pairs of whole numbers, none of them negative; None for others."""
    cells = states.tolist()
    if not cells or not all(isinstance(c, tuple) and len(c) == 2 for c in cells):
        return None
    if not all(isinstance(x, int) and x >= 0 for c in cells for x in c):
        return None
    rows, columns = np.array(cells).T
    return rows, columns


def draw_values(ax: Axes, states: Array, values: Array, lower: Array | None, upper: Array | None) -> None:
    """Values as colours of cells, or as a line with the band of their bounds."""
    cells = cells_of(states)
    if cells is not None:
        _image(ax, cells, values, "value", cmap="cividis")
        return
    at = _places(ax, states)
    ax.plot(at, values, marker="." if len(at) <= 120 else None)
    if lower is not None and upper is not None:
        ax.fill_between(at, lower, upper, alpha=0.25, linewidth=0)
    ax.set_ylabel("value")


def draw_policy(ax: Axes, states: Array, actions: Array, action: Array) -> None:
    """Actions (indices, -1 in terminal states) as colours of cells, or as points above the states."""
    numeric = actions.dtype.kind in "iuf"
    height = np.where(action >= 0, actions[action] if numeric else action, np.nan).astype(float)
    cells = cells_of(states)
    if cells is not None:
        colours: dict[str, Any] = {"cmap": "coolwarm" if numeric and actions.min() < 0 < actions.max() else "cividis"}
        if colours["cmap"] == "coolwarm":
            size = float(np.abs(actions).max())
            colours |= {"vmin": -size, "vmax": size}
        bar = _image(ax, cells, height, "action", **colours)
        if not numeric:
            bar.set_ticks(range(len(actions)), labels=[str(a) for a in actions])
        return
    at = _places(ax, states)
    ax.plot(at, height, linestyle="none", marker=".")
    ax.set_ylabel("action")
    if not numeric:
        ax.set_yticks(range(len(actions)), labels=[str(a) for a in actions])


def _image(ax: Axes, cells: tuple[Array, Array], values: Array, label: str, **colours: Any) -> Any:
    rows, columns = cells
    picture = np.full((rows.max() + 1, columns.max() + 1), np.nan)
    picture[rows, columns] = values
    image = ax.imshow(picture, **colours)
    ax.grid(False)
    for axis in (ax.xaxis, ax.yaxis):
        axis.get_major_locator().set_params(integer=True)
    ax.set_xlabel("second number of the state")
    ax.set_ylabel("first number of the state")
    return ax.figure.colorbar(image, ax=ax, label=label, shrink=0.8)


def _places(ax: Axes, states: Array) -> Array:
    """Places of the states on the horizontal axis."""
    ax.set_xlabel("state")
    if states.dtype.kind in "iuf":
        return states
    if len(states) <= _LABELLED:
        turn = 60 if max(len(str(s)) for s in states.tolist()) > 3 else 0
        ax.set_xticks(range(len(states)), labels=[str(s) for s in states.tolist()], rotation=turn)
    return np.arange(len(states))
