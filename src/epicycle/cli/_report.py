"""``epicycle report``: the score and the diagnosis of a model again, on new rows."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from epicycle.automl._folder import check_folder, write_folder
from epicycle.automl._metrics import further_metrics, judge_for
from epicycle.automl._new_rows import read_rows
from epicycle.automl._profiles import profile_columns
from epicycle.automl._table_encoder import is_feature
from epicycle.automl._tables import source_name
from epicycle.automl._training_run import certificate_dict, environment, now
from epicycle.cli._records import curves_of, files_of
from epicycle.core._exceptions import EpicycleError
from epicycle.diagnose import slices, threshold_of_scores
from epicycle.io import load
from epicycle.report._plain import plain
from epicycle.select._scorers import responses_of

__all__ = ["run_report"]

_MOST_ROWS = 20_000


def run_report(
    path: Path, data: str, *, target: str | None, out: Path | None, as_json: bool, seed: int, n_jobs: int | None
) -> None:
    """Score, diagnose, write report.html and report.json."""
    folder = check_folder(out if out is not None else f"epicycle-report-{Path(data).name.partition('.')[0] or 'run'}")
    model = load(path)
    record = record_of(model, path, data, target, seed, n_jobs)
    write_folder(folder, files_of(record))
    if as_json:
        print(
            json.dumps(
                {**plain({k: record[k] for k in ("test", "tests", "findings")}), "folder": os.fspath(folder)}, indent=2
            )
        )
        return
    t = record["test"]
    print(
        f"{record['metric']['label']} on {t['n']:,} rows: {t['score']:.4g}, between {t['lower']:.4g} and "
        f"{t['upper']:.4g} at {t['level']:.0%} ({t['method']})"
    )
    for found in record["findings"]:
        print(f"{found['slot'].replace('_', ' ')}: {found['verdict']}")
    print(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")


def record_of(model: Any, path: Path, data: str, target: str | None, seed: int, n_jobs: int | None) -> dict[str, Any]:
    """What a report is made from, of a model on new rows."""
    rows = read_rows(data, model, target)
    classes = np.asarray(model.classes_) if is_classifier(model) else None
    task = "regression" if classes is None else "classification"
    judge = judge_for(None, task, rows.y if classes is None else np.concatenate([rows.y, classes]))
    said = responses_of(model, rows.table, classes)
    score = judge.with_bound(said, rows.y, None, seed)
    tests = {name: judge_for(name, task, rows.y if classes is None else classes).with_bound(said, rows.y, None, seed)
             for name in further_metrics(judge)}  # fmt: skip
    features = dict(getattr(getattr(model, "encoder_", None), "columns_", {}))
    profile, warned = profile_columns(
        rows.table.select([c for c in rows.table.column_names if c in features] or rows.table.column_names), {}
    )
    findings: list[dict[str, Any]] = []
    at = slice(0, _MOST_ROWS)
    part = rows.table.slice(0, _MOST_ROWS)
    try:
        names = [name for name, kind in features.items() if is_feature(kind)] or list(part.column_names)
        found = slices(
            model, part, rows.y[at], features=part.select(names), cv="prefit", n_jobs=n_jobs, random_state=seed
        )
        examples = {name: np.asarray(values).tolist() for name, values in found.worst_rows.items()}
        findings.append({"slot": "slices", **found.to_dict(), "examples": examples})
    except EpicycleError:  # too few rows to tell slices apart
        pass
    if classes is not None and len(classes) == 2 and "predict_proba" in said and len(np.unique(rows.y)) == 2:
        rare = int(np.argmin([np.sum(rows.y == label) for label in classes]))
        cut = threshold_of_scores(said["predict_proba"][:, rare], rows.y == classes[rare], random_state=seed)
        findings.append({"slot": "threshold", **cut.to_dict()})
    certificate = getattr(model, "certificate_", None)
    name = type(getattr(model, "model_", model)).__name__
    return {
        "title": f"{name} on {source_name(data)}",
        "created": now(),
        "data": {
            "rows": len(rows.y), "columns": rows.table.num_columns, "source": source_name(data), "target": rows.target,
            "task": task, "split": {"test": len(rows.y)}, "model": str(path),
        },
        "columns": [{**p.to_dict(), "missing": p.missing / max(len(rows.y), 1)} for p in profile],
        "warnings": [w.to_dict() for w in warned],
        "metric": {"name": judge.name, "greater_is_better": judge.greater_is_better, "label": judge.label},
        "test": plain(score),
        "tests": {key: plain(value) for key, value in tests.items()},
        "certificate": None if certificate is None else certificate_dict(certificate),
        "findings": findings,
        "curves": curves_of(rows.y, said, classes, None),
        "environment": environment(seed, 0.0, 0.0),
    }  # fmt: skip
