"""Common parts of the tasks of linear support vector machines: the objective above a proven bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.task import Data, Quality, Solution

#: Every library measures convergence in its own way; the loosest tolerance that reaches the objective is the one timed.
TOLERANCES = {
    "epicycle": (1e-2, 3e-3, 1e-3, 5e-4, 3e-4, 2e-4, 1.5e-4, 1e-4, 5e-5, 2e-5, 1e-5),
    "scikit-learn": (1.0, 0.5, 0.3, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 1e-2, 5e-3, 2e-3, 1e-3, 1e-4, 1e-5),
}


def matrix(data: Data) -> Any:
    """The rows: a dense array, or the CSR matrix whose parts were stored."""
    if "X" in data:
        return data["X"]
    X = sp.csr_matrix((len(data["y"]), int(data["columns"][0])))
    X.data, X.indices, X.indptr = data["data"], data["indices"], data["indptr"]
    X.has_canonical_format = True
    return X


def objective(X: Any, y: np.ndarray, solution: Solution, squared: bool, C: float) -> float:
    """|w|^2 / 2 + b^2 / 2 + C times the sum of the losses."""
    w, b = solution["coef"], float(solution["intercept"][0])
    v = np.maximum(1.0 - np.where(y > 0, 1.0, -1.0) * (X @ w + b), 0.0)
    return float(w @ w / 2 + b * b / 2 + C * (v @ v if squared else v.sum()))


def quality_of(squared: bool, C: float = 1.0) -> Callable[[Data, Mapping[str, Solution]], dict[str, Quality]]:
    """The objective above the bound that the reference proves, relative to that."""

    def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
        X = matrix(data)
        bound = float(solutions["reference"]["bound"][0])
        return {
            name: {"objective above the bound": objective(X, data["y"], s, squared, C) / bound - 1}
            for name, s in solutions.items()
        }

    return quality


def setup(library: str) -> Callable[[Data], Any]:
    """Imports, and the matrix put together."""

    def ready(data: Data) -> tuple[Any, Any, np.ndarray]:
        if library == "epicycle":
            from epicycle import LinearSVC
        else:
            from sklearn.svm import LinearSVC
        return LinearSVC, matrix(data), data["y"]

    return ready


def fit(**options: Any) -> Callable[[Any, float], Solution]:
    def run(ready: tuple[Any, Any, np.ndarray], tol: float) -> Solution:
        estimator, X, y = ready
        model = estimator(tol=tol, random_state=0, **options).fit(X, y)
        return {"coef": model.coef_[0], "intercept": model.intercept_}

    return run


def tight(**options: Any) -> Callable[[Any], Solution]:
    """A solution whose dual variables prove a lower bound that is good to seven digits."""

    def run(ready: tuple[Any, Any, np.ndarray]) -> Solution:
        estimator, X, y = ready
        model = estimator(tol=1e-7, random_state=0, **options).fit(X, y)
        return {"coef": model.coef_[0], "intercept": model.intercept_, "bound": model.dual_objective_}

    return run
