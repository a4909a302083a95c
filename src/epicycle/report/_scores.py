"""Scores on the test rows: all usual metrics, the classes one by one, predictions, gain and lift, groups."""

from __future__ import annotations

from functools import partial
from typing import Any

from epicycle.report._markup import Child, Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, brief, items, mapping, number, numbers, percent, shown, text, whole
from epicycle.report._svg import Canvas, figure, span_of

_CLASSES = 30


def metrics(record: dict[str, Any]) -> Html | None:
    """A table of all metrics with their intervals."""
    found = {name: mapping(score) for name, score in mapping(record.get("tests")).items()}
    main = mapping(record.get("metric"))
    if not found:
        return None
    rows: list[list[Child]] = []
    for name, score in list(found.items())[:20]:
        value = number(score.get("score"))
        if value is None:
            continue
        rows.append(
            [
                clipped(score.get("label") or name, 60),
                shown(value),
                _between(score.get("lower"), score.get("upper")),
                text(score.get("reading"), 160) if score.get("reading") else "",
            ]
        )
    if not rows:
        return None
    marked = next((i for i, name in enumerate(found) if name == main.get("name")), None)
    level = next((number(score.get("level")) for score in found.values()), None)
    head = ["metric", "test rows", f"{0.95 if level is None else level:.0%} interval", "how to read it"]
    return joined(tag("h3", "All metrics"), table(head, rows, numeric=(1, 2), label="metrics", marked=marked))


def classes(record: dict[str, Any]) -> Html | None:
    """Precision, recall and F1 of each class."""
    found = [mapping(row) for row in items(mapping(record.get("curves")).get("class_scores"))]
    if not found:
        return None
    rows: list[list[Child]] = []
    for row in found[:_CLASSES]:
        line: list[Child] = [clipped(row.get("name"), 40), whole(row.get("rows"))]
        for key in ("precision", "recall"):
            ends = numbers(row.get(f"{key}_interval"))
            span = tag("small", _between(*ends), class_="params") if len(ends) == 2 else None
            line.append(joined(shown(row.get(key), 3), span))
        rows.append([*line, shown(row.get("f1"), 3)])
    note = (
        "Precision: of the rows predicted as this class, the share that is. Recall: of the rows of this class, the "
        "share that is found. F1 is their harmonic mean. Below each its 95% interval."
    )
    return joined(
        tag("h3", "Class by class"),
        tag("p", note, class_="quiet"),
        table(["class", "test rows", "precision", "recall", "F1"], rows, numeric=(1, 2, 3, 4), label="classes"),
        more(len(found) - len(rows), "classes"),
    )


def groups(record: dict[str, Any]) -> Html | None:
    """Rates by group, with intervals."""
    found = mapping(record.get("groups"))
    lines = [mapping(row) for row in items(found.get("groups"))]
    said = percent if found.get("kind") == "share" else partial(shown, digits=3)
    names = [text(name, 60) for name in items(found.get("rates"))]
    if not lines or not names:
        return None
    rows: list[list[Child]] = []
    for row in lines[:_CLASSES]:
        rates = mapping(row.get("rates"))
        cells: list[Child] = [clipped(row.get("group"), 40), whole(row.get("rows"))]
        for name in names:
            rate = mapping(rates.get(name))
            low, high = number(rate.get("lower")), number(rate.get("upper"))
            between = f"{said(low)} to {said(high)}"
            span = tag("small", between, class_="params") if low is not None and high is not None else None
            cells.append(joined(said(rate.get("value")), span))
        rows.append(cells)
    return joined(
        tag("p", text(found.get("verdict"), 600), class_="verdict") if found.get("verdict") else None,
        table(
            [text(found.get("column"), 40), "test rows", *names],
            rows,
            numeric=range(1, 2 + len(names)),
            label="rates by group",
        ),
        tag(
            "p",
            "Below each rate its 95% interval: groups whose intervals overlap much can hardly be told apart, "
            "and no table of rates says whether a difference is just.",
            class_="quiet",
        ),
    )


def _between(lower: Any, upper: Any) -> str:
    low, high = number(lower), number(upper)
    return DASH if low is None or high is None else f"{shown(low, 3)} to {shown(high, 3)}"


def predicted(curve: dict[str, Any]) -> Html | None:
    """Predictions against targets."""
    x, y = numbers(curve.get("actual")), numbers(curve.get("predicted"))
    if sum(a is not None and b is not None for a, b in zip(x, y, strict=False)) < 2:
        return None
    half, quantile = number(curve.get("half_width")), number(curve.get("quantile"))
    span = span_of(x, y, pad=0.03)
    canvas = Canvas(span, span)
    canvas.axes("target", "prediction")
    ends: list[float | None] = [span[0], span[1]]
    keys = [("blue round", "a test row"), ("ink", "right" if quantile is None else "target = prediction")]
    reading = "On the line the prediction is right; above it the model predicts too much."
    if quantile is not None:
        share = f"{brief(100 * quantile)}% of the rows should be"
        reading = f"Above the line a target is below its predicted quantile, as {share}."
    if half is not None:
        canvas.band(ends, [span[0] - half, span[1] - half], [span[0] + half, span[1] + half], "grey")
        keys.append(("grey area", "prediction interval"))
    canvas.line(ends, ends, "ink")
    titles = [f"target {shown(a)}, predicted {shown(b)}" for a, b in zip(x, y, strict=False)]
    canvas.points(x, y, "blue", titles, r=2.4)
    n = number(curve.get("rows"))
    some = f" {len(x)} of {whole(n)} test rows, evenly spread, are drawn." if n is not None and n > len(x) else ""
    return figure(
        canvas,
        "predicted",
        "Predicted and actual",
        f"{reading}{some}",
        description=f"Predictions against targets of {len(x)} rows.",
        keys=keys,
    )


def gain(curve: dict[str, Any]) -> Html | None:
    """Positives found against rows taken."""
    x, y = numbers(curve.get("rows")), numbers(curve.get("found"))
    share = number(curve.get("prevalence"))
    if sum(a is not None and b is not None for a, b in zip(x, y, strict=False)) < 2:
        return None
    canvas = Canvas((0, 1), (0, 1))
    canvas.axes("share of rows, largest scores first", "share of positives found")
    canvas.line([0, 1], [0, 1], "grey", kind="dash")
    keys = [("blue", "model"), ("grey dash", "rows at random")]
    if share is not None and 0 < share < 1:
        canvas.line([0, share, 1], [0, 1, 1], "green", kind="dot")
        keys.append(("green", "perfect order"))
    canvas.line(x, y, "blue")
    fifth = next((b for a, b in zip(x, y, strict=False) if a is not None and a >= 0.2), None)
    reading = f" The fifth with the largest scores holds {fifth:.0%} of the positives." if fifth is not None else ""
    return figure(
        canvas,
        "gain",
        "Gain",
        f"How many of the positive rows are found when those with the largest scores are taken first.{reading}",
        description=f"Gain curve of {len(x)} points.",
        keys=keys,
    )


def lift(curve: dict[str, Any]) -> Html | None:
    """The share of positives among the rows taken, against that of all rows."""
    x, y = numbers(curve.get("rows")), numbers(curve.get("lift"))
    if sum(a is not None and b is not None for a, b in zip(x, y, strict=False)) < 2:
        return None
    canvas = Canvas((0, 1), span_of([0.0, 1.0], y))
    canvas.axes("share of rows, largest scores first", "lift")
    canvas.line([0, 1], [1, 1], "grey", kind="dash")
    canvas.line(x, y, "blue")
    return figure(
        canvas,
        "lift",
        "Lift",
        "How many times as many positive rows there are among those taken as among rows at random; 1 is chance.",
        description="Lift by the share of rows.",
        keys=[("blue", "model"), ("grey dash", "rows at random")],
    )
