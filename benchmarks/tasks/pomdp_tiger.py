"""Exact value of the tiger problem over a finite horizon."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Quality, Solution, Target, Task

DISCOUNT = 0.95


def make(directory: Path, quick: bool) -> Data:
    return {"horizon": np.array([3 if quick else 6])}


def as_process(data: Data) -> Data:
    from epicycle.control import worlds

    return {**data, "model": worlds.tiger(DISCOUNT)}  # type: ignore[dict-item]


def epicycle_exact(data: Data) -> Solution:
    from epicycle.control import incremental_pruning

    tiger = data["model"]
    solution = incremental_pruning(tiger, horizon=int(data["horizon"][0]))
    return {"value": np.array([solution.bounds(tiger.start)[0]])}


def as_models(data: Data) -> Data:
    import pomdp_py
    from pomdp_py.problems.tiger import tiger_problem as tiger

    states = [tiger.TigerState("tiger-left"), tiger.TigerState("tiger-right")]
    problem = tiger.TigerProblem(0.15, states[0], pomdp_py.Histogram(dict.fromkeys(states, 0.5)))
    agent = problem.agent
    model = {
        "S": states,
        "A": [tiger.TigerAction(name) for name in ("listen", "open-left", "open-right")],
        "Z": [tiger.TigerObservation("tiger-left"), tiger.TigerObservation("tiger-right")],
        "T": agent.transition_model,
        "O": agent.observation_model,
        "R": agent.reward_model,
        "gamma": DISCOUNT,
    }
    return {**data, "model": model, "belief": dict.fromkeys(states, 0.5)}  # type: ignore[dict-item]


def pomdp_py_value(data: Data) -> Solution:
    from pomdp_py.algorithms.value_function import value

    return {"value": np.array([value(data["belief"], data["model"], horizon=int(data["horizon"][0]))])}


def distance(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Distance of the values from each other."""
    values = {name: float(s["value"][0]) for name, s in solutions.items()}
    middle = float(np.median(list(values.values())))
    return {name: {"distance": abs(v - middle)} for name, v in values.items()}


TASK = Task(
    name="pomdp_tiger",
    title="Exact value of the tiger problem over six steps",
    description="""\
At equal quality the values agree to 1e-6. pomdp_py tries all actions and observations; its value iteration over policy
trees ends at three steps, and its interfaces to SARSOP and pomdp-solve call programs that are not part of it.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_exact, setup=as_process),
        Implementation("pomdp_py", "peer", pomdp_py_value, setup=as_models),
    ),
    quality=distance,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=10.0),),
)
