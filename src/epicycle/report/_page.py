"""The HTML page of a report, with style and script inside, and its files."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from importlib import resources
from os import PathLike
from typing import Any

from epicycle.core._exceptions import ParameterTypeError
from epicycle.io._atomic import check_target, write_atomically
from epicycle.report import (
    _anomalies as anomalies,
    _clusters as clusters,
    _comparison as comparison,
    _effects as effects,
    _recommendations as recommendations,
)
from epicycle.report._markup import Html, joined, tag
from epicycle.report._plain import items, mapping, number, plain, shortened, shown, text, whole
from epicycle.report._sections import SECTIONS
from epicycle.report._wording import beats, best_row, headline, metric_label, model_name, next_steps, scored
from epicycle.report.decisions import _agents as agents, _planning as planning
from epicycle.report.latent import _synthetic as synthetic, _topics as topics
from epicycle.report.runs import _targets as targets

# Tables have a maximum number of rows, which gives a page of some 100 kB, and of 1 MB with long names. Only texts that
# consist of characters to be escaped can exceed the limit of 3 MB; they are then shortened to these lengths.
_MAX_BYTES = 2_900_000
_SHORTER = (80, 24)


def html(record: Mapping[str, Any]) -> str:
    """Make the report as one self-contained HTML page.

    The same record gives the same bytes. The page is bounded in size: long tables show their first rows and the number
    of the others.

    Parameters
    ----------
    record : mapping
        As described by ``epicycle.report.schema.Record``; every key is optional.

    Returns
    -------
    str

    Examples
    --------
    >>> from epicycle import report
    >>> page = report.html({"title": "Wine", "data": {"rows": 178, "columns": 13, "target": "cultivar"}})
    >>> page.startswith("<!DOCTYPE html>")
    True
    """
    if not isinstance(record, Mapping):
        raise ParameterTypeError(f"record must be a mapping, got {type(record).__name__}: {record!r:.60}")
    given = mapping(plain(record))
    page = _page(given)
    for most in _SHORTER:
        if len(page.encode()) <= _MAX_BYTES:
            break
        page = _page(shortened(given, most))
    return page


def _page(given: dict[str, Any]) -> str:
    title = _title(given)
    bodies = [(anchor, short, heading, make(given)) for anchor, short, heading, make in SECTIONS]
    present = [entry for entry in bodies if entry[3]]
    style, script = _asset("page.css"), _asset("page.js")
    # Only the script of the page may run, by its hash; a script in the data is text.
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; img-src data:"
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="generator", content="epicycle"),
        tag("link", rel="icon", href="data:,"),
        tag("title", title),
        Html(f"<style>{style}</style>"),
    ]
    body = [
        tag("a", "Skip to the report", href="#report", class_="skip"),
        tag("div", _header(given, title), _contents(present), _main(present), class_="layout"),
        tag("footer", tag("p", "Made by epicycle from summaries of the data. Nothing is loaded from other servers.")),
        Html(f"<script>{script}</script>"),
    ]
    page = tag("html", Html("\n"), tag("head", *head), Html("\n"), tag("body", *body), lang="en")
    return f"<!DOCTYPE html>\n{page}\n"


@cache
def _asset(name: str) -> str:
    return resources.files("epicycle.report").joinpath(name).read_text("utf-8")


def _title(record: dict[str, Any]) -> str:
    if record.get("title"):
        return text(record["title"], 120)
    target = mapping(record.get("data")).get("target")
    return f"Predicting {text(target, 80)}" if target else "Training report"


def _header(record: dict[str, Any], title: str) -> Html:
    created = f" · {text(record['created'], 40)}" if record.get("created") else None
    toggle = tag(
        "button",
        "Dark",
        type="button",
        id="theme",
        class_="toggle",
        hidden=True,
        aria_label="Switch between light and dark",
    )
    clustering, plan = clusters.clustering_of(record), planning.planning_of(record)
    lines = clusters.headline(clustering) if clustering else planning.headline(plan) if plan else headline(record)
    if effect := effects.effect_of(record):
        lines = effects.headline(effect)
    if found := recommendations.recommendations_of(record):
        lines = recommendations.headline(found)
    if found := anomalies.anomalies_of(record):
        lines = anomalies.headline(found)
    if comparison.comparison_of(record):
        lines = comparison.headline(record)
    if found := topics.topics_of(record):
        lines = topics.headline(found)
    if found := synthetic.synthesis_of(record):
        lines = synthetic.headline(found)
    if found := agents.agent_of(record):
        lines = agents.headline(found)
    if targets.targets_of(record):
        lines = targets.headline(record)
    steps = next_steps(record)
    return tag(
        "header",
        tag("div", tag("p", "epicycle report", created, class_="eyebrow"), toggle, class_="top"),
        tag("h1", title),
        [tag("p", words, class_="headline" if i == 0 else "lead") for i, words in enumerate(lines)],
        _tiles(record),
        tag(
            "section",
            tag("h2", "Next steps"),
            tag("ol", [tag("li", step) for step in steps]),
            class_="next",
            id="next",
        )
        if steps
        else None,
        class_="head",
    )


def _tiles(record: dict[str, Any]) -> Html | None:
    """Tiles with the main numbers."""
    test, data = mapping(record.get("test")), mapping(record.get("data"))
    given = clusters.tiles(clusters.clustering_of(record)) + planning.tiles(planning.planning_of(record))
    given = [*given, *recommendations.tiles(recommendations.recommendations_of(record))]
    given = [*given, *anomalies.tiles(anomalies.anomalies_of(record)), *topics.tiles(topics.topics_of(record))]
    given = [*given, *agents.tiles(agents.agent_of(record)), *targets.tiles(record)]
    given = [*given, *synthetic.tiles(synthetic.synthesis_of(record))]
    tiles: list[Html] = [_tile(*one) for one in (*given, *effects.tiles(effects.effect_of(record)))]
    score = number(test.get("score"))
    if score is not None:
        lower, upper = number(test.get("lower")), number(test.get("upper"))
        span = f"{shown(lower, 3)} to {shown(upper, 3)}" if lower is not None and upper is not None else ""
        level = number(test.get("level"))
        under = f"{span}, {0.95 if level is None else level:.0%} confidence" if span else "on the test rows"
        tiles.append(_tile(f"Test {metric_label(record)}", shown(score, 3), under, "good" if beats(record) else "main"))
        base = number(test.get("baseline_score"))
        if base is not None:
            tiles.append(_tile("Baseline", shown(base, 3), "on the same rows"))
    rows = items(record.get("leaderboard"))
    if (at := best_row(record)) is not None:
        tried, name = len(scored(rows)), text(model_name(mapping(rows[at])), 36)
        tiles.append(_tile("Best of", f"{tried:,} models", name) if tried > 1 else _tile("Models", "1", name))
    if data.get("rows") is not None:
        wide = f"{whole(data['columns'])} columns" if data.get("columns") is not None else ""
        tiles.append(_tile("Rows", whole(data["rows"]), wide))
    return tag("div", tiles, class_="tiles") if tiles else None


def _tile(name: str, value: str, under: str, kind: str = "") -> Html:
    return tag(
        "div",
        tag("p", name, class_="tile-name"),
        tag("p", value, class_="tile-value"),
        tag("p", under, class_="tile-under"),
        class_=f"tile {kind}".strip(),
    )


def _contents(present: list[tuple[str, str, str, Html | None]]) -> Html | None:
    if not present:
        return None
    links = [tag("li", tag("a", short, href=f"#{anchor}")) for anchor, short, _, _ in present]
    return tag("nav", tag("p", "Contents", class_="eyebrow"), tag("ol", links), class_="toc", aria_label="Contents")


def _main(present: list[tuple[str, str, str, Html | None]]) -> Html:
    sections = [
        tag("section", tag("h2", tag("a", heading, href=f"#{anchor}", class_="anchor")), Html(body or ""), id=anchor)
        for anchor, _, heading, body in present
    ]
    nothing = tag("p", "The record is empty: there is nothing to report.", class_="lead")
    return tag("main", joined(sections) if sections else nothing, id="report")


def write(
    record: Mapping[str, Any],
    path_html: str | PathLike[str] | None = None,
    path_json: str | PathLike[str] | None = None,
) -> None:
    """Write the report as an HTML page and as JSON.

    Both are made before either is written, and each is written atomically. The JSON file has the whole record, also the
    rows that the page leaves out; numbers that are not finite are null.

    Parameters
    ----------
    record : mapping
        As described by ``epicycle.report.schema.Record``.
    path_html, path_json : str or path, optional
        Paths of the files; existing files are replaced. None leaves a file out.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from epicycle import report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write({"title": "Wine"}, Path(folder, "report.html"), Path(folder, "report.json"))
    ...     print(Path(folder, "report.json").read_text())
    {
     "title": "Wine"
    }
    <BLANKLINE>
    """
    page = html(record)
    document = json.dumps(plain(record), allow_nan=False, indent=1) + "\n"
    made = [(path, what) for path, what in ((path_html, page), (path_json, document)) if path is not None]
    targets = [(check_target(path), what.encode()) for path, what in made]
    for target, content in targets:
        write_atomically(target, (content,))
