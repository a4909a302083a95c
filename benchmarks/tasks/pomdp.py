"""Planning in a grid of a hundred cells that is seen through noisy sensors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

SWEEPS = 60


def make(directory: Path, quick: bool) -> Data:
    """The model, and the beliefs of random walks, as dense arrays for all."""
    from epicycle.control import worlds

    side = 5 if quick else 10
    text = "\n".join(["." * (side - 1) + "+", *["." * side] * (side - 1)])
    pomdp = worlds.noisy_grid(text)
    n, rng = pomdp.n_states, np.random.default_rng(0)
    P = pomdp.transitions_.toarray().reshape(4, n, n)
    beliefs, b = [pomdp.start], pomdp.start
    while len(beliefs) < (20 if quick else 100):
        a = rng.integers(4)
        moved = (b @ P[a])[:, None] * pomdp.observations_[a]
        seen = rng.choice(moved.shape[1], p=moved.sum(axis=0) / moved.sum())
        b = moved[:, seen] / moved[:, seen].sum()
        beliefs.append(b)
        if len(beliefs) % 25 == 0:
            b = pomdp.start
    low = np.full((1, n), pomdp.rewards_.min() / (1 - pomdp.discount))
    return {
        "P": P,
        "O": pomdp.observations_,
        "R": pomdp.rewards_,
        "discount": np.array(pomdp.discount),
        "B": np.array(beliefs),
        "low": low,
    }


def epicycle_backups(data: Data) -> Solution:
    import scipy.sparse as sp

    from epicycle._native import control as native
    from epicycle.core._threads import n_threads

    n = data["R"].shape[1]
    P = sp.csr_array(data["P"].reshape(-1, n))
    P.indices, P.indptr = P.indices.astype(np.int32), P.indptr.astype(np.int32)
    vectors, threads = data["low"], n_threads(1e9)  # as many as `point_based_value_iteration` takes for this size
    for _ in range(SWEEPS):
        model = (P, data["R"], data["O"], float(data["discount"]))
        vectors, _, _ = native.belief_backup(*model, vectors, data["B"], threads)
    return {"values": (data["B"] @ vectors.T).max(axis=1)}


def numpy_backups(data: Data) -> Solution:
    """Point-based value iteration as one would write it with matrix products, all beliefs at once."""
    P, O, R, gamma, B = data["P"], data["O"], data["R"], float(data["discount"]), data["B"]  # noqa: E741
    vectors = data["low"]
    for _ in range(SWEEPS):
        best, new = np.full(len(B), -np.inf), np.empty_like(B)
        for a in range(len(P)):
            moved = B @ P[a]
            future = np.zeros_like(B)
            for o in range(O.shape[2]):
                choice = np.argmax((moved * O[a, :, o]) @ vectors.T, axis=1)
                future += O[a, :, o] * vectors[choice]
            candidate = R[a] + gamma * future @ P[a].T
            value = (B * candidate).sum(axis=1)
            better = value > best
            new[better], best[better] = candidate[better], value[better]
        vectors = new
    return {"values": (B @ vectors.T).max(axis=1)}


def distance(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distance of the values at the beliefs from each other."""
    first = next(iter(solutions.values()))["values"]
    return {name: {"distance": float(np.abs(s["values"] - first).max())} for name, s in solutions.items()}


TASK = Task(
    name="pomdp",
    title="Sixty sweeps of point-based value iteration: a hundred states, sixteen observations, a hundred beliefs",
    description="""\
A grid of ten by ten cells whose four sensors are each wrong in a tenth of the cases. All make the same backups
from the same vectors; at equal quality the values agree to 1e-9. pomdp_py has no planner for problems of this size.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_backups),
        Implementation("NumPy", "peer", numpy_backups),
    ),
    quality=distance,
    tolerance=1e-9,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
