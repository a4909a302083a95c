"""``epicycle train``: train on a table, print the leaderboard and the test score, write the folder."""

from __future__ import annotations

import json
import os
import re
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import TrainingRun, train
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._output import check_folder
from epicycle.automl._part_checks import ACROSS
from epicycle.cli._report import report_files
from epicycle.plot import short
from epicycle.report._plain import plain

#: Data set and seconds of the demo, and the default time limit.
DEMO, DEMO_SECONDS, SECONDS = "breast_cancer", 10.0, 60.0


def run_training(data: str | None, *, time: float | None, out: Path | None, as_json: bool, **options: Any) -> None:
    """Train, write the folder, print the result."""
    keep_no_freed_memory()
    seconds = time if time is not None else DEMO_SECONDS if data is None else SECONDS
    source = DEMO if data is None else data
    folder = check_folder(out if out is not None else default_folder(source))
    run = train(source, time=seconds, progress=False if as_json else partial(print, flush=True), **options)
    run.save(folder, more=report_files(run))
    if as_json:
        print(json.dumps({**plain(run.metrics()), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def default_folder(source: str) -> str:
    """epicycle-NAME, with the name of the data."""
    name = "run" if source == "-" else Path(source).name.partition(".")[0] or "run"
    return f"epicycle-{re.sub(r'[^A-Za-z0-9_-]+', '-', name)}"


def print_run(run: TrainingRun, folder: Path) -> None:
    """Print the leaderboard, the test score and the next steps."""
    print()
    for line in leaderboard_lines(run):
        print(line)
    t = run.test
    print()
    print(
        f"{run.metric.label} on {t.n:,} test rows: {t.score:.4g}, between {t.lower:.4g} and {t.upper:.4g} at "
        f"{t.level:.0%} ({t.method}); {run.baseline['name']}: {run.baseline_test:.4g}"
    )
    if run.without_duplicates is not None:
        with_them = next((w.text for w in run.warnings if w.kind == ACROSS), None)
        print(with_them or f"without the test rows that are also training rows: {run.without_duplicates.score:.4g}")
    print(f"certificate: {run.certificate}")
    if run.certificate.kind != "none" and run.certificate.holds and run.certificate.meaning:
        print(f"  {run.certificate.meaning}")
    steps = list(dict.fromkeys(step for finding in run.findings.values() for step in finding.next_steps[:2]))
    if steps:
        print("next steps:")
        for step in steps[:6]:
            print(f"  - {step}")
    print(f"{run.seconds:.1f} s; written to {folder}: {', '.join(sorted(os.listdir(folder)))}")


def leaderboard_lines(run: TrainingRun, n_rows: int = 8) -> list[str]:
    """The best candidates, one in each line, and the baseline."""
    rows = [("model", run.metric.name, "std err", "folds", "rows", "seconds", "")]
    for row in [row for row in run.leaderboard if row["score_mean"] is not None][:n_rows]:
        error = "" if row["score_se"] is None else f"{row['score_se']:.2g}"
        rows.append(
            (
                short(row["name"], 64),
                f"{row['score_mean']:.4g}",
                error,
                str(row["n_folds"]),
                f"{row['rows']:,}",
                f"{row['seconds']:.2f}",
                row["status"],
            )
        )
    rows.append((f"baseline: {run.baseline['name']}", f"{run.baseline['score_mean']:.4g}", "", "", "", "", ""))
    widths = [max(len(row[j]) for row in rows) for j in range(7)]
    lines = []
    for cells in rows:
        middle = "  ".join(f"{cell:>{width}}" for cell, width in zip(cells[1:6], widths[1:6], strict=True))
        lines.append(f"{cells[0]:<{widths[0]}}  {middle}  {cells[6]}".rstrip())
    return lines
