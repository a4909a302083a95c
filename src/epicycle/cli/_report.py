"""``epicycle report``: score and diagnose a model on new data; the record of a report and its curves."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from epicycle import report
from epicycle.automl import TrainingRun
from epicycle.automl._metrics import further_metrics, metric_for, score_record
from epicycle.automl._output import check_folder, write_folder
from epicycle.automl._training_run import environment, now
from epicycle.automl.checks._data_checks import profile_columns
from epicycle.automl.tables._labelled_rows import read_rows
from epicycle.automl.tables._table_encoder import is_feature
from epicycle.automl.tables._table_model import innermost
from epicycle.automl.tables._tables import source_name
from epicycle.cli._pdf import browser, print_page
from epicycle.core._exceptions import DataError, EpicycleError
from epicycle.diagnose import slices, threshold_of_scores
from epicycle.io import load
from epicycle.report._plain import plain
from epicycle.report._score_tables import class_scores, gain, predictions
from epicycle.select._scorers import responses_of


def report_files(run: TrainingRun, *, pdf: str | None = None) -> dict[str, Callable[[Path], None]]:
    """report.html and report.json, as functions that write them, and report.pdf by the browser `pdf`."""
    record = run.record()
    part = run.test_part
    drawn = curves_of(part.y, part.responses, run.metric.classes, part.weight, run.interval)
    _mark_threshold(drawn, run.findings.get("threshold"))
    record["curves"] = {**drawn, **record["curves"]}
    return files_of(record, pdf=pdf)


def _mark_threshold(drawn: dict[str, Any], found: Any) -> None:
    """The chosen and the default threshold in the curve of the test rows."""
    if found is not None and "threshold" in drawn:
        drawn["threshold"].update(chosen=float(found.threshold), default=float(found.default_threshold))


def files_of(record: Mapping[str, Any], *, pdf: str | None = None) -> dict[str, Callable[[Path], None]]:
    """report.html and report.json, as functions that write them, and report.pdf by the browser `pdf`."""
    files: dict[str, Callable[[Path], None]] = {
        "report.html": lambda path: report.write(record, path, None),
        "report.json": lambda path: report.write(record, None, path),
    }
    if pdf is not None:
        files["report.pdf"] = lambda path: print_page(path.with_name("report.html"), path, pdf)
    return files


def curves_of(
    y: np.ndarray,
    responses: Mapping[str, np.ndarray],
    classes: np.ndarray | None,
    weight: np.ndarray | None,
    interval: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Curves of predictions: calibration, ROC, precision and recall, confusion matrix, gain; residuals of a regression.

    interval : of a regression, the "half_width" of its prediction intervals, or its "quantile".
    """
    made: dict[str, Callable[[], Any]] = {}
    if classes is None:
        half, quantile = ((interval or {}).get(name) for name in ("half_width", "quantile"))
        made["predictions"] = lambda: predictions(y, responses["predict"], half, quantile)
        if quantile is None:  # those of a quantile have no median near zero
            made["residuals"] = lambda: report.curves.residuals(y, responses["predict"])
    else:
        made["confusion"] = lambda: report.curves.confusion(y, responses["predict"])
        p = responses.get("predict_proba")
        if p is not None and len(classes) == 2:
            counts = [int(np.sum(y == label)) for label in classes]
            # The rarer class is the positive one, as in the threshold diagnosis.
            rare = int(np.argmin(counts)) if counts[0] != counts[1] else 1
            positive, score = y == classes[rare], p[:, rare]
            made["calibration"] = lambda: report.curves.calibration(positive, score, sample_weight=weight)
            made["roc"] = lambda: report.curves.roc(positive, score, sample_weight=weight)
            made["precision_recall"] = lambda: report.curves.precision_recall(positive, score, sample_weight=weight)
            made["gain"] = lambda: gain(positive, score, weight)
            made["threshold"] = lambda: report.curves.operating_points(positive, score)
        elif p is not None:
            # With more classes: calibration of the largest probability.
            right, sure = np.asarray(classes)[p.argmax(axis=1)] == y, p.max(axis=1)
            made["calibration"] = lambda: {
                **report.curves.calibration(right, sure, sample_weight=weight),
                "of": "largest",
            }
    found = {}
    for name, make in made.items():
        try:
            found[name] = make()
        except DataError:  # one class only, or no row: nothing to draw
            continue
    if "confusion" in found:
        found["class_scores"] = class_scores(found["confusion"])
    return found


_MAX_SLICE_ROWS = 20_000


def run_report(
    path: Path,
    data: str,
    *,
    target: str | None,
    out: Path | None,
    as_json: bool,
    seed: int,
    n_jobs: int | None,
    header: bool = True,
    pdf: bool = False,
) -> None:
    """Score, diagnose, write report.html and report.json."""
    printer = browser() if pdf else None
    folder = check_folder(out if out is not None else f"epicycle-report-{Path(data).name.partition('.')[0] or 'run'}")
    model = load(path)
    record = record_of(model, path, data, target, seed, n_jobs, header=header)
    write_folder(folder, files_of(record, pdf=printer))
    if as_json:
        print(
            json.dumps(
                {**plain({k: record[k] for k in ("test", "tests", "findings")}), "folder": os.fspath(folder)}, indent=2
            )
        )
        return
    t = record["test"]
    # Two rows have a score, but no interval.
    between = "" if t["lower"] is None else f", between {t['lower']:.4g} and {t['upper']:.4g} at {t['level']:.0%}"
    print(f"{record['metric']['label']} on {t['n']:,} rows: {t['score']:.4g}{between} ({t['method']})")
    for found in record["findings"]:
        print(f"{found['slot'].replace('_', ' ')}: {found['verdict']}")
    print(f"written to {folder}: {', '.join(sorted(os.listdir(folder)))}")


def record_of(
    model: Any, path: Path, data: str, target: str | None, seed: int, n_jobs: int | None, *, header: bool = True
) -> dict[str, Any]:
    """Record of a report: score and diagnoses of a model on labelled rows."""
    rows = read_rows(data, model, target, header=header)
    classes = np.asarray(model.classes_) if is_classifier(model) else None
    task = "regression" if classes is None else "classification"
    metric = metric_for(None, task, rows.y if classes is None else np.concatenate([rows.y, classes]))
    responses = responses_of(model, rows.table, classes)
    if classes is None and len(rows.y) < 2:
        raise DataError(f"{source_name(data)}: {len(rows.y)} row with a {rows.target}; expected at least 2")
    if classes is not None and not np.isfinite(metric.score(responses, rows.y)):
        metric = metric_for("accuracy", task, classes)  # a model without probabilities
    score = metric.with_bound(responses, rows.y, None, seed)
    tests = {
        name: metric_for(name, task, rows.y if classes is None else classes).with_bound(responses, rows.y, None, seed)
        for name in further_metrics(metric)
    }
    features = dict(getattr(getattr(model, "encoder_", None), "columns_", {}))
    profile, warned = profile_columns(
        rows.table.select([c for c in rows.table.column_names if c in features] or rows.table.column_names), {}
    )
    findings: list[dict[str, Any]] = []
    curves = curves_of(rows.y, responses, classes, None)
    at = slice(0, _MAX_SLICE_ROWS)
    part = rows.table.slice(0, _MAX_SLICE_ROWS)
    try:
        names = [name for name, kind in features.items() if is_feature(kind) and kind not in ("text", "sequence")]
        names = names if features else list(part.column_names)
        found = slices(
            model, part, rows.y[at], features=part.select(names), cv="prefit", n_jobs=n_jobs, random_state=seed
        )
        examples = {name: np.asarray(values).tolist() for name, values in found.worst_rows.items()}
        findings.append({"slot": "slices", **found.to_dict(), "examples": examples})
    except EpicycleError:  # too few rows to compare slices
        pass
    if classes is not None and len(classes) == 2 and "predict_proba" in responses and len(np.unique(rows.y)) == 2:
        rare = int(np.argmin([np.sum(rows.y == label) for label in classes]))
        threshold = threshold_of_scores(responses["predict_proba"][:, rare], rows.y == classes[rare], random_state=seed)
        findings.append({"slot": "threshold", **threshold.to_dict()})
        _mark_threshold(curves, threshold)
    certificate = getattr(model, "certificate_", None)
    name = type(innermost(getattr(model, "model_", model))).__name__
    return {
        "title": f"{name} on {source_name(data)}",
        "created": now(),
        "data": {
            "rows": len(rows.y),
            "columns": rows.table.num_columns,
            "source": source_name(data),
            "target": rows.target,
            "task": task,
            "split": {"test": len(rows.y)},
            "model": str(path),
        },
        "columns": [{**asdict(p), "missing": p.missing / max(len(rows.y), 1)} for p in profile],
        "warnings": plain(warned),
        "metric": {"name": metric.name, "greater_is_better": metric.greater_is_better, "label": metric.label},
        "test": plain(score),
        "tests": {key: score_record(key, value) for key, value in tests.items()},
        "certificate": plain(certificate),
        "findings": findings,
        "curves": curves,
        "environment": environment(seed, 0.0, 0.0),
    }
