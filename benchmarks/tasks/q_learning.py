"""Tabular Q-learning on the frozen lake of Gymnasium."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.arithmetic import speedup_over_best_peer
from benchmarks.task import Data, Implementation, Outcome, Quality, Solution, Target, Task

# At rates of 0.05 the last steps decide which policy is the greedy one: 6 seeds of 24 lost more than a fifth. At 0.01
# none of 40 lost a tenth.
RATE, EPSILON, DISCOUNT = 0.01, 0.3, 0.95


def make(directory: Path, quick: bool) -> Data:
    return {"steps": np.array([100_000 if quick else 1_000_000])}


def lake() -> object:
    import gymnasium

    return gymnasium.make("FrozenLake-v1", is_slippery=True)


def as_environment(data: Data) -> Data:
    """The lake itself."""
    return {**data, "env": lake()}  # type: ignore[dict-item]


class Stepped:
    """The lake in a wrapper that epicycle does not know, so that it is asked step by step."""

    def __init__(self) -> None:
        inner = lake()
        self.reset, self.step = inner.reset, inner.step  # type: ignore[attr-defined]
        self.observation_space, self.action_space = inner.observation_space, inner.action_space  # type: ignore[attr-defined]


def as_steps(data: Data) -> Data:
    """The lake behind the wrapper."""
    return {**data, "env": Stepped()}  # type: ignore[dict-item]


def epicycle_table(data: Data) -> Solution:
    from epicycle.rl import QLearning

    agent = QLearning(learning_rate=RATE, exploration=EPSILON, discount=DISCOUNT, random_state=0)
    q = agent.learn(data["env"], int(data["steps"][0])).q_
    return {"q": np.nan_to_num(q)[:16]}


def numpy_loop(data: Data) -> Solution:
    """The usual code: a loop over the steps of the environment with a NumPy table."""
    env, rng = data["env"], np.random.default_rng(0)
    q = np.zeros((16, 4))
    state, _ = env.reset(seed=0)  # type: ignore[attr-defined]
    for _ in range(int(data["steps"][0])):
        if rng.random() < EPSILON:
            action = int(rng.integers(4))
        else:
            best = np.flatnonzero(q[state] == q[state].max())
            action = int(best[rng.integers(len(best))])
        after, reward, terminated, truncated, _ = env.step(action)  # type: ignore[attr-defined]
        future = 0.0 if terminated else q[after].max()
        q[state, action] += RATE * (reward + DISCOUNT * future - q[state, action])
        state = env.reset()[0] if terminated or truncated else after  # type: ignore[attr-defined]
    return {"q": q}


def loss(data: Data, solutions: Mapping[str, Solution]) -> dict[str, Quality]:
    """What the greedy policy loses at the start, relative to the best value there."""
    from epicycle.control import MDP, policy_evaluation, policy_iteration

    process = MDP.from_gymnasium(lake(), DISCOUNT)
    order = np.array(process.states.tolist())[:16]
    best = policy_iteration(process).values
    found = {}
    for name, solution in solutions.items():
        policy = np.zeros(process.n_states, dtype=np.int64)
        policy[: len(order)] = solution["q"].argmax(axis=1)
        values = policy_evaluation(process, policy)
        found[name] = {"loss": float((best[0] - values[0]) / best[0])}
    return found


def million_steps(outcomes: Mapping[str, Outcome]) -> float:
    return 1.0 / outcomes["epicycle"].median


TASK = Task(
    name="q_learning",
    title="Q-learning over a million steps of FrozenLake",
    description="""\
The slippery lake of 16 cells, epsilon 0.3, learning rate 0.01. epicycle is given the environment of Gymnasium and draws
from its table in compiled code; the second entry asks the environment step by step, as the NumPy loop does, where most
of the time is Gymnasium's. At equal quality the greedy policy loses at most 0.2 of the best value of the start.""",
    make=make,
    implementations=(
        Implementation("epicycle", "epicycle", epicycle_table, setup=as_environment),
        Implementation("epicycle, step by step", "baseline", epicycle_table, setup=as_steps),
        Implementation("NumPy", "peer", numpy_loop, setup=as_environment),
    ),
    quality=loss,
    tolerance=0.2,
    targets=(
        Target("speed against the best peer", speedup_over_best_peer(), at_least=3.0),
        Target("million steps a second", million_steps, at_least=20.0),
    ),
)
