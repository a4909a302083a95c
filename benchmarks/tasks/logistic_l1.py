"""Logistic regression with an L1 penalty on a sparse matrix with many columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks._lasso import matrix

#: Every library measures convergence in its own way; the loosest tolerance that reaches the gap is the one timed.
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9)


def make(directory: Path, quick: bool) -> Data:
    n, p, active = (2_000, 5_000, 50) if quick else (20_000, 50_000, 300)
    rng = np.random.default_rng(21)
    X = sp.random_array(
        (n, p), density=1e-3, rng=rng, format="csc", data_sampler=lambda size: rng.standard_normal(size)
    )
    w = np.zeros(p)
    w[rng.choice(p, active, replace=False)] = 3 * rng.standard_normal(active)
    signal = X @ w
    y = np.where(signal + 0.5 * signal.std() * rng.logistic(size=n) > 0, 1.0, -1.0)
    l1 = np.array([float(np.abs(X.T @ y).max()) / 2 / 5])
    parts = {"data": X.data, "indices": X.indices.astype(np.int32), "indptr": X.indptr.astype(np.int32)}
    return {**parts, "y": y, "l1": l1}


def primal_and_dual(X: Any, y: np.ndarray, w: np.ndarray, l1: float) -> tuple[float, float]:
    """Objective at w, and the dual objective at the residuals scaled into their constraints."""
    s = y * (X @ w)
    q = np.where(s >= 0, np.exp(-np.abs(s)), 1.0) / (1 + np.exp(-np.abs(s)))  # probability of the other class
    primal = np.logaddexp(0, -s).sum() + l1 * np.abs(w).sum()
    u = q * min(1.0, l1 / float(np.abs(X.T @ (y * q)).max()))
    safe = np.clip(u, 1e-300, 1 - 1e-16)
    dual = -(safe * np.log(safe) + (1 - safe) * np.log1p(-safe)).sum()
    return float(primal), float(dual)


def gap_of_fit(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Objective above the best lower bound that any solution proves, relative to the objective at w = 0."""
    X, l1, zero = matrix(data), float(data["l1"][0]), len(data["y"]) * np.log(2)
    values = {name: primal_and_dual(X, data["y"], s["coef"], l1) for name, s in solutions.items()}
    bound = max(dual for _, dual in values.values())
    return {name: {"duality gap": (primal - bound) / zero} for name, (primal, _) in values.items()}


# ------------------------------------------------------------------------------------------------ libraries


def _epicycle(l1: float, n: int, tol: float) -> Any:
    from epicycle import LogisticRegression

    return LogisticRegression(C=1 / l1, l1_ratio=1.0, fit_intercept=False, tol=tol)


def _liblinear(l1: float, n: int, tol: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(
        C=1 / l1, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=tol, max_iter=100_000, random_state=0
    )


def _celer(l1: float, n: int, tol: float) -> Any:
    from celer import LogisticRegression

    return LogisticRegression(C=1 / l1, tol=tol, max_iter=1000)


def _skglm(l1: float, n: int, tol: float) -> Any:
    from skglm import SparseLogisticRegression

    return SparseLogisticRegression(alpha=l1 / n, tol=tol, fit_intercept=False, max_iter=1000)


LIBRARIES: dict[str, Callable[[float, int, float], Any]] = {
    "epicycle": _epicycle,
    "liblinear (scikit-learn)": _liblinear,
    "celer": _celer,
    "skglm": _skglm,
}


def setup(library: str) -> Callable[[Data], Any]:
    """Imports, the matrix put together, and one small fit: what compiles on first use has compiled."""

    def ready(data: Data) -> tuple[Any, Any, Data]:
        X, y = matrix(data), data["y"]
        LIBRARIES[library](float(data["l1"][0]), 200, 1e-2).fit(X[:200], y[:200])
        return LIBRARIES[library], X, data

    return ready


def fit(ready: tuple[Any, Any, Data], tol: float) -> Solution:
    """Fit with the given tolerance."""
    estimator, X, data = ready
    model = estimator(float(data["l1"][0]), len(data["y"]), tol).fit(X, data["y"])
    return {"coef": np.ravel(model.coef_)}


def tight(ready: tuple[Any, Any, Data]) -> Solution:
    """A solution whose residuals prove a lower bound that is good to ten digits; only that bound is used."""
    return fit(ready, 1e-11)


TASK = Task(
    name="logistic_l1",
    title="L1 logistic regression, 20,000 x 50,000, sparse (density 0.001), a fifth of the largest penalty",
    description="""\
A CSC matrix of a million normal entries, three hundred true coefficients, no intercept (celer has none, liblinear
penalises it). At equal quality the objective is within 1e-6 of its value at zero of the best dual bound that anybody
proves. Libraries that compile on first use have done so before the clock starts.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", tight, setup=setup("epicycle")),
        *(
            Implementation(
                name,
                "epicycle" if name == "epicycle" else "peer",
                fit,
                setup=setup(name),
                tolerances=TOLERANCES,
            )
            for name in LIBRARIES
        ),
    ),
    quality=gap_of_fit,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.2),),
)
