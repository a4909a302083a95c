"""``epicycle train``: what is said while it runs, what is printed at the end, and the folder that it leaves."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from epicycle.cli.records import report_files
from epicycle.training import TrainingRun, train
from epicycle.training.folder import check_folder

__all__ = ["run_training"]

#: What is trained where nothing is named, and for how long.
DEMO, DEMO_SECONDS, SECONDS = "breast_cancer", 10.0, 60.0


def run_training(data: str | None, *, time: float | None, out: Path | None, as_json: bool, **options: Any) -> None:
    """Train, write the folder, print the outcome."""
    seconds = time if time is not None else DEMO_SECONDS if data is None else SECONDS
    source = DEMO if data is None else data
    folder = check_folder(out if out is not None else default_folder(source))
    run = train(source, time=seconds, progress=False if as_json else say, **options)
    run.save(folder, more=report_files(run))
    if as_json:
        print(json.dumps({**_plain(run.metrics()), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def default_folder(source: str) -> str:
    """epicycle-NAME, with the name of the data."""
    name = "run" if source == "-" else Path(source).name.partition(".")[0] or "run"
    return f"epicycle-{re.sub(r'[^A-Za-z0-9_-]+', '-', name)}"


def say(text: str) -> None:
    print(text, flush=True)


def print_run(run: TrainingRun, folder: Path) -> None:
    """The outcome in a screenful."""
    console = Console(highlight=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", overflow="fold")
    for column in (run.judge.label, "std err", "folds", "seconds", ""):
        table.add_column(column, justify="right")
    shown = [row for row in run.leaderboard if row["score_mean"] is not None][:8]
    for row in shown:
        name = row["name"] if len(row["name"]) <= 60 else f"{row['name'][:57]}..."
        error = "" if row["score_se"] is None else f"{row['score_se']:.2g}"
        table.add_row(
            Text(name, style="bold" if row["status"] == "chosen" else ""), f"{row['score_mean']:.4g}", error,
            str(row["n_folds"]), f"{row['seconds']:.2f}", row["status"],
        )  # fmt: skip
    table.add_row(f"baseline: {run.baseline['name']}", f"{run.baseline['score_mean']:.4g}", "", "", "", "")
    console.print(table)
    t = run.test
    bold(console, f"{run.judge.label} on {t.n:,} test rows: {t.score:.4g}, between {t.lower:.4g} and {t.upper:.4g} "
                  f"at {t.level:.0%} ({t.method}); {run.baseline['name']}: {run.baseline_test:.4g}")  # fmt: skip
    console.print(f"certificate   {run.certificate}", markup=False)
    if run.certificate.holds and run.certificate.meaning:
        console.print(f"              {run.certificate.meaning}", markup=False)
    for finding in run.findings.values():
        for step in finding.next_steps[:2]:
            console.print(f"what to try   {step}", markup=False)
    console.print(f"{run.seconds:.1f} s; written to {folder}: {', '.join(sorted(os.listdir(folder)))}", markup=False)


def bold(console: Console, text: str) -> None:
    console.print(Text(text, style="bold"))


def _plain(value: Any) -> Any:
    """What JSON can hold; None for what is no number."""
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    if isinstance(value, float) and value != value:
        return None
    return value.item() if hasattr(value, "item") else value


