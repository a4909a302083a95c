"""Exact value of a partially observed grid over a finite horizon."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Target, Task
from benchmarks.tasks.pomdp_tiger import DISCOUNT, distance, epicycle_exact, pomdp_py_value


def make(directory: Path, quick: bool) -> Data:
    """The grid of `pomdp`, but that the goal is left for a random cell: pomdp_py has no processes that end."""
    from epicycle.control import worlds

    side = 5 if quick else 10
    grid = worlds.noisy_grid("\n".join(["." * (side - 1) + "+", *["." * side] * (side - 1)]), discount=DISCOUNT)
    P = grid.transitions_.toarray().reshape(grid.n_actions, grid.n_states, grid.n_states)
    P[:, grid.is_terminal] = grid.start
    return {
        "P": P,
        "O": grid.observations_,
        "R": grid.rewards_,
        "start": grid.start,
        "horizon": np.array([2 if quick else 3]),
    }


def as_process(data: Data) -> Data:
    from epicycle.control import POMDP

    P, start = data["P"].transpose(1, 0, 2), data["start"]
    model = POMDP(P, list(data["O"]), data["R"].T, DISCOUNT, start=start)
    return {**data, "model": model}  # type: ignore[dict-item]


def as_models(data: Data) -> Data:
    """Numbers for states, actions and observations, lists for probabilities: what Python reads fastest."""
    import pomdp_py

    P, O, R = (data[name].tolist() for name in "POR")  # noqa: E741

    class Transition(pomdp_py.TransitionModel):
        def probability(self, next_state, state, action):  # type: ignore[no-untyped-def]
            return P[action][state][next_state]

    class Observation(pomdp_py.ObservationModel):
        def probability(self, observation, next_state, action):  # type: ignore[no-untyped-def]
            return O[action][next_state][observation]

    class Reward(pomdp_py.RewardModel):
        def sample(self, state, action, next_state):  # type: ignore[no-untyped-def]
            return R[action][state]

    model = {
        "S": list(range(len(data["start"]))),
        "A": list(range(len(P))),
        "Z": list(range(len(O[0][0]))),
        "T": Transition(),
        "O": Observation(),
        "R": Reward(),
        "gamma": DISCOUNT,
    }
    return {**data, "model": model, "belief": dict(enumerate(data["start"].tolist()))}  # type: ignore[dict-item]


TASK = Task(
    name="pomdp_grid",
    title="Exact value of a grid of a hundred cells seen through noisy sensors, over three steps",
    description="""\
Four actions, sixteen observations. pomdp_py tries all actions and observations from the first belief; epicycle finds
the vectors of all beliefs by incremental pruning. At equal quality the values at the first belief agree to 1e-6.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_exact, setup=as_process),
        Implementation("pomdp_py", "peer", pomdp_py_value, setup=as_models),
    ),
    quality=distance,
    tolerance=1e-6,
    targets=(Target("speed against the best peer", speedup_over_best_peer(), at_least=10.0),),
    cap=400.0,
)
