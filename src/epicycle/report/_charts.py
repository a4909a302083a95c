"""The figures of a report, each from its part of the record; None where there is nothing to draw."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from epicycle.report._markup import Html
from epicycle.report._plain import items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import Canvas, figure, span_of

Values = list[float | None]


def _drawable(*columns: Values) -> bool:
    """Whether at least two points have all their numbers."""
    return sum(all(v is not None for v in point) for point in zip(*columns, strict=False)) >= 2


def _shifted(values: Values, errors: Values, sign: float) -> Values:
    return [None if v is None or e is None else v + sign * e for v, e in zip(values, errors, strict=False)]


def calibration(curve: dict[str, Any]) -> Html | None:
    """Observed shares against predicted probabilities."""
    x, y = numbers(curve.get("predicted")), numbers(curve.get("observed"))
    low, high, n = (numbers(curve.get(key)) for key in ("lower", "upper", "counts"))
    if not any(a is not None and b is not None for a, b in zip(x, y, strict=False)):
        return None
    largest = curve.get("of") == "largest"
    canvas = Canvas((0, 1), (0, 1))
    canvas.axes("largest probability of a row" if largest else "predicted probability", "observed share")
    canvas.line([0, 1], [0, 1], "grey", kind="dash")
    canvas.whiskers(x, low, high, "blue")
    canvas.line(x, y, "blue")
    sizes = [*n, *([None] * len(x))]
    titles = [
        f"predicted {shown(a, 3)}, observed {shown(b, 3)}, {whole(m)} rows"
        for a, b, m in zip(x, y, sizes, strict=False)
    ]
    canvas.points(x, y, "blue", titles)
    return figure(
        canvas,
        "calibration",
        "Calibration",
        f"On the dashed line, of the rows that get 70% seven in ten are {'right' if largest else 'positive'}. Below it "
        "the model is overconfident. Each dot is one bin of rows, with its 95% interval.",
        description=f"Calibration curve with {len(x)} bins: {'; '.join(titles[:10])}.",
        keys=[("blue", "model"), ("grey dash", "perfectly calibrated")],
    )


def roc(curve: dict[str, Any]) -> Html | None:
    """True against false positive rate."""
    x, y, auc = numbers(curve.get("fpr")), numbers(curve.get("tpr")), number(curve.get("auc"))
    if not _drawable(x, y):
        return None
    canvas = Canvas((0, 1), (0, 1))
    canvas.axes("false positive rate", "true positive rate")
    canvas.line([0, 1], [0, 1], "grey", kind="dash")
    canvas.band(x, [0.0] * len(x), y, "blue")
    canvas.line(x, y, "blue", title=f"area {shown(auc, 3)}")
    return figure(
        canvas,
        "roc",
        "ROC curve",
        f"The area is {shown(auc, 3)}: the probability that a positive row gets a higher score than a negative one. "
        "0.5 is chance, 1 is perfect."
        if auc is not None
        else "The further to the upper left, the better.",
        description=f"ROC curve, area {shown(auc, 3)}.",
        keys=[("blue", "model"), ("grey dash", "chance")],
    )


def precision_recall(curve: dict[str, Any]) -> Html | None:
    """Precision against recall."""
    x, y = numbers(curve.get("recall")), numbers(curve.get("precision"))
    area, chance = number(curve.get("average_precision")), number(curve.get("prevalence"))
    if not _drawable(x, y):
        return None
    canvas = Canvas((0, 1), (0, 1))
    canvas.axes("recall: share of positives found", "precision")
    keys = [("blue", "model")]
    if chance is not None:
        canvas.line([0, 1], [chance, chance], "grey", kind="dash")
        keys.append(("grey dash", "chance"))
    canvas.line(x, y, "blue")
    area_words = "" if area is None else f" The average precision is {shown(area, 3)}."
    return figure(
        canvas,
        "precision_recall",
        "Precision and recall",
        "To the right more of the positive rows are found; further up fewer of those predicted positive are "
        f"not.{area_words}",
        description=f"Precision against recall, average precision {shown(area, 3)}.",
        keys=keys,
    )


def residuals(bands: dict[str, Any]) -> Html | None:
    """Fan of residuals over the prediction."""
    edges, levels = numbers(bands.get("predicted_edges")), numbers(bands.get("levels"))
    lines = [numbers(line) for line in items(bands.get("quantiles"))]
    x = numbers(bands.get("predicted")) or [None if a is None or b is None else (a + b) / 2 for a, b in pairwise(edges)]
    if not x or not lines or len(lines) != len(levels) or not any(v is not None for line in lines for v in line):
        return None
    low, high = span_of(*lines, [0.0])
    canvas = Canvas(span_of(x, pad=0.02), (low, high))
    canvas.axes("prediction", "target minus prediction")
    keys = []
    for i in range(len(lines) // 2):
        canvas.band(x, lines[i], lines[-1 - i], "blue")
    canvas.line([canvas.x.low, canvas.x.high], [0, 0], "ink")
    if len(lines) % 2:
        middle = lines[len(lines) // 2]
        canvas.line(x, middle, "blue")
        n = numbers(bands.get("counts")) + [None] * len(x)
        canvas.points(
            x,
            middle,
            "blue",
            [
                f"prediction {shown(a, 3)}: median residual {shown(m, 3)}, {whole(k)} rows"
                for a, m, k in zip(x, middle, n, strict=False)
            ],
            r=2.6,
        )
        keys.append(("blue", "median"))
    if len(lines) > 1:
        inner = "" if len(lines) < 4 else f", the darker {_share(levels, 1)}"
        keys.append(("blue area", f"the middle {_share(levels, 0)} of the rows{inner}"))
    return figure(
        canvas,
        "residuals",
        "Residuals",
        "A good model has a median near zero everywhere. A slope or a bend means that the model lacks a term; a "
        "band that widens means that its errors are larger there.",
        description="Quantiles of residuals by prediction.",
        keys=keys,
    )


def _share(levels: Values, i: int) -> str:
    a, b = levels[i], levels[-1 - i]
    return "" if a is None or b is None else f"{b - a:.0%}"


def learning_curve(curve: dict[str, Any], metric: str, greater: bool) -> Html | None:
    """Scores on training and validation rows by number of rows."""
    x, train, test = (numbers(curve.get(key)) for key in ("sizes", "train", "test"))
    train_se, test_se = numbers(curve.get("train_se")), numbers(curve.get("test_se"))
    if not any(a is not None and b is not None for a, b in zip(x, test, strict=False)):
        return None
    around = [_shifted(v, e, s) for v, e in ((train, train_se), (test, test_se)) for s in (-1, 1)]
    canvas = Canvas(span_of(x, pad=0.03), span_of(train, test, *around))
    canvas.axes("training rows", metric)
    for values, errors, colour, where in (
        (train, train_se, "orange", "training rows"),
        (test, test_se, "blue", "rows not seen"),
    ):
        canvas.band(x, _shifted(values, errors, -1), _shifted(values, errors, 1), colour)
        canvas.line(x, values, colour)
        canvas.points(
            x, values, colour, [f"{whole(n)} rows: {shown(v)} on {where}" for n, v in zip(x, values, strict=False)]
        )
    return figure(
        canvas,
        "learning_curve",
        "Learning curve",
        f"Lines that have met {'low' if greater else 'high'}: the model is too simple (bias). A wide gap: it fits "
        f"the noise of its own rows (variance). Blue still {'rising' if greater else 'falling'} at the right: more "
        "rows would help. Bands are one standard error.",
        description=f"Learning curve of {metric} over {len(x)} sizes.",
        keys=[("orange", "on the rows it was fitted to"), ("blue", "on rows it has not seen")],
    )


def search_progress(points: list[Any], metric: str, greater: bool) -> Html | None:
    """Scores over time, and the best so far."""
    rows = [mapping(point) for point in points]
    x, y = ([number(row.get(key)) for row in rows] for key in ("seconds", "score"))
    known = sorted((a, i) for i, (a, b) in enumerate(zip(x, y, strict=True)) if a is not None and b is not None)
    if not known:
        return None
    on_all = comparable(rows)
    whole_ones = [(at, i) for at, i in known if on_all[i]]
    steps_x: Values = []
    steps_y: Values = []
    best: float | None = None
    for at, i in whole_ones:
        score, given = y[i], number(rows[i].get("best"))
        assert score is not None
        leading = given if given is not None else score if best is None else (max if greater else min)(best, score)
        steps_x += [at] if best is None else [at, at]
        steps_y += [leading] if best is None else [best, leading]
        best = leading
    # A candidate that fails would compress all others: the range reaches four times as far as the middle one.
    sign = 1 if greater else -1
    ranked = sorted((y[i] or 0.0 for _, i in known), key=lambda v: -sign * v)
    worst = ranked[0] - 4 * (ranked[0] - ranked[len(ranked) // 2])
    canvas = Canvas(span_of([0.0], x, pad=0.03), span_of([v for v in ranked if sign * (v - worst) >= 0], steps_y))
    canvas.axes("seconds", metric)
    inside = [i for _, i in known if canvas.y.low <= (y[i] or 0.0) <= canvas.y.high]
    canvas.line([*steps_x, canvas.x.high], [*steps_y, best], "blue")
    few = [i for i in inside if not on_all[i]]
    for chosen, colour in ((few, "grey"), ([i for i in inside if on_all[i]], "orange")):
        canvas.points(
            [x[i] for i in chosen],
            [y[i] for i in chosen],
            colour,
            [f"{text(rows[i].get('name'), 48)}: {shown(y[i])} after {shown(x[i], 3)} s" for i in chosen],
        )
    hidden = len(known) - len(inside)
    left_out = f" {hidden} far behind {'is' if hidden == 1 else 'are'} not shown." if hidden else ""
    return figure(
        canvas,
        "search",
        "Progress of the search",
        f"Every dot is a candidate scored by cross-validation.{left_out}",
        description=f"{len(known)} scores over time; the best is {shown(best)}.",
        keys=[
            ("orange", "a candidate"),
            *([("grey", "on few rows or folds")] if few else []),
            ("blue", "best so far"),
        ],
    )


def comparable(points: list[dict[str, Any]]) -> list[bool]:
    """Which scores of a search are on the most rows, and on more than two folds where some are: the last comparison.

    Scores on few rows or folds are larger or smaller for that alone.
    """
    size = [tuple(number(point.get(key)) or 0.0 for key in ("rows", "folds")) for point in points]
    most = max((rows for rows, _ in size), default=0.0)
    least = 3.0 if any(rows == most and folds > 2 for rows, folds in size) else 0.0
    return [rows == most and folds >= least for rows, folds in size]


def thresholds(curve: dict[str, Any]) -> Html | None:
    """Precision, recall and F1 by threshold."""
    x = numbers(curve.get("thresholds"))
    lines = [
        (key, numbers(curve.get(key)), colour)
        for key, colour in (("precision", "blue"), ("recall", "orange"), ("f1", "green"))
    ]
    if not any(_drawable(x, values) for _, values, _ in lines):
        return None
    chosen, default = number(curve.get("chosen")), number(curve.get("default"))
    canvas = Canvas(span_of(x, [chosen], pad=0.02), (0, 1))
    canvas.axes("threshold", "share")
    for _, values, colour in lines:
        canvas.line(x, values, colour)
    keys = [(colour, "F1" if key == "f1" else key) for key, values, colour in lines if values]
    for value, colour, kind, label in ((default, "grey", "dash", "default"), (chosen, "ink", "", "chosen")):
        if value is not None and canvas.x.low <= value <= canvas.x.high:
            canvas.line([value, value], [0, 1], colour, kind=kind, title=f"{label} threshold, {shown(value, 3)}")
            keys.append((f"{colour} {kind}".strip(), f"{label}, {shown(value, 3)}"))
    return figure(
        canvas,
        "threshold",
        "Precision and recall by threshold",
        "Rows at or above the threshold are predicted positive. A higher one gives fewer false positives and "
        "more misses.",
        description=f"Precision, recall and F1 by threshold; chosen {shown(chosen, 3)}.",
        keys=keys,
    )
