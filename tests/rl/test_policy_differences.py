"""Evolution strategies, fixed scenarios and gradients through simulators: against differences and each other."""

import numpy as np
import pytest
from deep_envs import Cart
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.control import CartPole, InvertedPendulum, MountainCar, Quadrotor2D
from epicycle.exceptions import DataError, ParameterError
from epicycle.rl import EvolutionStrategy, Pegasus, Reinforce, gradient_variance
from epicycle.rl._interaction import Interaction
from epicycle.rl.policy_search._evolution_strategy import pair_gradient
from epicycle.rl.policy_search._linear_policy import LinearPolicy
from epicycle.rl.policy_search._pathwise import pathwise_gradients

POLE = CartPole().environment(max_steps=100)
ROD = InvertedPendulum(max_torque=30.0).environment(max_steps=30)


def bends(x):
    return [np.cos(x[0]), np.sin(x[0]), x[1], 1.0]


@pytest.mark.parametrize("features", [None, bends])
@pytest.mark.parametrize(
    "system", [InvertedPendulum(), InvertedPendulum(max_torque=30.0, max_speed=3.0), Quadrotor2D()]
)
def test_gradients_through_simulators_are_slopes(system, features):
    rng, n, m = np.random.default_rng(0), system.n_states, system.n_controls
    if features is not None and n != 2:
        features = lambda x: np.append(np.sin(x), 1.0)  # noqa: E731
    starts = 0.3 * rng.normal(size=(4, n))
    width = len(np.append(starts[0], 1.0) if features is None else features(starts[0]))
    policy = LinearPolicy(m, width, False, None, features)
    theta = 0.5 * rng.normal(size=policy.size)
    noise = rng.normal(size=(4, 12, m))

    def values(t):
        rewards = pathwise_gradients(policy, t, system, starts, noise, 0.95)[0]
        return rewards @ 0.95 ** np.arange(12)

    _, gradients, lengths = pathwise_gradients(policy, theta, system, starts, noise, 0.95)
    slopes = np.array([(values(theta + 1e-6 * e) - values(theta - 1e-6 * e)) / 2e-6 for e in np.eye(policy.size)]).T
    assert np.abs(slopes).max() > 0.1
    assert_allclose(gradients, slopes, rtol=1e-4, atol=1e-4 * np.abs(slopes).max())
    assert (lengths == 12).all()


def test_gradients_through_simulators_are_those_of_the_episodes():
    # The same episodes as REINFORCE plays them, and gradients that agree with its estimates but vary less.
    agent = Reinforce(discount=0.9, random_state=0).learn(ROD, 60)
    found = gradient_variance(agent, ROD, 600, seed=1)
    assert found["pathwise"]["variance"] < found["baseline"]["variance"] / 3
    error = np.hypot(found["pathwise"]["error"], found["baseline"]["error"])
    assert (np.abs(found["pathwise"]["mean"] - found["baseline"]["mean"]) < 4 * error).all()
    world, other = Interaction(ROD, 1), Reinforce(discount=0.9)
    other._tables, other._policy = agent._tables, agent._policy
    other._progress = {"seed": 1, "made": 0, "goal": 0, "episode": 0}
    rewards = other._play(world, agent.coef_, 1000, False)[0]
    from epicycle.core._random import stream

    noise = stream(1, "agent", 0).standard_normal((1, 30, 1))
    start = Interaction(ROD, 1).reset()[None]
    again = pathwise_gradients(agent._policy, agent.coef_, ROD.simulator, start, noise, 0.9)[0]
    assert_allclose(again[0], rewards, atol=1e-9)
    assert "pathwise" not in gradient_variance(Reinforce(random_state=0).learn(POLE, 100), POLE, 4)


def test_differences_of_pairs_are_the_gradient():
    rng = np.random.default_rng(0)
    e, g = rng.normal(size=(4000, 3)), np.array([1.0, -2.0, 0.5])
    theta = np.array([0.3, 0.1, -0.2])
    points = np.stack([theta + 0.5 * e, theta - 0.5 * e], axis=1).reshape(-1, 3)
    assert_allclose(pair_gradient(points @ g, e, 0.5, False), g, atol=0.15)
    ranked = pair_gradient(np.exp(points @ g), e, 0.5, True)  # ranks do not see a monotone change
    assert_allclose(ranked, pair_gradient(points @ g, e, 0.5, True))
    assert ranked @ g / np.linalg.norm(ranked) / np.linalg.norm(g) > 0.99
    assert_array_equal(pair_gradient(np.ones(8000), e, 0.5, True), 0)


def test_poles_stand():
    for agent in (EvolutionStrategy(random_state=0), Pegasus(scenarios=5, random_state=0)):
        agent.learn(POLE, 12_000)
        assert agent.history_["return"][:20].mean() < 45, agent
        assert agent.evaluate(POLE, 20, seed=1).mean > 60, agent


@pytest.mark.parametrize(
    "agent", [EvolutionStrategy(), Pegasus(), Pegasus(optimizer="powell")], ids=["es", "simplex", "powell"]
)
def test_continuous_actions_are_learnt(agent):
    settings = {name: getattr(agent, name) for name in agent._arguments} | {"random_state": 0}
    agent = type(agent)(**settings).learn(Cart(), 12_000)
    gain, offset = agent.coef_[:2]
    assert -2.8 < gain < -1.2  # -2 stops the cart in one step
    assert abs(offset) < 0.3
    assert agent.evaluate(Cart(), 20, seed=0).mean > -0.2


@pytest.mark.slow
def test_exact_gradients_lead_to_as_much():
    shared = {"scenarios": 8, "random_state": 0}
    exact = Pegasus(**shared, optimizer="bfgs").learn(ROD, 20_000).evaluate(ROD, 50, seed=1).mean
    assert exact > -60
    assert exact >= Pegasus(**shared).learn(ROD, 20_000).evaluate(ROD, 50, seed=1).mean - 3
    assert Pegasus(**shared).learn(ROD, 30).evaluate(ROD, 50, seed=1).mean < -100


def test_every_policy_meets_the_same_scenarios():
    starts = []

    class Noted(Cart):
        def reset(self, *, seed=None, options=None):
            found = super().reset(seed=seed)
            starts.append(self.x)
            return found

    def twice(loss, start):
        assert loss(start) == loss(start)

    Pegasus(scenarios=3, optimizer=twice, random_state=0).learn(Noted(), 600)
    played = starts[1:]  # the first one tells the number of features
    assert len(set(played[:3])) == 3
    assert len(played) == 60
    assert played == played[:3] * 20


AGENTS = [
    EvolutionStrategy(pairs=4, ranks=False),
    Pegasus(scenarios=2),
    Pegasus(scenarios=2, optimizer="bfgs"),
]


@pytest.mark.parametrize("agent", AGENTS, ids=["es", "simplex", "bfgs"])
def test_same_bits_from_a_file_and_after_a_kill(agent, tmp_path, monkeypatch):
    cls = type(agent)
    settings = {name: getattr(agent, name) for name in agent._arguments} | {"random_state": 2}
    env = ROD
    whole = cls(**settings).learn(env, 3000)
    one, write = cls(**settings), cls._write

    def killed(self, path):
        write(self, path)
        raise SystemError("killed")

    monkeypatch.setattr(cls, "_write", killed)
    with pytest.raises(SystemError):
        one.learn(env, 3000, checkpoint=tmp_path / "run.epi", checkpoint_every=1000)
    back = ep.load(tmp_path / "run.epi")
    assert 1000 <= back._progress["made"] < 2500
    back.resume(env)
    assert_array_equal(back.coef_, whole.coef_)
    assert back.history_ == whole.history_
    assert back.act(np.array([0.1, 0.2])) == whole.act(np.array([0.1, 0.2]))


def test_bad_input_is_named(tmp_path):
    for env in (POLE, Cart(), MountainCar().environment()):
        with pytest.raises(DataError, match="env: optimizer='bfgs' needs derivatives, of a simulator with continuous"):
            Pegasus(optimizer="bfgs").learn(env, 10)
    with pytest.raises(ParameterError, match="optimizer='newton'"):
        Pegasus(optimizer="newton").learn(POLE, 10)
    with pytest.raises(ParameterError, match="pairs=0"):
        EvolutionStrategy(pairs=0).learn(POLE, 10)
    with pytest.raises(DataError, match="optimizer: asked for no value"):
        Pegasus(optimizer=lambda loss, start: None, scenarios=2, random_state=0).learn(Cart(), 400)
    agent = Pegasus(optimizer=lambda loss, start: loss(start), scenarios=2, random_state=0).learn(Cart(), 240)
    agent.save(tmp_path / "own.epi")
    with pytest.raises(DataError, match="optimizer: was a function, which a file does not keep"):
        ep.load(tmp_path / "own.epi").resume(Cart())
