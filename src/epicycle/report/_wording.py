"""What the numbers of a record say, in sentences that a newcomer understands."""

from __future__ import annotations

import re
from typing import Any

from epicycle.report._markup import Html, joined, tag
from epicycle.report._plain import items, mapping, number, shown, text, whole

__all__ = [
    "beats",
    "best_row",
    "certified",
    "greater_is_better",
    "headline",
    "in_doubt",
    "metric_label",
    "model_name",
    "next_steps",
    "sentence",
]

_NUMBER = re.compile(r"(\d[\d.]*e-\d+)")
_SLOTS = ("bias_variance", "optimizer_or_objective", "slices", "ablation", "threshold")


def metric_label(record: dict[str, Any]) -> str:
    """What the scores are called."""
    metric = mapping(record.get("metric"))
    found = metric.get("label") or metric.get("name") or record.get("score_name")
    return text(found, 40).replace("_", " ") if found else "score"


def greater_is_better(record: dict[str, Any]) -> bool:
    """Whether larger scores are better, which they are unless the record says otherwise."""
    return mapping(record.get("metric")).get("greater_is_better") is not False


def model_name(row: dict[str, Any]) -> str:
    """The name of a model, without its parameters where these are given by themselves."""
    name = text(row.get("name"), 200)
    return name.partition("(")[0] if row.get("params") and name.endswith(")") and not name.startswith("(") else name


def best_row(record: dict[str, Any]) -> int | None:
    """Which row of the leaderboard won: the one named, else the one with the best score."""
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
    """What the interval of the test score says."""
    test = mapping(record.get("test"))
    lower, upper, level = (number(test.get(key)) for key in ("lower", "upper", "level"))
    sure = f"{0.95 if level is None else level:.4g}"
    sure = f"{float(sure):.0%}" if float(sure) * 100 % 1 == 0 else f"{float(sure) * 100:.4g}%"
    if lower is not None and upper is not None:
        said = f"between {shown(lower, 3)} and {shown(upper, 3)}"
    elif lower is not None:
        said = f"at least {shown(lower, 3)}"
    elif upper is not None:
        said = f"at most {shown(upper, 3)}"
    else:
        return None
    return joined(f"with {sure} confidence the true {metric_label(record)} is ", tag("strong", said))


def _baseline(record: dict[str, Any]) -> float | None:
    found = number(mapping(record.get("test")).get("baseline_score"))
    return number(mapping(record.get("baseline")).get("score_mean")) if found is None else found


def beats(record: dict[str, Any]) -> bool | None:
    """Whether the interval of the test score lies wholly on the better side of the baseline; None where unknown."""
    test, base = mapping(record.get("test")), _baseline(record)
    end = number(test.get("lower" if greater_is_better(record) else "upper"))
    if base is None or end is None:
        return None
    return end > base if greater_is_better(record) else end < base


def in_doubt(record: dict[str, Any]) -> Html | None:
    """The baseline, and whether the model is better than it beyond doubt."""
    base = _baseline(record)
    if base is None:
        return None
    name = mapping(record.get("baseline")).get("name")
    called = f"The baseline ({text(name, 60)})" if name else "The baseline, which learns nothing from the features,"
    said = f"{called} scores {shown(base, 3)}: "
    verdict = {
        True: "the whole interval is better than that, so the model has learnt something real.",
        False: "the interval reaches it, so the test rows alone do not prove that the model is better.",
        None: "",
    }[beats(record)]
    return joined(said, verdict) if verdict else joined(said.removesuffix(": ") + ".")


def headline(record: dict[str, Any]) -> list[Html]:
    """What was predicted, which model won, and how good it is."""
    data, test = mapping(record.get("data")), mapping(record.get("test"))
    found: list[Html] = []
    rows = items(record.get("leaderboard"))
    if (at := best_row(record)) is not None:
        winner = tag("strong", text(model_name(mapping(rows[at])), 80))
        beaten = f" did best of {len(rows):,} models tried." if len(rows) > 1 else " was fitted."
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
        said = [
            f"{on}, set aside before anything was learnt, its {metric_label(record)} is ",
            tag("strong", shown(score, 3)),
        ]
        bound = _bound(record)
        found.append(joined(*said, *(("; ", bound, ".") if bound else (".",))))
    if doubt := in_doubt(record):
        found.append(doubt)
    return found


def certified(certificate: dict[str, Any]) -> tuple[str, Html]:
    """ "good", "bad" or "none", and the certificate in words."""
    kind, meaning = text(certificate.get("kind") or "certificate", 60), certificate.get("meaning")
    value, tolerance = number(certificate.get("value")), number(certificate.get("tolerance"))
    if kind == "none":
        why = f": {text(meaning, 300)}" if meaning else ""
        return "none", joined(f"Nothing to prove. This method minimises nothing that could be checked{why}.")
    holds = certificate.get("holds")
    if not isinstance(holds, bool):
        holds = value is not None and tolerance is not None and value <= tolerance
    measured = _unbroken(f"The {kind} is {shown(value, 2)}; it had to be at most {shown(tolerance, 2)}.")
    if holds:
        claim = _unbroken(f" What is proven: {text(meaning, 400).rstrip('.')}.") if meaning else ""
        return "good", joined(tag("strong", "Yes, the fit is proven. "), measured, claim)
    return "bad", joined(
        tag("strong", "No, the optimiser stopped before its goal. "),
        measured,
        " More iterations, another solver or scaled features may give a better model.",
    )


def next_steps(record: dict[str, Any], most: int = 6) -> list[str]:
    """What to try, the gravest first: warnings of high severity, an unproven fit, then the advice of the findings."""
    steps = [
        text(warned.get("text"), 260)
        for warned in map(mapping, items(record.get("warnings")))
        if text(warned.get("severity")).lower() in ("high", "critical", "error") and warned.get("text")
    ]
    if "certificate" in record and certified(mapping(record["certificate"]))[0] == "bad":
        steps.append("Let the optimiser finish: the fit did not reach the minimum that it was after.")
    if beats(record) is False:
        steps.append("Get more test rows, or a better model: it is not shown to be better than the baseline.")
    findings = [mapping(finding) for finding in items(record.get("findings"))]
    rank = {slot: i for i, slot in enumerate(_SLOTS)}
    findings.sort(key=lambda finding: rank.get(text(finding.get("slot")), len(rank)))
    advice = [[text(step, 260) for step in items(finding.get("next_steps"))] for finding in findings]
    for i in range(2):  # the first of each, then the second of each
        steps += [given[i] for given in advice if len(given) > i]
    return list(dict.fromkeys(map(sentence, steps)))[:most]


def sentence(said: str) -> str:
    """With a capital letter at the start and a full stop at the end."""
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "?", "!")) else ".")


def _unbroken(said: str) -> Html:
    """Text in which no line ends inside a number, after the minus of its exponent."""
    return joined(tag("span", part, class_="whole") if i % 2 else part for i, part in enumerate(_NUMBER.split(said)))
