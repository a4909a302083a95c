"""Environments that raise, return no numbers, change their shape or never end: agents say so and lose nothing."""

from types import SimpleNamespace

import numpy as np
import pytest

import epicycle as ep
from epicycle.exceptions import ConvergenceWarning, DataError
from epicycle.rl import (
    DQN,
    PPO,
    SAC,
    TD3,
    ActorCritic,
    CrossEntropyMethod,
    DAgger,
    EvolutionStrategy,
    LinearQLearning,
    LinearSARSA,
    Pegasus,
    Reinforce,
    TileCoding,
)


class Walk:
    """Two numbers that drift; an action pushes the first one. Episodes of ten steps, or without an end."""

    def __init__(self, continuous, fault=None, at=None, ends=True):
        self.action_space = (
            SimpleNamespace(shape=(1,), low=np.array([-1.0]), high=np.array([1.0]))
            if continuous
            else SimpleNamespace(n=2)
        )
        self.continuous, self.fault, self.at, self.ends, self.count = continuous, fault, at, ends, 0

    def reset(self, *, seed=None, options=None):
        self.rng, self.length = np.random.default_rng(seed), 0
        self.x = self.rng.uniform(-0.5, 0.5, size=2)
        return self.x.copy(), {}

    def step(self, action):
        self.count, self.length = self.count + 1, self.length + 1
        push = float(np.ravel(action)[0]) if self.continuous else 2.0 * int(action) - 1
        self.x = np.clip(0.9 * self.x + np.array([0.1 * push, 0.0]) + self.rng.normal(scale=0.05, size=2), -1, 1)
        seen, reward = self.x.copy(), 1.0 - self.x[0] ** 2
        if self.count == self.at:
            if self.fault == "raises":
                raise RuntimeError("the gripper is open")
            if self.fault == "interrupts":
                raise KeyboardInterrupt
            if self.fault == "reward":
                reward = float("nan")
            if self.fault == "observation":
                seen[1] = float("inf")
            if self.fault == "shape":
                seen = np.append(seen, 0.0)
        return seen, reward, False, bool(self.ends and self.length == 10), {}


TILES = TileCoding([-1.0, -1.0], [1.0, 1.0], n_tiles=4, n_tilings=2)
FEW = {"hidden": (4,), "random_state": 0}
MAKERS = {
    "LinearSARSA": lambda: LinearSARSA(TILES, random_state=0),
    "LinearQLearning": lambda: LinearQLearning(TILES, random_state=0),
    "Reinforce": lambda: Reinforce(random_state=0),
    "CrossEntropyMethod": lambda: CrossEntropyMethod(population=4, random_state=0),
    "EvolutionStrategy": lambda: EvolutionStrategy(random_state=0),
    "Pegasus": lambda: Pegasus(scenarios=2, random_state=0),
    "DQN": lambda: DQN(learning_starts=20, batch_size=4, **FEW),
    "ActorCritic": lambda: ActorCritic(**FEW),
    "PPO": lambda: PPO(n_steps=16, batch_size=8, n_epochs=1, **FEW),
    "SAC": lambda: SAC(learning_starts=20, batch_size=4, **FEW),
    "TD3": lambda: TD3(learning_starts=20, batch_size=4, **FEW),
    "DAgger": lambda: DAgger(lambda x: int(x[0] < 0), ep.DecisionTreeClassifier(), random_state=0),
}
FAULTS = {
    "raises": "step raised RuntimeError: the gripper is open",
    "reward": "the reward of step .* is nan",
    "observation": "expected finite numbers",
    "shape": r"observation of shape \(3,\); expected \(2,\)",
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_named_and_what_was_learnt_is_kept(name, fault):
    agent = MAKERS[name]()
    env = Walk(name in ("SAC", "TD3"), fault, at=75)
    with pytest.raises(DataError, match=FAULTS[fault]):
        agent.learn(env, 200)
    made = agent._progress["made"]
    assert made <= 75
    assert agent.act(np.zeros(2)) is not None
    agent.resume(env)  # without the fault, which came once
    assert agent._progress["made"] >= 200 > made
    assert agent.history_.n_iter > 0
    assert np.isfinite(agent.history_["return"]).all()


@pytest.mark.parametrize("name", MAKERS)
def test_an_interrupt_keeps_what_was_learnt(name):
    agent = MAKERS[name]()
    env = Walk(name in ("SAC", "TD3"), "interrupts", at=75)
    with pytest.warns(ConvergenceWarning, match=r"interrupted after \d+ of 200 steps; what was learnt is kept"):
        agent.learn(env, 200)
    agent.resume(env)
    assert agent._progress["made"] >= 200


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.filterwarnings("ignore::epicycle.exceptions.ConvergenceWarning")
def test_an_episode_without_end_ends_with_the_steps(name):
    agent = MAKERS[name]()
    env = Walk(name in ("SAC", "TD3"), ends=False)
    agent.learn(env, 300)
    assert agent._progress["made"] >= 300
    assert env.count < 3000  # no agent waits for an end that does not come
    found = agent.evaluate(env, 2, max_steps=20)
    assert (found.lengths == 20).all()
    assert found.n_truncated == 2
