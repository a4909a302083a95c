"""Several targets of the same rows: each with its model, score and page, and scores of all together."""

from __future__ import annotations

import re
from typing import Any

from epicycle.report import _bars as bars
from epicycle.report._markup import Child, Html, clipped, joined, more, table, tag
from epicycle.report._plain import items, mapping, number, shown, text, whole

_ROWS = 120


def targets_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about several targets; empty where there is none."""
    return mapping(record.get("targets"))


def _runs(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [mapping(row) for row in items(targets_of(record).get("runs"))]


def _beats(row: dict[str, Any]) -> bool | None:
    """Whether the interval of a target lies beyond its baseline; None where one of them is missing."""
    greater = row.get("greater_is_better") is not False
    bound, base = number(row.get("lower" if greater else "upper")), number(row.get("baseline_score"))
    if bound is None or base is None:
        return None
    return bound > base if greater else bound < base


def headline(record: dict[str, Any]) -> list[Html]:
    """The number of targets that are predicted better than by a constant, and the first score of all together."""
    rows, found = _runs(record), targets_of(record)
    what = f"labels of {text(found['labels'], 60)}" if found.get("labels") else "targets"
    better = [row for row in rows if _beats(row)]
    lines = [joined(tag("strong", f"{whole(len(better))} of {whole(len(rows))} {what}"), " are predicted better than ",
                    "by a constant: the interval of their test score lies beyond the constant's.")]  # fmt: skip
    missed = [text(row.get("name"), 60) for row in rows if _beats(row) is False]
    if missed:
        some = ", ".join(missed[:6]) + (f" and {len(missed) - 6} more" if len(missed) > 6 else "")
        lines.append(joined(f"Not shown to be better than a constant: {some}."))
    return lines


def tiles(record: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not (found := targets_of(record)):
        return []
    made = [("Labels" if found.get("labels") else "Targets", whole(len(_runs(record))), "each with its own page", "")]
    for row in list(mapping(found.get("joint")).values())[:3]:
        score = mapping(row)
        span = f"{shown(score.get('lower'), 3)} to {shown(score.get('upper'), 3)}, 95% confidence"
        made.append((f"Test {text(score.get('label'), 40)}", shown(score.get("score"), 3), span, "main"))
    return made


def targets(record: dict[str, Any]) -> Html | None:
    """The section: a row for each target, a figure where all have one metric, and the scores of all together."""
    rows = _runs(record)
    if not rows:
        return None
    lines: list[list[Child]] = []
    for row in rows[:_ROWS]:
        page, name = text(row.get("page"), 300), clipped(row.get("name"), 60)
        # A page beside this one, and nothing else: no scheme, no way up.
        local = re.fullmatch(r"[A-Za-z0-9_.-]+/report\.html", page) is not None and not page.startswith(".")
        lines.append(
            [
                tag("a", name, href=page) if local else name,
                text(row.get("task"), 20),
                clipped(row.get("model"), 40),
                clipped(row.get("metric"), 40),
                joined(
                    shown(row.get("score")),
                    tag("small", f"{shown(row.get('lower'), 3)} to {shown(row.get('upper'), 3)}", class_="params"),
                ),
                shown(row.get("baseline_score")),
                whole(row.get("warnings")),
            ]
        )
    head = ["target", "task", "model", "metric", "test score", "a constant", "warnings"]
    return joined(
        tag("p", "All targets have the same training and test rows; none of them is a feature.", class_="quiet"),
        table(head, lines, numeric=(4, 5, 6), label="targets"),
        more(len(rows) - len(lines), "targets"),
        _figure(rows),
        _joint(record),
        _left_out(record),
    )


def _figure(rows: list[dict[str, Any]]) -> Html | None:
    labels = {text(row.get("metric"), 60) for row in rows}
    if len(labels) != 1 or len(rows) < 2:
        return None
    label = labels.pop()
    entries = [
        (text(row.get("name"), 80), number(row.get("score")), number(row.get("lower")), number(row.get("upper")))
        for row in rows
    ]
    drawn = bars.in_rows(
        "targets",
        "Test scores",
        f"{label} of each target on the test rows, with its 95% interval.",
        entries,
        axis=label,
        bar=False,
        zero=False,
        description=f"Test scores of {len(rows)} targets.",
    )
    return None if drawn is None else tag("div", drawn, class_="figures")


def _joint(record: dict[str, Any]) -> Html | None:
    found = [mapping(row) for row in mapping(targets_of(record).get("joint")).values()]
    if not found:
        return None
    lines: list[list[Child]] = [
        [
            text(row.get("label"), 60),
            shown(row.get("score")),
            f"{shown(row.get('lower'), 3)} to {shown(row.get('upper'), 3)}",
            text(row.get("reading"), 160),
        ]
        for row in found[:10]
    ]
    head = ["metric", "test rows", "95% interval", "how to read it"]
    return joined(tag("h3", "All targets together"), table(head, lines, numeric=(1, 2), label="scores of all targets"))


def _left_out(record: dict[str, Any]) -> Html | None:
    labels = [text(label, 40) for label in items(targets_of(record).get("left_out"))]
    if not labels:
        return None
    some = ", ".join(labels[:30]) + (f" and {len(labels) - 30:,} more" if len(labels) > 30 else "")
    return tag("p", f"Labels in too few rows, or in nearly all, which are not predicted: {some}.", class_="quiet")
