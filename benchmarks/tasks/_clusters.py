"""Common parts of the tasks of clustering: the model of a library, and the distortion of centres."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.task import Data, Quality, Solution

MEASURE = "distortion, relative excess over the least"


def model(library: str, name: str) -> Any:
    """The class of a library."""
    if library == "epicycle":
        import epicycle as package
    elif library == "scikit-learn-intelex":
        from sklearnex import cluster as package
    else:
        from sklearn import cluster as package
    return getattr(package, name)


def fit(ready: tuple[Any, Any]) -> Solution:
    estimator, X = ready
    return {"centers": np.asarray(estimator.fit(X).cluster_centers_)}


def excesses(rows: Callable[[Data], Any]) -> Callable[[Data, Mapping[str, Solution]], dict[str, Quality]]:
    """J of every solution, relative to the least of them; `rows` gives the matrix."""

    def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        X = rows(data)
        found = {name: distortion(X, solution["centers"]) for name, solution in solutions.items()}
        least = min(found.values())
        return {name: {MEASURE: value / least - 1} for name, value in found.items()}

    return quality


def distortion(X: Any, centers: np.ndarray) -> float:
    """The sum over rows of the squared distance from the nearest centre, in blocks of rows."""
    squares = X.power(2).sum() if hasattr(X, "power") else (X**2).sum()
    step = 10_000
    parts = [X[a : a + step] for a in range(0, X.shape[0], step)]
    return float(
        squares + sum(((part @ centers.T) * -2 + (centers**2).sum(axis=1)).min(axis=1).sum() for part in parts)
    )
