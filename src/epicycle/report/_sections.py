"""The sections of the page, each from its part of the record; None where there is nothing to show."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from epicycle.report import (
    _anomalies as anomalies,
    _bars as bars,
    _charts as charts,
    _clusters as clusters,
    _columns as columns,
    _comparison as comparison,
    _effects as effects,
    _explanations as learnt,
    _recommendations as recommendations,
    _scores as scores,
)
from epicycle.report._markup import Child, Html, clipped, joined, more, table, tag
from epicycle.report._plain import DASH, items, mapping, number, shown, text, whole
from epicycle.report._svg import span_of
from epicycle.report._wording import (
    about,
    advised,
    best_row,
    certified,
    finding_of,
    found_table,
    greater_is_better,
    headline,
    interval_words,
    metric_label,
    model_name,
    restriction_words,
)
from epicycle.report.decisions import _agents as agents, _planning as planning
from epicycle.report.latent import _synthetic as synthetic, _topics as topics
from epicycle.report.runs import _targets as targets

_WARNINGS = 40
_RANK = {"critical": 0, "error": 0, "high": 0, "medium": 1, "warning": 1, "low": 2, "info": 2}


def data(record: dict[str, Any]) -> Html | None:
    """Size, warnings, plan and profile."""
    summary, profiles = mapping(record.get("data")), [mapping(row) for row in items(record.get("columns"))]
    warned = [mapping(entry) for entry in items(record.get("warnings"))]
    return _all(
        _summary(summary),
        _warned(warned),
        _grid(columns.target(record, profiles), columns.missing(profiles), columns.correlations(record)),
        _plan(record.get("plan")),
        columns.listed(profiles),
    )


def _summary(summary: dict[str, Any]) -> Html | None:
    facts: list[tuple[str, str]] = []
    for key, name in (("source", "Source"), ("task", "Task"), ("target", "Target")):
        if summary.get(key) is not None:
            facts.append((name, text(summary[key], 160)))
    for key, name in (("rows", "Rows"), ("columns", "Columns")):
        if summary.get(key) is not None:
            facts.append((name, whole(summary[key])))
    split = mapping(summary.get("split"))
    if split:
        facts.append(("Split", ", ".join(f"{text(k, 30)} {whole(v)}" for k, v in list(split.items())[:6])))
    known = {"source", "task", "target", "rows", "columns", "split"}
    for key, value in list(summary.items())[:24]:
        if key not in known and value is not None:
            name = text(key, 40).replace("_", " ")
            facts.append((name[:1].upper() + name[1:], text(value, 120)))
    if not facts:
        return None
    return tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts")


def _severity(entry: dict[str, Any]) -> int:
    return _RANK.get(text(entry.get("severity")).lower(), 1)


def _warned(warned: list[dict[str, Any]]) -> Html | None:
    if not warned:
        return None
    order = sorted(warned, key=_severity)[:_WARNINGS]
    lines = []
    for entry in order:
        severity = ("high", "medium", "low")[_severity(entry)]
        names = [text(name, 40) for name in items(entry.get("columns"))]
        some = ", ".join(names[:8]) + (f" and {len(names) - 8:,} more" if len(names) > 8 else "")
        kind = text(entry.get("kind") or "note", 40).replace("_", " ")
        lines.append(
            tag(
                "li",
                tag("span", severity, class_=f"badge {severity}"),
                tag(
                    "div",
                    tag("strong", kind[:1].upper() + kind[1:], ". "),
                    text(entry.get("text"), 500),
                    tag("small", some, class_="params") if some else None,
                ),
                class_="warned",
            )
        )
    return joined(
        tag("h3", "Data checks"), tag("ul", lines, class_="warnings"), more(len(warned) - len(order), "warnings")
    )


def _plan(plan: Any) -> Html | None:
    if isinstance(plan, str) and plan.strip():
        body = tag("p", text(plan, 2000))
    elif isinstance(plan, list) and plan:
        body = joined(tag("ul", [tag("li", text(step, 400)) for step in plan[:30]]), more(len(plan) - 30, "steps"))
    elif isinstance(plan, dict) and plan:
        facts = list(plan.items())[:30]
        body = tag(
            "dl",
            [
                tag("div", tag("dt", text(key, 40).replace("_", " ").capitalize()), tag("dd", text(value, 400)))
                for key, value in facts
            ],
            class_="facts",
        )
    else:
        return None
    return joined(tag("h3", "Encoding of the columns"), body)


Section = Callable[[dict[str, Any]], Html | None]
_LEADERBOARD, _SCRIPT, _SETTINGS = 15, 40_000, 40
#: The table of a script, and its folder: a page that is passed on says nothing of the machine that it was made on.
_TABLE = re.compile(r"^DATA = .*$", re.MULTILINE)
_FOLDER = re.compile(r"(?<=['\"])(?:(?!::)[^'\"])*[/\\](?=[^'\"/\\]*(?:::[^'\"]*)?['\"])")


def _grid(*figures: Html | None) -> Html | None:
    drawn = [figure for figure in figures if figure is not None]
    return tag("div", drawn, class_="figures") if drawn else None


def _lead(words: Child) -> Html:
    return tag("p", words, class_="lead")


def _all(*parts: Html | None) -> Html | None:
    present = [part for part in parts if part]
    return joined(present) if present else None


# ---------------------------------------------------------------- models


def models(record: dict[str, Any]) -> Html | None:
    """The leaderboard, and the progress of the search."""
    rows = [mapping(row) for row in items(record.get("leaderboard"))]
    label, greater = metric_label(record), greater_is_better(record)
    curves = mapping(record.get("curves"))
    points = curves.get("search", curves.get("race"))  # its name in reports of 0.1.0
    search = charts.search_progress(items(points), label, greater)
    if not rows:
        return _grid(search) if search else None
    best, baseline = best_row(record), mapping(record.get("baseline"))
    base = number(baseline.get("score_mean"))
    sign = -1 if greater else 1

    def size_of(row: dict[str, Any]) -> tuple[float, float]:
        return number(row.get("rows")) or 0.0, number(row.get("n_folds")) or 0.0

    def place(i: int) -> tuple[Any, ...]:
        """The best first, then those with its rows and folds, so that neighbours can be compared."""
        score = number(rows[i].get("score_mean"))
        other = best is not None and size_of(rows[i]) != size_of(rows[best])
        return (i != best, score is None, other, *(-n for n in size_of(rows[i])), sign * (score or 0.0), i)

    known = [i for i in range(len(rows)) if number(rows[i].get("score_mean")) is not None]
    order = sorted(known or range(len(rows)), key=place)
    kept = order[:_LEADERBOARD]
    heads = [
        "",
        "model",
        label,
        "± s.e.",
        "against the baseline" if base is not None else "score",
        "seconds",
        "folds",
    ]
    with_status = any(text(rows[i].get("status") or "done", 40) not in ("done", "ok", "finished") for i in kept)
    lines: list[list[Child]] = []
    span = _score_span(rows, kept, base)
    apart = [size_of(rows[i]) != size_of(rows[kept[0]]) for i in kept]
    for rank, i in enumerate(kept):
        row = rows[i]
        listed = text(row.get("params"), 200) if row.get("params") else ""
        params = tag("small", clipped(listed, 90), class_="params") if listed else None
        line: list[Child] = [
            "" if apart[rank] else f"{rank + 1}",
            joined(clipped(model_name(row), 48), params),
            shown(row.get("score_mean")),
            shown(row.get("score_se"), 2),
            bars.score_cell(row.get("score_mean"), row.get("score_se"), base, span, i == best) or DASH,
            shown(row.get("seconds"), 3),
            whole(row.get("n_folds")),
        ]
        lines.append([*line, clipped(row.get("status"), 40)] if with_status else line)
    if with_status:
        heads.append("status")
    direction = "larger is better" if greater else "smaller is better"
    caption = (
        f"Every model was scored on rows that it was not fitted to: {label}, {direction}. Whiskers are two standard "
        "errors; models whose whiskers overlap much can hardly be distinguished."
    )
    if base is not None:
        name = f" ({text(baseline['name'], 60)})" if baseline.get("name") else ""
        caption += f" The vertical line is the baseline{name}, {shown(base)}."
    if any(apart):
        caption += " Models without a number have a score of other rows or folds, which compares with no other."
    chosen = text(mapping(rows[best]).get("method") or model_name(mapping(rows[best])), 60) if best is not None else ""
    cost = restriction_words(mapping(record.get("restriction")), chosen)
    return _all(
        _lead(caption),
        tag("p", cost, class_="verdict") if cost else None,
        tag("p", "An interrupt ended the search before its time.", class_="quiet")
        if record.get("interrupted")
        else None,
        table(heads, lines, numeric=(0, 2, 3, 5, 6), label="leaderboard", marked=0 if best is not None else None),
        more(len(order) - len(kept), "models"),
        _without_score([rows[i] for i in range(len(rows)) if i not in set(order)]),
        _grid(search),
    )


def _without_score(rows: list[dict[str, Any]]) -> Html | None:
    """The candidates that have no score, in a line for each reason."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        reasons.setdefault(text(row.get("status") or "no score", 120), []).append(
            text(row.get("method") or row.get("name"), 40)
        )
    lines = []
    for why, names in list(reasons.items())[:8]:
        once = list(dict.fromkeys(names))
        listed = ", ".join(once[:8]) + (", ..." if len(once) > 8 else "")
        lines.append(tag("p", f"{len(names):,} without a score ({why}): {listed}.", class_="quiet tight"))
    return joined(lines) if lines else None


def _score_span(rows: list[dict[str, Any]], kept: list[int], base: float | None) -> tuple[float, float]:
    """Range of the scores, without the outermost tenths, so that one failed model does not compress the others."""
    scores = sorted(s for i in kept if (s := number(rows[i].get("score_mean"))) is not None)
    inner = scores[len(scores) // 10 : len(scores) - len(scores) // 10] or scores
    if len(inner) > 2:  # and without those that lie ten times as far from the middle one as most
        middle = inner[len(inner) // 2]
        far = 10 * sorted(abs(s - middle) for s in inner)[len(inner) // 2] or float("inf")
        inner = [s for s in inner if abs(s - middle) <= far]
    reach = [
        s + side * 2 * (number(rows[i].get("score_se")) or 0.0)
        for i in kept
        if (s := number(rows[i].get("score_mean"))) is not None and inner and inner[0] <= s <= inner[-1]
        for side in (-1, 1)
    ]
    return span_of(reach, [base])


# ---------------------------------------------------------------- quality


def quality(record: dict[str, Any]) -> Html | None:
    """The test score in words, and the curves of the predictions."""
    curves = mapping(record.get("curves"))
    test = mapping(record.get("test"))
    lines = []
    if number(test.get("score")) is not None:
        lines = headline({key: value for key, value in record.items() if key != "leaderboard"})
        method = text(test.get("method"), 80).replace("_", " ") if test.get("method") else ""
        if method:
            lines.append(joined(tag("span", f"Method of the interval: {method}.", class_="quiet")))
    if interval := interval_words(mapping(record.get("prediction_interval"))):
        lines.append(joined(interval))
    figures = _grid(
        scores.predicted(mapping(curves.get("predictions"))),
        charts.calibration(mapping(curves.get("calibration"))),
        bars.confusion(mapping(curves.get("confusion"))),
        charts.roc(mapping(curves.get("roc"))),
        charts.precision_recall(mapping(curves.get("precision_recall"))),
        scores.gain(mapping(curves.get("gain"))),
        scores.lift(mapping(curves.get("gain"))),
        charts.residuals(mapping(curves.get("residuals"))),
    )
    return _all(*(tag("p", words) for words in lines), scores.metrics(record), figures, scores.classes(record))


# ---------------------------------------------------------------- proof


def proof(record: dict[str, Any]) -> Html | None:
    """The certificate in words."""
    certificate = mapping(record.get("certificate"))
    if not certificate:
        return None
    state, words = certified(certificate)
    note = (
        "A certificate is about the optimisation: no other parameters of the same model fit the training rows "
        "better. Whether the model predicts well is shown by the test score."
    )
    return _all(tag("p", words, class_=f"verdict {state}"), tag("p", note, class_="quiet") if state != "none" else None)


# ---------------------------------------------------------------- findings


def limits(record: dict[str, Any]) -> Html | None:
    """Bias or variance, optimiser or objective."""
    bias, objective = finding_of(record, "bias_variance"), finding_of(record, "optimizer_or_objective")
    curve = mapping(mapping(record.get("curves")).get("learning_curve"))
    named: dict[str, Any] = {"metric": curve["metric"]} if mapping(curve.get("metric")) else record
    if not curve:
        curve, named = _curve_of(bias), {}  # the table has no metric, and larger is better there
    return _all(
        tag("h3", "Bias or variance") if bias or curve else None,
        advised(bias),
        _grid(charts.learning_curve(curve, metric_label(named), greater_is_better(named))),
        tag("h3", f"Optimiser or objective of {about(objective)}") if objective else None,
        advised(objective),
        found_table(objective),
        *_other_findings(record),
        _left_out(mapping(record.get("skipped"))),
    )


_SLOTS = {
    "bias_variance": "the learning curve",
    "importances": "importances",
    "slices": "slices",
    "worst_rows": "the rows with the largest losses",
    "threshold": "the threshold",
    "dependence": "partial dependence",
    "surrogate": "the surrogate tree",
    "contributions": "contributions",
    "optimizer_or_objective": "optimiser or objective",
    "ablation": "the ablation",
}


def _left_out(skipped: dict[str, Any]) -> Html | None:
    """Parts that the time did not allow, so that nobody looks for them."""
    late = [_SLOTS.get(slot, slot) for slot, why in skipped.items() if re.search(r"out of time|longer", text(why))]
    if not late:
        return None
    listed = " and ".join([", ".join(late[:-1]), late[-1]] if len(late) > 1 else late)
    option = tag("span", "--time", class_="whole")
    return tag("p", f"Left out for want of time: {listed}. A longer ", option, " shows them.", class_="quiet")


def _curve_of(finding: dict[str, Any]) -> dict[str, Any]:
    """The learning curve out of the table of a finding."""
    found = mapping(finding.get("table"))
    against = items(found.get("against"))
    rows = [i for i, name in enumerate(against) if name == "rows"]
    named = {
        "sizes": "value",
        "train": "train_score",
        "train_se": "train_error",
        "test": "validation_score",
        "test_se": "validation_error",
    }
    return {
        key: [values[i] for i in rows if i < len(values)]
        for key, name in named.items()
        if (values := items(found.get(name)))
    }


def _other_findings(record: dict[str, Any]) -> list[Html | None]:
    """Findings without a section."""
    known = {"bias_variance", "optimizer_or_objective", "ablation", "slices", "threshold"}
    parts: list[Html | None] = []
    others = [f for f in map(mapping, items(record.get("findings"))) if text(f.get("slot")) not in known]
    for finding in others[:4]:
        name = text(finding.get("slot") or finding.get("kind") or "Finding", 60).replace("_", " ")
        parts += [tag("h3", name[:1].upper() + name[1:]), advised(finding), found_table(finding)]
    return parts


def importances(record: dict[str, Any]) -> Html | None:
    """Importances and ablation."""
    ablation = finding_of(record, "ablation")
    label = metric_label(record)
    rows = [mapping(row) for row in items(mapping(record.get("curves")).get("importances"))]
    entries = _ranked((row.get("name"), row.get("mean"), row.get("se")) for row in rows)
    first = bars.in_rows(
        "importances",
        "By shuffling",
        "Loss of score when the values of a column are shuffled. Whiskers are two standard errors.",
        entries,
        axis=f"{label} lost",
        description=f"Importances of {len(entries)} features.",
    )
    found = mapping(ablation.get("table"))
    named = (items(found.get(key)) for key in ("component", "drop", "drop_error"))
    parts = _ranked(zip(*named, strict=False))
    second = bars.in_rows(
        "ablation",
        "Loss without a component",
        "Each component was removed and the model fitted again. Whiskers are two standard errors.",
        parts,
        axis="score lost without it",
        description=f"Ablation of {len(parts)} components.",
    )
    return _all(advised(ablation), _grid(first, second), found_table(ablation, folded="All numbers of the ablation"))


def _ranked(rows: Iterable[tuple[Any, Any, Any]]) -> list[tuple[Any, float | None, float | None, float | None]]:
    """Name, value and two standard errors to each side, from (name, value, standard error); the largest first."""
    found = []
    for name, given, error in rows:
        value, spread = number(given), number(error)
        ends = (None, None) if value is None or spread is None else (value - 2 * spread, value + 2 * spread)
        found.append((name, value, *ends))
    return sorted(found, key=lambda entry: -(entry[1] if entry[1] is not None else float("-inf")))


def errors(record: dict[str, Any]) -> Html | None:
    """Slices with more loss than the rest, and the rows with the largest losses."""
    slices = finding_of(record, "slices")
    examples = mapping(slices.get("examples")) or mapping(record.get("worst_rows"))
    if not slices and not examples:
        return None
    found = mapping(slices.get("table"))
    names = [items(found.get(key)) for key in ("slice", "above_rest", "lower", "upper")]
    entries = [(rule, number(a), number(b), number(c)) for rule, a, b, c in zip(*names, strict=False)]
    drawn = bars.in_rows(
        "slices",
        "Slices with higher loss",
        "The loss of each slice minus that of the rest, with simultaneous intervals. Orange is significantly worse.",
        entries,
        axis="loss above the rest",
        bar=False,
        worse="vermilion",
        description=f"{len(entries)} slices.",
    )
    return _all(
        advised(slices),
        _grid(drawn),
        found_table(slices, folded="All numbers of the slices"),
        tag("h3", "Rows with the largest losses") if examples else None,
        found_table({"table": examples}) if examples else None,
    )


def threshold(record: dict[str, Any]) -> Html | None:
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
            script
            if len(script) <= _SCRIPT
            else script[:_SCRIPT] + "\n# ... shortened here; the JSON file has all of it"
        )
        shown_text = _TABLE.sub(lambda line: _FOLDER.sub("", line[0]), shown_text, count=1)
        code = tag("code", text(shown_text, _SCRIPT + 100))
        parts += [_lead("This script fits the same model, bit for bit."), tag("pre", code, tabindex="0")]
    if environment:
        rows = [[clipped(key, 40), clipped(value, 120)] for key, value in list(environment.items())[:_SETTINGS]]
        parts += [
            tag("h3", "Environment"),
            table(["", ""], rows, label="environment", class_="plain"),
            more(len(environment) - len(rows), "entries"),
        ]
    return _all(*parts)


#: Anchor, name in the table of contents, heading, and the function of the body.
SECTIONS: tuple[tuple[str, str, str, Section], ...] = (
    ("comparison", "Side by side", "Two runs side by side", comparison.side_by_side),
    ("targets", "Targets", "The targets", targets.targets),
    ("data", "Data", "The data", data),
    ("identification", "Identification", "Why this is an effect", effects.identification),
    ("estimates", "Estimates", "Estimates side by side", effects.estimates),
    ("overlap", "Overlap", "Overlap of the arms", effects.overlap),
    ("balance", "Balance", "Balance of the covariates", effects.balance),
    ("sensitivity", "Sensitivity", "Sensitivity and refutations", effects.sensitivity),
    ("doubts", "Doubts", "What would have to be true for this to be wrong", effects.doubts),
    ("number", "Number of clusters", "How many clusters", clusters.number_of_clusters),
    ("clusters", "Clusters", "The clusters", clusters.clusters),
    ("policy", "Policy", "Policy and values", planning.policy),
    ("bounds", "Certificate", "Certificate of the plan", planning.convergence),
    ("learning", "Learning", "Learning", agents.learning),
    ("returns", "Evaluation", "Evaluation", agents.evaluation),
    ("episode", "An episode", "An episode", agents.episode),
    ("world", "Policy", "Policy and values", agents.world),
    ("optimality", "Certificate", "Certificate of the policy", agents.optimality),
    ("unusual", "Unusual rows", "The most unusual rows", anomalies.unusual),
    ("detectors", "Detectors", "Detectors side by side", anomalies.candidates),
    ("scores", "Scores", "Scores and columns", anomalies.scores),
    ("marginals", "Columns", "Columns of real and drawn rows", synthetic.marginals),
    ("pairs", "Pairs", "How columns depend on each other", synthetic.dependence),
    ("utility", "Utility", "What can be learnt from the rows", synthetic.utility),
    ("privacy", "Privacy", "How near to real rows", synthetic.privacy),
    ("ratings", "Ratings", "The ratings", recommendations.ratings),
    ("candidates", "Candidates", "Candidates", recommendations.candidates),
    ("lists", "Lists", "What the lists are worth", recommendations.lists),
    ("examples", "Examples", "Examples", recommendations.examples),
    ("fit", "Certificate", "Certificate of the fit", recommendations.convergence),
    ("topics", "Topics", "The topics", topics.topics),
    ("shares", "Shares", "Shares of the topics", topics.over),
    ("documents", "Documents", "Documents of the topics", topics.documents),
    ("perplexity", "Number of topics", "How many topics", topics.number_of_topics),
    ("sampler", "Certificate", "Certificate of the fit", topics.convergence),
    ("models", "Leaderboard", "Leaderboard", models),
    ("quality", "Test score", "Test score", quality),
    ("groups", "Groups", "Rates by group", scores.groups),
    ("proof", "Certificate", "Certificate of the fit", proof),
    ("limits", "Diagnoses", "Diagnoses", limits),
    ("earned", "Importances", "Importance of the columns", importances),
    ("learnt", "Explanations", "What the model has learnt", learnt.explanations),
    ("fails", "Errors", "Where the errors are", errors),
    ("threshold", "Threshold", "Threshold", threshold),
    ("reproduce", "Reproduce", "Reproduce", reproduce),
)
