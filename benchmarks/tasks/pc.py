"""PC on a hundred variables."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

ALPHA = 0.01
PEER = "causal-learn"


def make(directory: Path, quick: bool) -> Data:
    p, n = (25, 1000) if quick else (100, 5000)
    rng = np.random.default_rng(0)
    A = np.triu(rng.random((p, p)) < 4 / (p - 1), 1)  # every variable has four neighbours on average
    W = A * rng.uniform(0.3, 0.9, (p, p)) * rng.choice([-1, 1], (p, p))
    X = rng.normal(size=(n, p)) @ np.linalg.inv(np.eye(p) - W)
    return {"X": X, "truth": A | A.T}


def epicycle_pc(data: Data) -> Solution:
    from epicycle.causal import discover

    return {"joined": discover(data["X"], "pc", alpha=ALPHA).marks != 0}


def causal_learn_pc(data: Data) -> Solution:
    from causallearn.search.ConstraintBased.PC import pc

    found = pc(data["X"], alpha=ALPHA, indep_test="fisherz", stable=True, show_progress=False)
    return {"joined": found.G.graph != 0}


def wrong_pairs(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Pairs of variables that are joined and should not be, or the other way round, above those of the peer."""
    wrong = {name: float(np.sum(s["joined"] != data["truth"]) / 2) for name, s in solutions.items()}
    of_peer = wrong.get(PEER, min(wrong.values()))
    return {name: {"wrong pairs above the peer": max(0.0, count - of_peer)} for name, count in wrong.items()}


TASK = Task(
    name="pc",
    title="PC on 100 variables and 5,000 rows",
    description="""\
Linear equations with normal noise, four neighbours for each variable on average; the stable algorithm with partial
correlations at a level of 1%. At equal quality no more pairs are wrong than for the peer.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_pc),
        Implementation(PEER, "peer", causal_learn_pc),
    ),
    quality=wrong_pairs,
    tolerance=0.0,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),),
)
