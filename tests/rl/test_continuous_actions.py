"""SAC and TD3: updates against formulas in NumPy, soft optima that are known, cuts and ends, the pendulum."""

import numpy as np
import pytest
from deep_envs import Aim, Cart, Push, Reach
from numpy.testing import assert_allclose
from scipy.stats import norm

from epicycle.control import CartPole
from epicycle.exceptions import DataError, ParameterError
from epicycle.rl import SAC, TD3, LinearDecay

torch = pytest.importorskip("torch")
SMALL = {"hidden": (16,), "batch_size": 32, "learning_starts": 50, "learning_rate": 5e-3, "random_state": 0}


class Noise:
    """Normal numbers that are known before."""

    def __init__(self, seed):
        self.rng, self.given = np.random.default_rng(seed), []

    def standard_normal(self, shape, dtype):
        self.given.append(self.rng.standard_normal(shape, dtype=dtype))
        return self.given[-1]


def values(net, j, x, a):
    """Network j of the two critics, by hand."""
    h = np.concatenate([x, a], axis=1).astype(np.float64)
    pairs = [
        (W.detach().numpy()[j], b.detach().numpy()[j]) for W, b in zip(net.module.weight, net.module.bias, strict=True)
    ]
    for W, b in pairs[:-1]:
        h = np.maximum(h @ W + b, 0)
    W, b = pairs[-1]
    return (h @ W + b)[:, 0]


def lower(net, x, a):
    return np.minimum(values(net, 0, x, a), values(net, 1, x, a))


def outputs(net, x):
    """A network of two layers, by hand."""
    first, last = (layer for layer in net.module if hasattr(layer, "weight"))
    W, b, V, c = (p.detach().numpy().astype(np.float64) for p in (first.weight, first.bias, last.weight, last.bias))
    return np.maximum(x @ W.T + b, 0) @ V.T + c


def soft_draw(actor, x, e):
    """Actions and the logarithms of their densities, by the change of variables."""
    mean, log_sd = np.split(outputs(actor, x), 2, axis=1)
    z = mean + np.exp(log_sd) * e
    return np.tanh(z), (norm.logpdf(z, mean, np.exp(log_sd)) - np.log(1 - np.tanh(z) ** 2)).sum(axis=1)


def one_update(agent, monkeypatch):
    """Gradients of an update by network, its batch and its noise; the networks are as before the update."""
    from epicycle.rl.deep._networks import Net

    batch, noise, seen = agent._batch(), Noise(1), {}
    monkeypatch.setattr(agent, "_batch", lambda: batch)
    monkeypatch.setattr(Net, "step", lambda net, rate, clip=None: seen.update({id(net): net.gradient.numpy().copy()}))
    monkeypatch.setattr(Net, "follow", lambda net, other, share: None)
    agent._rng = noise
    agent._loss_sums = {}
    agent._update()
    return {name: seen[id(net)] for name, net in agent._nets.items() if id(net) in seen}, batch, noise.given


def slopes(net, loss, direction):
    start, sides = net.flat.clone(), []
    for sign in (1, -1):
        net.flat.copy_(start + sign * 3e-4 * torch.from_numpy(direction))
        sides.append(loss())
    net.flat.copy_(start)
    return (sides[0] - sides[1]) / 6e-4


def check_gradients(agent, found, losses):
    assert found.keys() == losses.keys()
    rng = np.random.default_rng(0)
    for name, loss in losses.items():
        net = agent._nets[name]
        for _ in range(3):
            direction = rng.normal(size=len(net.flat)).astype(np.float32)
            expected = found[name] @ direction
            near = 0.05 * float(np.abs(found[name]).max())
            assert slopes(net, loss, direction) == pytest.approx(expected, rel=0.02, abs=near)


def test_soft_updates_go_down_the_gradients_of_their_losses(monkeypatch):
    agent = SAC(**SMALL, target_entropy=-0.5).learn(Cart(), 150)
    nets = agent._nets
    found, batch, noise = one_update(agent, monkeypatch)
    x, a, x_next = batch.observations, batch.actions, batch.successors
    t = float(nets["log_temperature"].flat.exp())
    assert 0.1 < t < 0.99  # learnt, and not without weight
    after, log_pi = soft_draw(nets["actor"], x_next, noise[0])
    y = batch.rewards + batch.factors * (lower(nets["slow_critics"], x_next, after) - t * log_pi)
    assert (batch.factors > 0).any()

    def critic_loss():
        return sum(np.mean((values(nets["critics"], j, x, a) - y) ** 2) / 2 for j in range(2))

    def actor_loss():
        drawn, log_pi = soft_draw(nets["actor"], x, noise[1])
        return np.mean(t * log_pi - lower(nets["critics"], x, drawn))

    entropy = -soft_draw(nets["actor"], x, noise[1])[1].mean()
    assert found.pop("log_temperature")[0] == pytest.approx(entropy + 0.5, rel=1e-3)
    check_gradients(agent, found, {"critics": critic_loss, "actor": actor_loss})


def test_deterministic_updates_go_down_the_gradients_of_their_losses(monkeypatch):
    agent = TD3(**SMALL, target_noise=0.4, target_cut=0.3, policy_every=1).learn(Cart(), 150)
    nets = agent._nets
    found, batch, noise = one_update(agent, monkeypatch)
    x, a, x_next = batch.observations, batch.actions, batch.successors
    e = np.clip(0.4 * noise[0], -0.3, 0.3)
    after = np.clip(np.tanh(outputs(nets["slow_actor"], x_next)) + e, -1, 1)
    y = batch.rewards + batch.factors * lower(nets["slow_critics"], x_next, after)

    def critic_loss():
        return sum(np.mean((values(nets["critics"], j, x, a) - y) ** 2) for j in range(2))

    def actor_loss():
        return -np.mean(values(nets["critics"], 0, x, np.tanh(outputs(nets["actor"], x))))

    check_gradients(agent, found, {"critics": critic_loss, "actor": actor_loss})


def test_the_policy_and_the_targets_move_every_second_update():
    agent = TD3(**SMALL, policy_every=2).learn(Cart(), 50 + 40)
    assert agent._nets["critics"].steps == 40
    assert agent._nets["actor"].steps == 20
    slow = TD3(**SMALL, target_rate=1.0).learn(Cart(), 90)
    for name in ("actor", "critics"):
        assert_allclose(slow._nets[f"slow_{name}"].flat, slow._nets[name].flat)
    assert not np.allclose(agent._nets["slow_critics"].flat, agent._nets["critics"].flat)


def test_the_soft_optimum_is_found():
    # One step with reward r(a) = -(a - 0.3)^2: the best soft policy has density exp(r / t), sd sqrt(t / 2) = 0.1.
    agent = SAC(**SMALL, temperature=0.02).learn(Aim(), 1200)
    drawn = np.array([agent.act(0, deterministic=False)[0] for _ in range(2000)]) / 2
    assert drawn.mean() == pytest.approx(0.3, abs=0.05)
    assert drawn.std() == pytest.approx(0.1, abs=0.03)
    assert agent.act(0)[0] == pytest.approx(0.6, abs=0.1)


@pytest.mark.slow
def test_a_learnt_temperature_keeps_the_entropy():
    # Of the law above, log(sd sqrt(2 pi e)) = -0.5 for sd 0.147.
    learnt = SAC(**SMALL, target_entropy=-0.5).learn(Aim(), 2000)
    drawn = np.array([learnt.act(0, deterministic=False)[0] for _ in range(2000)]) / 2
    assert drawn.std() == pytest.approx(0.147, abs=0.04)
    assert learnt.history_["entropy"][-200:].mean() == pytest.approx(-0.5, abs=0.15)
    assert learnt.history_["temperature"][-200:].mean() == pytest.approx(2 * 0.147**2, abs=0.03)


@pytest.mark.parametrize("cls", [SAC, TD3])
@pytest.mark.parametrize("ends", [False, True])
def test_a_cut_is_not_an_end(cls, ends):
    # 1 / (1 - 0.8) = 5 without an end; with an end after five steps a mean over them solves v = 1 + 0.8 (4/5) v.
    extra = {"temperature": 0.0} if cls is SAC else {}
    agent = cls(**SMALL, discount=0.8, target_rate=0.1, **extra).learn(Push(ends), 700)
    assert agent.value(0) == pytest.approx(1 / (1 - 0.64) if ends else 5.0, abs=0.4)


@pytest.mark.parametrize("cls", [SAC, TD3])
def test_continuous_actions_are_learnt(cls):
    settings = {"hidden": (32,), "learning_rate": 3e-3, "learning_starts": 200, "n_envs": 2, "gradient_steps": 2}
    agent = cls(**SMALL | settings, discount=0.9).learn(Cart(), 1200)
    assert agent.evaluate(Cart(), 30, seed=0).mean > -0.5  # doing nothing: -3.3; the best: 0
    assert agent.act(np.array([50.0])).shape == (1,)
    assert -3 <= agent.act(np.array([50.0]))[0] < -1  # up to the bound
    assert agent.history_["exploration"][-1] < 1
    assert agent.history_["return"][-10:].mean() > agent.history_["return"][:5].mean() + 1


def test_images_are_looked_at():
    agent = SAC(**SMALL, n_step=2).learn(Reach(), 500)
    assert agent.evaluate(Reach(), 60, seed=1).mean > -0.05  # always 0: -0.47


def test_schedules_and_options():
    agent = TD3(**SMALL, noise=LinearDecay(0.5, 0.0, 80), clip_gradient=0.1, normalize_observations=True)
    agent.learn(Cart(), 100)
    assert agent.history_["exploration"][-1] == 0.0
    state = np.array([0.3])
    assert agent.act(state, deterministic=False) == agent.act(state)


def test_bad_input_is_named():
    pole, free = CartPole().environment(), Cart()
    free.action_space = type(Cart.action_space)(shape=(1,), low=-np.inf, high=3.0)
    for cls in (SAC, TD3):
        with pytest.raises(DataError, match=f"env.action_space: {cls.__name__} needs continuous actions"):
            cls().learn(pole, 10)
        with pytest.raises(DataError, match=f"env.action_space: {cls.__name__} needs finite bounds"):
            cls().learn(free, 10)
        with pytest.raises(ParameterError, match="target_rate=0"):
            cls(target_rate=0.0).learn(Cart(), 10)
    with pytest.raises(ParameterError, match="temperature='warm'"):
        SAC(temperature="warm").learn(Cart(), 10)
    with pytest.raises(ParameterError, match="policy_every=0"):
        TD3(policy_every=0).learn(Cart(), 10)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [SAC, TD3])
def test_the_pendulum_swings_up(cls):
    gymnasium = pytest.importorskip("gymnasium")
    env = gymnasium.make("Pendulum-v1")
    settings = {"learning_rate": 1e-3, "batch_size": 128, "learning_starts": 500, "random_state": 0}
    agent = cls((64, 64), **settings).learn(env, 11_000)
    assert agent.history_["return"][:5].mean() < -1000
    assert agent.evaluate(env, 50, seed=1).mean > -200
