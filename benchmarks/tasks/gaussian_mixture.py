"""A mixture of normal distributions with full covariances, from the same start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

MEASURE = "mean log-likelihood, below the best"


def make(directory: Path, quick: bool) -> Data:
    n, p, k = (10_000, 8, 5) if quick else (100_000, 16, 10)
    rng = np.random.default_rng(47)
    means = 1.2 * rng.normal(size=(k, p))
    shapes = rng.normal(size=(k, p, p)) / np.sqrt(p) + 0.6 * np.eye(p)
    label = rng.integers(0, k, n)
    X = means[label] + np.einsum("ijk,ik->ij", shapes[label], rng.normal(size=(n, p)))
    return {"X": X, "means": X[rng.choice(n, k, replace=False)]}


def setup(library: str) -> Callable[[Data], Any]:
    def prepare(data: Data) -> Any:
        if library == "epicycle":
            from epicycle import GaussianMixture
        else:
            from sklearn.mixture import GaussianMixture
        k, p = data["means"].shape
        start = {"weights_init": np.full(k, 1 / k), "means_init": data["means"], "init_params": "random_from_data"}
        start["precisions_init"] = np.tile(np.eye(p), (k, 1, 1))
        return GaussianMixture(k, tol=1e-4, max_iter=60, random_state=0, **start), data["X"]

    return prepare


def fit(ready: tuple[Any, np.ndarray]) -> Solution:
    model, X = ready
    model.fit(X)
    return {name: np.asarray(getattr(model, f"{name}_")) for name in ("weights", "means", "covariances", "n_iter")}


def likelihoods(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    from scipy.special import logsumexp
    from scipy.stats import multivariate_normal

    found = {}
    for name, s in solutions.items():
        joint = [
            np.log(w) + multivariate_normal(m, C).logpdf(data["X"])
            for w, m, C in zip(s["weights"], s["means"], s["covariances"], strict=True)
        ]
        found[name] = float(logsumexp(joint, axis=0).mean())
    best = max(found.values())
    return {name: {MEASURE: best - value} for name, value in found.items()}


TASK = Task(
    name="gaussian_mixture",
    title="GaussianMixture, 100,000 x 16, 10 components with full covariances, the same start",
    description="""\
Components that overlap. All start from the same means, with unit covariances, and end when a step raises the mean
log-likelihood by less than 1e-4 (or after 60 steps); the mean log-likelihood may be 1e-8 below the best of them.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", fit, setup=setup("epicycle")),
        Implementation("scikit-learn", "peer", fit, setup=setup("scikit-learn")),
    ),
    quality=likelihoods,
    tolerance=1e-8,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=4.0),),
)
