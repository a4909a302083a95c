"""Search among policies: gradients against exact ones, poles that stand, files."""

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.control import MDP, CartPole, InvertedPendulum, MDPEnvironment
from epicycle.exceptions import DataError, NotFittedError, ParameterError
from epicycle.rl import CrossEntropyMethod, Reinforce, gradient_variance
from epicycle.rl.policy_search._linear_policy import LinearPolicy

POLE = CartPole().environment(max_steps=100)


def small_process():
    """Three states, two actions, each step ends with probability 0.3 at least."""
    rng = np.random.default_rng(0)
    P = np.zeros((4, 2, 4))
    P[:3, :, :3] = 0.7 * rng.dirichlet(np.ones(3), size=(3, 2))
    P[:3, :, 3] = 0.3
    R = rng.normal(size=(4, 2))
    return P, R, MDPEnvironment(MDP(P, R, 0.9, terminal=[3]), start=[0.5, 0.5, 0, 0])


def exact_return(theta, P, R):
    logits = theta.reshape(2, 4)[:, :3].T
    pi = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chain = np.einsum("sa,sat->st", pi, P[:3, :, :3])
    return np.array([0.5, 0.5, 0]) @ np.linalg.solve(np.eye(3) - 0.9 * chain, (pi * R[:3]).sum(axis=1))


def test_estimates_of_the_gradient_are_unbiased_and_baselines_calm_them():
    P, R, env = small_process()
    agent = Reinforce(discount=0.9, learning_rate=0.2, random_state=0).learn(env, 40)
    theta = agent.coef_.copy()
    exact = np.array(
        [(exact_return(theta + 1e-6 * e, P, R) - exact_return(theta - 1e-6 * e, P, R)) / 2e-6 for e in np.eye(8)]
    )
    found = gradient_variance(agent, env, 4000, seed=3)
    assert_array_equal(agent.coef_, theta)
    for name, estimate in found.items():
        deviation = np.abs(estimate["mean"] - exact) / np.maximum(estimate["error"], 1e-12)
        moved = estimate["error"] > 0
        assert (deviation[moved] < 4.5).all(), name
        assert_allclose(exact[~moved], 0, atol=1e-8)
    error = found["baseline"]["error"]
    assert (np.abs(exact)[error > 0] / error[error > 0]).max() > 10  # the test could see a bias
    assert found["baseline"]["variance"] < found["return"]["variance"]
    assert found["reward_to_go"]["variance"] < found["return"]["variance"]


@pytest.mark.parametrize("discrete", [True, False])
def test_scores_are_the_gradients_of_the_logarithm(discrete):
    rng = np.random.default_rng(1)
    policy = LinearPolicy(3, 4, discrete, None, None)
    theta, phi = rng.normal(size=policy.size), rng.normal(size=4)
    action = 1 if discrete else rng.normal(size=3)

    def log_density(t):
        W = t[:12].reshape(3, 4)
        if discrete:
            return (W @ phi)[1] - np.log(np.exp(W @ phi).sum())
        z = (action - W @ phi) / np.exp(t[12:])
        return -0.5 * z @ z - t[12:].sum()

    numeric = [(log_density(theta + 1e-6 * e) - log_density(theta - 1e-6 * e)) / 2e-6 for e in np.eye(policy.size)]
    assert_allclose(policy.score(theta, phi, action), numeric, atol=1e-6)


def test_draws_follow_the_policy():
    rng, phi = np.random.default_rng(0), np.array([0.5, 1.0])
    softmax = LinearPolicy(3, 2, True, None, None)
    theta = np.array([1.0, 0.0, 0.0, 0.5, -1.0, 0.0])
    drawn = np.bincount([softmax.draw(theta, phi, rng) for _ in range(4000)], minlength=3) / 4000
    assert_allclose(drawn, softmax.probabilities(theta, phi), atol=0.03)
    normal = LinearPolicy(1, 2, False, None, None)
    drawn = np.array([normal.draw(np.array([1.0, 2.0, np.log(0.5)]), phi, rng)[0] for _ in range(4000)])
    assert drawn.mean() == pytest.approx(2.5, abs=0.05)
    assert drawn.std() == pytest.approx(0.5, abs=0.03)


def test_poles_stand_by_the_policy_gradient_and_by_the_cross_entropy_method():
    first = Reinforce(random_state=0).learn(POLE, 100).evaluate(POLE, 20, seed=1, deterministic=False).mean
    climbed = Reinforce(random_state=0).learn(POLE, 12_000)
    found = climbed.evaluate(POLE, 20, seed=1)
    assert found.mean > 60 > 1.5 * first
    assert found.low <= found.mean <= found.high
    assert climbed.history_["return"][-20:].mean() > 1.5 * climbed.history_["return"][:20].mean()
    searched = CrossEntropyMethod(random_state=0).learn(POLE, 12_000)
    assert searched.evaluate(POLE, 20, seed=1).mean > 80
    assert "no proof" in searched.certificate_.meaning


class Cart:
    """A cart that is to stand at zero: x' = x + 0.5 u, reward -x^2 for ten steps."""

    action_space = SimpleNamespace(shape=(1,))

    def reset(self, *, seed=None, options=None):
        self.x, self.steps = np.random.default_rng(seed).uniform(-1, 1), 0
        return np.array([self.x]), {}

    def step(self, action):
        self.x += 0.5 * float(action[0])
        self.steps += 1
        return np.array([self.x]), -(self.x**2), False, self.steps == 10, {}


@pytest.mark.parametrize("agent", [Reinforce(learning_rate=0.05), CrossEntropyMethod()], ids=lambda a: type(a).__name__)
def test_continuous_actions_are_learnt(agent):
    agent.random_state = 0
    agent.learn(Cart(), 20_000)
    gain, offset = agent.coef_[:2]
    assert -2.8 < gain < -1.2  # -2 stops the cart in one step
    assert abs(offset) < 0.3
    assert agent.evaluate(Cart(), 20, seed=0).mean > -0.15
    assert agent.act(np.zeros(1)).shape == (1,)


@pytest.mark.parametrize("agent", [Reinforce(), CrossEntropyMethod(population=6)], ids=lambda a: type(a).__name__)
def test_same_bits_from_a_file_and_after_a_kill(agent, tmp_path, monkeypatch):
    cls = type(agent)
    settings = {name: getattr(agent, name) for name in agent._arguments} | {"random_state": 2}
    env = CartPole().environment(max_steps=50)
    whole = cls(**settings).learn(env, 4000)
    one, write = cls(**settings), cls._write

    def killed(self, path):
        write(self, path)
        raise SystemError("killed")

    monkeypatch.setattr(cls, "_write", killed)
    with pytest.raises(SystemError):
        one.learn(env, 4000, checkpoint=tmp_path / "run.epi", checkpoint_every=1000)
    back = ep.load(tmp_path / "run.epi")
    assert 1000 <= back._progress["made"] < 2500
    back.resume(env)
    assert_array_equal(back.coef_, whole.coef_)
    assert back.history_ == whole.history_
    state = np.array([0.1, 0.0, -0.05, 0.2])
    assert back.act(state) == whole.act(state)


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="weight='best'"):
        Reinforce(weight="best").learn(POLE, 10)
    with pytest.raises(NotFittedError, match="expected a Reinforce agent that has learnt"):
        gradient_variance(Reinforce(), POLE)
    with pytest.raises(DataError, match="features: got NaN"):
        Reinforce(lambda x: [np.nan]).learn(POLE, 10)
    agent = Reinforce(random_state=0).learn(POLE, 100)
    with pytest.raises(DataError, match="has 3 features; expected 5"):
        agent.act([0.0, 0.0])
    with pytest.raises(DataError, match="asks for 4 parameters; expected 10"):
        agent.learn(InvertedPendulum().environment(), 10)
