"""Ridge with alpha chosen by leave-one-out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    n, p = (2_000, 50) if quick else (20_000, 200)
    rng = np.random.default_rng(12)
    X = rng.standard_normal((n, 20)) @ rng.standard_normal((20, p)) / 3 + rng.standard_normal((n, p))
    y = X @ rng.standard_normal(p) / 10 + 10 * rng.standard_normal(n) + 1.0
    return {"X": X, "y": y, "alphas": np.geomspace(0.1, 1e6, 50)}


def fit(estimator: Callable[[], type[Any]]) -> Callable[[Data], Solution]:
    def run(data: Data) -> Solution:
        model = estimator()(alphas=data["alphas"]).fit(data["X"], data["y"])
        return {"coef": model.coef_, "alpha": np.array([model.alpha_]), "score": np.array([model.best_score_])}

    return run


def _epicycle() -> type[Any]:
    from epicycle import RidgeCV

    return RidgeCV


def _scikit_learn() -> type[Any]:
    from sklearn.linear_model import RidgeCV

    return RidgeCV


def reference(data: Data) -> Solution:
    """The error of every alpha from its hat matrix, one alpha after the other, by the singular value decomposition."""
    X, y = data["X"] - data["X"].mean(axis=0), data["y"] - data["y"].mean()
    U, s, Vt = np.linalg.svd(X, full_matrices=False)
    errors = []
    for alpha in data["alphas"]:
        kept = s**2 / (s**2 + alpha)
        h = 1 / len(y) + (U**2) @ kept
        errors.append(np.mean(((y - U @ (kept * (U.T @ y))) / (1 - h)) ** 2))
    alpha = data["alphas"][int(np.argmin(errors))]
    coef = Vt.T @ (s / (s**2 + alpha) * (U.T @ y))
    return {"coef": coef, "alpha": np.array([alpha]), "score": np.array([-min(errors)])}


def quality(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Relative distance of score and coefficients from the reference; infinite for another alpha."""
    exact = solutions["reference"]
    found = {}
    for name, s in solutions.items():
        score = float(abs(s["score"][0] / exact["score"][0] - 1)) if s["alpha"][0] == exact["alpha"][0] else np.inf
        error = float(np.linalg.norm(s["coef"] - exact["coef"]) / np.linalg.norm(exact["coef"]))
        found[name] = {"error of the leave-one-out score": score, "coefficient error": error}
    return found


TASK = Task(
    name="ridge_cv",
    title="RidgeCV, 20,000 x 200, leave-one-out over 50 alphas",
    description="""\
Columns with twenty common factors, weak coefficients, an intercept. At equal quality the same alpha is chosen and its
leave-one-out error is that of a reference, computed from the hat matrix of each alpha, to nine digits.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", reference),
        Implementation("scikit-learn", "peer", fit(_scikit_learn)),
        Implementation("epicycle", "epicycle", fit(_epicycle)),
    ),
    quality=quality,
    tolerance=1e-9,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=2.0),),
)
