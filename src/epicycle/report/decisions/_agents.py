"""The sections of an agent that learnt by acting: its learning curve, its evaluation, an episode, policy and values."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from epicycle.report._markup import Html, clipped, joined, more, table, tag
from epicycle.report._plain import items, mapping, number, numbers, shown, text, whole
from epicycle.report._svg import Canvas, figure, px, span_of
from epicycle.report.decisions._planning import grid, grid_canvas, grid_places, value_line

_ROWS, _FAR = 200, 5
_GIF = "data:image/gif;base64,"
_COLOURS = ("blue", "orange", "green", "vermilion", "purple", "pink")
_SECONDS = 0.35  # of a step in the animation of a grid


def agent_of(record: dict[str, Any]) -> dict[str, Any]:
    """The part of the record about an agent; empty where there is none."""
    return mapping(record.get("agent"))


def _interval(found: dict[str, Any], digits: int = 4) -> str:
    return f"{shown(found.get('low'), digits)} to {shown(found.get('high'), digits)}"


def _first(found: dict[str, Any]) -> dict[str, Any]:
    return mapping((items(found.get("runs")) or [{}])[0])


# ---------------------------------------------------------------- head


def headline(found: dict[str, Any]) -> list[Html]:
    """Returns of the learnt policy beside those of random actions."""
    run, chance = _first(found), mapping(found.get("random"))
    low, above = number(run.get("low")), number(chance.get("high"))
    verdict = (
        "more than random actions"
        if low is not None and above is not None and low > above
        else "not clearly more than random actions"
    )
    lead = joined(
        tag("strong", text(found.get("name"), 60)),
        f" earns {shown(run.get('mean'), 4)} in an episode of {text(found.get('environment'), 80)}, {verdict}, which "
        f"earn {shown(chance.get('mean'), 4)}.",
    )
    stopped = " Learning was interrupted." if found.get("interrupted") is True else ""
    return [lead, joined(f"{text(found.get('agent'), 300)}, {whole(run.get('steps'))} steps.{stopped}")]


def tiles(found: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    """Name, value, words below and kind of each tile."""
    if not found:
        return []
    run, chance = _first(found), mapping(found.get("random"))
    low, above = number(run.get("low")), number(chance.get("high"))
    better = low is not None and above is not None and low > above
    level = number(found.get("confidence"))
    under = f"{_interval(run)}, {0.95 if level is None else level:.0%} confidence"
    return [
        ("Mean return", shown(run.get("mean"), 4), under, "good" if better else "main"),
        ("Random actions", shown(chance.get("mean"), 4), _interval(chance), ""),
        ("Steps", whole(run.get("steps")), f"{whole(run.get('episodes'))} episodes", ""),
        ("Seeds", whole(len(items(found.get("runs")))), "learnt separately", ""),
    ]


# ---------------------------------------------------------------- sections


def learning(record: dict[str, Any]) -> Html | None:
    """Returns while learning, over the seeds."""
    found = agent_of(record)
    if not found:
        return None
    curve = mapping(found.get("curve"))
    x, mean, low, high = (numbers(curve.get(key)) for key in ("steps", "mean", "low", "high"))
    if len(x) < 2:
        return tag("p", "Too few episodes ended to draw a learning curve.", class_="quiet")
    chance = number(mapping(found.get("random")).get("mean"))
    bottom, top = span_of(mean, [chance], pad=0.15)
    lowest, highest = span_of(mean, pad=0.15)
    if far := top - bottom > _FAR * (highest - lowest):  # of the curve nothing would be seen
        bottom, top = lowest, highest
    canvas = Canvas(span_of([0.0], x, pad=0.02), (bottom, top))

    def inside(values: list[float | None]) -> list[float | None]:
        """The band of a few seeds can be much wider than all that is seen."""
        return [None if v is None else min(max(v, bottom), top) for v in values]

    canvas.axes("step", "return of an episode")
    canvas.band(x, inside(low), inside(high), "sky")
    canvas.line(x, mean, "blue")
    if chance is not None and not far:
        canvas.line([x[0], x[-1]], [chance, chance], "grey", kind="dash", title="random actions")
    seeds = len(items(found.get("runs")))
    band = f" The band is an interval of the mean over {seeds} seeds." if seeds > 1 else ""
    beyond = f" Random actions earn {shown(chance, 4)}, far from all that is drawn." if far else ""
    last = next((v for v in reversed(mean) if v is not None), None)
    return tag(
        "div",
        figure(
            canvas,
            "learning",
            "Returns while learning",
            f"With the exploration of learning, so lower than what the policy earns afterwards.{band}{beyond}",
            description=f"From {shown(mean[0], 3)} to {shown(last, 3)}.",
            keys=[("blue", "mean of the episodes"), *([] if far else [("grey", "random actions, evaluated")])],
        ),
        class_="figures",
    )


def evaluation(record: dict[str, Any]) -> Html | None:
    """Mean returns of the policies that were learnt, by seed, and of random actions."""
    found = agent_of(record)
    if not found:
        return None
    rows = [
        [
            f"seed {whole(run.get('seed'))}",
            shown(run.get("mean"), 5),
            _interval(run, 5),
            shown(run.get("length"), 4),
            whole(run.get("truncated")),
            whole(run.get("steps")),
        ]
        for run in map(mapping, items(found.get("runs")))
    ]
    chance = mapping(found.get("random"))
    rows.append(
        ["random actions", shown(chance.get("mean"), 5), _interval(chance, 5), "", whole(chance.get("truncated")), ""]
    )
    heads = ["policy", "mean return", "interval", "mean length", "cut off", "steps learnt"]
    level = number(found.get("confidence"))
    return joined(
        tag(
            "p",
            f"Each policy acted for {whole(found.get('evaluated'))} episodes with its best actions, without learning. "
            f"The interval holds its expected return with {0.95 if level is None else level:.0%} confidence.",
        ),
        table(heads, rows, numeric=range(1, 6), label="evaluation", marked=0),
    )


def episode(record: dict[str, Any]) -> Html | None:
    """One episode of the first policy, as an animation where there are pictures."""
    found = mapping(agent_of(record).get("episode"))
    if not found:
        return None
    ends = {"ended": "it ended", "cut off": "it was cut off", "stopped": "it had not ended"}
    words = (
        f"With the best actions: return {shown(found.get('return'), 5)} after {whole(found.get('length'))} steps, when "
        f"{ends.get(text(found.get('end'), 20), 'it stopped')}."
    )
    note = text(found.get("note"), 300) if found.get("note") else ""
    pictures = [picture for picture in (_animation(found), _path(record, found), _states(found)) if picture]
    return joined(
        tag("p", words),
        tag("p", f"{note[:1].upper()}{note[1:]}.", class_="quiet") if note else None,
        tag("div", pictures, class_="figures") if pictures else None,
    )


def _animation(found: dict[str, Any]) -> Html | None:
    uri = found.get("image")
    if not isinstance(uri, str) or not uri.startswith(_GIF):
        return None
    try:
        if not base64.b64decode(uri[len(_GIF) :], validate=True).startswith(b"GIF8"):
            return None
    except (binascii.Error, ValueError):
        return None
    return tag(
        "figure",
        tag("h4", "The episode, drawn by the environment"),
        tag("img", src=uri, alt="An animation of the episode", style="width:100%"),
        tag("figcaption", f"{whole(found.get('frames'))} pictures of the episode."),
        data_figure="animation",
    )


def _path(record: dict[str, Any], found: dict[str, Any]) -> Html | None:
    """A dot that walks over the grid."""
    there = mapping(agent_of(record).get("world"))
    rows = [mapping(row) for row in items(there.get("policy"))]
    places = grid_places(items(there.get("cells")), rows)
    states = [int(s) for s in numbers(found.get("path"))[:400] if s is not None and 0 <= s < len(rows)]
    if places is None or len(states) < 2:
        return None
    canvas, size = grid_canvas(places, rows, words=False)
    xs, ys = ([4 + (places[s][i] + 0.5) * size - 0.5 for s in states] for i in (1, 0))
    seconds = px(_SECONDS * (len(states) + 3))
    moves = [
        tag(
            "animate",
            attributeName=name,
            values=";".join(map(px, [*values, *[values[-1]] * 3])),  # rests at the end
            dur=f"{seconds}s",
            repeatCount="indefinite",
            calcMode="discrete",
        )
        for name, values in (("cx", xs), ("cy", ys))
    ]
    trail = " ".join(f"{px(x)},{px(y)}" for x, y in zip(xs, ys, strict=True))
    canvas.put("polyline", points=trail, fill="none", stroke="#d55e00", stroke_width=2.0)
    style = "fill:#d55e00;stroke:#ffffff;stroke-width:1.5"
    canvas.put("circle", *moves, cx=xs[0], cy=ys[0], r=max(size * 0.26, 3.0), style=style)
    return figure(
        canvas,
        "path",
        "The episode",
        "The states one after the other, over the values.",
        description=f"{len(states)} states, from {text(rows[states[0]].get('state'), 40)} to "
        f"{text(rows[states[-1]].get('state'), 40)}.",
    )


def _states(found: dict[str, Any]) -> Html | None:
    """Components of the states over the episode, or the rewards that were collected."""
    lines = [numbers(one) for one in items(found.get("states"))][: len(_COLOURS)]
    label, keys = "component of the state", [f"component {i}" for i in range(len(lines))]
    if not lines:
        total, sums = 0.0, list[float | None]([0.0])
        for reward in numbers(found.get("rewards")):
            total += reward or 0.0
            sums.append(total)
        lines, label, keys = [sums], "reward so far", []
    if max(map(len, lines)) < 2:
        return None
    x: list[float | None] = [float(i) for i in range(max(map(len, lines)))]
    canvas = Canvas(span_of(x, pad=0.02), span_of(*lines))
    canvas.axes("step", label)
    for values, colour in zip(lines, _COLOURS, strict=False):
        canvas.line(x[: len(values)], values, colour)
    return figure(
        canvas,
        "states",
        "The state over the episode" if keys else "Reward over the episode",
        "What the agent saw, step by step." if keys else "The rewards of the episode, added up.",
        description=f"{len(x) - 1} steps.",
        keys=list(zip(_COLOURS, keys, strict=False)),
    )


def world(record: dict[str, Any]) -> Html | None:
    """The picture of policy and values, and the table of the states."""
    found = mapping(agent_of(record).get("world"))
    rows = [mapping(row) for row in items(found.get("policy"))]
    if not rows:
        return None
    solved = any(number(row.get("best")) is not None for row in rows)
    heads = ["state", "action", "value", *(("best value",) if solved else ()), "visits"]
    lines = []
    for row in rows[:_ROWS]:
        words = "end" if row.get("terminal") else text(row.get("action"), 40)
        cells = [clipped(row.get("state"), 40), words, shown(row.get("value"), 5)]
        lines.append([*cells, *([shown(row.get("best"), 5)] if solved else []), whole(row.get("visits"))])
    picture = grid(items(found.get("cells")), rows) or value_line(rows, "number of the state")
    return joined(
        tag("div", picture, class_="figures") if picture else None,
        table(heads, lines, numeric=range(2, len(heads)), label="policy"),
        more(len(rows) - len(lines), "states"),
        tag("p", "Best values are those of the process that the environment is made of; the agent did not know it.")
        if solved
        else None,
    )


def optimality(record: dict[str, Any]) -> Html | None:
    """The certificate in words."""
    found = mapping(agent_of(record).get("certificate"))
    if not found:
        return None
    meaning = text(found.get("meaning"), 400)
    if found.get("kind") == "none":
        return tag("p", f"{meaning[:1].upper()}{meaning[1:]}.", class_="verdict")
    kind, words = text(found.get("kind"), 60), "holds" if found.get("holds") else "does not hold"
    return tag(
        "p",
        f"{kind[:1].upper()}{kind[1:]} {shown(found.get('value'), 2)}, tolerance {shown(found.get('tolerance'), 2)}, "
        f"{words}: {meaning}.",
        class_=f"verdict {'good' if found.get('holds') else 'bad'}",
    )
