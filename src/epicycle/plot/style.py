"""The palette of Okabe and Ito, the settings of matplotlib that go with it, and the few shapes that figures share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["COLOURS", "STYLE", "axes_of", "band", "bars", "in_style", "labels_clear", "short"]

#: Okabe and Ito, by name; the grey is for what is only a reference.
COLOURS = {
    "blue": "#0072B2",
    "vermilion": "#D55E00",
    "green": "#009E73",
    "orange": "#E69F00",
    "pink": "#CC79A7",
    "sky": "#56B4E9",
    "yellow": "#F0E442",
    "grey": "#6E6E6E",
}

#: Settings of matplotlib, without its colour cycle.
STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "axes.titlelocation": "left",
    "figure.facecolor": "white",
    "font.size": 10,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
}


@contextmanager
def in_style() -> Iterator[None]:
    """Figures made inside have the look of this package; the user's settings come back afterwards.

    Examples
    --------
    >>> from epicycle.plot import in_style
    >>> import matplotlib.pyplot as plt
    >>> with in_style():
    ...     plt.rcParams["axes.spines.top"]
    False
    """
    import matplotlib.pyplot as plt

    cycle = plt.cycler(color=[colour for name, colour in COLOURS.items() if name not in ("yellow", "grey")])
    with plt.rc_context({**STYLE, "axes.prop_cycle": cycle}):
        yield


def axes_of(ax: Axes | None, size: tuple[float, float] = (6.4, 3.8)) -> Axes:
    """The given axis, or one in a new figure in the look of this package.

    Parameters
    ----------
    ax : matplotlib Axes, optional
    size : tuple of float, default=(6.4, 3.8)
        Inches of a new figure.
    """
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    with in_style():
        _, made = plt.subplots(figsize=size, layout="constrained")
    new: Axes = made
    return new


def band(ax: Axes, x: Any, mean: Any, error: Any, *, colour: str, label: str, marker: str = "o", **line: Any) -> None:
    """A line with a band of one standard error on both sides; the marker tells lines apart without their colour."""
    x, mean, error = (np.asarray(values, dtype=np.float64) for values in (x, mean, error))
    ax.fill_between(x, mean - error, mean + error, color=COLOURS[colour], alpha=0.18, lw=0)
    ax.plot(x, mean, color=COLOURS[colour], marker=marker, ms=4, label=label, **line)


def bars(
    ax: Axes, labels: Sequence[str], values: Any, errors: Any = None, *, colour: str | Sequence[str] = "blue"
) -> None:
    """Horizontal bars, the first on top, with whiskers of the errors where there are any."""
    y = np.arange(len(labels))[::-1]
    colours = [COLOURS[colour]] * len(y) if isinstance(colour, str) else [COLOURS[c] for c in colour]
    values = np.asarray(values, dtype=np.float64)
    ax.barh(y, values, color=colours, height=0.62)
    if errors is not None:
        known = np.isfinite(np.asarray(errors, dtype=np.float64))
        kept = np.asarray(errors, dtype=np.float64)[known]
        ax.errorbar(values[known], y[known], xerr=kept, fmt="none", ecolor="black", elinewidth=1, capsize=2.5)
    ax.set_yticks(y, [short(label) for label in labels])
    ax.grid(visible=False, axis="y")


def short(text: str, most: int = 38) -> str:
    """A label that leaves room for the figure: its middle is left out where it is too long."""
    if len(text) <= most:
        return text
    half = (most - 3) // 2
    return f"{text[: most - 3 - half]}...{text[-half:]}"


def labels_clear(ax: Axes, *, legend: bool = True) -> Axes:
    """Finish a figure: a legend where lines have names, away from the data where there is room."""
    if legend and ax.get_legend_handles_labels()[0]:
        ax.legend(loc="best", frameon=False, fontsize=9)
    return ax
