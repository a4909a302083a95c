"""Trajectories of many pendulums under linear feedback."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task

STEPS = 200


def make(directory: Path, quick: bool) -> Data:
    rng = np.random.default_rng(0)
    start = rng.uniform([-np.pi, -1], [np.pi, 1], size=(1_000 if quick else 20_000, 2))
    return {"start": start, "gain": np.array([[3.0, 0.6]])}


class _Policy:
    def __init__(self, gain: np.ndarray) -> None:
        self.gain, self.offset = gain, np.zeros(1)


def epicycle_rollouts(data: Data) -> Solution:
    from epicycle.control import InvertedPendulum

    rollout = InvertedPendulum().rollout(data["start"], policy=_Policy(data["gain"]), n_steps=STEPS)
    return {"states": rollout.states, "rewards": rollout.rewards}


def numpy_rollouts(data: Data) -> Solution:
    """The usual code: all pendulums at once, one step after the other."""
    x = data["start"]
    states = np.empty((len(x), STEPS + 1, 2))
    states[:, 0] = x
    angle, speed = x.T.copy()
    rewards = np.empty((len(x), STEPS))
    for t in range(STEPS):
        u = np.clip(-(data["gain"][0, 0] * angle + data["gain"][0, 1] * speed), -2.0, 2.0)
        rewards[:, t] = -(((angle + np.pi) % (2 * np.pi) - np.pi) ** 2 + 0.1 * speed**2 + 0.001 * u**2)
        speed = np.clip(speed + (15.0 * np.sin(angle) + 3.0 * u) * 0.05, -8.0, 8.0)
        angle = angle + 0.05 * speed
        states[:, t + 1, 0], states[:, t + 1, 1] = angle, speed
    return {"states": states, "rewards": rewards}


def early_distance(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """Largest difference of the states of the first 20 steps from NumPy's; pendulums then part, they are chaotic."""
    reference = numpy_rollouts(data)["states"][:, :21]
    return {name: {"distance": float(np.abs(s["states"][:, :21] - reference).max())} for name, s in solutions.items()}


def million_steps(outcomes: Mapping[str, Outcome]) -> float:
    return 20_000 * STEPS / 1e6 / outcomes["epicycle"].median


TASK = Task(
    name="rollouts",
    title="Trajectories of 20,000 pendulums over 200 steps under linear feedback, with states, controls and rewards",
    description="""\
Random starts, the step and the limits of Gymnasium's pendulum. At equal quality the states of the first 20
steps agree to 1e-9.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_rollouts),
        Implementation("NumPy", "peer", numpy_rollouts),
    ),
    quality=early_distance,
    tolerance=1e-9,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=1.0),
        Target("million steps a second", million_steps, at_least=20.0),
    ),
)
