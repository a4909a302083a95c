"""Partial dependence, and contributions of the columns to single predictions."""

from __future__ import annotations

from typing import Any

from epicycle.report import _bars as bars
from epicycle.report._bars import foot, name_lines
from epicycle.report._markup import Html, joined, tag
from epicycle.report._plain import alike, items, mapping, number, numbers, percent, shown, text
from epicycle.report._svg import WIDTH, Canvas, figure, span_of

_FIGURES = 8
#: Share of the variance of the predictions from which on a tree stands for a model.
_FAITHFUL = 0.5


def explanations(record: dict[str, Any]) -> Html | None:
    """The section."""
    found = mapping(record.get("explanations"))
    curves = [
        made
        for i, curve in enumerate(items(found.get("partial_dependence"))[:_FIGURES])
        if (made := dependence(mapping(curve), i))
    ]
    falls = mapping(found.get("contributions"))
    rows = [
        made
        for i, row in enumerate(items(falls.get("rows"))[:_FIGURES])
        if (made := waterfall(mapping(row), i)) is not None
    ]
    summary = _summary(falls)
    tree = surrogate(mapping(found.get("surrogate")))
    if not curves and not rows and summary is None and tree is None:
        return None
    parts: list[Html | None] = []
    if curves:
        note = (
            "All rows are given the same value of the column, one value after the other: the mean prediction says what "
            "the model has learnt of it. Thin lines are single rows; where they cross, the column works together with "
            "others. What is learnt is no effect: it may stand for a column that is not there."
        )
        parts += [tag("h3", "Partial dependence"), tag("p", note, class_="quiet"), tag("div", curves, class_="figures")]
    parts.append(tree)
    if rows or summary is not None:
        note = (
            "From the mean prediction to that of a row: what each column adds (Shapley values by sampled orders, "
            "against training rows), with two standard errors of the sampling."
        )
        drawn = [one for one in (summary, *rows) if one is not None]
        parts += [tag("h3", "Contributions"), tag("p", note, class_="quiet"), tag("div", drawn, class_="figures")]
    return joined(parts)


def dependence(curve: dict[str, Any], i: int) -> Html | None:
    """The mean prediction by the value of a column."""
    name, of = text(curve.get("name"), 40), text(curve.get("of"), 40)
    mean, error = numbers(curve.get("mean")), numbers(curve.get("error"))
    if levels := [text(level, 40) for level in items(curve.get("levels"))]:
        rows = [
            (level, m, None if m is None or e is None else m - 2 * e, None if m is None or e is None else m + 2 * e)
            for level, m, e in zip(levels, mean, error, strict=False)
        ]
        return bars.in_rows(
            f"dependence-{i}",
            name,
            "",
            sorted(rows, key=lambda row: -(row[1] if row[1] is not None else float("-inf"))),
            axis=f"mean {of}",
            bar=False,
            zero=False,
            description=f"Mean {of} by {len(levels)} levels of {name}.",
        )
    x = numbers(curve.get("x"))
    if sum(a is not None and b is not None for a, b in zip(x, mean, strict=False)) < 2:
        return None
    lines = [numbers(line) for line in items(curve.get("lines"))[:20]]
    canvas = Canvas(span_of(x, pad=0.02), span_of(mean, *lines), height=230)
    canvas.axes(name, f"mean {of}", x_whole=all(v is not None and v.is_integer() for v in x))
    for line in lines:
        canvas.line(x, line, "grey", kind="faint")
    canvas.line(x, mean, "blue")
    titles = [f"{name} {shown(a)}: {shown(m)}" for a, m in zip(x, mean, strict=False)]
    canvas.points(x, mean, "blue", titles, r=2.6)
    return figure(
        canvas,
        f"dependence-{i}",
        name,
        "",
        description=f"Mean {of} by {name}, {len(x)} values.",
        keys=[("blue", "mean"), ("grey", "single rows")] if lines else [("blue", "mean")],
    )


def surrogate(found: dict[str, Any]) -> Html | None:
    """A small tree that imitates the model, as nested conditions."""
    root, fidelity = mapping(found.get("root")), number(found.get("fidelity"))
    if not items(root.get("children")):
        return None
    of, depth = text(found.get("of"), 40), 6
    leaves: list[float] = []

    def collect(node: dict[str, Any], level: int) -> None:
        if (mean := number(node.get("mean"))) is not None:
            leaves.append(mean)
        for child in items(node.get("children"))[:2] if level < depth else []:
            collect(mapping(child), level + 1)

    collect(root, 0)
    low, high = min(leaves, default=0.0), max(leaves, default=1.0)

    def drawn(node: dict[str, Any], level: int) -> Html:
        mean, children = number(node.get("mean")), [mapping(child) for child in items(node.get("children"))[:2]]
        wide = 100 * ((mean or 0.0) - low) / (high - low) if high > low else 0.0
        bar = tag("i", style=f"width:{max(wide, 1.5):.0f}%")
        line = tag(
            "div",
            tag("span", text(node.get("condition") or "all rows", 120), class_="rule"),
            tag("span", shown(mean, 3), class_="mean"),
            tag("span", bar, class_="track", aria_hidden="true"),
            tag("span", tag("span", percent(node.get("share")), class_="n"), " of the rows", class_="share"),
            class_="node" if children else "node leaf",
        )
        inner = tag("ul", [drawn(child, level + 1) for child in children]) if children and level < depth else None
        return tag("li", line, inner)

    how = ""
    if fidelity is not None:
        share = f"{percent(max(fidelity, 0.0))} of the variance of the predictions on the test rows"
        if fidelity < _FAITHFUL:
            words = f"No small tree imitates the model: the best one accounts for {share}."
            return joined(tag("h3", "Surrogate tree"), tag("p", words, class_="quiet"))
        how = f" It accounts for {share}."
    note = f"A small tree that imitates the model: the mean of its {of} under each condition.{how}"
    return joined(tag("h3", "Surrogate tree"), tag("p", note, class_="quiet"), tag("ul", drawn(root, 0), class_="tree"))


def _summary(falls: dict[str, Any]) -> Html | None:
    entries = []
    for part in map(mapping, items(falls.get("summary"))):
        value, error = number(part.get("mean")), number(part.get("se"))
        ends = (None, None) if value is None or error is None else (value - 2 * error, value + 2 * error)
        entries.append((text(part.get("name"), 60), value, *ends))
    n = number(falls.get("summary_rows"))
    return bars.in_rows(
        "contributions",
        "Mean size of the contributions",
        f"Over {shown(n)} test rows: how far each column moves a prediction, in either direction.",
        entries,
        axis=f"mean size, {text(falls.get('of'), 40)}",
        description=f"Mean contributions of {len(entries)} columns.",
    )


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
