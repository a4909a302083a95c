"""The sections of a plan: policy and values of a decision process, with pictures and the certificate in words."""

from __future__ import annotations

import math
from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import WIDTH, Canvas, figure, span_of, tick_label

ARROWS = {"N": "↑", "E": "→", "S": "↓", "W": "←"}
_ROWS, _CELLS, _WORDS_IN_CELLS = 200, 2500, 160
#: Ends and middle of the scale of values, dark to light; both can be told apart without colours.
_SCALE = ((0, 34, 78), (124, 123, 120), (253, 231, 55))


def planning_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about a plan; empty where there is none."""
    return mapping(record.get("planning"))


def _sentence(words: str) -> str:
    """Words with a capital at their beginning; the others stay."""
    return words[:1].upper() + words[1:]


# ---------------------------------------------------------------- head


def headline(found: dict[str, Any]) -> list[Html]:
    """The problem and the quality of its solution."""
    certificate = mapping(found.get("certificate"))
    holds = bool(certificate.get("holds"))
    first = joined(
        "The best policy of ",
        tag("strong", f"{whole(found.get('states'))} states"),
        f" and {whole(found.get('actions'))} actions by {text(found.get('method'), 60)}, ",
        "with proof." if holds else "but without proof: the certificate does not hold.",
    )
    return [first, joined(f"{_sentence(text(certificate.get('meaning'), 300))}.")]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    certificate = mapping(found.get("certificate"))
    holds = bool(certificate.get("holds"))
    made = [
        ("States", whole(found.get("states")), f"{whole(found.get('terminal'))} terminal", ""),
        ("Actions", whole(found.get("actions")), f"{whole(found.get('pairs'))} pairs with states", ""),
        (
            "Certificate",
            "holds" if holds else "does not hold",
            f"{shown(certificate.get('value'), 2)}, tolerance {shown(certificate.get('tolerance'), 2)}",
            "good" if holds else "main",
        ),
    ]
    if number(found.get("gain")) is not None:
        made.append(("Mean reward", shown(found.get("gain"), 4), "of a step, in the long run", ""))
    else:
        made.append(
            ("Discount", tick_label(number(found.get("discount")) or 0.0), text(found.get("criterion"), 20), "")
        )
    return made


# ---------------------------------------------------------------- sections


def policy(record: dict[str, Any]) -> Html | None:
    """The picture of the plan and the table of its states."""
    found = planning_of(record)
    if not found:
        return None
    rows = [mapping(row) for row in items(found.get("policy"))]
    bounded = any(number(row.get("lower")) is not None for row in rows)
    heads = ["state", "action", "value", *(("at least", "at most") if bounded else ())]
    lines = []
    for row in rows[:_ROWS]:
        words = "end" if row.get("terminal") else text(row.get("action"), 40)
        line = [clipped(row.get("state"), 40), words, shown(row.get("value"), 6)]
        lines.append([*line, *((shown(row.get("lower"), 6), shown(row.get("upper"), 6)) if bounded else ())])
    picture = grid(items(found.get("cells")), rows) or value_line(rows)
    return joined(
        tag("div", picture, class_="figures") if picture else None,
        table(heads, lines, numeric=range(2, len(heads)), label="policy"),
        more(len(rows) - len(lines), "states"),
        _notes(found),
    )


def _notes(found: dict[str, Any]) -> Html | None:
    alone = [text(s, 30) for s in items(found.get("unreachable"))]
    if not alone:
        return None
    listed = ", ".join(alone[:12]) + (f" and {len(alone) - 12} more" if len(alone) > 12 else "")
    return tag("p", f"No action of another state leads to: {listed}. Only a start can put the process there.")


def convergence(record: dict[str, Any]) -> Html | None:
    """The certificate in words, and how the residual fell."""
    found = planning_of(record)
    if not found:
        return None
    certificate = mapping(found.get("certificate"))
    kind = "good" if certificate.get("holds") else "bad"
    words = (
        f"{_sentence(text(certificate.get('kind'), 60))} {shown(certificate.get('value'), 2)}, tolerance "
        f"{shown(certificate.get('tolerance'), 2)}: {text(certificate.get('meaning'), 300)}."
    )
    picture = _residuals(found)
    return joined(
        tag("p", words, class_=f"verdict {kind}"),
        tag(
            "p",
            "The bounds in the table are proven: the policy is worth at least the first number, and no policy is "
            "worth more than the second.",
            class_="quiet",
        )
        if mapping((items(found.get("policy")) or [{}])[0]).get("lower") is not None
        else None,
        tag("div", picture, class_="figures") if picture else None,
    )


def _residuals(found: dict[str, Any]) -> Html | None:
    values = numbers(mapping(found.get("history")).get("residual"))
    logs = [math.log10(v) if v is not None and v > 0 else None for v in values]
    if sum(v is not None for v in logs) < 2:
        return None
    x: list[float | None] = [float(i) for i in range(1, len(logs) + 1)]
    canvas = Canvas(span_of(x, pad=0.03), span_of(logs))
    canvas.axes("iteration", "residual (power of ten)")
    canvas.line(x, logs, "blue")
    titles = [f"iteration {i}: {shown(v, 2)}" for i, v in enumerate(values, start=1)]
    canvas.points(x, logs, "blue", titles, r=2.6)
    last = next(v for v in reversed(values) if v is not None)
    return figure(
        canvas,
        "residuals",
        "Bellman's residual",
        "How far the values were from satisfying Bellman's equation, in each iteration.",
        description=f"{len(values)} iterations, the last residual is {shown(last, 2)}.",
    )


def _colour(share: float) -> tuple[str, str]:
    """Colour of a value between 0 and 1, and the ink that can be read on it."""
    low, high, part = (*_SCALE[:2], 2 * share) if share < 0.5 else (*_SCALE[1:], 2 * share - 1)
    r, g, b = (round(a + (c - a) * part) for a, c in zip(low, high, strict=True))
    return f"#{r:02x}{g:02x}{b:02x}", "#ffffff" if share < 0.5 else "#111111"


def grid_canvas(
    places: list[tuple[int, int]], rows: list[dict[str, Any]], *, words: bool = True
) -> tuple[Canvas, float]:
    """Cells of a grid, values as colours and actions as arrows, and the size of a cell."""
    values = [number(row.get("value")) for row in rows]
    known = [v for v in values if v is not None]
    tall, wide = (max(p[i] for p in places) + 1 for i in (0, 1))
    size = min((WIDTH - 8) / wide, 64.0)
    canvas = Canvas((0, 1), (0, 1), height=size * tall + 8, left=4)
    low, high = min(known), max(known)
    for (i, j), row, value in zip(places, rows, values, strict=True):
        share = 0.5 if value is None or high <= low else (value - low) / (high - low)
        fill, ink = _colour(share)
        x, y = 4 + j * size, 4 + i * size
        does = "end" if row.get("terminal") else ARROWS.get(text(row.get("action")), text(row.get("action"), 3))
        title = f"{text(row.get('state'), 40)}: {does}, {shown(value, 4)}"
        canvas.put("rect", x=x, y=y, width=size - 1, height=size - 1, fill=fill, title=title)
        if words and len(places) <= _WORDS_IN_CELLS and size >= 22:
            style = f"fill:{ink};font-size:{size * (0.34 if len(does) < 3 else 0.25):.1f}px"
            canvas.put("text", does, x=x + size / 2, y=y + size * 0.46, text_anchor="middle", style=style)
            small = f"fill:{ink};font-size:{size * 0.22:.1f}px"
            canvas.put("text", shown(value, 2), x=x + size / 2, y=y + size * 0.82, text_anchor="middle", style=small)
    return canvas, size


def grid_places(cells: list[Any], rows: list[dict[str, Any]]) -> list[tuple[int, int]] | None:
    """Row and column of each state; None where the states are no grid, too many, or without values."""
    found = [numbers(cell) for cell in cells]
    known = any(number(row.get("value")) is not None for row in rows)
    if not found or len(found) != len(rows) or len(found) > _CELLS or not known:
        return None
    return [(int(c[0] or 0), int(c[1] or 0)) if len(c) == 2 else (0, 0) for c in found]


def grid(cells: list[Any], rows: list[dict[str, Any]]) -> Html | None:
    """The figure of a grid with its values and actions."""
    if (places := grid_places(cells, rows)) is None:
        return None
    canvas, _ = grid_canvas(places, rows)
    known = [v for v in (number(row.get("value")) for row in rows) if v is not None]
    low, high = shown(min(known), 3), shown(max(known), 3)
    tall, wide = (max(p[i] for p in places) + 1 for i in (0, 1))
    return figure(
        canvas,
        "grid",
        "Values and policy",
        f"Light cells are worth most ({high}), dark ones least ({low}); arrows are the best actions.",
        description=f"A grid of {tall} x {wide} cells with values from {low} to {high}.",
    )


def value_line(rows: list[dict[str, Any]], label: str = "state, in the order of the file") -> Html | None:
    """Values of the states in their order, between their bounds."""
    values = [number(row.get("value")) for row in rows]
    if sum(v is not None for v in values) < 2:
        return None
    x: list[float | None] = [float(i) for i in range(len(rows))]
    low, high = ([number(row.get(key)) for row in rows] for key in ("lower", "upper"))
    canvas = Canvas(span_of(x, pad=0.03), span_of(values, low, high))
    canvas.axes(label, "value")
    canvas.band(x, low, high, "sky")
    canvas.line(x, values, "blue")
    titles = [
        f"{text(row.get('state'), 40)}: {'end' if row.get('terminal') else text(row.get('action'), 40)}, {shown(v, 4)}"
        for row, v in zip(rows, values, strict=True)
    ]
    canvas.points(x, values, "blue", titles, r=2.6)
    return figure(
        canvas,
        "values",
        "Values",
        "The value of each state under the policy; point at one to see its action.",
        description="; ".join(titles[:12]),
    )
