"""NUTS: eight schools in their non-centred form."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Target, Task
from benchmarks.tasks._sampling import against_a_long_run, implementations


def make(directory: Path, quick: bool) -> Data:
    return {
        "y": np.array([28.0, 8, -3, 7, -1, 1, 18, 12]),
        "sigma": np.array([15.0, 10, 16, 11, 9, 11, 10, 18]),
    }


def model(data: Data) -> Any:
    from epicycle import bayes

    return bayes.HierarchicalModel(data["y"], data["sigma"])


def in_numpyro(data: Data, numpyro: Any, jnp: Any) -> Callable[[], None]:
    y, sigma, dist = jnp.asarray(data["y"]), jnp.asarray(data["sigma"]), numpyro.distributions

    def generative() -> None:
        mu = numpyro.sample("mu", dist.Normal(0, 5))
        tau = numpyro.sample("tau", dist.HalfCauchy(5))
        eta = numpyro.sample("eta", dist.Normal(0, 1).expand([len(y)]).to_event(1))
        numpyro.sample("y", dist.Normal(mu + tau * eta, sigma), obs=y)

    return generative


def in_pymc(data: Data, pm: Any) -> None:
    mu = pm.Normal("mu", 0, 5)
    tau = pm.HalfCauchy("tau", 5)
    eta = pm.Normal("eta", 0, 1, shape=len(data["y"]))
    pm.Normal("y", mu + tau * eta, data["sigma"], observed=data["y"])


TASK = Task(
    name="nuts_eight_schools",
    title="NUTS, eight schools (non-centred): seconds for 1,000 effective draws",
    description="""\
Four chains of 1,000 draws after their warm-up (500; nutpie's own default). Time is for a thousand effective draws,
the smallest of all parameters, warm-up included and compilation not. Means may differ from a long run by 0.15 standard
deviations.""",
    make=make,
    implementations=implementations(model, in_numpyro, in_pymc, ("mu", "tau", "eta")),
    quality=against_a_long_run(model),
    tolerance=0.15,
    targets=(Target("effective draws per second against the best peer", speedup_over_best_peer(), at_least=1.0),),
    cap=600.0,
)
