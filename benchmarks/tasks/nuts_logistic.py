"""NUTS: Bayesian logistic regression."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Target, Task
from benchmarks.tasks._sampling import against_a_long_run, implementations


def make(directory: Path, quick: bool) -> Data:
    n, p = (500, 5) if quick else (10_000, 20)
    rng = np.random.default_rng(71)
    X = rng.standard_normal((n, p))
    margin = X @ rng.normal(0, 0.5, p) + 0.3
    return {"X": X, "y": (rng.random(n) < 1 / (1 + np.exp(-margin))).astype(np.float64)}


def model(data: Data) -> Any:
    from epicycle import bayes

    return bayes.LogisticModel(data["X"], data["y"])


def in_numpyro(data: Data, numpyro: Any, jnp: Any) -> Callable[[], None]:
    X, y, dist = jnp.asarray(data["X"]), jnp.asarray(data["y"]), numpyro.distributions

    def generative() -> None:
        coef = numpyro.sample("coef", dist.Normal(0, 2.5).expand([X.shape[1]]).to_event(1))
        intercept = numpyro.sample("intercept", dist.Normal(0, 10))
        numpyro.sample("y", dist.Bernoulli(logits=X @ coef + intercept), obs=y)

    return generative


def in_pymc(data: Data, pm: Any) -> None:
    coef = pm.Normal("coef", 0, 2.5, shape=data["X"].shape[1])
    intercept = pm.Normal("intercept", 0, 10)
    pm.Bernoulli("y", logit_p=pm.math.dot(data["X"], coef) + intercept, observed=data["y"])


TASK = Task(
    name="nuts_logistic",
    title="NUTS, logistic regression 10,000 x 20: seconds for 1,000 effective draws",
    description="""\
Four chains of 1,000 draws after their warm-up (500; nutpie's own default). Time is for a thousand effective draws,
the smallest of all parameters, warm-up included and compilation not. Means may differ from a long run by 0.15 standard
deviations.""",
    make=make,
    implementations=implementations(model, in_numpyro, in_pymc, ("coef", "intercept"), metric="dense"),
    quality=against_a_long_run(model),
    tolerance=0.15,
    targets=(Target("effective draws per second against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=600.0,
)
