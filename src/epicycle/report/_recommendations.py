"""The sections of recommendations: the ratings, the candidates, what the lists are worth, examples, the certificate."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import Canvas, figure, span_of, tick_label
from epicycle.report.latent import _convergence

_CANDIDATES, _USERS = 30, 10
_CRITERIA = (("ndcg", "NDCG"), ("map", "MAP"), ("recall", "recall"), ("coverage", "coverage"))


def recommendations_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about recommendations; empty where there is none."""
    return mapping(record.get("recommendations"))


def _percent(value: Any) -> str:
    found = number(value)
    return "–" if found is None else f"{found:.1%}"


def headline(found: dict[str, Any]) -> list[Html]:
    """The conclusion, and on what it rests."""
    words = text(found.get("verdict"), 400)
    counts, time = mapping(found.get("counts")), mapping(found.get("columns")).get("time")
    how = f"by {text(time, 60)}: the test is later than all that was learnt from" if time else "at random"
    split = f"{whole(counts.get('train'))} ratings to learn from, {whole(counts.get('test'))} to test on, split {how}."
    return [tag("strong", f"{words[:1].upper()}{words[1:]}."), joined(split)]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    ends = [*numbers(found.get("interval")), None, None]
    made = [
        (
            "Test RMSE",
            shown(found.get("rmse"), 4),
            f"{shown(ends[0], 4)} to {shown(ends[1], 4)}, 95% confidence",
            "good" if found.get("is_better") else "main",
        ),
        ("Mean of all ratings", shown(found.get("baseline"), 4), "RMSE on the same ratings", ""),
    ]
    criteria = mapping(found.get("criteria"))
    own, popular = mapping(criteria.get("model")), mapping(criteria.get("popular items"))
    if number(own.get("ndcg")) is not None:
        made.append(("NDCG of lists", shown(own.get("ndcg"), 3), f"popular items: {shown(popular.get('ndcg'), 3)}", ""))
        made.append(("Coverage", _percent(own.get("coverage")), "of the items are in a list", ""))
    return made


def ratings(record: dict[str, Any]) -> Html | None:
    """Number of ratings, and the frequency of each."""
    found = recommendations_of(record)
    counts = mapping(found.get("counts"))
    if not counts:
        return None
    facts = [
        ("Ratings", whole(counts.get("ratings"))),
        ("Users", whole(counts.get("users"))),
        ("Items", whole(counts.get("items"))),
        ("Pairs with a rating", _percent(counts.get("density"))),
        ("Test ratings of new users", _percent(found.get("new_users"))),
        ("Test ratings of new items", _percent(found.get("new_items"))),
    ]
    if (number(found.get("dropped")) or 0) > 0:
        facts.append(("Rows left out", f"{whole(found.get('dropped'))} without a user, an item, a rating or a time"))
    used = [text(name, 60) for name in items(found.get("features"))]
    levels, often = numbers(counts.get("levels")), numbers(counts.get("numbers"))
    picture = None
    if len(levels) == len(often) >= 2:
        known = [v for v in levels if v is not None]
        step = min((b - a for a, b in pairwise(known)), default=1.0) or 1.0
        top = max((v or 0.0 for v in often), default=1.0) or 1.0
        canvas = Canvas((known[0] - 0.6 * step, known[-1] + 0.6 * step), (0.0, 1.05 * top))
        canvas.axes("rating", "how often")
        for level, n in zip(levels, often, strict=True):
            if level is None or n is None:
                continue
            low, high = canvas.x(level - 0.4 * step), canvas.x(level + 0.4 * step)
            at = canvas.y(n)
            canvas.put(
                "rect",
                x=low,
                y=at,
                width=high - low,
                height=canvas.y(0.0) - at,
                class_="bar blue",
                title=f"{tick_label(level)}: {whole(n)}",
            )
        picture = figure(
            canvas,
            "ratings",
            "Ratings",
            "How often each rating occurs.",
            description=f"Ratings from {shown(known[0], 3)} to {shown(known[-1], 3)}.",
        )
    return joined(
        tag("dl", [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        tag("p", f"Features of items: {', '.join(used[:30])}{' ...' if len(used) > 30 else ''}.") if used else None,
        tag("div", picture, class_="figures") if picture else None,
    )


def candidates(record: dict[str, Any]) -> Html | None:
    """Candidates with their errors."""
    found = recommendations_of(record)
    rows = [mapping(row) for row in items(found.get("candidates"))]
    if not rows:
        return None
    lines = [
        [
            clipped(row.get("name"), 60),
            shown(row.get("rmse"), 4),
            f"{shown(row.get('lower'), 4)} to {shown(row.get('upper'), 4)}",
        ]
        for row in rows[:_CANDIDATES]
    ]
    names = [text(row.get("name"), 60) for row in rows]
    chosen = text(found.get("method"), 60)
    picture = _penalties(rows)
    failed = [tag("li", text(words, 300)) for words in items(found.get("failed"))[:10]]
    return joined(
        tag(
            "p",
            "Compared on the last part of the ratings to learn from. The one with the smallest error was then fitted "
            "to all of these and tested once.",
        ),
        table(
            ["candidate", "RMSE", "95% interval"],
            lines,
            numeric=(1, 2),
            label="candidates",
            marked=names.index(chosen) if chosen in names[:_CANDIDATES] else None,
        ),
        more(len(rows) - len(lines), "candidates"),
        tag("div", picture, class_="figures") if picture else None,
        joined(tag("h3", "Not compared"), tag("ul", failed)) if failed else None,
    )


def _penalties(rows: list[dict[str, Any]]) -> Html | None:
    """Errors against penalties, a line for each number of factors."""
    series: dict[int, list[tuple[float, float]]] = {}
    for row in rows:
        k, reg, rmse = (number(row.get(key)) for key in ("factors", "penalty", "rmse"))
        if k is not None and reg is not None and reg > 0 and rmse is not None:
            series.setdefault(int(k), []).append((math.log10(reg), rmse))
    known = {k: sorted(points) for k, points in sorted(series.items()) if len(points) > 1}
    if not known:
        return None
    xs: list[float | None] = [x for points in known.values() for x, _ in points]
    ys: list[float | None] = [y for points in known.values() for _, y in points]
    canvas = Canvas(span_of(xs, pad=0.05), span_of(ys))
    canvas.axes("penalty (power of ten)", "RMSE")
    keys = []
    for (k, points), colour in zip(known.items(), ("blue", "orange", "green", "sky"), strict=False):
        at: list[float | None] = [x for x, _ in points]
        errors: list[float | None] = [y for _, y in points]
        canvas.line(at, errors, colour)
        titles = [f"{k} factors, penalty {10**x:.3g}: {shown(y, 4)}" for x, y in points]
        canvas.points(at, errors, colour, titles, r=2.8)
        keys.append((colour, f"{k} factors"))
    return figure(
        canvas,
        "penalties",
        "Errors by penalty and number of factors",
        "Root mean squared errors on the ratings to choose by.",
        description=f"{len(xs)} candidates, errors from {shown(min(y for y in ys if y is not None), 4)} on.",
        keys=keys,
    )


def lists(record: dict[str, Any]) -> Html | None:
    """Criteria of the lists of the model, and of popular items."""
    found = recommendations_of(record)
    criteria = {name: mapping(row) for name, row in mapping(found.get("criteria")).items()}
    if not criteria:
        return None
    lines = [
        [
            clipped(name, 40),
            *(shown(row.get(key), 3) if key in ("ndcg", "map") else _percent(row.get(key)) for key, _ in _CRITERIA),
        ]
        for name, row in criteria.items()
    ]
    users = whole(next(iter(criteria.values())).get("users"))
    words = (
        f"For {users} users the best {whole(found.get('n'))} items that they had not rated are compared with the items "
        "that they rated at or above the median in the test. A model of ratings orders items by how well they would be "
        "liked, not by how likely they are to be tried: the most popular items can be ahead by these criteria."
    )
    return joined(
        tag("p", words),
        table(["lists of", *(name for _, name in _CRITERIA)], lines, numeric=range(1, 5), label="criteria of lists"),
    )


def examples(record: dict[str, Any]) -> Html | None:
    """Lists of some users, and items next to well-known ones."""
    found = recommendations_of(record)
    rows = [mapping(row) for row in items(found.get("lists"))]
    near = [mapping(row) for row in items(found.get("similar"))]
    parts: list[Html] = []
    if rows:
        lines = []
        for row in rows[:_USERS]:
            names, scores = items(row.get("names")), numbers(row.get("scores"))
            best = [f"{text(name, 40)} ({shown(score, 3)})" for name, score in zip(names, scores, strict=False)]
            lines.append([clipped(row.get("user"), 30), ", ".join(best[:5])])
        parts.append(table(["user", "best items, with scores"], lines, label="recommendations"))
        parts.append(tag("p", "All lists are in recommendations.csv.", class_="quiet"))
    if near:
        lines = []
        for row in near:
            names, cosines = items(row.get("similar")), numbers(row.get("cosines"))
            best = [f"{text(name, 40)} ({shown(c, 2)})" for name, c in zip(names, cosines, strict=False)]
            lines.append([clipped(row.get("name"), 40), ", ".join(best)])
        parts += [
            tag("h3", "Items next to those with most ratings"),
            table(["item", "nearest, with the cosine of their factors"], lines, label="similar items"),
        ]
    return joined(*parts) if parts else None


def convergence(record: dict[str, Any]) -> Html | None:
    """The certificate in words, and the objective round by round."""
    caption = "Squared errors and penalties after every round; they never rise."
    return _convergence.convergence(recommendations_of(record), caption=caption)
