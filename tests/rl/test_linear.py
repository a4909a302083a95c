"""Values linear in features: tiles, mountain car, least squares against closed forms."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.control import MountainCar, policy_iteration, worlds
from epicycle.exceptions import DataError, ParameterError, ParameterTypeError
from epicycle.rl import LSPI, LSTD, FourierBasis, LinearQLearning, LinearSARSA, TileCoding

CAR_BOX = [-1.2, -0.07], [0.6, 0.07]


def walks(n_states, n_episodes, seed):
    rng, episodes = np.random.default_rng(seed), []
    for _ in range(n_episodes):
        path = [(n_states + 1) // 2]
        while 0 < path[-1] <= n_states:
            path.append(path[-1] + (1 if rng.random() < 0.5 else -1))
        episodes.append(path)
    return episodes


def batch(episodes, n_states):
    """Transitions of walks: states, rewards, next states and ends."""
    s = np.concatenate([path[:-1] for path in episodes])
    after = np.concatenate([path[1:] for path in episodes])
    ends = (after == 0) | (after == n_states + 1)
    return s, (after == n_states + 1) * 1.0, after, ends


def test_tiles_cover_and_resolve():
    tiles = TileCoding([0.0, -1.0], [1.0, 1.0], n_tiles=(4, 5), n_tilings=8)
    X = np.random.default_rng(0).uniform([0, -1], [1, 1], size=(300, 2))
    phi = tiles(X)
    assert phi.shape == (300, 8 * 5 * 6)
    assert_array_equal(phi.sum(axis=1), 8)
    assert_array_equal(tiles([[0.0, -1.0], [1.0, 1.0], [9.0, 9.0], [-9.0, -9.0]]).sum(axis=1), 8)
    # States that are close share most tiles, those a tile apart none.
    near, far = tiles([[0.5, 0.0], [0.53, 0.0]]), tiles([[0.1, 0.0], [0.4, 0.0]])
    assert 6 <= near[0] @ near[1] <= 8
    assert far[0] @ far[1] == 0
    assert len(np.unique(tiles(np.c_[np.linspace(0, 1, 1000), np.zeros(1000)]), axis=0)) >= 4 * 8


def test_fourier_features_by_formula():
    basis = FourierBasis([-1.0, 0.0], [1.0, 2.0], order=2)
    X = np.random.default_rng(0).uniform([-1, 0], [1, 2], size=(5, 2))
    u = (X - [-1, 0]) / 2
    expected = [[np.cos(np.pi * (i * a + j * b)) for i in range(3) for j in range(3)] for a, b in u]
    assert_allclose(basis(X), expected)
    index, value = basis.active(X[0])
    assert_allclose(value, expected[0])
    assert len(index) == basis.n_features == 9


@pytest.mark.parametrize(("cls", "settings"), [(LinearSARSA, {"trace_decay": 0.9}), (LinearQLearning, {})])
def test_mountain_car_is_solved(cls, settings):
    # Sutton and Barto, figures 10.2 and 12.10: about 110 to 150 steps after some hundred episodes.
    rate = 0.5 if not settings else 0.3
    agent = cls(TileCoding(*CAR_BOX), learning_rate=rate, epsilon=0.0, discount=1.0, random_state=1, **settings)
    env = MountainCar().environment(max_steps=2000)
    agent.learn(env, 40_000)
    assert agent.evaluate(env, 30, seed=5).mean > -150
    lengths = agent.history_["length"]
    assert lengths[:5].mean() > 2 * lengths[-20:].mean()  # it began without knowing
    assert agent.certificate_.kind == "none"
    assert "evaluation: -1" in agent.certificate_.meaning


@pytest.mark.parametrize("cls", [LinearSARSA, LinearQLearning])
@pytest.mark.parametrize("decay", [0.0, 0.8])
def test_same_bits_from_a_file_and_after_a_kill(cls, decay, tmp_path, monkeypatch):
    env = MountainCar().environment(max_steps=60)
    make = lambda: cls(FourierBasis(*CAR_BOX), learning_rate=0.05, trace_decay=decay, random_state=3)  # noqa: E731
    whole = make().learn(env, 1000)
    agent, write = make(), cls._write

    def killed(self, path):
        write(self, path)
        raise SystemError("killed")

    monkeypatch.setattr(cls, "_write", killed)
    with pytest.raises(SystemError):
        agent.learn(env, 1000, checkpoint=tmp_path / "run.epi", checkpoint_every=300)
    back = ep.load(tmp_path / "run.epi")
    assert 300 <= back._progress["made"] < 400
    back.resume(env)
    assert_array_equal(back.coef_, whole.coef_)
    assert back.history_ == whole.history_
    assert back.act([-0.5, 0.0]) == whole.act([-0.5, 0.0])


def test_least_squares_td_is_the_closed_form_and_batch_td_and_monte_carlo():
    n = 5
    s, r, after, ends = batch(walks(n, 30, 0), n)
    one_hot = lambda x: np.eye(n + 2)[x]  # noqa: E731
    found = LSTD(one_hot, discount=0.95).fit(s, r, after, terminated=ends)
    # Certainty equivalence: the values of the process of the frequencies.
    counts, reward = np.zeros((n + 2, n + 2)), np.zeros(n + 2)
    np.add.at(counts, (s[~ends], after[~ends]), 1)
    np.add.at(reward, s, r)
    visits = np.maximum(np.bincount(s, minlength=n + 2), 1)
    v = np.linalg.solve(np.eye(n + 2) - 0.95 * counts / visits[:, None], reward / visits)
    assert_allclose(found.predict(np.arange(n + 2)), v, atol=1e-10)
    assert found.certificate_.holds
    # lambda = 1: means of the returns after every visit.
    means, number = np.zeros(n + 2), np.zeros(n + 2)
    for path in walks(n, 30, 0):
        for t, state in enumerate(path[:-1]):
            means[state] += 0.95 ** (len(path) - 2 - t) * (path[-1] == n + 1)
            number[state] += 1
    mc = LSTD(one_hot, discount=0.95, trace_decay=1.0).fit(s, r, after, terminated=ends)
    assert_allclose(mc.predict(np.arange(1, n + 1)), means[1:-1] / number[1:-1], atol=1e-10)


def test_errors_of_batch_td_and_batch_monte_carlo():
    # Sutton and Barto, figure 6.2: batch TD is below batch Monte Carlo after every number of episodes.
    n, truth = 5, np.arange(1, 6) / 6
    errors = np.zeros((2, 3))
    for seed in range(60):
        episodes = walks(n, 60, seed)
        for j, k in enumerate((10, 30, 60)):
            s, r, after, ends = batch(episodes[:k], n)
            for i, decay in enumerate((0.0, 1.0)):
                model = LSTD(lambda x: np.eye(n + 2)[x], discount=1.0, trace_decay=decay)
                values = model.fit(s, r, after, terminated=ends).predict(np.arange(1, n + 1))
                errors[i, j] += np.sqrt(np.mean((values - truth) ** 2)) / 60
    assert (errors[0] < 0.95 * errors[1]).all()
    assert errors[0, -1] < 0.08
    assert errors[1, -1] < 0.12


def test_a_cut_in_the_batch_is_not_an_end():
    one_hot = lambda x: np.eye(2)[x]  # noqa: E731
    # From 0 to 1 with reward 1, from 1 to itself with reward 0.5; cut after each pair of steps.
    s, r, after = [0, 1, 0, 1], [1.0, 0.5, 1.0, 0.5], [1, 1, 1, 1]
    for decay in (0.0, 0.7):
        found = LSTD(one_hot, discount=0.5, trace_decay=decay).fit(s, r, after, truncated=[False, True] * 2)
        assert_allclose(found.predict([0, 1]), [1.5, 1.0])


def test_policy_iteration_from_a_batch_finds_the_best_policy():
    mdp = worlds.random_mdp(10, 3, n_successors=3, discount=0.9, random_state=0)
    rng = np.random.default_rng(0)
    P = mdp.transitions_.toarray().reshape(10, 3, 10)
    s, a = rng.integers(10, size=20_000), rng.integers(3, size=20_000)
    after = (np.cumsum(P[s, a], axis=1) < rng.random((20_000, 1))).sum(axis=1)
    model = LSPI(lambda x: np.eye(10)[x], 3, discount=0.9).fit(s, a, mdp.rewards_.reshape(10, 3)[s, a], after)
    assert model.certificate_.holds
    assert model.history_.n_iter < 15
    best = policy_iteration(mdp)
    q = (mdp.rewards_ + 0.9 * mdp.transitions_ @ best.values).reshape(10, 3)
    assert_allclose(model.predict(np.arange(10)), q, atol=0.5)
    assert np.max(best.values - q[np.arange(10), [model.act(i) for i in range(10)]]) < 0.1


def test_bad_input_is_named():
    env = MountainCar().environment()
    with pytest.raises(DataError, match="each low below its high"):
        TileCoding([0.0], [0.0])
    with pytest.raises(ParameterTypeError, match="expected TileCoding or FourierBasis"):
        LinearSARSA(None).learn(env, 10)
    with pytest.raises(DataError, match="the features are made for 1 coordinates"):
        LinearSARSA(TileCoding([0.0], [1.0])).learn(env, 10)
    with pytest.raises(DataError, match="the weights ran away"), np.errstate(all="ignore"):
        LinearQLearning(FourierBasis(*CAR_BOX), learning_rate=1e200).learn(env, 1000)
    with pytest.raises(DataError, match="discrete space"):
        LinearSARSA(TileCoding(*CAR_BOX)).learn(ep.control.InvertedPendulum().environment(), 10)
    with pytest.raises(DataError, match="rewards: got shape"):
        LSTD(np.eye).fit([0], [], [1])
    with pytest.raises(DataError, match=r"actions: expected 2 numbers from 0 to 1"):
        LSPI(lambda x: np.eye(2)[x], 2).fit([0, 1], [0, 2], [1.0, 1.0], [1, 0])
    with pytest.raises(ParameterError, match="discount=1"):
        LSPI(np.eye, 2, discount=1.0)
