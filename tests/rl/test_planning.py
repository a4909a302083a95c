"""Dyna-Q and prioritised sweeping: the textbook's mazes, values against the model that was counted, and its counts."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from epicycle.control import MDPEnvironment, policy_iteration, value_iteration, worlds
from epicycle.exceptions import ParameterError
from epicycle.rl import DynaQ, ExponentialDecay, PrioritizedSweeping, QLearning, VisitDecay

MAZE = ".......#+\n..#....#.\n..#....#.\n..#......\n.....#...\n........."  # Sutton and Barto, example 8.1


def maze(scale):
    """The maze with cells cut into scale x scale, and the length of its shortest path."""
    rows = ["".join(c * scale for c in row.replace("+", ".")) for row in MAZE.split("\n") for _ in range(scale)]
    mdp = worlds.grid_world("\n".join([rows[0][:-1] + "+", *rows[1:]]), step_reward=0.0, slip=0.0, discount=0.95)
    start = (2 * scale, 0)
    value = policy_iteration(mdp).values[mdp.states.tolist().index(start)]
    return MDPEnvironment(mdp, start=start), round(np.log(value) / np.log(0.95))


def steps_to_the_goal(agent, env):
    return int(agent.evaluate(env, 1, seed=0, max_steps=1000).lengths[0])


def solved_model(agent, discount):
    """Best values of the frequencies that an agent has counted, by iteration in plain NumPy."""
    m, (n_states, n_actions) = agent.model_, agent.q_.shape
    P, R, n = (
        np.zeros((n_states, n_actions, n_states)),
        np.zeros((n_states, n_actions)),
        np.zeros((n_states, n_actions)),
    )
    np.add.at(n, (m["state"], m["action"]), m["count"])
    share = m["count"] / n[m["state"], m["action"]]
    np.add.at(R, (m["state"], m["action"]), share * m["mean_reward"])
    np.add.at(P, (m["state"], m["action"], m["next_state"]), np.where(m["terminated"], 0.0, share))
    q = np.zeros((n_states, n_actions))
    for _ in range(2000):
        q = np.where(n > 0, R + discount * P @ q.max(axis=1), 0.0)
    return q


def test_planning_takes_fewer_episodes():
    # Sutton and Barto, figure 8.2: with 50 planning steps the third episode is nearly as short as any.
    env, _ = maze(1)
    episodes = {}
    for n in (0, 5, 50):
        lengths = [
            DynaQ(planning_steps=n, discount=0.95).learn(env, 30_000 if n == 0 else 6_000, seed=s).history_["length"]
            for s in range(10)
        ]
        curve = np.mean([run[:25] for run in lengths], axis=0)
        episodes[n] = int(np.argmax(curve < 30)) if (curve < 30).any() else 25
    assert episodes[50] <= 3
    assert episodes[50] < episodes[5] <= 7
    assert episodes[0] >= 15


def test_without_planning_it_is_q_learning():
    env, _ = maze(1)
    one = DynaQ(planning_steps=0, random_state=3).learn(env, 4000)
    two = QLearning(random_state=3).learn(env, 4000)
    assert_array_equal(one.q_, two.q_)
    assert one.n_updates_ == 4000


@pytest.mark.parametrize("seed", range(3))
def test_sweeping_needs_a_fraction_of_the_updates(seed):
    # Sutton and Barto, section 8.4, mazes of 47 and of 188 states with five updates for each step.
    for scale in (1, 2):
        env, shortest = maze(scale)
        sweeping = PrioritizedSweeping(planning_steps=5, discount=0.95).learn(env, 20_000 * scale, seed=seed)
        assert steps_to_the_goal(sweeping, env) == shortest
        drawn = DynaQ(planning_steps=5, learning_rate=0.5, discount=0.95)
        drawn.learn(env, 5 * sweeping.n_updates_ // 6, seed=seed)  # with five times as many
        assert drawn.n_updates_ > 4.9 * sweeping.n_updates_
        assert drawn.certificate_.value > 0.1 > 1e-9 > sweeping.certificate_.value


@pytest.mark.parametrize("seed", range(3))
def test_sweeping_solves_the_model_that_it_counted(seed):
    mdp = worlds.random_mdp(12, 3, n_successors=3, discount=0.9, random_state=seed)
    agent = PrioritizedSweeping(planning_steps=10_000, threshold=1e-6, exploration=1.0, discount=0.9)
    agent.learn(mdp, 5_000, seed=seed)
    assert_allclose(agent.q_, solved_model(agent, 0.9), atol=1e-5)
    assert_allclose(agent.values_, value_iteration(mdp, tol=1e-10).values, rtol=0.15)
    assert agent.certificate_.holds


def test_dyna_converges_to_the_best_values():
    mdp = worlds.random_mdp(8, 3, n_successors=3, discount=0.8, random_state=1)
    rate = ExponentialDecay(0.3, 1e-4, 100_000)
    agent = DynaQ(learning_rate=rate, exploration=1.0, discount=0.8, random_state=0).learn(mdp, 100_000)
    assert_allclose(agent.q_, solved_model(agent, 0.8), atol=0.03)
    assert_allclose(agent.values_, value_iteration(mdp, tol=1e-10).values, atol=0.05)
    assert agent.n_updates_ == 11 * 100_000


@settings(max_examples=20, deadline=None)
@given(
    n_states=st.integers(2, 9),
    n_actions=st.integers(1, 3),
    seed=st.integers(0, 2**31),
    steps=st.integers(1, 400),
    sweeps=st.booleans(),
)
def test_the_model_holds_all_steps(n_states, n_actions, seed, steps, sweeps):
    mdp = worlds.random_mdp(n_states, n_actions, n_successors=min(3, n_states), discount=0.5, random_state=seed)
    made = PrioritizedSweeping(threshold=0.0, planning_steps=10_000) if sweeps else DynaQ(learning_rate=VisitDecay(0.6))
    made.discount = 0.5
    made.learn(MDPEnvironment(mdp, max_steps=20), steps, seed=seed)
    model, counted = made.model_, np.zeros((n_states, n_actions), dtype=np.int64)
    np.add.at(counted, (model["state"], model["action"]), model["count"])
    assert_array_equal(counted, made.visits_)
    assert counted.sum() == steps
    exact = mdp.rewards_.reshape(n_states, n_actions)[model["state"], model["action"]]
    assert_allclose(model["mean_reward"], exact, atol=1e-12)
    if sweeps:  # nothing waits: every value is its target
        assert_allclose(made.q_, solved_model(made, 0.5), atol=1e-9)
        assert not made._tables["priority"].any()


def test_ends_are_worth_nothing_and_cuts_are_not_ends():
    corridor = worlds.grid_world("..+", step_reward=-1.0, slip=0.0, discount=1.0)
    agent = PrioritizedSweeping(discount=1.0, random_state=0)
    agent.learn(MDPEnvironment(corridor, start=(0, 0), max_steps=1), 200)
    assert not agent.model_["terminated"].any()
    assert agent.values_[1] == 0  # never seen from there
    agent.learn(MDPEnvironment(corridor, start=(0, 0)), 400)
    assert agent.model_["terminated"].sum() == 1
    assert agent.certificate_.holds


def test_bad_arguments_are_named():
    env, _ = maze(1)
    with pytest.raises(ParameterError, match="planning_steps=-1"):
        DynaQ(planning_steps=-1).learn(env, 10)
    with pytest.raises(ParameterError, match=r"threshold=-0\.1"):
        PrioritizedSweeping(threshold=-0.1).learn(env, 10)
