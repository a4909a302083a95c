"""The sections of anomalies: the detectors side by side, the scores, and the most unusual rows with their reasons."""

from __future__ import annotations

from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import Canvas, figure

_CANDIDATES, _ROWS, _COLUMNS = 20, 30, 12
_FIGURES = (
    ("average_precision", "average precision"),
    ("area", "area under ROC"),
    ("precision", "precision"),
    ("recall", "recall"),
    ("f1", "F1"),
    ("agreement", "agreement"),
)


def anomalies_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about anomalies; empty where there is none."""
    return mapping(record.get("anomalies"))


def _best(found: dict[str, Any]) -> dict[str, Any]:
    return mapping(next(iter(items(found.get("candidates"))), None))


def headline(found: dict[str, Any]) -> list[Html]:
    """The conclusion, and on what it rests."""
    words = text(found.get("verdict"), 400)
    label = mapping(found.get("label"))
    how = "No labels were given: the detector is the one that agrees best with the others."
    if label:
        how = (
            f"{text(label.get('column'), 60)} = {text(label.get('value'), 40)} marks {whole(label.get('rows'))} known "
            "anomalies, by which the detectors are compared and the threshold is chosen."
        )
    return [tag("strong", f"{words[:1].upper()}{words[1:]}."), joined(how)]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    best = _best(found)
    made = [("Anomalies", whole(found.get("flagged")), f"of {whole(found.get('rows'))} rows", "main")]
    for key, name, under in (
        ("precision", "Precision", "of what is reported, on held-out rows"),
        ("recall", "Recall", "of the known anomalies, on held-out rows"),
        ("area", "Area under ROC", "0.5 is chance"),
        ("agreement", "Agreement", "mean rank correlation with the other detectors"),
    ):
        value = number(best.get(key))
        if value is not None:
            made.append((name, f"{value:.2f}", under, ""))
    return made


def candidates(record: dict[str, Any]) -> Html | None:
    """The detectors side by side."""
    found = anomalies_of(record)
    rows = [mapping(row) for row in items(found.get("candidates"))]
    if not rows:
        return None
    used = [(key, words) for key, words in _FIGURES if any(number(row.get(key)) is not None for row in rows)]
    lines = [
        [
            clipped(row.get("name"), 50),
            *(shown(row.get(key), 3) if number(row.get(key)) is not None else DASH for key, _ in used),
        ]
        for row in rows[:_CANDIDATES]
    ]
    failed = [text(words, 200) for words in items(found.get("failed"))]
    return joined(
        table(["detector", *(words for _, words in used)], lines, label="detectors"),
        more(len(rows) - len(lines), "detectors"),
        tag("p", f"Not compared: {'; '.join(failed[:10])}.", class_="quiet") if failed else None,
    )


def scores(record: dict[str, Any]) -> Html | None:
    """Distribution of the scores, the threshold, and the columns to blame."""
    found = anomalies_of(record)
    pictures = [picture for picture in (_histogram(found), _blame(found)) if picture]
    return tag("div", pictures, class_="figures") if pictures else None


def _histogram(found: dict[str, Any]) -> Html | None:
    spread = mapping(found.get("histogram"))
    edges, counts = numbers(spread.get("edges")), numbers(spread.get("counts"))
    known = [e for e in edges if e is not None]
    if len(known) != len(edges) or len(edges) != len(counts) + 1 or len(counts) < 2:
        return None
    odd = numbers(spread.get("odd"))
    # Square roots: a few anomalies beside thousands of other rows would not be seen.
    top = max((v or 0.0) for v in counts) ** 0.5 or 1.0
    canvas = Canvas((known[0], known[-1]), (0.0, top), height=250)
    canvas.axes("score: unusual rows on the left", "rows (square root)")
    for colour, heights in (("blue", counts), ("vermilion", odd)):
        for i, value in enumerate(heights[: len(counts)]):
            if value:
                x, y = canvas.x(known[i]), canvas.y(value**0.5)
                size = {"width": max(canvas.x(known[i + 1]) - x - 0.8, 0.6), "height": canvas.y(0.0) - y}
                canvas.put("rect", x=x, y=y, **size, class_=f"bar {colour}", title=f"{whole(value)} rows")
    limit = number(found.get("threshold"))
    if limit is not None and known[0] <= limit <= known[-1]:
        canvas.line([limit, limit], [0.0, top], "orange", kind="dash", title=f"threshold {shown(limit, 3)}")
    keys = [("blue", "rows"), ("orange", "threshold")]
    return figure(
        canvas,
        "scores",
        "Scores of all rows",
        "Heights are square roots of the numbers of rows; the first bar holds all scores that are lower. Rows left of "
        "the dashed line are reported.",
        description="A histogram of the scores with the threshold.",
        keys=[*keys[:1], ("vermilion", "known anomalies"), *keys[1:]] if odd else keys,
    )


def _blame(found: dict[str, Any]) -> Html | None:
    rows = [mapping(row) for row in items(found.get("blame"))][:_COLUMNS]
    shares = [number(row.get("share")) or 0.0 for row in rows]
    if not rows or max(shares) <= 0:
        return None
    canvas = Canvas((0.0, max(shares)), (0.0, 1.0), height=16.0 + 32 * len(rows), left=7, bottom=6)
    for i, (row, share) in enumerate(zip(rows, shares, strict=True)):
        y, name = 16.0 + 32 * i, text(row.get("column"), 44)
        canvas.words(7, y, f"{name}: {share:.0%}", class_="name")
        width = max(canvas.x(share) - canvas.x(0.0), 0.6)
        canvas.put(
            "rect", x=canvas.x(0.0), y=y + 5, width=width, height=9.0, class_="bar blue", title=f"{name}: {share:.1%}"
        )
    return figure(
        canvas,
        "blame",
        "Columns that make rows unusual",
        "Shares in the explanations of the rows that are reported.",
        description="Bars, one for each column.",
    )


def unusual(record: dict[str, Any]) -> Html | None:
    """The most unusual rows, and why."""
    found = anomalies_of(record)
    rows = [mapping(row) for row in items(found.get("top"))]
    if not rows:
        return None
    labelled = any("label" in row for row in rows)
    lines = [
        [
            whole(row.get("row")),
            shown(row.get("score"), 4),
            "yes" if row.get("flagged") else "no",
            *(["yes" if row.get("label") else "no"] if labelled else []),
            clipped(row.get("reasons"), 200),
        ]
        for row in rows[:_ROWS]
    ]
    heads = ["row", "score", "reported", *(["known anomaly"] if labelled else []), "what makes it unusual"]
    note = (
        "Rows are counted from 0. Shares in brackets are those of a column in what makes the row unusual; all rows are "
    )
    return joined(
        table(heads, lines, label="unusual rows"),
        tag("p", f"{note}in anomalies.csv.", class_="quiet"),
    )
