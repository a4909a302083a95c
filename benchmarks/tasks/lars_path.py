"""The exact lasso path by least angle regression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    n, p, active = (100, 1_000, 10) if quick else (500, 10_000, 50)
    rng = np.random.default_rng(13)
    X = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[rng.choice(p, active, replace=False)] = rng.standard_normal(active)
    y = X @ w + 0.5 * np.linalg.norm(w) * rng.standard_normal(n)
    # Centred beforehand: the peer's function knows no intercept.
    X, y = np.asfortranarray(X - X.mean(axis=0)), y - y.mean()
    return {"X": X, "y": y, "alpha": np.array([np.abs(X.T @ y).max() / n / 5])}


def epicycle_path(data: Data) -> Solution:
    from epicycle import Lars

    model = Lars("lasso", alpha=float(data["alpha"][0]), fit_intercept=False).fit(data["X"], data["y"])
    return {"alphas": model.alphas_, "coefs": np.asarray(model.coef_path_)}


def sklearn_path(data: Data) -> Solution:
    from sklearn.linear_model import lars_path

    alphas, _, coefs = lars_path(
        data["X"], data["y"], method="lasso", alpha_min=float(data["alpha"][0]), max_iter=100_000
    )
    return {"alphas": alphas, "coefs": coefs}


def ready(run: Callable[[Data], Solution]) -> Callable[[Data], Data]:
    """Imports and one small path before the clock starts."""

    def setup(data: Data) -> Data:
        X, y = np.asfortranarray(data["X"][:, :20]), data["y"]
        run({"X": X, "y": y, "alpha": np.array([np.abs(X.T @ y).max() / len(y) / 2])})
        return data

    return setup


def worst_condition(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """By how much, at the worst breakpoint, the conditions of the lasso are missed, relative to the largest alpha."""
    return {name: {"largest violation": _violation(data, s)} for name, s in solutions.items()}


def _violation(data: Data, solution: Solution) -> float:
    X, y, W, alphas = data["X"], data["y"], solution["coefs"], solution["alphas"]
    C = X.T @ (y[:, None] - X @ W) / len(y)
    active = np.abs(C - alphas * np.sign(W))[W != 0].max(initial=0.0)
    return float(max(active, (np.abs(C) - alphas).max()) / alphas[0])


TASK = Task(
    name="lars_path",
    title="Exact lasso path (least angle regression), 500 x 10,000, dense, down to a fifth of the largest alpha",
    description="""\
Independent normal columns in Fortran order, centred beforehand, fifty true coefficients, noise of half the signal. At
equal quality the correlations of active columns with the residuals are alpha, and those of others no larger, to 1e-9 of
the largest alpha at every breakpoint.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_path, setup=ready(epicycle_path)),
        Implementation("scikit-learn", "peer", sklearn_path, setup=ready(sklearn_path)),
    ),
    quality=worst_condition,
    tolerance=1e-9,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
