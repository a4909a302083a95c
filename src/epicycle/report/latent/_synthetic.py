"""The sections of synthetic rows: columns, pairs of columns, what is learnt from them, and the nearest real rows."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import Canvas, figure, span_of

_DRAWN, _ROWS, _PAIRS = 12, 60, 12


def synthesis_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about synthetic rows; empty where there is none."""
    return mapping(record.get("synthesis"))


def headline(found: dict[str, Any]) -> list[Html]:
    """The conclusion, and how it was reached."""
    words, split = text(found.get("verdict"), 600), mapping(found.get("split"))
    how = (
        f"The generator learnt from {whole(split.get('train'))} real rows; {whole(split.get('held out'))} others were "
        "held out, and the figures below say how far these are from the rows of the fit too: that much is chance."
    )
    return [tag("strong", f"{words[:1].upper()}{words[1:]}."), joined(how)]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    told, useful = mapping(found.get("privacy")), mapping(found.get("utility"))
    best = mapping(next(iter(items(found.get("candidates"))), None))
    made = [("Drawn rows", whole(found.get("rows")), text(best.get("title"), 40), "main")]
    for key, name in (("drawn", "Learnt from drawn"), ("real", "Learnt from real")):
        score = number(mapping(useful.get(key)).get("score"))
        if score is not None:
            made.append((name, shown(score, 3), f"{text(useful.get('metric'), 40)} on held-out rows", ""))
    copies = number(told.get("copies"))
    if copies is not None:
        made.append(("Copies", whole(copies), "drawn rows that equal a real one", "" if copies else "good"))
    return made


# ------------------------------------------------------------------------------------------------ columns


def marginals(record: dict[str, Any]) -> Html | None:
    """Each column of drawn rows over that of real ones."""
    rows = [mapping(row) for row in items(synthesis_of(record).get("marginals"))]
    if not rows:
        return None
    ordered = sorted(rows, key=lambda row: -(number(row.get("distance")) or 0.0))
    lines = []
    for row in ordered[:_ROWS]:
        gaps = [number(part) for part in items(row.get("missing"))]
        missing = DASH if len(gaps) != 2 or not any(gaps) else " / ".join(f"{gap or 0.0:.1%}" for gap in gaps)
        figures = [shown(row.get("distance"), 3), shown(row.get("noise"), 3), missing]
        lines.append([clipped(row.get("name"), 50), text(row.get("kind"), 20), *figures])
    pictures = [picture for row in ordered[:_DRAWN] if (picture := _marginal(row)) is not None]
    return joined(
        tag(
            "p",
            "The distance is the largest difference of the distribution functions of a number or a date "
            "(Kolmogorov-Smirnov), and half the sum of the differences of the shares of a category (total variation): "
            "0 is the same, 1 nothing in common. Beside it stands that of held-out real rows.",
        ),
        table(
            ["column", "kind", "distance", "of held-out rows", "missing: real / drawn"],
            lines,
            numeric=(2, 3, 4),
            label="columns",
        ),
        more(len(rows) - len(lines), "columns"),
        tag("div", pictures, class_="figures") if pictures else None,
    )


def _marginal(row: dict[str, Any]) -> Html | None:
    sketch, name = mapping(row.get("sketch")), text(row.get("name"), 60)
    real, drawn = ([v or 0.0 for v in numbers(sketch.get(key))] for key in ("real", "drawn"))
    if not real or len(real) != len(drawn):
        return None
    levels = [text(level, 24) for level in items(sketch.get("levels"))]
    words = f"Distance {shown(row.get('distance'), 3)}; that of held-out rows {shown(row.get('noise'), 3)}."
    keys = [("grey area", "real rows"), ("blue", "drawn rows")]
    title, described = name or "column", f"Shares of {name} in real and in drawn rows."
    anchor = "marginal"
    if levels:
        if len(levels) != len(real):
            return None
        top = max(max(real), max(drawn)) or 1.0
        canvas = Canvas((0.0, top), (0.0, 1.0), height=14.0 + 34 * len(levels), left=7, bottom=6)
        for i, level in enumerate(levels):
            y = 14.0 + 34 * i
            canvas.words(7, y, f"{level}: {real[i]:.1%} and {drawn[i]:.1%}", class_="name")
            for k, (colour, share) in enumerate((("grey", real[i]), ("blue", drawn[i]))):
                width = max(canvas.x(share) - canvas.x(0.0), 0.6)
                canvas.put("rect", x=canvas.x(0.0), y=y + 4 + 8 * k, width=width, height=7.0, class_=f"bar {colour}")
        keys = [("grey", "real rows"), ("blue", "drawn rows")]
        return figure(canvas, anchor, title, words, description=described, keys=keys)
    edges = [edge for edge in numbers(sketch.get("edges")) if edge is not None]
    if len(edges) != len(real) + 1 or not edges[-1] > edges[0]:
        return None
    dates = sketch.get("unit") == "date"
    canvas = Canvas((edges[0], edges[-1]), (0.0, 1.08 * (max(max(real), max(drawn)) or 1.0)), height=210)
    _axes(canvas, edges, dates)
    steps = [edge for pair in pairwise(edges) for edge in pair]
    heights = [[share for share in shares for _ in range(2)] for shares in (real, drawn)]
    canvas.band(steps, [0.0] * len(steps), heights[0], "grey")
    canvas.line(steps, heights[1], "blue")
    return figure(canvas, anchor, title, words, description=described, keys=keys)


def _axes(canvas: Canvas, edges: list[float], dates: bool) -> None:
    if not dates:
        canvas.axes("", "share of rows", y_ticks=4)
        return
    canvas.axes("", "share of rows", x_ticks=1, x_names=("",), y_ticks=4)
    middle = (len(edges) - 1) // 2
    for at, anchor in ((0, "start"), (middle, "middle"), (len(edges) - 1, "end")):
        canvas.words(canvas.x(edges[at]), canvas.y.start + 18, _day(edges[at]), anchor=anchor, class_="tick")


def _day(value: float) -> str:
    """A day of the calendar; microseconds since 1970."""
    return datetime.fromtimestamp(value / 1e6, UTC).strftime("%Y-%m-%d")


# ------------------------------------------------------------------------------------------------ pairs


def dependence(record: dict[str, Any]) -> Html | None:
    """Associations of pairs of columns, in real and in drawn rows."""
    found = synthesis_of(record)
    pairs = mapping(found.get("pairs"))
    worst = [mapping(row) for row in items(pairs.get("worst"))]
    if not worst:
        return None
    points = [items(point) for point in items(found.get("points"))]
    x, y = ([number(point[k]) if len(point) == 3 else None for point in points] for k in (0, 1))
    names = [text(point[2], 80) if len(point) == 3 else "" for point in points]
    picture = None
    if sum(a is not None and b is not None for a, b in zip(x, y, strict=True)) > 1:
        span = span_of(x, y)
        canvas = Canvas(span, span)
        canvas.axes("association in real rows", "in drawn rows")
        canvas.line(list(span), list(span), "ink")
        titles = [f"{name}: {shown(a)} and {shown(b)}" for name, a, b in zip(names, x, y, strict=True)]
        canvas.points(x, y, "blue", titles, r=3.0)
        picture = figure(
            canvas,
            "pairs",
            "Pairs of columns",
            "On the line a pair of columns depends on each other in drawn rows as in real ones.",
            description=f"Associations of {len(points)} pairs in real and drawn rows.",
            keys=[("blue round", "a pair"), ("ink", "equal")],
        )
    lines = [
        [
            clipped(" and ".join(text(name, 40) for name in items(row.get("names"))), 80),
            *(shown(row.get(key), 3) for key in ("real", "drawn", "noise")),
        ]
        for row in worst[:_PAIRS]
    ]
    summary = (
        f"The associations of real and drawn rows differ by {shown(pairs.get('mean'), 2)} in the mean; those of "
        f"held-out rows and as many rows of the fit by {shown(pairs.get('noise'), 2)}. "
    )
    how = (
        "Of two numbers the association is the rank correlation, of two categories Cramer's V, of a number and a "
        "category the root of the share of the variance of its ranks that lies between levels."
    )
    return joined(
        tag("p", summary, how),
        tag("div", picture, class_="figures") if picture else None,
        table(
            ["pair, the largest differences", "real", "drawn", "difference of held-out rows"],
            lines,
            numeric=(1, 2, 3),
            label="pairs",
        ),
    )


# ------------------------------------------------------------------------------------------------ use


def utility(record: dict[str, Any]) -> Html | None:
    """Scores of models that learn from drawn rows, and from real ones."""
    found = synthesis_of(record)
    useful = mapping(found.get("utility"))
    candidates = [mapping(row) for row in items(found.get("candidates"))]
    if not useful and not candidates:
        return None
    parts: list[Html | None] = []
    if useful:
        metric, target = text(useful.get("metric"), 60), text(useful.get("target"), 60)
        lines = []
        for key, name in (("real", "real rows"), ("drawn", "drawn rows")):
            score = mapping(useful.get(key))
            ends = [number(score.get(end)) for end in ("lower", "upper")]
            span = DASH if None in ends else f"{shown(ends[0], 3)} to {shown(ends[1], 3)}"
            lines.append([name, shown(score.get("score"), 3), span])
        lines.append(["nothing: a constant", shown(useful.get("constant"), 3), DASH])
        parts += [
            tag(
                "p",
                f"Boosting learns to predict {target} from as many drawn as real rows, and is scored on "
                f"{whole(useful.get('rows'))} real rows that were held out.",
            ),
            table(["learnt from", metric, "interval at 95%"], lines, numeric=(1, 2), label="utility"),
        ]
    elif why := text(found.get("no_utility"), 200):
        parts.append(tag("p", f"Nothing was learnt from the rows: {why}.", class_="quiet"))
    if candidates:
        rows = [[text(row.get("title"), 60), shown(row.get("area"), 3)] for row in candidates]
        parts += [
            tag("h3", "Telling drawn rows from real ones"),
            tag("p", "Area under the ROC curve of boosting that is to tell them apart; 0.5 is chance, 1 a sure mark."),
            table(["generator", "area"], rows, numeric=(1,), label="detection", marked=0),
        ]
    return joined(*parts)


def privacy(record: dict[str, Any]) -> Html | None:
    """Distances of drawn rows from rows of the fit."""
    told = mapping(synthesis_of(record).get("privacy"))
    if not told:
        return None
    copies = (
        f"{whole(told.get('copies'))} of {whole(told.get('rows'))} drawn rows equal a row of the fit in every column "
        f"({number(told.get('copied')) or 0.0:.1%}); of held-out real rows it is "
        f"{number(told.get('held_copied')) or 0.0:.1%}."
    )
    near = ""
    if number(told.get("median")) is not None:
        near = (
            f" The nearest row of the fit lies {shown(told.get('median'), 3)} away in the median, of held-out rows "
            f"{shown(told.get('held_median'), 3)} (columns in units of their deviation)."
        )
    if threshold := number(told.get("threshold")):
        near += (
            f" {number(told.get('nearer')) or 0.0:.1%} of the drawn rows lie nearer than {shown(threshold, 3)}, which "
            "5% of the held-out ones do."
        )
    note = (
        "This is no proof of anonymity: extremes and rare levels of a column come back as they are, and no noise was "
        "added as differential privacy asks for."
    )
    return joined(tag("p", copies, near), _nearest(synthesis_of(record)), tag("p", note, class_="quiet"))


def _nearest(found: dict[str, Any]) -> Html | None:
    quantiles = mapping(found.get("quantiles"))
    held, drawn = numbers(quantiles.get("held")), numbers(quantiles.get("drawn"))
    if len(held) < 2 or len(held) != len(drawn):
        return None
    shares: list[float | None] = [i / (len(held) - 1) for i in range(len(held))]
    right = max(v or 0.0 for v in (held[-2], drawn[-2])) or 1.0
    canvas = Canvas((0.0, right), (0.0, 1.0))
    canvas.axes("distance to the nearest row of the fit", "share of rows")
    inside = [[v if v is not None and v <= right else None for v in values] for values in (held, drawn)]
    canvas.line(inside[0], shares, "grey")
    canvas.line(inside[1], shares, "blue")
    picture = figure(
        canvas,
        "nearest",
        "Distances to the nearest real row",
        "Above the grey line drawn rows lie nearer to rows of the fit than new real rows do: they are copied.",
        description="Distribution functions of the distances of drawn and of held-out rows.",
        keys=[("grey", "held-out real rows"), ("blue", "drawn rows")],
    )
    return tag("div", picture, class_="figures")
