"""The waterfall of a prediction: from the mean of all rows to one row, a step for each column."""

from __future__ import annotations

from typing import Any

from epicycle.report._bars import foot, name_lines
from epicycle.report._markup import Html
from epicycle.report._plain import alike, items, mapping, number, shown, text
from epicycle.report._svg import WIDTH, Canvas, figure, span_of

_LINE, _BAR, _MOST = 17, 23, 12


def waterfall(row: dict[str, Any], i: int) -> Html | None:
    """Steps from the mean prediction to that of a row, the largest first, those that are not listed as the last one."""
    start, end = number(row.get("start")), number(row.get("end"))
    steps: list[tuple[str, float, float | None]] = []
    for part in list(map(mapping, items(row.get("contributions"))))[:_MOST]:
        if (value := number(part.get("mean"))) is not None:
            name = f"{text(part.get('name'), 60)} = {text(part.get('value'), 40)}"
            steps.append((name, value, number(part.get("se"))))
    if start is None or end is None or not steps:
        return None
    rest = end - start - sum(value for _, value, _ in steps)
    if abs(rest) > 1e-9 * max(abs(start), abs(end), *(abs(value) for _, value, _ in steps)):
        steps.append(("all other columns", rest, None))
    number_of = alike([value for _, value, _ in steps])
    of = text(row.get("of"), 40)
    names = [f"mean {of}", *(name for name, _, _ in steps), f"{of} of this row"]
    lines = [name_lines(name, 30) for name in names]
    tops = [4.0]
    for wrapped in lines:
        tops.append(tops[-1] + _LINE * len(wrapped) + _BAR)
    places = [start]
    for _, value, _ in steps:
        places.append(places[-1] + value)
    canvas = Canvas(span_of(places, pad=0.04), (0, 1), height=tops[-1] + 40, left=14, right=10, top=4)
    foot(canvas, of)
    for stop in tops[1:]:
        for tick in canvas.x.ticks():
            canvas.put("line", x1=canvas.x(tick), x2=canvas.x(tick), y1=stop - _BAR + 2, y2=stop, class_="grid")
    for k, wrapped in enumerate(lines):
        for j, line in enumerate(wrapped):
            canvas.words(7, tops[k] + _LINE * j + 14, line, class_="name")
        y = tops[k + 1] - _BAR + 5
        inner = 0 < k < len(lines) - 1
        value, error = steps[k - 1][1:] if inner else (start if k == 0 else end, None)
        said = f"{'+' if inner and value > 0 else ''}{number_of(value)}"
        said += f" ± {number_of(2 * error)}" if error is not None else ""
        canvas.put("text", said, x=WIDTH - 10, y=tops[k] + 14, text_anchor="end", class_="tick name")
        if inner:
            a, b = canvas.x(places[k - 1]), canvas.x(places[k])
            canvas.put(
                "rect",
                x=min(a, b),
                y=y,
                width=max(abs(b - a), 0.8),
                height=11,
                class_=f"bar {'blue' if value >= 0 else 'vermilion'}",
                title=f"{names[k]}: {said}",
            )
        else:
            at = canvas.x(places[0] if k == 0 else places[-1])
            canvas.put("circle", cx=at, cy=y + 5.5, r=4.2, class_="point ink", title=f"{names[k]}: {said}")
    return figure(
        canvas,
        f"row-{i}",
        text(row.get("title"), 80),
        f"{of} goes from {shown(start, 3)} to {shown(end, 3)}; the target is {text(row.get('target'), 40)}.",
        description=f"Waterfall of {len(steps)} steps: "
        + "; ".join(f"{name}: {shown(value, 3)}" for name, value, _ in steps)
        + ".",
        keys=[("blue area", "raises it"), ("vermilion area", "lowers it")],
    )
