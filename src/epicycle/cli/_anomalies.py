"""``epicycle anomalies``: find the rows of a table that are unlike the others, print the first, write the folder."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

from epicycle.automl import AnomalyRun, anomaly_table
from epicycle.automl._budget import keep_no_freed_memory
from epicycle.automl._messages import terminal_width, wrapped
from epicycle.automl._output import check_folder
from epicycle.cli._report import files_of
from epicycle.cli._train import default_folder

_SHOWN = 10  # rows that are printed


def run_anomalies(data: str, *, out: Path | None, as_json: bool, **options: Any) -> None:
    """Search, write the folder, print the result."""
    keep_no_freed_memory()
    folder = check_folder(out if out is not None else f"{default_folder(data)}-anomalies")
    run = anomaly_table(data, progress=False if as_json else partial(print, flush=True), **options)
    run.save(folder, more=files_of(run.record()))
    if as_json:
        print(json.dumps({**run.metrics(), "folder": os.fspath(folder)}, indent=2))
    else:
        print_run(run, folder)


def print_run(run: AnomalyRun, folder: Path) -> None:
    """Print the verdict, the candidates and the most unusual rows."""
    width = terminal_width(sys.stdout)

    def say(text: str) -> None:
        print(wrapped(text, width))

    print()
    say(run.verdict)
    for row in run.candidates:
        figures = ", ".join(f"{key.replace('_', ' ')} {value:.3f}" for key, value in row.items() if key != "name")
        say(f"  {row['name']:<30} {figures}")
    for words in run.failed:
        say(f"not compared: {words}")
    for row, why in zip(run.order[:_SHOWN].tolist(), run.reasons, strict=False):
        say(f"row {row}{'' if run.flagged[row] else ' (not reported)'}: {why}")
    say(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")
