"""Common parts of the tasks of support vector machines: the dual objective of a solution, and real data."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.task import Data, Quality, Solution

EXCESS = "dual objective, short of the best"


def shared(name: str) -> Path | None:
    """A file of real data: in the folder that EPICYCLE_DATA names, or in shared/data near the repository."""
    root = Path(__file__).resolve().parents[2]
    folders = [Path(os.environ[v]) for v in ("EPICYCLE_DATA",) if v in os.environ]
    folders += [above / "shared" / "data" for above in (root, root.parent, root.parent.parent)]
    return next((folder / name for folder in folders if (folder / name).is_file()), None)


def gaussian(A: np.ndarray, B: np.ndarray, gamma: float) -> np.ndarray:
    D = np.square(A).sum(axis=1)[:, None] + np.square(B).sum(axis=1) - 2 * A @ B.T
    return np.exp(-gamma * np.maximum(D, 0))


def gamma_of(X: np.ndarray) -> float:
    """The value of gamma="scale"."""
    return float(1 / (X.shape[1] * X.var()))


def solution_of(model: Any) -> Solution:
    """Coefficients of pairs of classes in libsvm's layout, which all implementations have."""
    return {"support": np.asarray(model.support_, np.int64), "coefficients": np.atleast_2d(model.dual_coef_)}


def dual_objective(data: Data, solution: Solution, C: float) -> float:
    """The sum over all pairs of classes of sum |b| - b'Kb / 2; minus infinity where b breaks its bounds."""
    X, y, gamma = data["X"], data["y"], gamma_of(data["X"])
    support, coefficients = solution["support"], solution["coefficients"]
    if np.abs(coefficients).max() > C * (1 + 1e-6):
        return -np.inf
    labels, total = y[support], 0.0
    classes = np.unique(y)
    for i, j in combinations(range(len(classes)), 2):
        first, second = np.flatnonzero(labels == classes[i]), np.flatnonzero(labels == classes[j])
        rows = np.concatenate([first, second])
        if len(classes) == 2:
            b = coefficients[0, rows]
        else:
            b = np.concatenate([coefficients[j - 1, first], coefficients[i, second]])
        rows, b = support[rows][b != 0], b[b != 0]
        if abs(b.sum()) > 1e-6 * np.abs(b).sum():
            return -np.inf
        f = np.concatenate(
            [gaussian(X[part], X[rows], gamma) @ b for part in np.array_split(rows, len(rows) // 2000 + 1)]
        )
        total += float(np.abs(b).sum() - 0.5 * b @ f)
    return total


def quality(C: float) -> Callable[[Data, Mapping[str, Solution]], dict[str, Quality]]:
    """By how much each dual objective, computed here in double precision, falls short of the best."""

    def quality_of(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        values = {name: dual_objective(data, solution, C) for name, solution in solutions.items()}
        best = max(values.values())
        return {name: {EXCESS: 1 - value / best, "dual objective": value} for name, value in values.items()}

    return quality_of
