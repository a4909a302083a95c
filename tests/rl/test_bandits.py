"""Bandits: the testbed of the textbook, bounds on regret, the rules by hand."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.exceptions import DataError, ParameterError
from epicycle.rl import Bandit, BernoulliArms, LinearArms, LinUCB, NormalArms


@pytest.fixture(scope="module")
def testbed():
    """Sutton and Barto, section 2.3: ten arms with standard normal means, fewer problems than their 2000."""
    return NormalArms(np.random.default_rng(0).standard_normal((500, 10)))


@pytest.fixture(scope="module")
def curves(testbed):
    strategies = {
        "greedy": Bandit(10, strategy="epsilon_greedy", amount=0.0),
        "0.01": Bandit(10, strategy="epsilon_greedy", amount=0.01),
        "0.1": Bandit(10, strategy="epsilon_greedy", amount=0.1),
        "ucb": Bandit(10, strategy="ucb", amount=2.0),
        "thompson": Bandit(10, strategy="thompson"),
        "gradient": Bandit(10, strategy="gradient", amount=0.1),
        "optimistic": Bandit(10, strategy="epsilon_greedy", amount=0.0, initial_value=5.0, learning_rate=0.1),
    }
    return {name: bandit.simulate(testbed, 1000, seed=1) for name, bandit in strategies.items()}


def test_curves_of_the_ten_armed_testbed(curves):
    # Figure 2.2: mean rewards near 1.0 (greedy), 1.2 (0.01) and 1.35 (0.1); the best arm in about 36, 60 and 80%.
    reward = {name: result.mean_reward[-100:].mean() for name, result in curves.items()}
    best = {name: result.optimal[-100:].mean() for name, result in curves.items()}
    assert reward["greedy"] == pytest.approx(1.03, abs=0.12)
    assert reward["0.01"] == pytest.approx(1.3, abs=0.12)
    assert reward["0.1"] == pytest.approx(1.4, abs=0.12)
    assert best["greedy"] == pytest.approx(0.36, abs=0.06)
    assert best["0.01"] == pytest.approx(0.57, abs=0.08)
    assert best["0.1"] == pytest.approx(0.8, abs=0.06)
    # Figures 2.3 to 2.5.
    assert reward["ucb"] > reward["0.1"]
    assert best["optimistic"] > best["0.1"]
    assert best["gradient"] > 0.8
    assert curves["thompson"].regret[:, -1].mean() < curves["ucb"].regret[:, -1].mean()


def test_thompson_sampling_meets_the_bound_of_lai_and_robbins():
    p = np.array([0.3, 0.5, 0.7])
    bandit = Bandit(3, strategy="thompson", likelihood="bernoulli")
    regret = bandit.simulate(BernoulliArms(p), 4000, runs=200, seed=0).regret.mean(axis=0)
    kl = p[:2] * np.log(p[:2] / 0.7) + (1 - p[:2]) * np.log((1 - p[:2]) / 0.3)
    slope = ((0.7 - p[:2]) / kl).sum()
    assert regret[-1] - regret[999] < 2 * slope * np.log(4) + 3
    assert (np.diff(regret) >= 0).all()


def test_exp3_loses_less_than_its_bound_against_any_rewards():
    k, steps = 4, 4000
    rng = np.random.default_rng(3)
    rewards = (rng.random((steps, k)) < 0.5).astype(float)
    rewards[: steps // 2, 0], rewards[steps // 2 :, 1] = 1.0, 1.0  # the best arm changes
    amount = min(1.0, np.sqrt(k * np.log(k) / ((np.e - 1) * steps)))
    lost = []
    for seed in range(3):
        bandit, earned = Bandit(k, strategy="exp3", amount=amount, random_state=seed), 0.0
        for t in range(steps):
            arm = bandit.choose()
            bandit.update(arm, rewards[t, arm])
            earned += rewards[t, arm]
        lost.append(rewards.sum(axis=0).max() - earned)
    assert np.mean(lost) <= 2.63 * np.sqrt(steps * k * np.log(k))


def test_rules_by_hand():
    bandit = Bandit(2, strategy="ucb", amount=2.0, random_state=0)
    for arm, reward in ((0, 1.0), (1, 0.0), (0, 0.0)):
        bandit.update(arm, reward)
    assert_allclose(bandit.values_, [0.5, 0.0])
    assert bandit.choose() == (0.5 + 2 * np.sqrt(np.log(3) / 2) < 2 * np.sqrt(np.log(3)))
    gradient = Bandit(2, strategy="gradient", amount=0.5).update(0, 1.0).update(1, 3.0)
    # The first reward is its own mean; the second is 1 above the mean of both, with p = 1/2 each.
    assert_allclose(gradient.values_, [-0.25, 0.25])
    weights = Bandit(2, strategy="exp3", amount=0.2).update(0, 1.0)
    assert_allclose(weights.values_, [0.2 / 0.5 / 2, 0])
    forgetful = Bandit(2, strategy="epsilon_greedy", learning_rate=0.5, initial_value=4.0).update(1, 0.0)
    assert_allclose(forgetful.values_, [4, 2])


def test_linear_bandits_solve_ridge_regression_and_stop_losing():
    theta = np.array([0.5, -0.2, 0.8, 0.1])
    rng, player = np.random.default_rng(0), LinUCB(4, width=0.5, ridge=2.0)
    X, r = rng.standard_normal((50, 4)), rng.standard_normal(50)
    for x, reward in zip(X, r, strict=True):
        player.update(x, reward)
    assert_allclose(player.coef_, np.linalg.solve(X.T @ X + 2 * np.eye(4), X.T @ r), rtol=1e-10)
    arms = rng.standard_normal((6, 4))
    A = np.linalg.inv(X.T @ X + 2 * np.eye(4))
    bound = arms @ player.coef_ + 0.5 * np.sqrt([x @ A @ x for x in arms])
    assert player.choose(arms) == bound.argmax()
    result = LinUCB(4, width=0.5).simulate(LinearArms(theta, 20), 2000, runs=3, seed=0)
    regret = result.regret.mean(axis=0)
    assert regret[-1] - regret[-1000] < 0.25 * regret[999]
    random = LinUCB(4, width=1e9).simulate(LinearArms(theta, 20), 500, seed=0).regret[0, -1]
    assert regret[499] < random


@pytest.mark.parametrize("strategy", ["epsilon_greedy", "ucb", "thompson", "exp3", "gradient"])
def test_same_seed_same_bits_and_files(strategy, tmp_path):
    bandits = [Bandit(3, strategy=strategy, random_state=5) for _ in range(2)]
    rng = np.random.default_rng(0)
    for _ in range(30):
        arm = bandits[0].choose()
        assert bandits[1].choose() == arm
        reward = rng.random()
        for bandit in bandits:
            bandit.update(arm, reward)
    bandits[0].save(tmp_path / "bandit.epi")
    back = ep.load(tmp_path / "bandit.epi")
    assert_array_equal(back.values_, bandits[1].values_)
    assert [back.choose() for _ in range(20)] == [bandits[1].choose() for _ in range(20)]
    arms = BernoulliArms([0.1, 0.5, 0.6])
    assert_array_equal(back.simulate(arms, 50, 4, seed=2).regret, bandits[1].simulate(arms, 50, 4, seed=2).regret)


def test_a_linear_bandit_comes_back_from_a_file(tmp_path):
    player = LinUCB(2, width=0.3).update([1.0, 0.5], 2.0)
    player.save(tmp_path / "linear.epi")
    assert_array_equal(ep.load(tmp_path / "linear.epi").coef_, player.coef_)


def test_bad_input_is_named():
    with pytest.raises(ParameterError, match="n_arms=1"):
        Bandit(1)
    with pytest.raises(ParameterError, match="strategy='best'"):
        Bandit(2, strategy="best")
    with pytest.raises(DataError, match=r"reward=2; expected a finite number in \[0, 1\]"):
        Bandit(2, strategy="exp3").update(0, 2.0)
    with pytest.raises(DataError, match="reward=nan"):
        Bandit(2).update(0, float("nan"))
    with pytest.raises(DataError, match="arm=2; expected a number from 0 to 1"):
        Bandit(2).update(2, 1.0)
    with pytest.raises(DataError, match="got 3 arms; expected 2"):
        Bandit(2).simulate(BernoulliArms([0.1, 0.2, 0.3]), 10)
    with pytest.raises(DataError, match=r"probabilities in \[0, 1\]"):
        BernoulliArms([0.5, 1.5])
    with pytest.raises(DataError, match=r"expected finite numbers \(arms, 2\)"):
        LinUCB(2).choose(np.ones((3, 3)))


def test_the_plot_shows_what_is_asked_for(curves):
    ax = curves["ucb"].plot(label="ucb")
    assert_allclose(ax.lines[0].get_ydata(), curves["ucb"].regret.mean(axis=0))
    assert curves["ucb"].plot("optimal").get_ylabel() == "share of the best arm"
