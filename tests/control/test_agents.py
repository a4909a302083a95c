"""Learning by acting: environments that follow their process, plans that explore, bounds that are true."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linprog

import epicycle as ep
from epicycle.control import MDP, MDPEnvironment, ModelBasedAgent, policy_evaluation, policy_iteration, worlds
from epicycle.control.agents._confidence import best_expectation
from epicycle.exceptions import DataError, NotFittedError, ParameterError, ParameterTypeError

RIVER = MDPEnvironment(worlds.river_swim(), start=0)


class Table:
    """What Gymnasium's toy texts are: spaces, reset, step, and a table of transitions."""

    def __init__(self, show_table):
        self.observation_space, self.action_space = SimpleNamespace(n=4), SimpleNamespace(n=2)
        # A corridor: right leads on, three steps to the goal; left back to the start.
        self._P = {
            s: {0: [(1.0, 0, 0.0, False)], 1: [(0.9, s + 1, float(s == 2), s == 2), (0.1, s, 0.0, False)]}
            for s in range(3)
        }
        self._P[3] = {a: [(1.0, 3, 0.0, True)] for a in range(2)}
        if show_table:
            self.P = self._P

    def reset(self, *, seed=None, options=None):
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self.s = 0
        return self.s, {}

    def step(self, action):
        entries = self._P[self.s][action]
        _, self.s, reward, done = entries[self.rng.choice(len(entries), p=[e[0] for e in entries])]
        return self.s, reward, done, False, {}


def test_an_environment_follows_its_process():
    mdp = worlds.random_mdp(4, 2, n_successors=3, random_state=0)
    env = MDPEnvironment(mdp, start=[0.0, 0.5, 0.5, 0.0], max_steps=5)
    env.reset(seed=1)
    begun, counts = np.zeros(4), np.zeros((4, 2, 4))
    rng = np.random.default_rng(0)
    for _ in range(1500):
        state, _ = env.reset()
        begun[state] += 1
        for step in range(5):
            action = int(rng.integers(2))
            after, reward, terminated, truncated, _ = env.step(action)
            assert reward == mdp.rewards_[2 * state + action]
            assert (terminated, truncated) == (False, step == 4)
            counts[state, action, after] += 1
            state = after
    assert_allclose(begun / begun.sum(), [0, 0.5, 0.5, 0], atol=0.05)
    n = counts.sum(axis=2, keepdims=True)
    P = mdp.transitions_.toarray().reshape(4, 2, 4)
    assert (np.abs(counts / n - P) <= 5 * np.sqrt(P * (1 - P) / n) + 1e-12).all()


def test_ends_masks_and_errors_of_an_environment():
    grid = worlds.grid_world("..+", slip=0.0, step_reward=-0.1, discount=0.9)
    env = MDPEnvironment(grid, start=(0, 1))
    state, info = env.reset(seed=0)
    assert (state, info["action_mask"].tolist()) == (1, [1, 1, 1, 1])
    after, reward, terminated, truncated, _ = env.step(1)
    assert (after, terminated, truncated) == (2, True, False)
    assert reward == pytest.approx(-0.1 + 0.9 * 1.0)  # the value of the goal comes one step later
    with pytest.raises(DataError, match="call reset first"):
        env.step(1)
    stock = MDPEnvironment(worlds.inventory(3, demand=1.0), start=2)
    assert stock.reset(seed=0)[1]["action_mask"].tolist() == [1, 1, 0, 0]
    with pytest.raises(DataError, match="action 3 is not available in state 2"):
        stock.step(3)
    with pytest.raises(DataError, match=r"state \(0, 2\) is terminal"):
        MDPEnvironment(grid, start=(0, 2))
    with pytest.raises(DataError, match=r"start: probabilities add up to 0\.5"):
        MDPEnvironment(grid, start=[0.5, 0, 0])


@pytest.mark.parametrize("exploration", ["optimistic", "posterior"])
def test_exploring_agents_reach_the_best_policy(exploration):
    agent = ModelBasedAgent(exploration=exploration, random_state=3).learn(RIVER, 4000)
    assert_array_equal(agent.policy_, 1)
    assert (np.diff(agent.regret_) >= -1e-9).all()
    assert agent.regret_[-1] - agent.regret_[-1000] < 0.2 * agent.regret_[999]
    assert agent.history_["tried"][-1] == 1
    assert_allclose(np.diff(np.r_[agent.history_["step"], 4000]) @ agent.history_["mean_reward"], agent.rewards_.sum())


def test_without_exploration_the_first_reward_is_all_it_ever_gets():
    agent = ModelBasedAgent(exploration="greedy", random_state=3).learn(RIVER, 1000)
    mdp = worlds.river_swim()
    loss = policy_iteration(mdp).values - policy_evaluation(mdp, np.zeros(6, dtype=int))
    assert agent.policy_[0] == 0
    assert_allclose(agent.regret_, np.arange(1, 1001) * loss[0], rtol=1e-9)  # it drifts at the mouth for ever


def test_actions_that_are_not_available_are_not_tried():
    stock = worlds.inventory(6, demand=2.0, discount=0.9)
    agent = ModelBasedAgent(discount=0.9, reward_range=(-60, 60), random_state=0).learn(stock, 1500)
    best = policy_iteration(stock)
    assert agent.regret_[-1] - agent.regret_[-500] < agent.regret_[499] / 2
    own = policy_evaluation(stock, agent.policy_)
    assert (best.values - own).max() < 0.05 * best.values.max()


def test_gymnasium_environments_with_and_without_a_table():
    shown = ModelBasedAgent(discount=0.9, random_state=1).learn(Table(True), 600)
    hidden = ModelBasedAgent(discount=0.9, random_state=1).learn(Table(False), 600)
    assert hidden.regret_ is None
    assert shown.regret_[-1] > 0
    assert_array_equal(shown.counts_, hidden.counts_)
    assert_array_equal(shown.policy_[:3], 1)
    assert_array_equal(shown.counts_[2, 1].nonzero()[0], [2, 4])  # the goal ends the process
    # The way to the goal as a geometric series: v = (0.9 g v' + ...) / (1 - 0.1 g)
    g, p = 0.9, shown.counts_[2, 1, 4] / shown.counts_[2, 1].sum()
    assert shown.solution_.values[2] == pytest.approx(p / (1 - g * (1 - p)))


def test_the_largest_expectation_is_that_of_the_linear_program():
    rng = np.random.default_rng(0)
    P, v = rng.dirichlet(np.ones(5), size=6), rng.normal(size=5)
    radius = np.array([0.0, 0.1, 0.5, 1.0, 1.7, 2.0])
    for p, e, found in zip(P, radius, best_expectation(P, radius, v), strict=True):
        # Over (q, t) with |q - p| <= t.
        A = np.vstack([np.c_[np.eye(5), -np.eye(5)], np.c_[-np.eye(5), -np.eye(5)], np.r_[np.zeros(5), np.ones(5)]])
        result = linprog(
            np.r_[-v, np.zeros(5)], A_ub=A, b_ub=np.r_[p, -p, e], A_eq=[np.r_[np.ones(5), np.zeros(5)]], b_eq=[1]
        )
        assert found == pytest.approx(-result.fun, abs=1e-9)


def test_certificates_are_true_and_can_hold():
    for seed in range(6):
        mdp = worlds.random_mdp(3, 2, n_successors=2, discount=0.6, random_state=seed)
        agent = ModelBasedAgent(discount=0.6, reward_range=(-4, 4), random_state=seed).learn(mdp, 300)
        loss = (policy_iteration(mdp).values - policy_evaluation(mdp, agent.policy_)).mean()
        assert loss * 0.4 / 8 <= agent.certificate_.value <= 1
    coin = MDP(np.array([[[1.0], [1.0]]]), [[0.0, 1.0]], 0.5)
    sure = ModelBasedAgent(discount=0.5, random_state=0).learn(coin, 4000)
    assert sure.certificate_.holds
    assert "probability 0.95" in sure.certificate_.meaning


def test_files_repeat_and_learning_goes_on(tmp_path):
    agent = ModelBasedAgent(exploration="posterior", random_state=5).learn(RIVER, 300)
    again = ModelBasedAgent(exploration="posterior", random_state=5).learn(RIVER, 300)
    assert_array_equal(agent.rewards_, again.rewards_)
    agent.save(tmp_path / "agent.epi")
    read = ep.load(tmp_path / "agent.epi")
    assert_array_equal(read.counts_, agent.counts_)
    assert_array_equal(read.policy_, agent.policy_)
    assert (read.certificate_, read.history_) == (agent.certificate_, agent.history_)
    assert read.act(2) == agent.act(2)
    for each in (agent, read):
        each.learn(RIVER, 200, seed=9)
    assert_array_equal(read.counts_, agent.counts_)
    assert agent.counts_.sum() == 500


def test_bad_arguments_of_agents_are_named():
    for wrong in ({"discount": 1.0}, {"exploration": "bold"}, {"prior": 0}, {"bonus": -1}, {"reward_range": (1, 0)}):
        with pytest.raises(ParameterError, match=next(iter(wrong))):
            ModelBasedAgent(**wrong)
    with pytest.raises(NotFittedError, match="call learn"):
        ModelBasedAgent().act(0)
    with pytest.raises(ParameterTypeError, match="it has no reset"):
        ModelBasedAgent().learn(object(), 10)
    box = SimpleNamespace(reset=0, step=0, observation_space=SimpleNamespace(shape=(4,)), action_space=None)
    with pytest.raises(DataError, match=r"env\.observation_space.*discrete"):
        ModelBasedAgent().learn(box, 10)
    agent = ModelBasedAgent(random_state=0).learn(RIVER, 10)
    with pytest.raises(DataError, match="got 3 states"):
        agent.learn(worlds.random_mdp(3, 2, random_state=0), 10)
    with pytest.raises(DataError, match="reference: got 3 states"):
        agent.learn(RIVER, 10, reference=worlds.random_mdp(3, 2, random_state=0))


def test_curves_are_drawn():
    import matplotlib.pyplot as plt

    agent = ModelBasedAgent(random_state=0).learn(RIVER, 50)
    ax = agent.plot()
    assert ax.get_ylabel() == "regret"
    assert_array_equal(ax.lines[0].get_ydata(), agent.regret_)
    plt.close(ax.figure)
