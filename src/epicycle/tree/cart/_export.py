"""A decision tree as indented text and as a figure."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from epicycle.core._plot_style import COLOURS, Axes, axes_of, ink, paper, styled


def shown(value: float, decimals: int) -> str:
    """A number with a fixed number of decimals."""
    return f"{value:.{decimals}f}"


def question(model: Any, node: int, decimals: int, *, left: bool = True, limit: int = 4) -> str:
    """The condition of the rows that go left at a node, or right."""
    tree = model.tree_
    feature = int(tree.feature[node])
    name = model._names()[feature]
    if tree.is_categorical[node]:
        levels = model.categories_[feature][[c for c in tree.left_levels(node) if c < len(model.categories_[feature])]]
        listed = ", ".join(str(level) for level in levels[:limit]) + (", ..." if len(levels) > limit else "")
        return f"{name} {'in' if left else 'not in'} {{{listed}}}"
    threshold = float(tree.threshold[node])
    if np.isposinf(threshold):
        return f"{name} is {'there' if left else 'missing'}"
    return f"{name} {'<=' if left else '>'} {shown(threshold, decimals)}"


def answer(model: Any, node: int, decimals: int) -> str:
    """The class with its share, or the values, of a leaf."""
    value = model.tree_.values[node]
    if hasattr(model, "classes_"):
        k = int(np.argmax(value))
        return f"{model.classes_[k]}  {value[k]:.0%}"
    return ", ".join(shown(v, decimals) for v in value)


def text(model: Any, *, max_depth: int, decimals: int) -> str:
    """The tree as indented text, one line for each branch and leaf."""
    tree, lines = model.tree_, []
    left, depth = tree.children_left, tree.depth

    def describe(node: int) -> None:
        indent = "|   " * int(depth[node])
        if left[node] < 0 or depth[node] >= max_depth:
            truncated = "" if left[node] < 0 else ", cut off here"
            lines.append(f"{indent}{answer(model, node, decimals)}  ({tree.n_node_samples[node]} rows{truncated})")
            return
        for child, is_left in ((left[node], True), (left[node] + 1, False)):
            lines.append(indent + question(model, node, decimals, left=is_left))
            describe(int(child))

    describe(0)
    return "\n".join(lines)


# ------------------------------------------------------------------------------------------------ figure

_PALETTE = tuple(COLOURS.values())
# Sizes of boxes in units of the distance of two leaves, and of two levels.
_WIDTH, _HEIGHT, _LEAF_HEIGHT = 0.86, 0.44, 0.5


@styled
def draw(model: Any, *, max_depth: int | None, decimals: int, ax: Axes | None) -> Axes:
    """Draw a tree: splits in boxes, branches as broad as their share of the rows, leaves coloured by value."""
    tree = model.tree_
    depth = tree.depth
    limit = int(depth.max()) if max_depth is None else min(int(depth.max()), max_depth)
    x, shown = _places(tree, limit)
    columns = max(1.0, float(np.ceil(max(x[i] for i in shown) + 1)))
    ax = axes_of(ax, (max(4.0, 1.45 * columns), 1.25 * (limit + 0.75)))
    ax.set(xlim=(-0.55, columns - 0.45), ylim=(-limit - 0.4, 0.35))
    ax.axis("off")
    left = tree.children_left
    is_end = {i: left[i] < 0 or depth[i] >= limit for i in shown}
    for i in shown:
        if not is_end[i]:
            for child in (left[i], left[i] + 1):
                _branch(ax, x[i], -depth[i], x[child], -depth[child], tree, i, int(child))
    colours = _Colours(model)
    for i in shown:
        if is_end[i]:
            _leaf(ax, x[i], -float(depth[i]), model, i, colours, decimals, left[i] >= 0)
        else:
            _question(ax, x[i], -float(depth[i]), question(model, i, decimals, limit=3), int(tree.n_node_samples[i]))
    colours.legend(ax)
    return ax


def _places(tree: Any, limit: int) -> tuple[dict[int, float], list[int]]:
    """Leaves side by side, every other node above the middle of its children; and the nodes that are drawn."""
    left, depth = tree.children_left, tree.depth
    x: dict[int, float] = {}
    shown: list[int] = []
    stack: list[tuple[int, bool]] = [(0, False)]
    n_ends = 0
    while stack:
        i, ready = stack.pop()
        if ready:
            x[i] = (x[int(left[i])] + x[int(left[i]) + 1]) / 2
        elif left[i] < 0 or depth[i] >= limit:
            x[i] = float(n_ends)
            n_ends += 1
            shown.append(i)
        else:
            shown.append(i)
            stack += [(i, True), (int(left[i]) + 1, False), (int(left[i]), False)]
    return x, shown


def _branch(ax: Axes, x0: float, y0: float, x1: float, y1: float, tree: Any, parent: int, child: int) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    top, bottom = y0 - _HEIGHT / 2, y1 + _HEIGHT / 2
    middle = (top + bottom) / 2
    path = Path([(x0, top), (x0, middle), (x1, middle), (x1, bottom)], [1, 4, 4, 4])
    share = float(tree.weighted_n_node_samples[child] / tree.weighted_n_node_samples[0])
    ax.add_patch(PathPatch(path, fill=False, lw=0.8 + 9.0 * share, ec=ink(ax, 0.27), capstyle="butt", zorder=1))
    is_left = x1 <= x0
    if parent == 0:
        side = "right" if is_left else "left"
        ax.text(
            (x0 + x1) / 2, middle + 0.11, "yes" if is_left else "no", ha=side, va="bottom", size=8, color=ink(ax, 0.6)
        )


def _box(ax: Axes, x: float, y: float, height: float, **style: Any) -> None:
    from matplotlib.patches import FancyBboxPatch

    ax.add_patch(
        FancyBboxPatch(
            (x - _WIDTH / 2 + 0.05, y - height / 2 + 0.05),
            _WIDTH - 0.1,
            height - 0.1,
            boxstyle="round,pad=0.05,rounding_size=0.09",
            zorder=2,
            **style,
        )
    )


def _question(ax: Axes, x: float, y: float, text: str, rows: int) -> None:
    _box(ax, x, y, _HEIGHT, fc=paper(ax), ec=ink(ax, 0.5), lw=1.0)
    text = text.replace(" <= ", " \u2264\u00a0").replace(" in {", " in\u00a0{")  # signs stay with what they compare to
    lines = textwrap.wrap(text, 19, break_long_words=True)[:2]
    ax.text(x, y + 0.045, "\n".join(lines), ha="center", va="center", size=8, color=ink(ax), zorder=3, linespacing=1.05)
    ax.text(
        x, y - _HEIGHT / 2 + 0.03, f"{rows:,} rows", ha="center", va="bottom", size=6.2, color=ink(ax, 0.55), zorder=3
    )


def _leaf(ax: Axes, x: float, y: float, model: Any, i: int, colours: _Colours, decimals: int, truncated: bool) -> None:
    from matplotlib.patches import Rectangle

    tree = model.tree_
    colour = colours.of(i)
    _box(ax, x, y, _LEAF_HEIGHT, fc=_tint(colour, 0.2, paper(ax)), ec=colour, lw=1.4, ls="--" if truncated else "-")
    value = tree.values[i]
    rows = f"{int(tree.n_node_samples[i]):,} rows" + (" ..." if truncated else "")
    if colours.classes is not None:
        label = textwrap.shorten(str(colours.classes[int(np.argmax(value))]), 16, placeholder="..")
        ax.text(x, y + 0.1, label, ha="center", va="center", size=8.5, weight="bold", color=ink(ax), zorder=3)
        start, width = x - 0.34, 0.68
        for k, share in enumerate(value):  # the shares of the classes as one bar
            piece = Rectangle((start, y - 0.075), width * share, 0.075, fc=colours.class_colour(k), ec="none", zorder=3)
            ax.add_patch(piece)
            start += width * share
    else:
        label = ", ".join(f"{v:.{decimals}g}" for v in value[:3]) + (", .." if len(value) > 3 else "")
        ax.text(x, y + 0.045, label, ha="center", va="center", size=9.5, weight="bold", color=ink(ax), zorder=3)
    ax.text(x, y - _LEAF_HEIGHT / 2 + 0.035, rows, ha="center", va="bottom", size=6.2, color=ink(ax, 0.7), zorder=3)


def _tint(colour: Any, strength: float, background: str) -> tuple[float, ...]:
    """The colour, mixed with the background."""
    from matplotlib.colors import to_rgb

    return tuple(strength * c + (1 - strength) * b for c, b in zip(to_rgb(colour), to_rgb(background), strict=True))


class _Colours:
    """Colours of nodes: of the class that prevails, or on a scale of values."""

    def __init__(self, model: Any) -> None:
        import matplotlib as mpl

        self.tree = model.tree_
        self.classes = getattr(model, "classes_", None)
        values = self.tree.values[self.tree.is_leaf, 0]
        self.low, self.high = float(values.min()), float(values.max())
        self.scale = mpl.colormaps["viridis"]

    def class_colour(self, k: int) -> str:
        return _PALETTE[k % len(_PALETTE)]

    def of(self, i: int) -> Any:
        if self.classes is not None:
            return self.class_colour(int(np.argmax(self.tree.values[i])))
        span = self.high - self.low
        return self.scale(0.1 + 0.8 * (float(self.tree.values[i, 0]) - self.low) / span if span > 0 else 0.5)

    def legend(self, ax: Axes) -> None:
        from matplotlib.patches import Patch

        if self.classes is None or len(self.classes) > len(_PALETTE):
            return
        handles = [Patch(fc=self.class_colour(k), label=str(c)) for k, c in enumerate(self.classes)]
        ax.legend(handles=handles, loc="upper left", fontsize=8, handlelength=1.0, handleheight=1.0)
