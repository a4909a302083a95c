"""NUTS: a correlated normal distribution."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Target, Task
from benchmarks.tasks._sampling import against_a_long_run, implementations


def make(directory: Path, quick: bool) -> Data:
    n = 10 if quick else 100
    rng = np.random.default_rng(72)
    A = rng.standard_normal((n, 2 * n))
    scale = np.exp(0.5 * rng.standard_normal(n))
    covariance = A @ A.T / (2 * n) * np.outer(scale, scale)
    return {"covariance": covariance, "precision": np.linalg.inv(covariance)}


def model(data: Data) -> Any:
    from epicycle import bayes

    return bayes.NormalModel(np.zeros(len(data["covariance"])), data["covariance"])


def in_numpyro(data: Data, numpyro: Any, jnp: Any) -> Callable[[], None]:
    precision = jnp.asarray(data["precision"])

    def generative() -> None:
        centre = jnp.zeros(len(precision))
        numpyro.sample("x", numpyro.distributions.MultivariateNormal(centre, precision_matrix=precision))

    return generative


def in_pymc(data: Data, pm: Any) -> None:
    pm.MvNormal("x", np.zeros(len(data["precision"])), tau=data["precision"])


TASK = Task(
    name="nuts_normal",
    title="NUTS, correlated normal of 100 dimensions: seconds for 1,000 effective draws",
    description="""\
A random covariance, of condition number 300. Four chains of 1,000 draws after their warm-up (500; nutpie's own
default). Time is for a thousand effective draws, the smallest of all coordinates, warm-up included and compilation not.
Means may differ from a long run by 0.15 standard deviations.""",
    make=make,
    implementations=implementations(model, in_numpyro, in_pymc, ("x",), metric="dense"),
    quality=against_a_long_run(model),
    tolerance=0.15,
    targets=(Target("effective draws per second against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=600.0,
)
