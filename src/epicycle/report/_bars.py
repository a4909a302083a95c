"""Figures in rows: bars and intervals with names, the confusion matrix, and the small pictures inside tables."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from epicycle.report._markup import Html, tag
from epicycle.report._plain import alike, items, number, numbers, shown, text, whole
from epicycle.report._svg import WIDTH, Canvas, Scale, figure, px, span_of, tick_label

_LINE, _BAR, _MOST = 17, 23, 15


def in_rows(
    name: str,
    title: str,
    caption: str,
    entries: Sequence[tuple[Any, float | None, float | None, float | None]],
    *,
    axis: str,
    bar: bool = True,
    worse: str = "blue",
    zero: bool = True,
    percent: bool = False,
    description: str,
) -> Html | None:
    """Values with intervals, one below the other, names above them so that long ones have room.

    entries : name, value, lower and upper end of each. `worse` colours those whose whole interval is above zero, where
    zero is a value to compare with. `percent` shows shares as such.
    """
    known = [entry for entry in entries if entry[1] is not None]
    if not known:
        return None
    kept = known[:_MOST]
    said = _percent if percent else alike(entry[1] for entry in kept)

    lines = [name_lines(label) for label, *_ in kept]
    tops = [4.0]
    for wrapped in lines:
        tops.append(tops[-1] + _LINE * len(wrapped) + _BAR)
    height = tops[-1] + 40
    span = span_of([0.0] if zero else [], *(entry[1:] for entry in kept), pad=0.04)
    canvas = Canvas(span, (0, 1), height=height, left=14, right=10, top=4)
    foot(canvas, axis, percent=percent)
    origin = canvas.x(0.0)
    # Lines stand beside the bars alone: names stay clear of them.
    bands = [(end - _BAR + 2, end) for end in tops[1:]]
    for at, kind in [*((canvas.x(tick), "grid") for tick in canvas.x.ticks()), *([(origin, "axis")] if zero else [])]:
        for start, end in bands:
            canvas.put("line", x1=at, x2=at, y1=start, y2=end, class_=kind)
    for i, (label, value, low, high) in enumerate(kept):
        assert value is not None
        y = tops[i] + _LINE * len(lines[i]) - 17  # of the last line of the name
        sure = not zero or (low is not None and low > 0)
        colour = worse if sure else "blue" if bar else "grey"
        words = f"{text(label, 120)}: {said(value)}"
        if low is not None and high is not None:
            words += f", between {said(low)} and {said(high)}"
        for j, line in enumerate(lines[i]):
            canvas.words(7, tops[i] + _LINE * j + 14, line, class_="name")
        canvas.put("text", said(value), x=WIDTH - 10, y=tops[i] + 14, text_anchor="end", class_="tick name")
        at = canvas.x(value)
        if bar:
            canvas.put(
                "rect",
                x=min(origin, at),
                y=y + 21,
                width=max(abs(at - origin), 0.6),
                height=11,
                class_=f"bar {colour}",
                title=words,
            )
        if low is not None and high is not None:
            canvas.put(
                "line",
                x1=canvas.x(low),
                x2=canvas.x(high),
                y1=y + 26.5,
                y2=y + 26.5,
                class_=f"line {'thin ink' if bar else colour}",
            )
        if not bar:
            canvas.put("circle", cx=at, cy=y + 26.5, r=4.2, class_=f"point {colour}", title=words)
    left = len(known) - len(kept)
    return figure(
        canvas,
        name,
        title,
        caption + (f" The first {len(kept)} of {len(known):,} are drawn." if left else ""),
        description=description,
    )


def _percent(value: float) -> str:
    return f"{value:.1%}"


def name_lines(label: Any, wide: int = 40) -> list[str]:
    """A name in up to three lines."""
    found = textwrap.wrap(text(label, 160), wide) or [""]
    return found if len(found) <= 3 else [*found[:2], found[2][: wide - 3] + "..."]


def foot(canvas: Canvas, label: str, *, percent: bool = False) -> None:
    """Numbers and label of the axis below the rows."""
    base = canvas.height - 40
    for value in canvas.x.ticks():
        words = f"{100 * value:.4g}%" if percent else tick_label(value)
        canvas.words(canvas.x(value), base + 16, words, anchor="middle", class_="tick")
    canvas.words((canvas.x.start + canvas.x.stop) / 2, canvas.height - 5, label, anchor="middle")


def confusion(found: dict[str, Any]) -> Html | None:
    """Rows by true and predicted class, shaded by the share of the true class."""
    labels = [text(label, 32) for label in items(found.get("labels"))[:21]]
    counts = [numbers(row)[: len(labels)] for row in items(found.get("counts"))[: len(labels)]]
    k = len(labels)
    if k == 0 or len(counts) != k or any(len(row) != k for row in counts):
        return None
    short = [label if len(label) <= 11 else label[:10] + "…" for label in labels]
    longest = max(map(len, short))
    left = min(26 + 7.2 * longest, 108)
    cell = min((WIDTH - left - 8) / k, 84.0)
    upright = cell < 7.4 * longest
    foot = 22 + (7.2 * longest if upright else 16)
    canvas = Canvas((0, 1), (0, 1), height=8 + cell * k + foot, left=left)
    for i, row in enumerate(counts):
        total = sum(v for v in row if v is not None) or 1.0
        y = 8 + cell * i
        canvas.put("text", short[i], x=left - 7, y=y + cell / 2 + 4, text_anchor="end", class_="tick", title=labels[i])
        for j, value in enumerate(row):
            share = (value or 0.0) / total
            words, colour = whole(value), "blue" if i == j else "vermilion"
            title = f"{labels[i]} predicted as {labels[j]}: {words} rows, {share:.1%} of its class"
            canvas.cell(left + cell * j, y, cell, colour, share, title)
            if value and cell >= 7.4 * len(words) + 2:
                dark = "value on" if share > 0.55 else "value"
                canvas.words(left + cell * (j + 0.5), y + cell / 2 + 4.5, words, anchor="middle", class_=dark)
    base = 8 + cell * k
    for j, label in enumerate(short):
        x = left + cell * (j + 0.5)
        if upright:
            canvas.words(x + 4, base + 6, label, anchor="end", class_="tick", upright=True)
        else:
            canvas.words(x, base + 16, label, anchor="middle", class_="tick")
    middle = left + cell * k / 2
    canvas.words(middle, canvas.height - 4, "predicted", anchor="middle")
    canvas.words(12, 8 + cell * k / 2, "true", anchor="middle", upright=True)
    right = sum(counts[i][i] or 0.0 for i in range(k))
    every = sum(v or 0.0 for row in counts for v in row)
    return figure(
        canvas,
        "confusion",
        "Confusion matrix",
        f"{whole(right)} of {whole(every)} rows are on the diagonal, predicted correctly. The stronger the colour, the "
        "larger the share of the true class.",
        description=f"Confusion matrix of {k} classes; {whole(right)} of {whole(every)} rows are right.",
        keys=[("blue area", "correct"), ("vermilion area", "wrong")],
    )


def sparkline(sketch: dict[str, Any], name: str) -> Html | None:
    """A sparkline: the distribution of a column as a small histogram."""
    counts = numbers(sketch.get("counts"))
    levels, edges = items(sketch.get("levels")), numbers(sketch.get("edges"))
    tall = max((c for c in counts if c is not None), default=0.0)
    if not counts or tall <= 0:
        return None
    if len(counts) > 30 and not levels:  # neighbouring bins together
        group = -(-len(counts) // 30)
        counts = [sum(c or 0.0 for c in counts[i : i + group]) for i in range(0, len(counts), group)]
        edges = [*edges[:-1:group], *edges[-1:]]
        tall = max(c or 0.0 for c in counts) or 1.0
    counts = counts[:30]
    wide = min(120 / len(counts), 24.0)
    bars = []
    for i, count in enumerate(counts):
        size = max((count or 0.0) / tall, 0.0) * 28
        size = max(size, 0.8) if count else 0.0
        if levels:
            where = text(levels[i], 32) if i < len(levels) else ""
        elif len(edges) == len(counts) + 1:
            where = f"{shown(edges[i], 3)} to {shown(edges[i + 1], 3)}"
        else:
            where = ""
        bars.append(
            tag(
                "rect",
                tag("title", f"{where}: {whole(count)}" if where else whole(count)),
                x=px(wide * i),
                y=px(30 - size),
                width=px(max(wide - (1 if wide > 3 else 0.4), 0.5)),
                height=px(size),
            )
        )
    return tag(
        "svg",
        bars,
        viewBox="0 0 120 30",
        width="120",
        height="30",
        role="img",
        class_="spark",
        aria_label=f"distribution of {text(name, 60)}",
    )


def score_cell(value: Any, error: Any, baseline: float | None, span: tuple[float, float], best: bool) -> Html | None:
    """A score with two standard errors and its distance from the baseline, on a scale that all rows share."""
    score, spread = number(value), number(error)
    if score is None:
        return None
    scale = Scale(*span, 6, 194)
    at, parts = scale(score), []
    colour = "green" if best else "blue"
    if baseline is not None:
        zero = scale(baseline)
        left, wide = min(zero, at), abs(at - zero)
        parts.append(tag("rect", x=px(left), y="7", width=px(wide), height="10", class_=f"bar faint {colour}"))
        parts.append(tag("line", x1=px(zero), x2=px(zero), y1="1", y2="23", class_="axis"))
    if spread is not None:
        ends = [px(scale(score + s * spread)) for s in (-2, 2)]
        parts.append(tag("line", x1=ends[0], x2=ends[1], y1="12", y2="12", class_=f"line {colour}"))
    parts.append(tag("circle", cx=px(at), cy="12", r="4", class_=f"point {colour}"))
    words = f"{shown(score)}, standard error {shown(spread, 2)}"
    return tag(
        "svg",
        tag("title", words),
        parts,
        viewBox="0 0 200 24",
        width="200",
        height="24",
        role="img",
        class_="score",
        aria_label=words,
    )
