"""Figures in SVG: scales with round ticks, axes, lines, bands, bars and points, coloured by CSS classes.

Pictures are 360 units wide, the width of a phone, so that labels of 12.5 units stay readable there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from epicycle.report._markup import Child, Html, joined, tag
from epicycle.report._plain import shown

WIDTH = 360.0
Values = Sequence[float | None]


def px(value: float) -> str:
    """A coordinate to a tenth of a unit; adding zero takes the sign from minus zero."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


@dataclass(frozen=True)
class Scale:
    """From values between `low` and `high` to units between `start` and `stop`."""

    low: float
    high: float
    start: float
    stop: float

    def __call__(self, value: float) -> float:
        span = self.high - self.low
        share = (value - self.low) / span if 0 < span < math.inf else 0.5
        return self.start + min(max(share, -0.2), 1.2) * (self.stop - self.start)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers between the ends."""
        span = self.high - self.low
        if not 1e-290 < span < math.inf:
            return [self.low]
        step = 10.0 ** math.floor(math.log10(span / about))
        step *= next((m for m in (1, 2, 5) if span / (m * step) <= about + 0.5), 10)
        first = math.ceil(self.low / step - 1e-9)
        count = math.floor(self.high / step + 1e-9) - first + 1
        return [(first + i) * step for i in range(min(max(count, 0), 12))]


def span_of(*values: Iterable[float | None], pad: float = 0.06) -> tuple[float, float]:
    """The range of all numbers given, with some padding; never empty."""
    found = [v for part in values for v in part if v is not None]
    if not found:
        return 0.0, 1.0
    low, high = min(found), max(found)
    air = (high - low) * pad or abs(high) * 0.05 or 0.5
    if not math.isfinite(high - low):
        return low, high
    return low - air, high + air


def thinned(n: int, most: int = 400) -> list[int]:
    """At most so many of n positions, evenly spread, the first and the last among them."""
    if n <= most:
        return list(range(n))
    return [round(i * (n - 1) / (most - 1)) for i in range(most)]


def tick_label(value: float) -> str:
    """The number of a tick, as short as it can be."""
    rounded = float(f"{value:.6g}") + 0.0
    if rounded and (abs(rounded) >= 1e6 or abs(rounded) < 1e-4):
        return shown(rounded, 2)
    return f"{rounded:,.10f}".rstrip("0").rstrip(".")


class Canvas:
    """Elements drawn between two scales."""

    def __init__(
        self,
        x: tuple[float, float],
        y: tuple[float, float],
        *,
        height: float = 250,
        left: float | None = None,
        bottom: float = 44,
        top: float = 12,
        right: float = 12,
    ) -> None:
        self.height = height
        self.y = Scale(*y, height - bottom, top)
        if left is None:  # room for the numbers, and for the label upright beside them
            left = 30 + 7.4 * max((len(tick_label(tick)) for tick in self.y.ticks()), default=1)
        self.x = Scale(*x, left, WIDTH - right)
        self.parts: list[Html] = []

    def put(self, name: str, /, *children: Child, title: str | None = None, **attributes: str | float | None) -> None:
        """Add an element, with a title on hovering."""
        placed = {k: px(v) if isinstance(v, float | int) else v for k, v in attributes.items()}
        inside = tag("title", title) if title else None
        self.parts.append(tag(name, inside, *children, **placed))

    def words(
        self, x: float, y: float, what: str, *, anchor: str = "start", class_: str | None = None, upright: bool = False
    ) -> None:
        """Text at units x and y; upright text is read upwards."""
        side = None if anchor == "start" else anchor
        turn = f"rotate(-90 {px(x)} {px(y)})" if upright else None
        self.put("text", what, x=x, y=y, text_anchor=side, class_=class_, transform=turn)

    def cell(self, x: float, y: float, size: float, colour: str, share: float, title: str) -> None:
        """A square of a table, the darker the larger the share."""
        side, kind, shade = size - 1, f"cell {colour}", f"{0.04 + 0.9 * min(max(share, 0), 1):.3f}"
        self.put("rect", x=x + 0.5, y=y + 0.5, width=side, height=side, class_=kind, fill_opacity=shade, title=title)

    def axes(
        self,
        x_label: str,
        y_label: str,
        *,
        x_ticks: int = 5,
        y_ticks: int = 5,
        x_names: Sequence[str] = (),
        x_whole: bool = False,
    ) -> None:
        """Grid lines with their numbers, and labels of the axes; names stand at 0, 1, ... in the place of numbers.

        x_whole : whole numbers only.
        """
        left, right, foot, top = self.x.start, self.x.stop, self.y.start, self.y.stop
        for value in self.y.ticks(y_ticks):
            at = self.y(value)
            self.put("line", x1=left, x2=right, y1=at, y2=at, class_="grid")
            self.words(left - 7, at + 4, tick_label(value), anchor="end", class_="tick")
        named = [(float(i), x_names[i]) for i in thinned(len(x_names), x_ticks)]
        for value, label in named or self._labelled(x_ticks, whole=x_whole):
            at = self.x(value)
            self.put("line", x1=at, x2=at, y1=foot, y2=foot + 4, class_="axis")
            self.words(at, foot + 18, label, anchor="middle", class_="tick")
        self.put("line", x1=left, x2=right, y1=foot, y2=foot, class_="axis")
        self.words((left + right) / 2, self.height - 6, x_label, anchor="middle")
        if y_label:
            middle = (foot + top) / 2
            self.words(12, middle, y_label, anchor="middle", upright=True)

    def _labelled(self, about: int, *, whole: bool = False) -> list[tuple[float, str]]:
        """Ticks of x with their numbers, fewer where long ones would touch."""
        ticks = self.x.ticks(about)
        found = [(tick, tick_label(tick)) for tick in ticks if not whole or abs(tick - round(tick)) < 1e-9]
        while len(found) > 1:
            room = abs(self.x(found[1][0]) - self.x(found[0][0]))
            if 7.4 * max(len(label) for _, label in found) + 6 <= room:
                break
            found = found[::2]
        return found

    def _points(self, xs: Values, ys: Values) -> list[list[tuple[float, float]]]:
        """Runs of neighbours that both have numbers, in units."""
        runs: list[list[tuple[float, float]]] = [[]]
        for i in thinned(min(len(xs), len(ys))):
            x, y = xs[i], ys[i]
            if x is None or y is None:
                runs.append([])
            else:
                runs[-1].append((self.x(x), self.y(y)))
        return [run for run in runs if run]

    def line(self, xs: Values, ys: Values, colour: str, *, kind: str = "", title: str | None = None) -> None:
        """A line through the points, interrupted where a number is missing; kind may be "dash" or "dot"."""
        for run in self._points(xs, ys):
            path = " ".join(f"{px(x)},{px(y)}" for x, y in run)
            self.put("polyline", points=path, class_=f"line {colour} {kind}".strip(), title=title)

    def band(self, xs: Values, low: Values, high: Values, colour: str) -> None:
        """The area between two lines."""
        whole = [
            (x, a, b)
            for x, a, b in zip(xs, low, high, strict=False)
            if x is not None and a is not None and b is not None
        ]
        whole = [whole[i] for i in thinned(len(whole))]
        if len(whole) > 1:
            there = [f"{px(self.x(x))},{px(self.y(b))}" for x, _, b in whole]
            back = [f"{px(self.x(x))},{px(self.y(a))}" for x, a, _ in reversed(whole)]
            self.put("polygon", points=" ".join(there + back), class_=f"band {colour}")

    def points(self, xs: Values, ys: Values, colour: str, titles: Sequence[str], *, r: float = 3.6) -> None:
        """Dots with titles on hovering."""
        for i in thinned(min(len(xs), len(ys))):
            x, y = xs[i], ys[i]
            if x is not None and y is not None:
                self.put("circle", cx=self.x(x), cy=self.y(y), r=r, class_=f"point {colour}", title=titles[i])

    def whiskers(self, xs: Values, low: Values, high: Values, colour: str) -> None:
        """Vertical intervals."""
        for i in thinned(min(len(xs), len(low), len(high)), 60):
            x, a, b = xs[i], low[i], high[i]
            if x is not None and a is not None and b is not None:
                at = self.x(x)
                self.put("line", x1=at, x2=at, y1=self.y(a), y2=self.y(b), class_=f"line thin {colour}")

    def svg(self, name: str, title: str, description: str) -> Html:
        """The SVG element, with a title and a description for screen readers."""
        head = [tag("title", title, id=f"t-{name}"), tag("desc", description, id=f"d-{name}")]
        view = f"0 0 {px(WIDTH)} {px(self.height)}"
        return tag(
            "svg", head, self.parts, viewBox=view, role="img", aria_labelledby=f"t-{name} d-{name}", class_="plot"
        )


def figure(
    canvas: Canvas, name: str, title: str, caption: Child, *, description: str, keys: Sequence[tuple[str, str]] = ()
) -> Html:
    """A figure with its title above, and the legend and caption below."""
    legend = [tag("span", tag("i", class_=f"swatch {colour}"), label, class_="key") for colour, label in keys]
    return tag(
        "figure",
        tag("h4", title),
        canvas.svg(name, title, description),
        tag("p", legend, class_="legend") if legend else None,
        tag("figcaption", joined(caption)),
        data_figure=name,
    )
