"""The palette of Okabe and Ito, the settings of matplotlib that go with it, and the few shapes that figures share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

import numpy as np

#: matplotlib's axes. It is an optional package without types, and imported when something is drawn.
Axes: TypeAlias = Any
P = ParamSpec("P")
R = TypeVar("R")

#: Okabe and Ito, by name; the grey is for what is only a reference. All can be seen on white and on near black.
COLOURS = {
    "blue": "#0072B2",
    "orange": "#E69F00",
    "green": "#009E73",
    "pink": "#CC79A7",
    "sky": "#56B4E9",
    "vermilion": "#D55E00",
    "yellow": "#F0E442",
    "grey": "#7F7F7F",
}

#: The order in which lines without a colour of their own take theirs.
CYCLE = tuple(COLOURS[name] for name in ("blue", "orange", "green", "pink", "sky", "vermilion"))

#: Settings of matplotlib, without its colours.
STYLE: dict[str, Any] = {
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": "medium",
    "font.size": 10,
    "grid.alpha": 0.13,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.8,
}

_PAPER, _INK = {False: "#FFFFFF", True: "#16181D"}, {False: "#1A1A1A", True: "#E6E8EB"}
_INKED = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_is_dark: ContextVar[bool] = ContextVar("dark", default=False)


@contextmanager
def in_style(*, dark: bool | None = None) -> Iterator[None]:
    """Figures made inside have the look of this package; the user's settings come back afterwards.

    Parameters
    ----------
    dark : bool, optional
        Light ink on a dark ground. By default as around it: light, or as the ``in_style`` says that this one is in.

    Examples
    --------
    >>> from epicycle.plot import in_style
    >>> import matplotlib.pyplot as plt
    >>> with in_style(dark=True):
    ...     plt.rcParams["figure.facecolor"]
    '#16181D'
    """
    import matplotlib.pyplot as plt

    night = _is_dark.get() if dark is None else bool(dark)
    token = _is_dark.set(night)
    try:
        with plt.rc_context(rc_params(dark=night)):
            yield
    finally:
        _is_dark.reset(token)


def rc_params(*, dark: bool = False) -> dict[str, Any]:
    """All settings of matplotlib that make the look, for ``matplotlib.rcParams.update``.

    Parameters
    ----------
    dark : bool, default=False
        Light ink on a dark ground.
    """
    from cycler import cycler

    ground = ("figure.facecolor", "axes.facecolor", "savefig.facecolor")
    return {
        **STYLE,
        **dict.fromkeys((*_INKED, "grid.color"), _INK[bool(dark)]),
        **dict.fromkeys(ground, _PAPER[bool(dark)]),
        "axes.prop_cycle": cycler(color=CYCLE),
    }


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function that draws: all of it is in the look of this package.

    On an axis of the user's own, texts and legends take the colour of its labels.
    """

    @wraps(draw)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        given: Any = next((a for a in (*args, *kwargs.values()) if hasattr(a, "transAxes")), None)
        if given is None:
            with in_style():
                return draw(*args, **kwargs)
        import matplotlib.pyplot as plt

        with plt.rc_context({**rc_params(), **dict.fromkeys(_INKED, ink(given))}):
            return draw(*args, **kwargs)

    return drawn


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
        return plt.subplots(figsize=size, layout="constrained")[1]


def axes_grid(
    rows: int, cols: int, size: tuple[float, float], *, widths: Any = None, share_x: bool | str = False
) -> np.ndarray:
    """Axes of a new figure, of shape (rows, cols); `size` is its width and the height of one row, in inches."""
    import matplotlib.pyplot as plt

    with in_style():
        _, axes = plt.subplots(
            rows,
            cols,
            figsize=(size[0], max(size[1] * rows, 2.4)),
            layout="constrained",
            squeeze=False,
            sharex=share_x,
            gridspec_kw=None if widths is None else {"width_ratios": widths},
        )
    return np.asarray(axes)


def ink(ax: Axes, strength: float = 1.0) -> str:
    """The colour of the axis' own labels, or one between that and its ground: right on white and on black.

    Parameters
    ----------
    ax : matplotlib Axes
    strength : float, default=1.0
        0 is the ground, 1 the ink.
    """
    from matplotlib.colors import to_hex, to_rgb

    pen = np.array(to_rgb(ax.xaxis.label.get_color()))
    return str(to_hex(np.clip(strength * pen + (1 - strength) * np.array(to_rgb(paper(ax))), 0, 1)))


def paper(ax: Axes) -> str:
    """The ground of an axis; where it is transparent that of its figure, or else the opposite of its ink."""
    from matplotlib.colors import to_hex, to_rgba

    grounds = [ax.get_facecolor()]
    if ax.figure is not None:
        grounds.append(ax.figure.get_facecolor())
    for ground in map(to_rgba, grounds):
        if ground[3] > 0.5:
            return str(to_hex(ground))
    return _PAPER[luminance(ax.xaxis.label.get_color()) > 0.5]


def luminance(colour: Any) -> float:
    """Relative luminance, from 0 for black to 1 for white."""
    from matplotlib.colors import to_rgb

    c = np.array(to_rgb(colour))
    return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def band(
    ax: Axes, x: Any, mean: Any, error: Any, *, colour: str | None, label: str, marker: str = "o", **line: Any
) -> None:
    """A line with a band of one standard error on both sides; the marker tells lines apart without their colour.

    Without a name of a colour the line takes the next of the axis.
    """
    x, mean, error = (np.asarray(values, dtype=np.float64) for values in (x, mean, error))
    given: dict[str, Any] = {} if colour is None else {"color": COLOURS[colour]}
    (drawn,) = ax.plot(x, mean, marker=marker, ms=4, label=label, **given, **line)
    ax.fill_between(x, mean - error, mean + error, color=drawn.get_color(), alpha=0.18, lw=0)


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
        ax.errorbar(values[known], y[known], xerr=kept, fmt="none", ecolor=ink(ax), elinewidth=1, capsize=2.5)
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
        ax.legend(loc="best")
    return ax
