"""Large random decision processes, as each package takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.task import Data, Quality, Solution

ACTIONS, SUCCESSORS, DISCOUNT, TOL = 4, 10, 0.95, 1e-6


def random_process(n: int) -> Data:
    """Random successors and probabilities, normal rewards."""
    rng = np.random.default_rng(3)
    weight = rng.exponential(size=(ACTIONS, n, SUCCESSORS))
    return {
        "P": weight / weight.sum(axis=2, keepdims=True),
        "successor": rng.integers(n, size=(ACTIONS, n, SUCCESSORS), dtype=np.int32),
        "R": rng.standard_normal((n, ACTIONS)),
    }


def matrices(data: Data) -> list[Any]:
    """A sparse matrix for each action."""
    import scipy.sparse as sp

    n = len(data["R"])
    ends = np.arange(0, n * SUCCESSORS + 1, SUCCESSORS, dtype=np.int32)
    return [
        sp.csr_array((p.ravel(), s.ravel(), ends), shape=(n, n))
        for p, s in zip(data["P"], data["successor"], strict=True)
    ]


def as_process(data: Data) -> Data:
    """Ours."""
    from epicycle.control import MDP

    return {**data, "model": MDP(matrices(data), data["R"], DISCOUNT)}  # type: ignore[dict-item]


def as_matrices(data: Data) -> Data:
    """SciPy's."""
    return {**data, "model": matrices(data)}  # type: ignore[dict-item]


def epicycle_by(name: str) -> Callable[[Data], Solution]:
    """One of our planners."""

    def run(data: Data) -> Solution:
        from epicycle import control

        return {"values": getattr(control, name)(data["model"], tol=TOL).values}

    return run


def as_lists(data: Data) -> Data:
    """mdpsolver takes nested lists: states, actions, successors."""
    P, successor = data["P"].transpose(1, 0, 2), data["successor"].transpose(1, 0, 2)
    import mdpsolver

    model = mdpsolver.model()
    model.mdp(
        discount=DISCOUNT,
        rewards=data["R"].tolist(),
        tranMatProbs=P.tolist(),
        tranMatColumns=successor.tolist(),
    )
    # It begins with the policy and values of the solution before, unless it is given others.
    n = len(data["R"])
    start = {"initPolicy": [0] * n, "initValueVector": [0.0] * n}
    return {**data, "model": model, "start": start}  # type: ignore[dict-item]


def mdpsolver_by(algorithm: str) -> Callable[[Data], Solution]:
    """One of the planners of mdpsolver."""

    def run(data: Data) -> Solution:
        model = data["model"]
        model.solve(algorithm=algorithm, tolerance=TOL * 20, parallel=True, **data["start"])
        return {"values": np.asarray(model.getValueVector())}

    return run


def distance(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Bellman residual of the values, relative to the largest one, as a bound on their error."""
    out: dict[str, Quality] = {}
    by_action = matrices(data)
    for name, solution in solutions.items():
        v = solution["values"]
        after = np.max([data["R"][:, a] + DISCOUNT * (P @ v) for a, P in enumerate(by_action)], axis=0)
        out[name] = {"error bound": float(np.abs(after - v).max() / (1 - DISCOUNT) / np.abs(v).max())}
    return out
