"""The sections of an effect: why it is one, overlap, balance, estimates side by side, sensitivity, and doubts."""

from __future__ import annotations

import math
from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import WIDTH, Canvas, figure, span_of, tick_label

_MOST = 30  # covariates that are drawn


def effect_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about an effect; empty where there is none."""
    return mapping(record.get("effect"))


def headline(found: dict[str, Any]) -> list[Html]:
    """The conclusion, and on what it rests."""
    words = text(found.get("verdict"), 400)
    reasons = [text(w, 400) for w in items(mapping(found.get("identification")).get("words"))][:1]
    return [tag("strong", f"{words[:1].upper()}{words[1:]}."), *(joined(reason) for reason in reasons)]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    ends = [*numbers(found.get("interval")), None, None]
    made = [
        (
            "Effect",
            shown(found.get("effect"), 3),
            f"{shown(ends[0], 3)} to {shown(ends[1], 3)}, 95% confidence",
            "good" if found.get("is_clear") else "main",
        ),
        ("Treated", whole(found.get("treated")), f"of {whole(found.get('rows'))} rows", ""),
    ]
    value = number(mapping(found.get("sensitivity")).get("robustness_value"))
    if value is not None:
        made.append(("Robustness value", f"{value:.1%}", "of treatment and outcome, to bring it to zero", ""))
    tests = [mapping(t) for t in items(found.get("refutations"))]
    if tests:
        passed = sum(bool(t.get("passed")) for t in tests)
        made.append(("Refutations", f"{passed} of {len(tests)}", "passed", "good" if passed == len(tests) else ""))
    return made


def identification(record: dict[str, Any]) -> Html | None:
    """Why the difference can be read as an effect."""
    found = mapping(effect_of(record).get("identification"))
    if not found:
        return None
    words = [tag("p", text(w, 600)) for w in items(found.get("words"))]
    graph = text(found.get("graph"), 2000) if found.get("graph") else ""
    named = [text(c, 60) for c in items(found.get("covariates"))]
    used = f"Adjusted for: {', '.join(named[:40])}{' ...' if len(named) > 40 else ''}." if named else ""
    return joined(words, tag("p", used, class_="quiet") if used else None, tag("pre", graph) if graph else None)


def overlap(record: dict[str, Any]) -> Html | None:
    """Propensity scores of both arms."""
    found = mapping(effect_of(record).get("overlap"))
    edges, arms = numbers(found.get("edges")), [numbers(found.get(arm)) for arm in ("treated", "control")]
    if len(edges) < 2 or any(len(arm) != len(edges) - 1 for arm in arms):
        return None
    shares = [[(v or 0.0) / (sum(w or 0.0 for w in arm) or 1.0) for v in arm] for arm in arms]
    top = max(max(arm) for arm in shares) or 1.0
    canvas = Canvas((0.0, 1.0), (-top, top), height=240, left=14)
    for tick in canvas.x.ticks():
        canvas.words(canvas.x(tick), 214, tick_label(tick), anchor="middle", class_="tick")
    canvas.words(WIDTH / 2, 234, "propensity score", anchor="middle")
    zero = canvas.y(0.0)
    for arm, sign, colour, name in ((shares[0], 1, "orange", "treated"), (shares[1], -1, "blue", "control")):
        for i, share in enumerate(arm):
            low, high = canvas.x(edges[i] or 0.0), canvas.x(edges[i + 1] or 0.0)
            at = canvas.y(sign * share)
            title = f"{name}, {edges[i]:.2f} to {edges[i + 1]:.2f}: {share:.1%}"
            canvas.put(
                "rect",
                x=low,
                y=min(at, zero),
                width=max(high - low - 0.5, 0.5),
                height=max(abs(at - zero), 0.0),
                class_=f"bar {colour}",
                title=title,
            )
    canvas.put("line", x1=canvas.x.start, x2=canvas.x.stop, y1=zero, y2=zero, class_="axis")
    outside = number(found.get("outside")) or 0.0
    region = text(found.get("region"), 300) if found.get("region") else ""
    words = f"{outside:.1%} of the rows have hardly any like them in the other arm"
    words += f": {region}." if region and outside > 0 else "."
    drawn = figure(
        canvas,
        "overlap",
        "Chances of treatment",
        "Estimated from the covariates; where only one arm is seen, an effect is extrapolated.",
        description="Histograms of the propensity scores of treated rows (up) and controls (down).",
        keys=[("orange", "treated"), ("blue", "control")],
    )
    return joined(tag("p", words), tag("div", drawn, class_="figures"))


def balance(record: dict[str, Any]) -> Html | None:
    """Standardised differences of the covariates before and after weighting."""
    rows = [mapping(row) for row in items(effect_of(record).get("balance"))]
    known = [(text(r.get("name"), 60), number(r.get("before")), number(r.get("after"))) for r in rows]
    pairs = [(name, abs(b), abs(a)) for name, b, a in known if b is not None and a is not None]
    if not pairs:
        return None
    pairs.sort(key=lambda row: -row[1])
    drawn = pairs[:_MOST]
    height = 20.0 * len(drawn) + 56
    most = max(0.2, *(max(b, a) for _, b, a in drawn))
    canvas = Canvas((0.0, most * 1.04), (0, 1), height=height, left=132)
    for tick in canvas.x.ticks():
        canvas.put("line", x1=canvas.x(tick), x2=canvas.x(tick), y1=8, y2=height - 44, class_="grid")
        canvas.words(canvas.x(tick), height - 27, tick_label(tick), anchor="middle", class_="tick")
    canvas.words((132 + WIDTH) / 2, height - 6, "standardised difference", anchor="middle")
    limit = canvas.x(0.1)
    canvas.put("line", x1=limit, x2=limit, y1=8, y2=height - 44, class_="line thin grey dash")
    for i, (name, before, after) in enumerate(drawn):
        y = 18.0 + 20 * i
        canvas.words(124, y + 4, name if len(name) <= 18 else f"{name[:17]}…", anchor="end", class_="tick")
        canvas.put("line", x1=canvas.x(before), x2=canvas.x(after), y1=y, y2=y, class_="line thin grey")
        for value, colour, when in ((before, "orange", "before"), (after, "blue", "after")):
            canvas.put(
                "circle", cx=canvas.x(value), cy=y, r=4.0, class_=f"point {colour}", title=f"{name} {when}: {value:.3f}"
            )
    uneven = sum(a > 0.1 for _, _, a in pairs)
    words = f"{uneven} of {len(pairs)} covariates differ by more than 0.1 standard deviations after weighting."
    picture = figure(
        canvas,
        "balance",
        "Differences of the arms",
        "Absolute differences of means in standard deviations; below 0.1 is commonly called balanced.",
        description="For each covariate the difference between the arms before and after weighting.",
        keys=[("orange round", "before"), ("blue round", "after weighting")],
    )
    return joined(tag("p", words), tag("div", picture, class_="figures"), more(len(pairs) - len(drawn), "covariates"))


def estimates(record: dict[str, Any]) -> Html | None:
    """The effect by every method, with intervals."""
    found = effect_of(record)
    rows = [mapping(row) for row in items(found.get("estimates"))]
    if not rows:
        return None
    picture = _forest(rows, text(found.get("scale"), 40))
    lines = [
        [
            clipped(f"{text(r.get('name'), 30)}: {text(r.get('words'), 60)}", 90),
            *(shown(r.get(key), 4) for key in ("effect", "standard_error", "lower", "upper")),
        ]
        for r in rows
    ]
    heads = ["method", "effect", "standard error", "lower", "upper"]
    failed = [text(name, 200) for name in items(found.get("failed"))]
    return joined(
        tag("div", picture, class_="figures") if picture else None,
        table(heads, lines, numeric=range(1, 5), label="estimates", marked=0),
        tag("p", f"Not estimated: {'; '.join(failed[:8])}.", class_="quiet") if failed else None,
        _instrument(mapping(found.get("instrument"))),
        _contrasts(found),
    )


def _contrasts(found: dict[str, Any]) -> Html | None:
    """Every value of a treatment of several against the control."""
    rows = [mapping(row) for row in items(found.get("contrasts"))]
    if not rows:
        return None
    control = text((items(found.get("levels")) or ["the control"])[0], 40)
    lines = [
        [clipped(r.get("level"), 40), whole(r.get("rows")), *(shown(r.get(k), 4) for k in ("effect", "lower", "upper"))]
        for r in rows
    ]
    words = f"Each value against {control}, on the rows of both; intervals hold for all at once with 95% confidence."
    heads = ["value", "rows", "effect", "lower", "upper"]
    return joined(tag("p", words), table(heads, lines, numeric=range(1, 5), label="values of the treatment"))


def _forest(rows: list[dict[str, Any]], scale: str) -> Html | None:
    """Effects with intervals, one method below the other; what adjusts for nothing is grey."""
    known = [r for r in rows if all(number(r.get(key)) is not None for key in ("effect", "lower", "upper"))]
    if not known:
        return None
    ends = [[number(r.get(key)) or 0.0 for r in known] for key in ("lower", "effect", "upper")]
    height = 38.0 * len(known) + 52
    canvas = Canvas(span_of([0.0], *ends, pad=0.05), (0, 1), height=height, left=14)
    foot = height - 42
    for tick in canvas.x.ticks():
        canvas.put("line", x1=canvas.x(tick), x2=canvas.x(tick), y1=4, y2=foot, class_="grid")
        canvas.words(canvas.x(tick), foot + 16, tick_label(tick), anchor="middle", class_="tick")
    canvas.put("line", x1=canvas.x(0.0), x2=canvas.x(0.0), y1=4, y2=foot, class_="line thin grey dash")
    canvas.words(WIDTH / 2, height - 5, f"effect on {scale}", anchor="middle")
    for i, (r, low, value, high) in enumerate(zip(known, *ends, strict=True)):
        y, name = 18.0 + 38 * i, text(r.get("name"), 30)
        colour = "grey" if name == "difference" else "blue"
        canvas.words(7, y, f"{name}: {shown(value, 3)}", class_="name")
        canvas.put("line", x1=canvas.x(low), x2=canvas.x(high), y1=y + 13, y2=y + 13, class_=f"line {colour}")
        words = f"{name}: {shown(value, 3)}, between {shown(low, 3)} and {shown(high, 3)}"
        canvas.put("circle", cx=canvas.x(value), cy=y + 13, r=4.5, class_=f"point {colour}", title=words)
    return figure(
        canvas,
        "estimates",
        "The effect by each method",
        "Points and 95% intervals; the first is the conclusion, the grey one adjusts for nothing.",
        description="Effects with intervals, one method below the other.",
    )


def _instrument(found: dict[str, Any]) -> Html | None:
    if not found:
        return None
    strong = (number(found.get("effective_F")) or 0.0) >= (number(found.get("critical")) or math.inf)
    words = (
        f"The instrument is {'strong' if strong else 'weak'}: effective F {shown(found.get('effective_F'), 3)}, "
        f"critical value {shown(found.get('critical'), 3)}. Effects that the Anderson-Rubin test does not reject: "
        f"{text(found.get('set'), 200)}."
    )
    return tag("p", words)


def sensitivity(record: dict[str, Any]) -> Html | None:
    """Strength that something unmeasured would need, and the refutations."""
    found = effect_of(record)
    s, tests = mapping(found.get("sensitivity")), [mapping(t) for t in items(found.get("refutations"))]
    if not s and not tests:
        return None
    picture = _omitted(s)
    lines = [
        [clipped(t.get("name"), 30), "passed" if t.get("passed") else "failed", text(t.get("verdict"), 300)]
        for t in tests
    ]
    words = text(s.get("words"), 500) if s.get("words") else ""
    ratio = number(s.get("e_value"))
    return joined(
        tag("p", f"{words[:1].upper()}{words[1:]}.") if words else None,
        tag("p", f"E-value {ratio:.2f}; {shown(s.get('e_value_limit'), 3)} for the interval.")
        if ratio is not None
        else None,
        tag("div", picture, class_="figures") if picture else None,
        tag("h3", "Refutations") if lines else None,
        table(["test", "result", "verdict"], lines, label="refutations") if lines else None,
    )


def _omitted(s: dict[str, Any]) -> Html | None:
    """The strengths at which nothing is left of the estimate, with measured covariates for comparison."""
    b, se, df = (number(s.get(key)) for key in ("estimate", "standard_error", "degrees_of_freedom"))
    if not b or not se or not df:
        return None
    f2 = (b / se) ** 2 / df
    marks = [mapping(m) for m in items(s.get("benchmarks"))]
    places = [(number(m.get("treatment")) or 0.0, number(m.get("outcome")) or 0.0) for m in marks]
    most = min(
        1.0, max(0.15, 1.6 * (number(s.get("robustness_value")) or 0.1), *(1.15 * max(p) for p in places or [(0, 0)]))
    )
    xs = [most * (i + 1) / 80 for i in range(80)]
    ys: list[float | None] = [y if (y := f2 * (1 - x) / x) <= most else None for x in xs]
    canvas = Canvas((0.0, most), (0.0, most), height=290)
    canvas.axes("partial R² with the treatment", "partial R² with the outcome")
    canvas.line(xs, ys, "vermilion", title="nothing is left of the estimate")
    titles = [f"{text(m.get('name'), 60)}: {x:.1%} and {y:.1%}" for m, (x, y) in zip(marks, places, strict=True)]
    canvas.points([x for x, _ in places], [y for _, y in places], "blue", titles, r=4.5)
    for m, (x, y) in zip(marks, places, strict=True):
        right = x > 0.6 * most
        canvas.words(
            canvas.x(x) + (-8 if right else 8),
            canvas.y(y) - 6,
            text(m.get("name"), 20),
            anchor="end" if right else "start",
        )
    return figure(
        canvas,
        "omitted",
        "What something unmeasured could do",
        "A variable to the upper right of the line would turn the sign of the least-squares estimate; measured "
        "covariates for comparison.",
        description="The curve of strengths at which the estimate is zero, and the strengths of covariates.",
        keys=[("vermilion", "estimate is zero"), ("blue round", "covariates")],
    )


def doubts(record: dict[str, Any]) -> Html | None:
    """Conditions under which the conclusion would be wrong."""
    found = items(effect_of(record).get("doubts"))
    if not found:
        return None
    return joined(
        tag("p", "The conclusion above is wrong if one of these holds; those that the data speak for come first."),
        tag("ul", [tag("li", text(doubt, 700)) for doubt in found]),
    )
