"""Common parts of the lasso tasks: the true duality gap as quality, and the settings of each library for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.task import Data, Quality, Solution

#: Every library measures convergence in its own way; the loosest tolerance that reaches the gap is the one timed.
TOLERANCES = (1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10)


def matrix(data: Data) -> Any:
    """The design: a dense array, or the CSC matrix whose parts were stored."""
    if "X" in data:
        return data["X"]
    X = sp.csc_matrix((len(data["y"]), len(data["indptr"]) - 1))
    X.data, X.indices, X.indptr = data["data"], data["indices"], data["indptr"]
    X.has_canonical_format = True
    return X


def largest_alpha(X: Any, y: np.ndarray) -> float:
    """The smallest alpha at which all coefficients are zero."""
    r = y - y.mean()
    return float(np.abs(X.T @ r).max()) / len(y)


def primal_and_dual(
    X: Any, y: np.ndarray, w: np.ndarray, alpha: float, *, intercept: bool = True
) -> tuple[float, float]:
    """Objective at w with its best intercept, dual objective at the scaled residuals; both relative to w = 0."""
    n = len(y)
    r = y - X @ w
    r -= r.mean() if intercept else 0.0
    centred = y - y.mean() if intercept else y
    scale = min(1.0, alpha * n / float(np.abs(X.T @ r).max()))
    primal = r @ r + 2 * n * alpha * np.abs(w).sum()
    dual = centred @ centred - (centred - scale * r) @ (centred - scale * r)
    return float(primal / (centred @ centred)), float(dual / (centred @ centred))


def gap_of_fit(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Objective above the best lower bound that any solution proves: nobody pays for a poor dual point."""
    X, y, alpha = matrix(data), data["y"], float(data["alpha"][0])
    values = {name: primal_and_dual(X, y, s["coef"], alpha) for name, s in solutions.items()}
    bound = max(dual for _, dual in values.values())
    return {name: {"duality gap": primal - bound} for name, (primal, _) in values.items()}


def gap_of_path(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """The same, at the worst alpha of the path."""
    X, y = matrix(data), data["y"]
    values = {
        name: np.array([primal_and_dual(X, y, w, a) for w, a in zip(s["coefs"].T, data["alphas"], strict=True)])
        for name, s in solutions.items()
    }
    bounds = np.max([value[:, 1] for value in values.values()], axis=0)
    return {name: {"largest duality gap": float((value[:, 0] - bounds).max())} for name, value in values.items()}


def setup(library: str) -> Callable[[Data], Any]:
    """Imports, the matrix put together, and one small fit: what compiles on first use has compiled."""

    def ready(data: Data) -> tuple[type[Any], Any, Data]:
        estimator = ESTIMATORS[library]()
        X = matrix(data)
        rows = slice(None, 50)
        estimator(alpha=float(data.get("alpha", data.get("alphas"))[0])).fit(X[rows], data["y"][rows])
        return estimator, X, data

    return ready


def _epicycle() -> type[Any]:
    from epicycle import Lasso

    return Lasso


def _scikit_learn() -> type[Any]:
    from sklearn.linear_model import Lasso

    return Lasso


def _celer() -> type[Any]:
    from celer import Lasso

    return Lasso


def _skglm() -> type[Any]:
    from skglm import Lasso

    return Lasso


ESTIMATORS = {"epicycle": _epicycle, "scikit-learn": _scikit_learn, "celer": _celer, "skglm": _skglm}


def fit(limits: Mapping[str, Any]) -> Callable[[Any, float], Solution]:
    """Fit with the given tolerance and the library's own limit of iterations, raised."""

    def run(ready: tuple[type[Any], Any, Data], tol: float) -> Solution:
        estimator, X, data = ready
        model = estimator(alpha=float(data["alpha"][0]), tol=tol, **limits).fit(X, data["y"])
        return {"coef": np.ravel(model.coef_)}

    return run


def gap_at_own_residuals(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Objective above the lower bound that the residuals of the fit itself prove; no intercept."""
    X, y, alpha = matrix(data), data["y"], float(data["alpha"][0])
    values = {name: primal_and_dual(X, y, s["coef"], alpha, intercept=False) for name, s in solutions.items()}
    return {name: {"duality gap": primal - dual} for name, (primal, dual) in values.items()}


def tight(ready: tuple[type[Any], Any, Data]) -> Solution:
    """A solution whose residuals prove a lower bound that is good to ten digits; only that bound is used."""
    return fit({})(ready, 1e-11)


LIMITS: dict[str, dict[str, Any]] = {
    "epicycle": {},
    "scikit-learn": {"max_iter": 1_000_000},
    "celer": {"max_iter": 1000},
    "skglm": {"max_iter": 1000},
}
