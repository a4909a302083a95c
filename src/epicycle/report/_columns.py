"""The columns of the data: what each holds in words, a figure of each, missing values, correlations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from epicycle.report import _bars as bars
from epicycle.report._markup import Child, Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, brief, items, mapping, number, numbers, percent, shown, text, whole
from epicycle.report._svg import WIDTH, Canvas, figure

_FIGURES, _CORRELATED, _LEVELS = 40, 14, 8
_LISTED, _FOLDED = 100, 12


def contents(profile: dict[str, Any]) -> str:
    """The values of a column in words: its quartiles, or its most frequent levels."""
    sketch = mapping(profile.get("sketch"))
    quantiles = numbers(sketch.get("quantiles"))
    if len(quantiles) == 5 and None not in quantiles:
        low, first, middle, third, high = (_value(q, sketch) for q in quantiles)
        return f"{low} to {high}; median {middle}, quartiles {first} and {third}"
    levels, counts = items(sketch.get("levels")), numbers(sketch.get("counts"))
    if not levels or len(levels) != len(counts):
        return ""
    total = sum(c or 0.0 for c in counts) + (number(sketch.get("other")) or 0.0)
    if total <= 0:
        return ""
    named = [
        f"{text(name, 24)} {percent((count or 0.0) / total)}" for name, count in zip(levels[:4], counts, strict=False)
    ]
    return ", ".join(named) + (", ..." if len(levels) > 4 or sketch.get("other") else "")


def _value(value: float | None, sketch: dict[str, Any]) -> str:
    """A number as people write it, a moment as a date."""
    if value is not None and str(sketch.get("unit", "")).startswith("seconds since 1970"):
        try:
            return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d")
        except (ValueError, OverflowError, OSError):
            return brief(value)
    return brief(value)


def distribution(profile: dict[str, Any], i: int, title: str | None = None) -> Html | None:
    """The histogram of a column with its axis and quartiles, or bars of its levels."""
    sketch = mapping(profile.get("sketch"))
    edges, counts = numbers(sketch.get("edges")), numbers(sketch.get("counts"))
    name = title or text(profile.get("name"), 60)
    if items(sketch.get("levels")):
        return _levels(sketch, name, i)
    known = [edge for edge in edges if edge is not None]
    if len(edges) != len(counts) + 1 or len(known) != len(edges) or known[0] >= known[-1]:
        return None
    tall = max((c for c in counts if c is not None), default=0.0)
    if tall <= 0:
        return None
    canvas = Canvas((known[0], known[-1]), (0.0, tall * 1.05), height=210)
    dates = bool(sketch.get("unit"))
    if dates:
        _date_axes(canvas, sketch)
    else:
        canvas.axes("", "rows", y_ticks=4)
    for left, right, count in zip(known[:-1], known[1:], counts, strict=True):
        if count:
            top = canvas.y(count)
            canvas.put(
                "rect",
                x=canvas.x(left) + 0.5,
                y=top,
                width=max(canvas.x(right) - canvas.x(left) - 1, 0.5),
                height=max(canvas.y.start - top, 0.6),
                class_="bar blue",
                title=f"{_value(left, sketch)} to {_value(right, sketch)}: {whole(count)} rows",
            )
    quantiles = numbers(sketch.get("quantiles"))
    caption = ""
    if len(quantiles) == 5 and None not in quantiles:
        for q, kind in ((quantiles[1], "dash"), (quantiles[2], ""), (quantiles[3], "dash")):
            if q is not None and known[0] <= q <= known[-1]:
                canvas.line([q, q], [0.0, tall * 1.05], "orange", kind=kind)
        caption = f"{contents(profile)}."
    return figure(
        canvas,
        f"column-{i}",
        name,
        caption,
        description=f"Histogram of {name}: {caption}",
        keys=[("orange", "median"), ("orange dash", "quartiles")] if caption else [],
    )


def _date_axes(canvas: Canvas, sketch: dict[str, Any]) -> None:
    for value in canvas.y.ticks(4):
        at = canvas.y(value)
        canvas.put("line", x1=canvas.x.start, x2=canvas.x.stop, y1=at, y2=at, class_="grid")
        canvas.words(canvas.x.start - 7, at + 4, shown(value), anchor="end", class_="tick")
    foot = canvas.y.start
    canvas.put("line", x1=canvas.x.start, x2=canvas.x.stop, y1=foot, y2=foot, class_="axis")
    for share, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end")):
        value = canvas.x.low + share * (canvas.x.high - canvas.x.low)
        canvas.words(canvas.x(value), foot + 18, _value(value, sketch), anchor=anchor, class_="tick")


def _levels(sketch: dict[str, Any], name: str, i: int) -> Html | None:
    levels, counts = items(sketch.get("levels"))[:_LEVELS], numbers(sketch.get("counts"))
    other = (number(sketch.get("other")) or 0.0) + sum(c or 0.0 for c in counts[_LEVELS:])
    rows = [(text(level, 40), count or 0.0) for level, count in zip(levels, counts, strict=False)]
    if other:
        rows.append(("all others", other))
    tall = max((count for _, count in rows), default=0.0)
    if tall <= 0:
        return None
    total = sum(count for _, count in rows)
    height = 24.0 * len(rows) + 8
    canvas = Canvas((0, tall), (0, 1), height=height, left=8, right=8, top=4, bottom=4)
    for k, (level, count) in enumerate(rows):
        y = 4 + 24.0 * k
        wide = 0.62 * (WIDTH - 16) * count / tall
        colour = "grey" if level == "all others" and k == len(rows) - 1 and other else "blue"
        words = f"{level}: {whole(count)} rows, {count / total:.1%}"
        canvas.put("rect", x=8, y=y + 3, width=max(wide, 0.6), height=16, class_=f"bar faint {colour}", title=words)
        canvas.words(13, y + 15.5, level if len(level) <= 30 else level[:29] + "…")
        canvas.put("text", percent(count / total), x=WIDTH - 10, y=y + 15.5, text_anchor="end", class_="tick")
    return figure(canvas, f"column-{i}", name, "", description=f"Levels of {name}: {contents({'sketch': sketch})}.")


def target(record: dict[str, Any], profiles: list[dict[str, Any]]) -> Html | None:
    """The distribution of the target."""
    name = mapping(record.get("data")).get("target")
    found = next((row for row in profiles if row.get("kind") == "target" and row.get("name") == name), None)
    return None if found is None else distribution(found, 10_000, f"The target: {text(name, 48)}")


def missing(profiles: list[dict[str, Any]]) -> Html | None:
    """Shares of missing values, where there are any."""
    rows = [(row.get("name"), share, None, None) for row in profiles if (share := number(row.get("missing")))]
    if not rows:
        return None
    ranked = sorted(rows, key=lambda row: -(row[1] or 0.0))
    whole_columns = len(profiles) - len(rows)
    return bars.in_rows(
        "missing",
        "Missing values",
        f"Share of the rows without a value. {whole_columns:,} of {len(profiles):,} columns are complete.",
        ranked,
        axis="share of rows",
        percent=True,
        description=f"Missing values of {len(rows)} columns.",
    )


def correlations(record: dict[str, Any]) -> Html | None:
    """Rank correlations of the numbers, as shaded squares."""
    found = mapping(record.get("correlations"))
    names = [text(name, 32) for name in items(found.get("names"))][:_CORRELATED]
    values = [numbers(row)[: len(names)] for row in items(found.get("values"))[: len(names)]]
    k = len(names)
    if k < 2 or len(values) != k or any(len(row) != k for row in values):
        return None
    short = [name if len(name) <= 14 else name[:13] + "…" for name in names]
    left = min(10 + 6.9 * max(map(len, short)), 112)
    cell = min((WIDTH - left - 6) / k, 44.0)
    foot = 10 + 6.9 * max(map(len, short))
    canvas = Canvas((0, 1), (0, 1), height=8 + cell * k + foot, left=left)
    for i in range(k):
        y = 8 + cell * i
        canvas.put("text", short[i], x=left - 6, y=y + cell / 2 + 4, text_anchor="end", class_="tick", title=names[i])
        x_at, y_at = left + cell * (i + 0.5) + 4, 8 + cell * k + 6
        canvas.words(x_at, y_at, short[i], anchor="end", class_="tick", upright=True)
        for j in range(k):
            value = values[i][j]
            if i == j or value is None:
                continue
            colour, title = "blue" if value > 0 else "vermilion", f"{names[i]} and {names[j]}: {value:.2f}"
            canvas.cell(left + cell * j, y, cell, colour, abs(value), title)
            if cell >= 27:
                dark = "value on" if abs(value) > 0.55 else "value"
                canvas.words(
                    left + cell * (j + 0.5),
                    y + cell / 2 + 4.5,
                    f"{round(value, 1) + 0.0:.1f}",
                    anchor="middle",
                    class_=dark,
                )
    return figure(
        canvas,
        "correlations",
        "Correlations",
        "Rank correlations (Spearman) of the columns of numbers that tell most of the target. Columns that go together "
        "share their importance.",
        description=f"Rank correlations of {k} columns.",
        keys=[("blue area", "together"), ("vermilion area", "opposite")],
    )


def details(profiles: list[dict[str, Any]]) -> Html | None:
    """A figure of each column, folded."""
    drawn = [made for i, row in enumerate(profiles[:_FIGURES]) if (made := distribution(row, i)) is not None]
    if not drawn:
        return None
    left = len(profiles) - _FIGURES
    name = f"Show the distributions of {len(drawn)} columns" + (" (the first ones)" if left > 0 else "")
    return tag("details", tag("summary", name), joined(tag("div", drawn, class_="figures")))


def listed(profiles: list[dict[str, Any]]) -> Html | None:
    """A table of the columns, and a figure of each."""
    if not profiles:
        return None
    # Columns with warnings come first where not all can be shown.
    order = sorted(profiles, key=lambda row: not items(row.get("warnings"))) if len(profiles) > _LISTED else profiles
    kept = order[:_LISTED]
    explained = any(number(row.get("association")) is not None for row in kept)
    rows: list[list[Child]] = []
    for row in kept:
        missing = number(row.get("missing"))
        warned = "; ".join(text(entry, 120) for entry in items(row.get("warnings"))[:3])
        notes = tag("small", warned, class_="params alert") if warned else None
        spark = bars.sparkline(mapping(row.get("sketch")), text(row.get("name"), 60))
        values = contents(row)
        alone = number(row.get("association"))
        rows.append(
            [
                joined(tag("strong", clipped(row.get("name"), 32)), notes),
                clipped(row.get("kind"), 24),
                joined(spark or DASH, tag("small", values, class_="params") if values else None),
                *([DASH if alone is None else f"{max(alone, 0.0):.0%}"] if explained else []),
                DASH
                if missing is None
                else "0"
                if missing == 0
                else f"{missing:.1%}"
                if missing >= 0.001
                else "< 0.1%",
                whole(row.get("distinct")),
                clipped(row.get("treatment"), 80),
            ]
        )
    heads = ["column", "kind", "distribution", *(["explains"] if explained else []), "missing", "distinct", "treatment"]
    note = ", those with warnings first" if len(profiles) > len(kept) else ""
    body = joined(
        tag(
            "p", "Explains: the share of the target that the column explains on its own, on rows apart.", class_="quiet"
        )
        if explained
        else None,
        table(heads, rows, numeric=(3, 4, 5) if explained else (3, 4), label="columns of the data"),
        more(len(profiles) - len(kept), "columns"),
    )
    if len(kept) > _FOLDED:  # the sections after the data matter more than the thirtieth column
        body = tag("details", tag("summary", f"Show {len(kept)} columns"), body)
    return joined(tag("h3", f"Columns{note}"), body, details(kept))
