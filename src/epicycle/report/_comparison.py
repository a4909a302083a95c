"""Two runs side by side: facts, scores, curves and importances of both on one page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epicycle.report import _bars as bars
from epicycle.report._charts import comparable
from epicycle.report._markup import Child, Html, clipped, joined, table, tag
from epicycle.report._plain import DASH, items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import Canvas, figure, span_of
from epicycle.report._wording import best_row, certified, metric_label, model_name, scored

_COLOURS = ("blue", "orange")


def comparison_of(record: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Names and records of the runs that are compared; none on other pages."""
    runs = [mapping(run) for run in items(mapping(record.get("comparison")).get("runs"))[:2]]
    named = [(text(run.get("name"), 40), mapping(run.get("record"))) for run in runs]
    return named if len(named) == 2 else []


def headline(record: dict[str, Any]) -> list[Html]:
    """Which run scores better, and whether that is more than noise."""
    runs = comparison_of(record)
    verdict = mapping(record.get("comparison")).get("verdict")
    lines = []
    scores = [(name, number(mapping(run.get("test")).get("score")), metric_label(run)) for name, run in runs]
    said = ", ".join(f"{name}: {label} {shown(score)}" for name, score, label in scores)
    lines.append(joined(f"On the test rows of each: {said}."))
    if verdict:
        lines.append(joined(text(verdict, 600)))
    return lines


def side_by_side(record: dict[str, Any]) -> Html | None:
    """The section."""
    runs = comparison_of(record)
    if not runs:
        return None
    drawn = [figure_of(runs) for figure_of in (_roc, _calibration, _learning, _search)]
    bars_of = [made for i in (0, 1) if (made := _importances(runs, i)) is not None]
    figures = [one for one in (*drawn, *bars_of) if one is not None]
    return joined(
        _facts(runs),
        _metrics(runs),
        tag("div", figures, class_="figures") if figures else None,
        _warnings(runs),
    )


def _facts(runs: list[tuple[str, dict[str, Any]]]) -> Html:
    facts: list[tuple[str, Callable[[dict[str, Any]], Child]]] = [
        ("target", lambda run: text(mapping(run.get("data")).get("target"), 60)),
        ("task", lambda run: text(mapping(run.get("data")).get("task"), 40)),
        ("source", lambda run: text(mapping(run.get("data")).get("source"), 80)),
        ("rows", lambda run: whole(mapping(run.get("data")).get("rows"))),
        ("columns", lambda run: whole(mapping(run.get("data")).get("columns"))),
        ("model", _model),
        ("certificate", lambda run: {"good": "holds", "bad": "does not hold"}.get(_state(run), "none")),
        ("candidates with a score", lambda run: whole(len(scored(items(run.get("leaderboard")))))),
        ("baseline", lambda run: shown(mapping(run.get("test")).get("baseline_score"))),
        ("seconds", lambda run: shown(mapping(run.get("environment")).get("seconds"), 3)),
        ("seed", lambda run: text(mapping(run.get("environment")).get("seed"), 20)),
    ]
    rows: list[list[Child]] = []
    for name, of in facts:
        values = [of(run) for _, run in runs]
        if any(value not in (DASH, "") for value in values):
            rows.append([name, *values])
    return table(["", *(name for name, _ in runs)], rows, label="the runs")


def _model(run: dict[str, Any]) -> Child:
    at = best_row(run)
    return DASH if at is None else clipped(model_name(mapping(items(run.get("leaderboard"))[at])), 80)


def _state(run: dict[str, Any]) -> str:
    certificate = mapping(run.get("certificate"))
    return certified(certificate)[0] if certificate else "none"


def _metrics(runs: list[tuple[str, dict[str, Any]]]) -> Html | None:
    tests = [mapping(run.get("tests")) for _, run in runs]
    names = [name for name in tests[0] if name in tests[1]]
    rows: list[list[Child]] = []
    for name in names[:20]:
        both = [mapping(test[name]) for test in tests]
        values = [number(one.get("score")) for one in both]
        if None in values:
            continue
        cells: list[Child] = [clipped(both[0].get("label") or name, 60)]
        for one in both:
            span = f"{shown(one.get('lower'), 3)} to {shown(one.get('upper'), 3)}"
            cells.append(joined(shown(one.get("score")), tag("small", span, class_="params")))
        difference = values[1] - values[0] if values[0] is not None and values[1] is not None else None
        rows.append([*cells, shown(difference, 3)])
    if not rows:
        return None
    head = ["metric", *(name for name, _ in runs), "difference"]
    note = "Each on the test rows of its own run, with its 95% interval. The difference is the second less the first."
    return joined(
        tag("h3", "Scores"), tag("p", note, class_="quiet"), table(head, rows, numeric=(1, 2, 3), label="scores")
    )


def _curve(run: dict[str, Any], name: str) -> dict[str, Any]:
    return mapping(mapping(run.get("curves")).get(name))


def _both(
    runs: list[tuple[str, dict[str, Any]]],
    curve: str,
    keys: tuple[str, str],
    title: str,
    labels: tuple[str, str],
    caption: str,
    span: tuple[float, float] | None = None,
) -> Html | None:
    """One curve of both runs in one figure."""
    points = [[numbers(_curve(run, curve).get(key)) for key in keys] for _, run in runs]
    if any(sum(a is not None and b is not None for a, b in zip(x, y, strict=False)) < 2 for x, y in points):
        return None
    canvas = Canvas(span or span_of(*(x for x, _ in points), pad=0.03), span or span_of(*(y for _, y in points)))
    canvas.axes(*labels)
    if span is not None:
        canvas.line([0, 1], [0, 1], "grey", kind="dash")
    for (x, y), colour in zip(points, _COLOURS, strict=True):
        canvas.line(x, y, colour)
    keys_of = [(colour, name) for colour, (name, _) in zip(_COLOURS, runs, strict=True)]
    return figure(canvas, f"both-{curve}", title, caption, description=f"{title} of both runs.", keys=keys_of)


def _roc(runs: list[tuple[str, dict[str, Any]]]) -> Html | None:
    areas = [f"{name} {shown(_curve(run, 'roc').get('auc'), 3)}" for name, run in runs]
    labels = ("false positive rate", "true positive rate")
    return _both(runs, "roc", ("fpr", "tpr"), "ROC curves", labels, f"Areas: {', '.join(areas)}.", (0, 1))


def _calibration(runs: list[tuple[str, dict[str, Any]]]) -> Html | None:
    labels = ("predicted probability", "observed share")
    caption = "The closer to the dashed line, the better."
    return _both(runs, "calibration", ("predicted", "observed"), "Calibration", labels, caption, (0, 1))


def _learning(runs: list[tuple[str, dict[str, Any]]]) -> Html | None:
    if metric_label(runs[0][1]) != metric_label(runs[1][1]):
        return None
    labels = ("training rows", metric_label(runs[0][1]))
    return _both(runs, "learning_curve", ("sizes", "test"), "Learning curves", labels, "On rows that were not seen.")


def _search(runs: list[tuple[str, dict[str, Any]]]) -> Html | None:
    if metric_label(runs[0][1]) != metric_label(runs[1][1]):
        return None
    points = []
    for _, run in runs:
        every = [mapping(point) for point in items(mapping(run.get("curves")).get("search"))]
        steps = [point for point, last in zip(every, comparable(every), strict=True) if last]
        points.append(([number(p.get("seconds")) for p in steps], [number(p.get("best")) for p in steps]))
    if any(sum(v is not None for v in y) < 2 for _, y in points):
        return None
    canvas = Canvas(span_of([0.0], *(x for x, _ in points), pad=0.03), span_of(*(y for _, y in points)))
    canvas.axes("seconds", metric_label(runs[0][1]))
    for (x, y), colour in zip(points, _COLOURS, strict=True):
        canvas.line(x, y, colour)
    keys = [(colour, name) for colour, (name, _) in zip(_COLOURS, runs, strict=True)]
    return figure(
        canvas, "both-search", "Best so far", "In cross-validation.", description="Best scores over time.", keys=keys
    )


def _importances(runs: list[tuple[str, dict[str, Any]]], i: int) -> Html | None:
    name, run = runs[i]
    rows = [mapping(row) for row in items(mapping(run.get("curves")).get("importances"))]
    entries = []
    for row in rows[:10]:
        value, error = number(row.get("mean")), number(row.get("se"))
        ends = (None, None) if value is None or error is None else (value - 2 * error, value + 2 * error)
        entries.append((row.get("name"), value, *ends))
    return bars.in_rows(
        f"importances-{i}",
        f"Importances in {name}",
        "Loss of score when the values of a column are shuffled.",
        entries,
        axis=f"{metric_label(run)} lost",
        description=f"Importances of {len(entries)} columns in {name}.",
    )


def _warnings(runs: list[tuple[str, dict[str, Any]]]) -> Html | None:
    said = [[text(mapping(one).get("text"), 300) for one in items(run.get("warnings"))] for _, run in runs]
    parts: list[Html] = []
    for (name, _), own, other in zip(runs, said, reversed(said), strict=True):
        if alone := [one for one in own if one not in other][:12]:
            parts.append(tag("h3", f"Warnings of {name} alone"))
            parts.append(tag("ul", [tag("li", one) for one in alone]))
    return joined(parts) if parts else None
