"""Filter and smoother of a linear state-space model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import ratio, speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task
from benchmarks.tasks.kalman_filter import make as make_long


def make(directory: Path, quick: bool) -> Data:
    data = make_long(directory, True)
    return {**data, "y": data["y"][: 2000 if quick else None]}


def epicycle_smoother(data: Data) -> Solution:
    from epicycle.control import KalmanFilter

    model = KalmanFilter(data["A"], data["C"], data["W"], data["V"], covariance=data["P0"])
    found = model.smooth(data["y"])
    return {"mean": found.mean, "covariance": found.covariance}


def statsmodels_smoother(data: Data) -> Solution:
    from statsmodels.tsa.statespace.kalman_smoother import KalmanSmoother

    model = KalmanSmoother(k_endog=2, k_states=4)
    model.bind(data["y"])
    model["design"], model["transition"], model["selection"] = data["C"], data["A"], np.eye(4)
    model["obs_cov"], model["state_cov"] = data["V"], data["W"]
    model.initialize_known(np.zeros(4), data["P0"])
    found = model.smooth()
    return {"mean": found.smoothed_state.T, "covariance": found.smoothed_state_cov.transpose(2, 0, 1)}


def filterpy_smoother(data: Data) -> Solution:
    from filterpy.kalman import KalmanFilter

    model = KalmanFilter(dim_x=4, dim_z=2)
    model.F, model.H, model.Q, model.R = data["A"], data["C"], data["W"], data["V"]
    model.x, model.P = np.zeros(4), data["P0"]
    # It updates before it predicts, as the others do.
    means, covariances, _, _ = model.batch_filter(data["y"], update_first=True)
    mean, covariance, _, _ = model.rts_smoother(means, covariances)
    return {"mean": mean, "covariance": covariance}


def distance(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Largest distance of smoothed means from those of the first."""
    first = next(iter(solutions.values()))
    return {
        name: {"distance": max(float(np.abs(s[key] - first[key]).max()) for key in ("mean", "covariance"))}
        for name, s in solutions.items()
    }


TASK = Task(
    name="kalman_smoother",
    title="Smoothed states of a linear state-space model with four states, two observed, 20,000 times",
    description="""\
The model of `kalman_filter`. At equal quality smoothed means and covariances agree to 1e-6. statsmodels is compiled,
the loops of filterpy are Python's.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_smoother),
        Implementation("statsmodels", "peer", statsmodels_smoother),
        Implementation("filterpy", "peer", filterpy_smoother),
    ),
    quality=distance,
    tolerance=1e-6,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
        Target("speed against filterpy", ratio("filterpy", "epicycle"), at_least=100.0),
    ),
)
