"""Tables: to the terminal, to JSON, and into RESULTS.md."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

from benchmarks.arithmetic import best_peer, speedup
from benchmarks.task import Outcome, Task

__all__ = ["RESULTS", "markdown_table", "save_json", "section", "update_results"]

_HERE = Path(__file__).resolve().parent
RESULTS = _HERE / "RESULTS.md"
JSON_FOLDER = _HERE / "results"

INTRODUCTION = """\
# Benchmarks

epicycle and the best peers, side by side. Each section below is written by the runner and by nothing else:

    make bench                                   # every task, tables to the terminal
    python -m benchmarks --write                 # the same, and the sections of this file anew
    python -m benchmarks logistic_binary --quick # one task on small data; never written here
    python -m benchmarks.serve --write           # the load test of epicycle serve: ten minutes
    python -m benchmarks.gpu FOLDER              # the last sections, from figures of the scripts in benchmarks/gpu

Peers come with `pip install "epicycle[bench]"`.

How to read a table
- Every implementation runs in a process of its own with its own copy of the data in memory and the same number of
  threads. They take turns: one warm-up round, then rounds in which each runs once. **time** is the median over the
  rounds and **IQR** the distance between its quartiles.
- **Quality** comes first. The first quality column decides: an implementation that misses the tolerance of the task is
  marked with † and is not counted as best peer. Where an implementation stops by a tolerance, the loosest one that
  reaches the quality is looked for before the timing (**tol**), so nobody is timed on digits that nobody asked for.
- **peak memory** is the most that one call had resident above what was resident before it (the data, the libraries).
- **speed** is the time of the best peer at equal quality over the time of the implementation: 2.00x is twice as fast.
- An implementation that crashed, failed, or ran past the time cap is listed with what happened.
- Under a table stand the promises of the project that it tests, and whether they were kept in that run.
"""


def section(
    task: Task, outcomes: Mapping[str, Outcome], *, command: str, machine: Mapping[str, str], quick: bool = False
) -> str:
    """The Markdown of one task."""
    system = f"{machine['processor']}, {machine['cores']} cores, {machine['memory']}, {machine['system']}"
    versions = ", ".join(f"{k} {v}" for k, v in machine.items() if k not in ("processor", "cores", "memory", "system"))
    parts = [
        f"## {task.name}: {task.title}",
        "Quick run: smaller data than the title says, no measurement." if quick else "",
        task.description.strip(),
        _table(task, outcomes),
        "\n".join(f"- {o.name}: {o.failure}" for o in outcomes.values() if ":" in o.failure),
        _targets(task, outcomes),
        f"Made by `{command}` on {system}; {versions}.",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _table(task: Task, outcomes: Mapping[str, Outcome]) -> str:
    shown = [o for o in outcomes.values() if o.role != "reference"]
    best = best_peer(shown)
    measures = list(dict.fromkeys(m for o in shown for m in o.quality))
    with_tol = any(o.tol is not None for o in shown)
    with_speed = any(o.role == "peer" for o in shown)
    header = ["implementation"] + ["tol"] * with_tol + ["time", "IQR", *measures]
    header += ["peak memory"] * task.memory + ["speed"] * with_speed
    rows = []
    for o in shown:
        missed = o.role in ("peer", "epicycle") and not (o.failure or o.at_equal_quality)
        name = f"{o.name} †" if missed else o.name
        row = [f"**{name}**" if o.role == "epicycle" else name]
        row += ["" if o.tol is None else f"{o.tol:g}"] * with_tol
        row += [o.failure.partition(":")[0] or _seconds(o.median), _seconds(o.spread)]
        row += [_number(o.quality.get(m, math.nan)) for m in measures]
        row += [f"{max(o.memory) / 2**20:.0f} MiB" if o.memory and not o.failure else ""] * task.memory
        row += [_times(speedup(o, best)) if o.role in ("peer", "epicycle") else ""] * with_speed
        rows.append([cell.replace("|", "\\|") for cell in row])
    return markdown_table(header, rows)


def _targets(task: Task, outcomes: Mapping[str, Outcome]) -> str:
    rows = []
    for target in task.targets:
        value = target.value(outcomes)
        verdict = "not measured" if math.isnan(value) else "yes" if target.met(value) else "**no**"
        rows.append([target.text, target.bound, _number(value), verdict])
    return markdown_table(["promise", "bound", "measured", "kept"], rows) if rows else ""


def markdown_table(header: list[str], rows: list[list[str]]) -> str:
    """A Markdown table, padded so that it is also a table in a terminal."""
    widths = [max(len(row[j]) for row in [header, *rows]) for j in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join("| " + " | ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) + " |" for r in lines)


def _seconds(value: float) -> str:
    if math.isnan(value):
        return ""
    return f"{value:.3g} s" if value >= 1 else f"{value * 1e3:.3g} ms" if value >= 1e-3 else f"{value * 1e6:.3g} us"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _times(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}x"


def update_results(path: Path, sections: Mapping[str, str], order: list[str]) -> None:
    """Put the sections just made into the file, those that are no tasks last; all others stay as they are."""
    old = dict(re.findall(r"<!-- begin (\w+) -->\n(.*?)<!-- end \1 -->", _read(path), flags=re.DOTALL))
    merged = old | dict(sections)
    names = [name for name in order if name in merged]
    names += [name for name in sorted(merged) if name == "serve" or name.startswith("gpu_")]
    blocks = [f"<!-- begin {name} -->\n{merged[name]}<!-- end {name} -->\n" for name in names]
    path.write_text("\n".join([INTRODUCTION, *blocks]))


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def save_json(
    task: Task, outcomes: Mapping[str, Outcome], *, command: str, machine: Mapping[str, str], quick: bool = False
) -> Path:
    """Every single measurement, for plots and comparisons over time."""
    JSON_FOLDER.mkdir(exist_ok=True)
    path = JSON_FOLDER / f"{task.name}{'-quick' * quick}.json"
    targets = [{"text": t.text, "bound": t.bound, "value": _or_none(t.value(outcomes))} for t in task.targets]
    content = {
        "task": task.name,
        "command": command,
        "machine": dict(machine),
        "outcomes": [
            asdict(o) | {"median": _or_none(o.median), "spread": _or_none(o.spread)} for o in outcomes.values()
        ],
        "targets": targets,
    }
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def _or_none(value: float) -> float | None:
    """JSON has no nan."""
    return None if math.isnan(value) else value
