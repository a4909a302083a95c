"""The sections of the page, each from its part of the record; None where there is nothing to say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from epicycle.report import _bars as bars, _charts as charts
from epicycle.report._data_section import data
from epicycle.report._finding_section import advised, finding_of, found_table
from epicycle.report._markup import Child, Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, items, mapping, number, shown, text, whole
from epicycle.report._svg import span_of
from epicycle.report._wording import best_row, certified, greater_is_better, headline, metric_label, model_name

__all__ = ["SECTIONS"]

Section = Callable[[dict[str, Any]], Html | None]
_LEADERBOARD, _SCRIPT, _SETTINGS = 15, 40_000, 40


def _grid(*figures: Html | None) -> Html | None:
    drawn = [figure for figure in figures if figure is not None]
    return tag("div", drawn, class_="figures") if drawn else None


def _lead(words: Child) -> Html:
    return tag("p", words, class_="lead")


def _all(*parts: Html | None) -> Html | None:
    said = [part for part in parts if part]
    return joined(said) if said else None


# ---------------------------------------------------------------- models


def models(record: dict[str, Any]) -> Html | None:
    """The leaderboard, and the race."""
    rows = [mapping(row) for row in items(record.get("leaderboard"))]
    label, greater = metric_label(record), greater_is_better(record)
    race = charts.race(items(mapping(record.get("curves")).get("race")), label, greater)
    if not rows:
        return _grid(race) if race else None
    best, baseline = best_row(record), mapping(record.get("baseline"))
    base = number(baseline.get("score_mean"))
    sign = -1 if greater else 1
    order = sorted(
        range(len(rows)),
        key=lambda i: (i != best, (s := number(rows[i].get("score_mean"))) is None, sign * (s or 0.0), i),
    )
    kept = order[:_LEADERBOARD]
    columns = [
        "",
        "model",
        label,
        "± s.e.",
        "against the baseline" if base is not None else "score",
        "seconds",
        "folds",
    ]
    told = any(text(rows[i].get("status") or "done", 40) not in ("done", "ok", "finished") for i in kept)
    lines: list[list[Child]] = []
    span = _score_span(rows, kept, base)
    for rank, i in enumerate(kept):
        row = rows[i]
        line: list[Child] = [
            f"{rank + 1}",
            joined(clipped(model_name(row), 48), _params(row.get("params"))),
            shown(row.get("score_mean")),
            shown(row.get("score_se"), 2),
            bars.score_cell(row.get("score_mean"), row.get("score_se"), base, span, i == best) or DASH,
            shown(row.get("seconds"), 3),
            whole(row.get("n_folds")),
        ]
        lines.append([*line, clipped(row.get("status"), 40)] if told else line)
    if told:
        columns.append("status")
    direction = "larger is better" if greater else "smaller is better"
    said = (
        f"Every model was scored on rows that it was not fitted to: {label}, {direction}. Whiskers are two standard "
        "errors; models whose whiskers overlap much can hardly be told apart."
    )
    if base is not None:
        name = f" ({text(baseline['name'], 60)})" if baseline.get("name") else ""
        said += f" The upright line is the baseline{name}, {shown(base)}."
    return _all(
        _lead(said),
        table(columns, lines, numeric=(0, 2, 3, 5, 6), label="models tried", marked=0 if best is not None else None),
        more(len(rows) - len(kept), "models"),
        _grid(race),
    )


def _score_span(rows: list[dict[str, Any]], kept: list[int], base: float | None) -> tuple[float, float]:
    """A scale for the scores that one hopeless model does not spoil for the others."""
    scores = sorted(s for i in kept if (s := number(rows[i].get("score_mean"))) is not None)
    inner = scores[len(scores) // 10 : len(scores) - len(scores) // 10] or scores
    reach = [
        s + side * 2 * (number(rows[i].get("score_se")) or 0.0)
        for i in kept
        if (s := number(rows[i].get("score_mean"))) is not None and inner and inner[0] <= s <= inner[-1]
        for side in (-1, 1)
    ]
    return span_of(reach, [base])


def _params(params: Any) -> Html | None:
    said = text(params, 200) if params else ""
    return tag("small", clipped(said, 90), class_="params") if said else None


# ---------------------------------------------------------------- quality


def quality(record: dict[str, Any]) -> Html | None:
    """The test score in words, and the curves that judge it."""
    curves = mapping(record.get("curves"))
    test = mapping(record.get("test"))
    said = []
    if number(test.get("score")) is not None:
        said = headline({key: value for key, value in record.items() if key != "leaderboard"})
        method = text(test.get("method"), 80).replace("_", " ") if test.get("method") else ""
        if method:
            said.append(joined(tag("span", f"Method of the interval: {method}.", class_="quiet")))
    figures = _grid(
        charts.calibration(mapping(curves.get("calibration"))),
        bars.confusion(mapping(curves.get("confusion"))),
        charts.roc(mapping(curves.get("roc"))),
        charts.precision_recall(mapping(curves.get("precision_recall"))),
        charts.residuals(mapping(curves.get("residuals"))),
    )
    return _all(*(tag("p", words) for words in said), figures)


# ---------------------------------------------------------------- proof


def proof(record: dict[str, Any]) -> Html | None:
    """The certificate in words."""
    certificate = mapping(record.get("certificate"))
    if not certificate:
        return None
    state, said = certified(certificate)
    note = (
        "A proof of this kind is about the optimisation: no other parameters of the same model fit the training rows "
        "better. It does not say that the model predicts well; the test score does."
    )
    return _all(tag("p", said, class_=f"verdict {state}"), tag("p", note, class_="quiet") if state != "none" else None)


# ---------------------------------------------------------------- findings


def limits(record: dict[str, Any]) -> Html | None:
    """Bias or variance, optimiser or objective."""
    bias, objective = finding_of(record, "bias_variance"), finding_of(record, "optimizer_or_objective")
    curve = mapping(mapping(record.get("curves")).get("learning_curve"))
    named: dict[str, Any] = {"metric": curve["metric"]} if mapping(curve.get("metric")) else record
    if not curve:
        curve, named = _curve_of(bias), {}  # the table does not say what was measured, and larger is better there
    return _all(
        tag("h3", "Bias or variance") if bias or curve else None,
        advised(bias),
        _grid(charts.learning_curve(curve, metric_label(named), greater_is_better(named))),
        tag("h3", "Optimiser or objective") if objective else None,
        advised(objective),
        found_table(objective),
        *_other_findings(record),
    )


def _curve_of(finding: dict[str, Any]) -> dict[str, Any]:
    """The learning curve out of the table of a finding."""
    columns = mapping(finding.get("table"))
    against = items(columns.get("against"))
    rows = [i for i, name in enumerate(against) if name == "rows"]
    named = {
        "sizes": "value", "train": "train_score", "train_se": "train_error", "test": "validation_score",
        "test_se": "validation_error",
    }  # fmt: skip
    return {key: [values[i] for i in rows if i < len(values)] for key, name in named.items()
            if (values := items(columns.get(name)))}  # fmt: skip


def _other_findings(record: dict[str, Any]) -> list[Html | None]:
    """Findings without a place of their own."""
    known = {"bias_variance", "optimizer_or_objective", "ablation", "slices", "threshold"}
    parts: list[Html | None] = []
    others = [f for f in map(mapping, items(record.get("findings"))) if text(f.get("slot")) not in known]
    for finding in others[:4]:
        name = text(finding.get("slot") or finding.get("kind") or "Finding", 60).replace("_", " ")
        parts += [tag("h3", name[:1].upper() + name[1:]), advised(finding), found_table(finding)]
    return parts


def earned(record: dict[str, Any]) -> Html | None:
    """Importances and ablation."""
    ablation = finding_of(record, "ablation")
    label = metric_label(record)
    importances = [mapping(row) for row in items(mapping(record.get("curves")).get("importances"))]
    entries = [
        (
            row.get("name"),
            m,
            None if s is None or m is None else m - 2 * s,
            None if s is None or m is None else m + 2 * s,
        )
        for row in importances
        for m, s in [(number(row.get("mean")), number(row.get("se")))]
    ]
    entries.sort(key=lambda entry: -(entry[1] if entry[1] is not None else float("-inf")))
    first = bars.in_rows(
        "importances", "Which columns matter?",
        "How much the score falls when the values of one column are shuffled. Whiskers are two standard errors.",
        entries, axis=f"{label} lost", description=f"Importances of {len(entries)} features.",
    )  # fmt: skip
    columns = mapping(ablation.get("table"))
    parts = [
        (name, d, None if e is None or d is None else d - 2 * e, None if e is None or d is None else d + 2 * e)
        for name, drop, error in zip(
            items(columns.get("component")), items(columns.get("drop")), items(columns.get("drop_error")), strict=False
        )
        for d, e in [(number(drop), number(error))]
    ]
    parts.sort(key=lambda entry: -(entry[1] if entry[1] is not None else float("-inf")))
    second = bars.in_rows(
        "ablation", "What is lost without it?",
        "Each part was taken away and everything fitted anew. Whiskers are two standard errors.",
        parts, axis="score lost without it", description=f"Ablation of {len(parts)} components.",
    )  # fmt: skip
    return _all(advised(ablation), _grid(first, second), found_table(ablation, folded="All numbers of the ablation"))


def fails(record: dict[str, Any]) -> Html | None:
    """Slices with more loss than the rest, and the worst rows."""
    slices = finding_of(record, "slices")
    if not slices:
        return None
    columns = mapping(slices.get("table"))
    names = [items(columns.get(key)) for key in ("slice", "above_rest", "lower", "upper")]
    entries = [(rule, number(a), number(b), number(c)) for rule, a, b, c in zip(*names, strict=False)]
    drawn = bars.in_rows(
        "slices", "Which parts are worse than the rest?",
        "The loss of each part less that of the rest, with intervals that hold for all at once. Orange is worse beyond "
        "doubt.",
        entries, axis="loss above the rest", bar=False, worse="vermilion", description=f"{len(entries)} slices.",
    )  # fmt: skip
    examples = mapping(slices.get("examples"))
    return _all(
        advised(slices),
        _grid(drawn),
        found_table(slices, folded="All numbers of the slices"),
        tag("h3", "The worst rows") if examples else None,
        found_table({"table": examples}) if examples else None,
    )


def cut(record: dict[str, Any]) -> Html | None:
    """The threshold of a two-class model."""
    finding = finding_of(record, "threshold")
    curve = charts.thresholds(mapping(mapping(record.get("curves")).get("threshold")))
    return _all(advised(finding), _grid(curve), found_table(finding))


# ---------------------------------------------------------------- reproduce


def reproduce(record: dict[str, Any]) -> Html | None:
    """The script and the environment."""
    script, environment = record.get("reproduce"), mapping(record.get("environment"))
    parts: list[Html | None] = []
    if isinstance(script, str) and script.strip():
        shown_text = (
            script if len(script) <= _SCRIPT else script[:_SCRIPT] + "\n# ... cut here; all of it is in the JSON file"
        )
        code = tag("code", text(shown_text, _SCRIPT + 100))
        parts += [_lead("This script makes the same model, to the last bit."), tag("pre", code, tabindex="0")]
    if environment:
        rows = [[clipped(key, 40), clipped(value, 120)] for key, value in list(environment.items())[:_SETTINGS]]
        parts += [
            tag("h3", "Environment"),
            table(["", ""], rows, label="environment", class_="plain"),
            more(len(environment) - len(rows), "entries"),
        ]
    return _all(*parts)


#: Anchor, name in the table of contents, heading, and what makes the body.
SECTIONS: tuple[tuple[str, str, str, Section], ...] = (
    ("data", "Data", "The data", data),
    ("models", "Models tried", "Models tried", models),
    ("quality", "How good is it", "How good is it?", quality),
    ("proof", "Is the fit proven", "Is the fit proven?", proof),
    ("limits", "What limits it", "What limits it?", limits),
    ("earned", "What earned the score", "What earned the score?", earned),
    ("fails", "Where it fails", "Where does it fail?", fails),
    ("threshold", "Threshold", "Where to set the threshold?", cut),
    ("reproduce", "Reproduce", "Reproduce it", reproduce),
)
