"""The lasso along a path of a hundred alphas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._lasso import TOLERANCES, gap_of_path, largest_alpha, setup


def make(directory: Path, quick: bool) -> Data:
    n, p, active, alphas = (100, 1_000, 10, 20) if quick else (500, 10_000, 50, 100)
    rng = np.random.default_rng(12)
    X = rng.standard_normal((n, p))
    w = np.zeros(p)
    w[rng.choice(p, active, replace=False)] = rng.standard_normal(active)
    y = X @ w + 0.5 * np.linalg.norm(w) * rng.standard_normal(n)
    # Centred beforehand: two of the peers' functions know no intercept.
    X, y = np.asfortranarray(X - X.mean(axis=0)), y - y.mean()
    largest = largest_alpha(X, y)
    return {"X": X, "y": y, "alphas": np.geomspace(largest, largest / 100, alphas)}


Ready = tuple[type[Any], np.ndarray, Data]


def epicycle_path(ready: Ready, tol: float) -> Solution:
    from epicycle import lasso_path

    _, X, data = ready
    return {"coefs": lasso_path(X, data["y"], alphas=data["alphas"], fit_intercept=False, tol=tol).coefs}


def tight_path(ready: Ready) -> Solution:
    """Its residuals prove the lower bounds; nothing else of it is used."""
    return epicycle_path(ready, 1e-11)


def sklearn_path(ready: Ready, tol: float) -> Solution:
    from sklearn.linear_model import lasso_path

    _, X, data = ready
    return {"coefs": lasso_path(X, data["y"], alphas=data["alphas"], tol=tol, max_iter=1_000_000)[1]}


def celer_path(ready: Ready, tol: float) -> Solution:
    from celer import celer_path

    _, X, data = ready
    return {"coefs": celer_path(X, data["y"], "lasso", alphas=data["alphas"], tol=tol, max_iter=1000)[1]}


def skglm_path(ready: Ready, tol: float) -> Solution:
    estimator, X, data = ready
    model = estimator(tol=tol, fit_intercept=False, max_iter=1000)
    return {"coefs": model.path(X, data["y"], data["alphas"])[1]}


RUNS = {"epicycle": epicycle_path, "scikit-learn": sklearn_path, "celer": celer_path, "skglm": skglm_path}

TASK = Task(
    name="lasso_path",
    title="lasso_path, 500 x 10,000, dense, 100 alphas down to a hundredth of the largest",
    description="""\
Independent normal columns in Fortran order, centred beforehand, fifty true coefficients, noise of half the signal. At
equal quality the objective is, for every alpha, within 1e-6 of half the mean square of y of the best dual bound that
anybody proves.
Libraries that compile on first use have done so before the clock starts.""",
    make=make,
    implementations=(
        Implementation("reference", "reference", tight_path, setup=setup("epicycle")),
        *(
            Implementation(
                name, "epicycle" if name == "epicycle" else "peer", run, setup=setup(name), tolerances=TOLERANCES
            )
            for name, run in RUNS.items()
        ),
    ),
    quality=gap_of_path,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.5),),
)
