"""Scores of several targets together, on the test rows that they share, with bootstrap intervals.

With e_ij = 1 where target j of row i is wrong: the exact match ratio is the share of rows without an error, the Hamming
loss the mean of e. Of labels F1 = 2 TP / (2 TP + FP + FN): from the counts of all labels together (micro), or as the
mean over labels (macro), where a label without any count is left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from epicycle.automl._metrics import bootstrap_interval
from epicycle.automl._training_run import TestPart, TrainingRun

_LEVEL = 0.95


def joint_scores(runs: Mapping[str, TrainingRun], seed: int) -> dict[str, dict[str, Any]]:
    """Scores of targets that are all classes, or all numbers; none of other targets and of unequal test rows."""
    parts = [run.test_part for run in runs.values()]
    if any(not np.array_equal(part.rows, parts[0].rows) for part in parts):
        return {}
    tasks = {run.task for run in runs.values()}
    if tasks == {"regression"}:
        return {"mean_r2": _mean_r2(parts, seed)}
    if tasks != {"classification"}:
        return {}
    wrong = np.column_stack([part.y != part.responses["predict"] for part in parts]).astype(np.float64)
    found = {
        "exact_match": _row(
            _mean_of((wrong.sum(axis=1) == 0).astype(np.float64)),
            len(wrong),
            seed,
            "exact match ratio",
            "share of the rows of which every target is right",
        ),
        "hamming_loss": _row(
            _mean_of(wrong.mean(axis=1)), len(wrong), seed, "Hamming loss", "share of all targets of all rows that err"
        ),
    }
    if all(part.y.dtype == bool for part in parts):
        y = np.column_stack([part.y for part in parts])
        said = np.column_stack([part.responses["predict"].astype(bool) for part in parts])
        counts = [(y & said).astype(float), (~y & said).astype(float), (y & ~said).astype(float)]
        micro, macro = f1_of_counts(*counts)
        found["f1_micro"] = _row(micro, len(y), seed, "F1, micro", "F1 of all labels counted together")
        found["f1_macro"] = _row(
            macro, len(y), seed, "F1, macro", "mean of the F1 of the labels: rare ones count as much"
        )
    return found


def f1_of_counts(
    tp: np.ndarray, fp: np.ndarray, fn: np.ndarray
) -> tuple[Callable[[np.ndarray], float], Callable[[np.ndarray], float]]:
    """Micro and macro F1 as functions of how often each row counts."""

    def micro(counts: np.ndarray) -> float:
        true = 2 * float((counts @ tp).sum())
        wrong = float((counts @ (fp + fn)).sum())
        return true / (true + wrong) if true + wrong > 0 else float("nan")

    def macro(counts: np.ndarray) -> float:
        true, wrong = 2 * (counts @ tp), counts @ (fp + fn)
        there = true + wrong > 0
        return float((true[there] / (true + wrong)[there]).mean()) if there.any() else float("nan")

    return micro, macro


def _mean_of(values: np.ndarray) -> Callable[[np.ndarray], float]:
    return lambda counts: float(counts @ values / counts.sum())


def _mean_r2(parts: list[TestPart], seed: int) -> dict[str, Any]:
    y = np.column_stack([part.y for part in parts])
    errors = (y - np.column_stack([part.responses["predict"] for part in parts])) ** 2

    def score(counts: np.ndarray) -> float:
        mean = counts @ y / counts.sum()
        total = counts @ (y - mean) ** 2
        there = total > 0
        return float((1 - (counts @ errors)[there] / total[there]).mean()) if there.any() else float("nan")

    return _row(score, len(y), seed, "mean R2", "mean over the targets of the share of the variance that is explained")


def _row(score: Callable[[np.ndarray], float], n: int, seed: int, label: str, reading: str) -> dict[str, Any]:
    lower, upper = bootstrap_interval(score, n, _LEVEL, seed, seconds=0.3)
    named = {"label": label, "reading": reading, "method": "BCa bootstrap"}
    return {"score": score(np.ones(n)), "lower": lower, "upper": upper, "level": _LEVEL, "n": n, **named}
