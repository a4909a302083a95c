"""The record of a report: what a run or a model says about its rows, and the curves that show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from epicycle import report
from epicycle.automl import TrainingRun
from epicycle.core._exceptions import DataError

__all__ = ["curves_of", "report_files"]


def report_files(run: TrainingRun) -> dict[str, Callable[[Path], None]]:
    """report.html and report.json, as functions that write them."""
    record = run.record()
    part = run.test_part
    record["curves"] = {**curves_of(part.y, part.responses, run.judge.classes, part.weight), **record["curves"]}
    return files_of(record)


def files_of(record: Mapping[str, Any]) -> dict[str, Callable[[Path], None]]:
    """The page and its twin, as functions that write them."""
    return {
        "report.html": lambda path: report.write(record, path, None),
        "report.json": lambda path: report.write(record, None, path),
    }


def curves_of(
    y: np.ndarray, responses: Mapping[str, np.ndarray], classes: np.ndarray | None, weight: np.ndarray | None
) -> dict[str, Any]:
    """What is drawn of predictions: calibration, areas and confusion of classes, residuals of numbers."""
    made: dict[str, Callable[[], Any]] = {}
    if classes is None:
        made["residuals"] = lambda: report.curves.residuals(y, responses["predict"])
    else:
        made["confusion"] = lambda: report.curves.confusion(y, responses["predict"])
        p = responses.get("predict_proba")
        if p is not None and len(classes) == 2:
            counts = [int(np.sum(y == label)) for label in classes]
            rare = int(np.argmin(counts)) if counts[0] != counts[1] else 1
            positive, score = y == classes[rare], p[:, rare]
            made["calibration"] = lambda: report.curves.calibration(positive, score, sample_weight=weight)
            made["roc"] = lambda: report.curves.roc(positive, score, sample_weight=weight)
            made["precision_recall"] = lambda: report.curves.precision_recall(positive, score, sample_weight=weight)
            made["threshold"] = lambda: report.curves.operating_points(positive, score)
        elif p is not None:
            # Of more classes: how often the class with the largest probability is the true one.
            right, sure = np.asarray(classes)[p.argmax(axis=1)] == y, p.max(axis=1)
            made["calibration"] = lambda: report.curves.calibration(right, sure, sample_weight=weight)
    found = {}
    for name, make in made.items():
        try:
            found[name] = make()
        except DataError:  # one class only, or no row: nothing to draw
            continue
    return found
