"""Policy iteration in a random decision process."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._decision_processes import (
    ACTIONS,
    DISCOUNT,
    as_lists,
    as_matrices,
    as_process,
    distance,
    epicycle_by,
    mdpsolver_by,
    random_process,
)


def make(directory: Path, quick: bool) -> Data:
    return random_process(5_000 if quick else 100_000)


def scipy_loop(data: Data) -> Solution:
    """The usual code: the system of each policy by SciPy's iterations, since factors of it fill up."""
    import scipy.sparse as sp
    from scipy.sparse.linalg import bicgstab

    matrices, R = data["model"], data["R"]
    n = len(R)
    stacked = sp.csr_array(sp.vstack(matrices, format="csr"))
    rows, policy, v = np.arange(n), np.argmax(R, axis=1), np.zeros(n)
    while True:
        P = stacked[policy * n + rows]
        v, _ = bicgstab(sp.eye_array(n, format="csr") - DISCOUNT * P, R[rows, policy], x0=v, rtol=1e-10)
        q = R + DISCOUNT * (stacked @ v).reshape(ACTIONS, n).T
        better = np.where(q.max(axis=1) > q[rows, policy] + 1e-8, q.argmax(axis=1), policy)
        if np.array_equal(better, policy):
            return {"values": v}
        policy = better


TASK = Task(
    name="policy_iteration",
    title="Policy iteration: a hundred thousand states, four actions, ten successors, discount 0.95",
    description="""\
Successors and probabilities at random, normal rewards. Models are built before the clock starts. At equal quality the
error of the values, bounded by Bellman's residual, is at most 1e-5 of the largest.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_by("policy_iteration"), setup=as_process),
        Implementation("mdpsolver", "peer", mdpsolver_by("pi"), setup=as_lists),
        Implementation("SciPy", "peer", scipy_loop, setup=as_matrices),
    ),
    quality=distance,
    tolerance=1e-5,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),),
)
