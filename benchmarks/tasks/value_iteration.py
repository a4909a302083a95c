"""Planning in a large random decision process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

ACTIONS, SUCCESSORS, DISCOUNT, TOL = 4, 10, 0.95, 1e-6


def make(directory: Path, quick: bool) -> Data:
    n = 20_000 if quick else 1_000_000
    rng = np.random.default_rng(3)
    weight = rng.exponential(size=(ACTIONS, n, SUCCESSORS))
    return {
        "P": weight / weight.sum(axis=2, keepdims=True),
        "successor": rng.integers(n, size=(ACTIONS, n, SUCCESSORS), dtype=np.int32),
        "R": rng.standard_normal((n, ACTIONS)),
    }


def _matrices(data: Data) -> list:  # type: ignore[type-arg]
    import scipy.sparse as sp

    n = len(data["R"])
    ends = np.arange(0, n * SUCCESSORS + 1, SUCCESSORS, dtype=np.int32)
    return [
        sp.csr_array((p.ravel(), s.ravel(), ends), shape=(n, n))
        for p, s in zip(data["P"], data["successor"], strict=True)
    ]


def as_process(data: Data) -> Data:
    from epicycle.control import MDP

    return {**data, "model": MDP(_matrices(data), data["R"], DISCOUNT)}  # type: ignore[dict-item]


def as_matrices(data: Data) -> Data:
    return {**data, "model": _matrices(data)}  # type: ignore[dict-item]


def epicycle_by(name: str) -> Callable[[Data], Solution]:
    def run(data: Data) -> Solution:
        from epicycle import control

        return {"values": getattr(control, name)(data["model"], tol=TOL).values}

    return run


def numpy_loop(data: Data) -> Solution:
    """What one would write: SciPy's products, until the span proves the same loss of the policy."""
    matrices, R = data["model"], data["R"]
    v = np.zeros(len(R))
    factor = DISCOUNT / (1 - DISCOUNT)
    while True:
        after = np.max([R[:, a] + DISCOUNT * (P @ v) for a, P in enumerate(matrices)], axis=0)
        change = after - v
        v = after
        if factor * np.ptp(change) <= TOL * np.abs(v).max():
            return {"values": v + factor * (change.min() + change.max()) / 2}


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
    return {**data, "model": model}  # type: ignore[dict-item]


def mdpsolver_run(data: Data) -> Solution:
    model = data["model"]
    model.solve(algorithm="mpi", tolerance=TOL * 20, parallel=True)
    return {"values": np.asarray(model.getValueVector())}


def distance(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Bellman residual of the values, relative to the largest one, as a bound on their error."""
    out: dict[str, Quality] = {}
    matrices = _matrices(data)
    for name, solution in solutions.items():
        v = solution["values"]
        after = np.max([data["R"][:, a] + DISCOUNT * (P @ v) for a, P in enumerate(matrices)], axis=0)
        out[name] = {"error bound": float(np.abs(after - v).max() / (1 - DISCOUNT) / np.abs(v).max())}
    return out


TASK = Task(
    name="value_iteration",
    title="Best policy of a random decision process: a million states, four actions, ten successors, discount 0.95",
    description="""\
Successors and probabilities at random, normal rewards. Models are built before the clock starts. At equal quality the
error of the values, bounded by Bellman's residual, is at most 1e-5 of the largest.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_by("modified_policy_iteration"), setup=as_process),
        Implementation("epicycle, value iteration", "epicycle", epicycle_by("value_iteration"), setup=as_process),
        Implementation("mdpsolver", "peer", mdpsolver_run, setup=as_lists),
        Implementation("NumPy and SciPy", "peer", numpy_loop, setup=as_matrices),
    ),
    quality=distance,
    tolerance=1e-5,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
