"""``epicycle report --compare A B``: the reports of two runs side by side, and a paired test where they share rows."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from epicycle.automl._metrics import compare_losses
from epicycle.automl._output import check_folder, write_folder
from epicycle.automl._training_run import now
from epicycle.cli._pdf import browser
from epicycle.cli._report import files_of
from epicycle.core._exceptions import DataFileError
from epicycle.report._plain import mapping, plain


def run_comparison_of_runs(
    first: Path, second: Path, *, out: Path | None, as_json: bool, seed: int = 0, pdf: bool = False
) -> None:
    """Write report.html and report.json of both runs."""
    printer = browser() if pdf else None
    records = [_record(path) for path in (first, second)]
    names = _names(first, second)
    folder = check_folder(out if out is not None else f"epicycle-comparison-{names[0]}-{names[1]}")
    verdict = _verdict(first, second, records, names, seed)
    runs = [{"name": name, "record": record} for name, record in zip(names, records, strict=True)]
    record = {
        "title": f"{names[0]} and {names[1]}",
        "created": now(),
        "comparison": {"runs": runs, "verdict": verdict},
    }
    write_folder(folder, files_of(record, pdf=printer))
    if as_json:
        tests = [mapping(one.get("tests")) for one in records]
        print(
            json.dumps(
                {**plain({"runs": names, "tests": tests, "verdict": verdict}), "folder": os.fspath(folder)}, indent=2
            )
        )
        return
    for name, one in zip(names, records, strict=True):
        test = mapping(one.get("test"))
        label = mapping(one.get("metric")).get("label", "score")
        print(f"{name}: {label} {test.get('score', float('nan')):.4g} on {test.get('n', 0):,} test rows")
    if verdict:
        print(verdict)
    print(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")


def _record(path: Path) -> dict[str, Any]:
    """The record of a run: its folder, or its report.json."""
    file = path / "report.json" if path.is_dir() else path
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "no JSON"
        raise DataFileError(f"{file}: {why}; expected the folder of a run, or its report.json") from None
    if not isinstance(found, dict) or not isinstance(found.get("test"), dict):
        raise DataFileError(f"{file}: no report of a training run")
    return found


def _names(first: Path, second: Path) -> list[str]:
    """The names of the folders, told apart where they are the same."""
    names = [
        (path if path.is_dir() else path.parent).resolve().name.removeprefix("epicycle-") for path in (first, second)
    ]
    return names if names[0] != names[1] else [f"{names[0]} A", f"{names[1]} B"]


def _verdict(first: Path, second: Path, records: list[dict[str, Any]], names: list[str], seed: int) -> str:
    """A paired test of the losses where both runs have predictions of the same test rows."""
    tables = [_predictions(path if path.is_dir() else path.parent) for path in (first, second)]
    tasks = {mapping(record.get("data")).get("task") for record in records}
    if any(table is None for table in tables) or len(tasks) != 1:
        return ""
    a, b = (table for table in tables if table is not None)
    sources = {mapping(record.get("data")).get("source") for record in records}
    shared = sorted(a.keys() & b.keys())
    if len(sources) != 1 or len(shared) < 2 or any(a[row][0] != b[row][0] for row in shared):
        return (
            "The runs have no test rows in common: their scores are of different rows and cannot be compared in pairs."
        )
    if tasks == {"classification"}:
        losses = [np.array([float(t[row][0] != t[row][1]) for row in shared]) for t in (a, b)]
        metric = "error rate"
    else:
        losses = [np.array([(float(t[row][0]) - float(t[row][1])) ** 2 for row in shared]) for t in (a, b)]
        metric = "squared error"
    found = compare_losses(losses[0], losses[1], names=(names[0], names[1]), metric=metric, seed=seed)
    return f"On the {len(shared):,} test rows of both: {found.verdict}"


def _predictions(folder: Path) -> dict[int, tuple[str, str]] | None:
    """Target and prediction of each test row."""
    try:
        with (folder / "predictions.csv").open(newline="", encoding="utf-8") as file:
            rows = csv.reader(file)
            next(rows)
            return {int(row[0]): (row[1], row[2]) for row in rows}
    except (OSError, ValueError, IndexError, StopIteration):
        return None
