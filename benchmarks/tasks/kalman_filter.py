"""Likelihood of a linear state-space model over a long series."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import ratio, speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task


def make(directory: Path, quick: bool) -> Data:
    from epicycle.control import KalmanFilter

    rng = np.random.default_rng(0)
    A = rng.normal(size=(4, 4))
    A *= 0.95 / np.abs(np.linalg.eigvals(A)).max()
    C, W, V = rng.normal(size=(2, 4)), np.diag([0.1, 0.2, 0.3, 0.4]), np.array([[0.5, 0.1], [0.1, 0.3]])
    model = KalmanFilter(A, C, W, V)
    y = model.sample(20_000 if quick else 1_000_000, random_state=1)[1]
    return {"A": A, "C": C, "W": W, "V": V, "P0": model.covariance, "y": y}


def epicycle_likelihood(data: Data) -> Solution:
    from epicycle.control import KalmanFilter

    model = KalmanFilter(data["A"], data["C"], data["W"], data["V"], covariance=data["P0"])
    return {"value": np.array([model.log_likelihood(data["y"])])}


def statsmodels_likelihood(data: Data) -> Solution:
    from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

    model = KalmanFilter(k_endog=2, k_states=4)
    model.bind(data["y"])
    model["design"], model["transition"], model["selection"] = data["C"], data["A"], np.eye(4)
    model["obs_cov"], model["state_cov"] = data["V"], data["W"]
    model.initialize_known(np.zeros(4), data["P0"])
    return {"value": np.array([model.loglike()])}


def filterpy_likelihood(data: Data) -> Solution:
    from filterpy.kalman import KalmanFilter

    model = KalmanFilter(dim_x=4, dim_z=2)
    model.F, model.H, model.Q, model.R = data["A"], data["C"], data["W"], data["V"]
    model.x, model.P = np.zeros((4, 1)), data["P0"]
    total = 0.0
    for y in data["y"][:, :, None]:
        model.update(y)
        total += model.log_likelihood
        model.predict()
    return {"value": np.array([total])}


def relative_to_exact(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distance of the log-likelihoods from each other, relative."""
    values = {name: float(s["value"][0]) for name, s in solutions.items()}
    middle = float(np.median(list(values.values())))
    return {name: {"distance": abs(v - middle) / abs(middle)} for name, v in values.items()}


TASK = Task(
    name="kalman_filter",
    title="Log-likelihood of a linear state-space model with four states, two observed, a million times",
    description="""\
A stable random model and observations drawn from it. At equal quality the log-likelihoods agree to 1e-9.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_likelihood),
        Implementation("statsmodels", "peer", statsmodels_likelihood),
        Implementation("filterpy", "peer", filterpy_likelihood),
    ),
    quality=relative_to_exact,
    tolerance=1e-9,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
        Target("speed against filterpy", ratio("filterpy", "epicycle"), at_least=100.0),
    ),
    cap=400.0,
)
