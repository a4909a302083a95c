"""Sentences about the numbers of a record, and the display of findings."""

from __future__ import annotations

import re
from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import brief, items, mapping, number, shown, text, whole

_NUMBER = re.compile(r"(\d[\d.]*e-\d+)")
_SLOTS = ("bias_variance", "optimizer_or_objective", "slices", "ablation", "threshold")


def metric_label(record: dict[str, Any]) -> str:
    """Name of the metric."""
    metric = mapping(record.get("metric"))
    found = metric.get("label") or metric.get("name") or record.get("score_name")
    return text(found, 40).replace("_", " ") if found else "score"


def greater_is_better(record: dict[str, Any]) -> bool:
    """Whether larger scores are better, the default."""
    return mapping(record.get("metric")).get("greater_is_better") is not False


def model_name(row: dict[str, Any]) -> str:
    """The name of a model, without its parameters where these are given separately."""
    name = text(row.get("name"), 200)
    return name.partition("(")[0] if row.get("params") and name.endswith(")") and not name.startswith("(") else name


def best_row(record: dict[str, Any]) -> int | None:
    """Index of the best row of the leaderboard: the one named, else the one with the best score."""
    rows = [mapping(row) for row in items(record.get("leaderboard"))]
    if record.get("best") is not None:
        named = [i for i, row in enumerate(rows) if row.get("name") == record["best"]]
        if named:
            return named[0]
    scored = [(score, i) for i, row in enumerate(rows) if (score := number(row.get("score_mean"))) is not None]
    if not scored:
        return None
    sign = 1 if greater_is_better(record) else -1
    return max(scored, key=lambda pair: (sign * pair[0], -pair[1]))[1]


def _bound(record: dict[str, Any]) -> Html | None:
    """The interval of the test score in words."""
    test = mapping(record.get("test"))
    lower, upper, level = (number(test.get(key)) for key in ("lower", "upper", "level"))
    sure = f"{0.95 if level is None else level:.4g}"
    sure = f"{float(sure):.0%}" if float(sure) * 100 % 1 == 0 else f"{float(sure) * 100:.4g}%"
    if lower is not None and upper is not None:
        interval = f"between {shown(lower, 3)} and {shown(upper, 3)}"
    elif lower is not None:
        interval = f"at least {shown(lower, 3)}"
    elif upper is not None:
        interval = f"at most {shown(upper, 3)}"
    else:
        return None
    return joined(f"with {sure} confidence the true {metric_label(record)} is ", tag("strong", interval))


def _baseline(record: dict[str, Any]) -> float | None:
    found = number(mapping(record.get("test")).get("baseline_score"))
    return number(mapping(record.get("baseline")).get("score_mean")) if found is None else found


def beats(record: dict[str, Any]) -> bool | None:
    """Whether the whole interval of the test score is better than the baseline; None where unknown."""
    test, base = mapping(record.get("test")), _baseline(record)
    end = number(test.get("lower" if greater_is_better(record) else "upper"))
    if base is None or end is None:
        return None
    return end > base if greater_is_better(record) else end < base


def baseline_comparison(record: dict[str, Any]) -> Html | None:
    """The baseline, and whether the model is significantly better."""
    base = _baseline(record)
    if base is None:
        return None
    name = mapping(record.get("baseline")).get("name")
    called = f"The baseline ({text(name, 60)})" if name else "The baseline, which does not use the features,"
    score = f"{called} scores {shown(base, 3)}: "
    verdict = {
        True: "the whole interval is better, so the model is significantly better than the baseline.",
        False: "the interval includes it, so the test set does not show that the model is better.",
        None: "",
    }[beats(record)]
    return joined(score, verdict) if verdict else joined(score.removesuffix(": ") + ".")


def headline(record: dict[str, Any]) -> list[Html]:
    """The target, the best model, and its test score in words."""
    data, test = mapping(record.get("data")), mapping(record.get("test"))
    found: list[Html] = []
    rows = items(record.get("leaderboard"))
    if (at := best_row(record)) is not None:
        winner = tag("strong", text(model_name(mapping(rows[at])), 80))
        tried = len(scored(rows))
        beaten = f" is the best of {tried:,} candidates." if tried > 1 else " was fitted."
        size = ""
        if data.get("rows") is not None:
            size = f" from {whole(data['rows'])} rows"
            size += f" of {whole(data['columns'])} columns" if data.get("columns") is not None else ""
        purpose = (
            joined("To predict ", tag("strong", text(data["target"], 80)), size, ", ") if data.get("target") else None
        )
        found.append(joined(purpose, winner, beaten))
    score = number(test.get("score"))
    if score is not None:
        on = f"On {whole(test['n'])} test rows" if number(test.get("n")) is not None else "On the test rows"
        parts = [
            f"{on}, which were not used for training, its {metric_label(record)} is ",
            tag("strong", shown(score, 3)),
        ]
        bound = _bound(record)
        found.append(joined(*parts, *(("; ", bound, ".") if bound else (".",))))
    if doubt := baseline_comparison(record):
        found.append(doubt)
    return found


def certified(certificate: dict[str, Any]) -> tuple[str, Html]:
    """Mark ("good", "bad" or "none") and words of a certificate."""
    kind, meaning = text(certificate.get("kind") or "certificate", 60), certificate.get("meaning")
    value, tolerance = number(certificate.get("value")), number(certificate.get("tolerance"))
    if kind == "none":
        why = f": {text(meaning, 300)}" if meaning else ""
        return "none", joined(f"No certificate. This method has no objective whose minimum could be certified{why}.")
    holds = certificate.get("holds")
    if not isinstance(holds, bool):
        holds = value is not None and tolerance is not None and value <= tolerance
    measured = _unbroken(f"The {kind} is {shown(value, 2)}; the tolerance is {shown(tolerance, 2)}.")
    if holds:
        claim = _unbroken(f" Meaning: {text(meaning, 400).rstrip('.')}.") if meaning else ""
        return "good", joined(tag("strong", "Yes, the optimum is certified. "), measured, claim)
    return "bad", joined(
        tag("strong", "No, the optimiser did not converge. "),
        measured,
        " More iterations, another solver or scaled features may give a better model.",
    )


def scored(rows: list[Any]) -> list[dict[str, Any]]:
    """The candidates that have a score."""
    return [row for row in map(mapping, rows) if number(row.get("score_mean")) is not None]


def interval_words(interval: dict[str, Any]) -> str:
    """The prediction intervals of a regression, or its quantile, and how many of the test rows they hold."""
    width, held = number(interval.get("half_width")), number(interval.get("coverage"))
    quantile, rows = number(interval.get("quantile")), number(interval.get("rows"))
    level = number(interval.get("level")) if quantile is None else quantile
    if held is None or level is None or (width is None and quantile is None):
        return ""
    expected = ""
    if rows:
        # Two standard errors of the share of so many rows.
        error = 2 * (level * (1 - level) / rows) ** 0.5
        expected = ", as they should" if abs(held - level) <= error else f", where {brief(100 * level)}% were expected"
    if quantile is not None:
        return f"{held:.1%} of the test rows are at or below their predicted quantile of {brief(level)}{expected}."
    return f"Prediction intervals at {level:.0%}: ± {shown(width)}, which hold {held:.1%} of the test rows{expected}."


def restriction_words(restriction: dict[str, Any], chosen: str) -> str:
    """The cost of keeping to a model that can be read, in words."""
    name, score, here = text(restriction.get("name"), 60), restriction.get("score"), restriction.get("score_chosen")
    cost, error = number(restriction.get("cost")), number(restriction.get("cost_se"))
    if cost is None:
        return ""
    if cost <= 0:
        return (
            f"{chosen} can be read, and nothing is lost by it: the best other model, {name}, scores {shown(score)} on "
            f"the same folds, against {shown(here)}."
        )
    doubt = "" if error is None else f", by {shown(cost, 3)} with a standard error of {shown(error, 2)}"
    return (
        f"{chosen} can be read; the best model that cannot, {name}, scores {shown(score)} instead of {shown(here)} on "
        f"the same folds{doubt}."
    )


def next_steps(record: dict[str, Any], limit: int = 6) -> list[str]:
    """Next steps, the most important first: severe warnings, a fit without certificate, then the advice of findings."""
    steps = [
        text(warned.get("text"), 260)
        for warned in map(mapping, items(record.get("warnings")))
        if text(warned.get("severity")).lower() in ("high", "critical", "error") and warned.get("text")
    ]
    if "certificate" in record and certified(mapping(record["certificate"]))[0] == "bad":
        steps.append("Let the optimiser converge: the fit did not reach its minimum.")
    if beats(record) is False:
        steps.append("Get more test rows, or a better model: it is not shown to be better than the baseline.")
    findings = [finding for finding in map(mapping, items(record.get("findings"))) if _of_chosen(finding, record)]
    rank = {slot: i for i, slot in enumerate(_SLOTS)}
    findings.sort(key=lambda finding: rank.get(text(finding.get("slot")), len(rank)))
    advice = [[text(step, 260) for step in items(finding.get("next_steps"))] for finding in findings]
    # No finding should crowd out the others.
    for i in range(2):  # the first of each, then the second of each
        steps += [given[i] for given in advice if len(given) > i]
    return list(dict.fromkeys(map(sentence, steps)))[:limit]


def about(finding: dict[str, Any]) -> str:
    """The model that a finding about an optimiser speaks of."""
    models = items(mapping(finding.get("table")).get("model"))
    return text(models[0], 60) if models else "the model"


def _of_chosen(finding: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a finding is about the chosen model: the one of the optimiser is about the best linear model."""
    at = best_row(record)
    if finding.get("slot") != "optimizer_or_objective" or at is None:
        return True
    row = mapping(items(record.get("leaderboard"))[at])
    return about(finding) in ("the model", text(row.get("method"), 60), model_name(row))


def sentence(words: str) -> str:
    """The text with a capital letter at the start and a full stop at the end."""
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "?", "!")) else ".")


def _unbroken(words: str) -> Html:
    """Text in which no line breaks inside a number, after the minus of its exponent."""
    return joined(tag("span", part, class_="whole") if i % 2 else part for i, part in enumerate(_NUMBER.split(words)))


_ROWS, _COLUMNS = 25, 10
_HEADS = {"f1": "F1"}


def finding_of(record: dict[str, Any], slot: str) -> dict[str, Any]:
    """The first finding of a slot, else an empty one."""
    findings = (mapping(finding) for finding in items(record.get("findings")))
    return next((finding for finding in findings if finding.get("slot") == slot), {})


def advised(finding: dict[str, Any]) -> Html | None:
    """Verdict, steps and notes."""
    parts = []
    if finding.get("verdict"):
        parts.append(tag("p", sentence(text(finding["verdict"], 1000)), class_="verdict"))
    if steps := [text(step, 400) for step in items(finding.get("next_steps"))[:8]]:
        parts.append(tag("p", "Next steps:", class_="quiet tight"))
        parts.append(tag("ul", [tag("li", sentence(step)) for step in steps]))
    parts += [
        tag("p", f"Note: {text(note, 400).rstrip('.')}.", class_="quiet") for note in items(finding.get("notes"))[:6]
    ]
    return joined(parts) if parts else None


def found_table(finding: dict[str, Any], *, folded: str = "") -> Html | None:
    """The table; folded under the line `folded` where that is given."""
    columns = {key: items(values) for key, values in list(mapping(finding.get("table")).items())[:_COLUMNS]}
    n = max(map(len, columns.values()), default=0)
    if n == 0:
        return None
    kept = min(n, _ROWS)
    numeric = [
        j
        for j, values in enumerate(columns.values())
        if any(number(v) is not None for v in values) and not any(isinstance(v, str) for v in values)
    ]
    written = [_column(values[:kept]) for values in columns.values()]
    rows = [[cells[i] if i < len(cells) else _cell(None) for cells in written] for i in range(kept)]
    heads = [_HEADS.get(name, text(name, 40).replace("_", " ")) for name in columns]
    inner = joined(table(heads, rows, numeric=numeric, label=folded or "numbers", class_="fit"), more(n - kept, "rows"))
    return tag("details", tag("summary", folded), inner) if folded else inner


def _column(values: list[Any]) -> list[Html]:
    """The cells of a column: numbers with the same decimals, as few as they need, unless their sizes differ much."""
    found = [value for v in values if (value := number(v)) is not None]
    if found and all(value.is_integer() and 1500 <= value <= 2100 for value in found):  # years
        return [_cell(v) if number(v) is None else joined(f"{v:.0f}") for v in values]
    short = [brief(value) for value in found]
    places = max((len(words.partition(".")[2]) for words in short), default=0)
    # More than six digits for one of them would be longer than each with four.
    if any("e" in words for words in short) or places + len(f"{max(map(abs, found), default=0):.0f}") > 6:
        return [_cell(value) for value in values]
    return [_cell(v) if (value := number(v)) is None else joined(f"{value:,.{places}f}") for v in values]


def _cell(value: Any) -> Html:
    return joined(shown(value)) if number(value) is not None else clipped(value, 80)
