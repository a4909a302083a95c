"""Planning in a large random decision process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import ratio, speedup_over_best_peer
from benchmarks.task import Data, Implementation, Solution, Target, Task
from benchmarks.tasks._decision_processes import (
    DISCOUNT,
    TOL,
    as_lists,
    as_matrices,
    as_process,
    distance,
    epicycle_by,
    mdpsolver_by,
    random_process,
)


def make(directory: Path, quick: bool) -> Data:
    return random_process(20_000 if quick else 1_000_000)


def numpy_loop(span: bool) -> Callable[[Data], Solution]:
    """SciPy's products, until the largest change proves the error of the values, as in textbooks, or its span does."""

    def run(data: Data) -> Solution:
        matrices, R = data["model"], data["R"]
        v = np.zeros(len(R))
        factor = DISCOUNT / (1 - DISCOUNT)
        while True:
            after = np.max([R[:, a] + DISCOUNT * (P @ v) for a, P in enumerate(matrices)], axis=0)
            change = after - v
            v = after
            if not span and factor * np.abs(change).max() <= TOL * np.abs(v).max():
                return {"values": v}
            if span and factor * np.ptp(change) <= TOL * np.abs(v).max():
                return {"values": v + factor * (change.min() + change.max()) / 2}

    return run


TASK = Task(
    name="value_iteration",
    title="Best policy of a random decision process: a million states, four actions, ten successors, discount 0.95",
    description="""\
Successors and probabilities at random, normal rewards. Models are built before the clock starts. At equal quality the
error of the values, bounded by Bellman's residual, is at most 1e-5 of the largest.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_by("value_iteration"), setup=as_process),
        Implementation(
            "epicycle, modified policy iteration",
            "epicycle",
            epicycle_by("modified_policy_iteration"),
            setup=as_process,
        ),
        Implementation("mdpsolver", "peer", mdpsolver_by("mpi"), setup=as_lists),
        Implementation("NumPy and SciPy", "peer", numpy_loop(span=False), setup=as_matrices),
        Implementation("NumPy and SciPy, by the span", "peer", numpy_loop(span=True), setup=as_matrices),
    ),
    quality=distance,
    tolerance=1e-5,
    cap=300.0,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
        Target("speed against NumPy and SciPy", ratio("NumPy and SciPy", "epicycle"), at_least=10.0),
    ),
)
