"""Values of policies from the episodes of others: estimators by hand, without bias, with intervals that hold."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from epicycle import LinearRegression
from epicycle.control import MDP, MDPEnvironment
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError
from epicycle.rl import Episodes, evaluate_offline, record_episodes

METHODS = ["ordinary", "weighted", "per_decision", "doubly_robust", "fitted_q"]
RNG = np.random.default_rng(0)
P = np.zeros((2, 4, 4))
P[:, :3, :3] = 0.5 * RNG.dirichlet(np.ones(3), size=(2, 3))
P[:, :3, 3] = 0.5
R = RNG.normal(1.0, 1.0, size=(4, 2))
R[[0, 1, 2], [0, 1, 0]] += 4  # what the policy does more often pays
PROCESS = MDP(list(P), R, 0.9, terminal=[3])
ENV = MDPEnvironment(PROCESS, start=[0.5, 0.5, 0, 0])
BEHAVIOUR = np.array([[0.5, 0.5], [0.6, 0.4], [0.4, 0.6], [0.5, 0.5]])
TARGET = np.array([[0.8, 0.2], [0.3, 0.7], [0.7, 0.3], [0.5, 0.5]])


def exact_value(policy):
    chain = np.einsum("sa,ast->st", policy[:3], P[:, :3, :3])
    return np.array([0.5, 0.5, 0]) @ np.linalg.solve(np.eye(3) - 0.9 * chain, (policy[:3] * R[:3]).sum(axis=1))


def recorded(n, seed):
    """`n` episodes of the behaviour, all at once."""
    rng, rows = np.random.default_rng(seed), []
    for _ in range(n):
        s = int(rng.integers(2))
        while s != 3:
            a = int(rng.random() < BEHAVIOUR[s, 1])
            after = int(rng.choice(4, p=P[a, s]))
            rows.append((s, a, R[s, a], after, after == 3, BEHAVIOUR[s, a]))
            s = after
    x, a, r, after, ended, p = (np.array(c) for c in zip(*rows, strict=True))
    return Episodes(x, a, r, after, ended, None, p)


def test_estimators_by_hand():
    steps = Episodes(
        [0, 1, 0], [0, 1, 1], [1.0, 2.0, 3.0], [1, 3, 3], [False, True, True], None, probabilities=[0.5, 0.4, 0.5]
    )
    w = [0.8 / 0.5, 0.8 / 0.5 * 0.7 / 0.4, 0.2 / 0.5]
    with pytest.warns(ConvergenceWarning, match=r"the weights of 2 episodes are worth 1\.28"):
        found = {m: evaluate_offline(TARGET, steps, method=m, discount=0.9) for m in METHODS[:3]}
    assert found["ordinary"].mean == pytest.approx((w[1] * 2.8 + w[2] * 3) / 2)
    assert found["weighted"].mean == pytest.approx((w[1] * 2.8 + w[2] * 3) / (w[1] + w[2]))
    assert found["per_decision"].mean == pytest.approx((w[0] * 1 + w[1] * 0.9 * 2 + w[2] * 3) / 2)
    assert found["ordinary"].effective_episodes == pytest.approx((w[1] + w[2]) ** 2 / (w[1] ** 2 + w[2] ** 2))
    # Fitted: Q(1, 1) = 2, Q(0, 1) = 3, Q(0, 0) = 1 + 0.9 * 0.7 * 2; what was never tried counts nothing.
    fitted = evaluate_offline(TARGET, steps, method="fitted_q", discount=0.9, random_state=0)
    assert fitted.mean == pytest.approx(0.8 * (1 + 0.9 * 0.7 * 2) + 0.2 * 3)


@pytest.mark.filterwarnings("ignore:evaluate_offline. the weights")
def test_no_bias_and_intervals_that_hold():
    truth, runs = exact_value(TARGET), 60
    nearby = 0.7 * BEHAVIOUR + 0.3 * TARGET  # weights of moderate spread, for which Student's interval is meant
    found, held = {m: [] for m in METHODS}, {m: [] for m in METHODS}
    for seed in range(runs):
        steps = recorded(100, seed)
        settings = {"discount": 0.9, "n_bootstrap": 20, "random_state": seed}
        for m in METHODS:
            found[m].append(evaluate_offline(TARGET, steps, method=m, **settings).mean)
            interval = evaluate_offline(nearby, steps, method=m, **settings)
            held[m].append(interval.low <= exact_value(nearby) <= interval.high)
    error = {}
    for m in METHODS:
        means = np.array(found[m])
        error[m] = float(np.sqrt(np.mean((means - truth) ** 2)))
        bias = 0.03 if m in ("weighted", "fitted_q") else 0  # of the order of 1 / episodes
        assert abs(means.mean() - truth) < 4 * means.std() / np.sqrt(runs) + bias, m
        assert np.mean(held[m]) >= 0.85, m
        # A behaviour taken for the policy would be seen.
        assert abs(exact_value(BEHAVIOUR) - truth) > 4 * means.std() / np.sqrt(runs) + bias
    assert error["per_decision"] < error["ordinary"]
    assert error["doubly_robust"] < error["per_decision"]


def test_doubly_robust_is_right_with_wrong_values_and_fitted_q_is_not():
    # States are told as one number that a line cannot follow.
    steps = recorded(4000, 0)
    x = np.array([0.0, 5.0, 1.0, -3.0])
    hidden = Episodes(
        x[steps.observations][:, None],
        steps.actions,
        steps.rewards,
        x[steps.next_observations][:, None],
        steps.terminated,
        None,
        steps.probabilities,
    )

    def policy(states):
        return TARGET[np.abs(states - x).argmin(axis=1)]

    truth = exact_value(TARGET)
    settings = {"discount": 0.9, "regressor": LinearRegression(), "rounds": 20, "n_bootstrap": 10, "random_state": 0}
    robust = evaluate_offline(policy, hidden, **settings)
    assert robust.low <= truth <= robust.high
    table = evaluate_offline(TARGET, steps, method="fitted_q", discount=0.9, n_bootstrap=20, random_state=0)
    line = evaluate_offline(policy, hidden, method="fitted_q", **settings)
    assert abs(table.mean - truth) < 0.15
    assert line.mean != pytest.approx(table.mean, abs=1e-3)
    by_function = evaluate_offline(lambda s: TARGET[s], steps, method="per_decision", discount=0.9)
    assert by_function.mean == evaluate_offline(TARGET, steps, method="per_decision", discount=0.9).mean


def test_the_policy_itself_is_a_mean_of_returns():
    steps = record_episodes(BEHAVIOUR, ENV, 100, seed=0)
    for m in METHODS[:3]:
        found = evaluate_offline(BEHAVIOUR, steps, method=m, discount=0.9)
        assert found.mean == pytest.approx(steps.returns(0.9).mean())
        assert found.effective_episodes == pytest.approx(100)
    assert_allclose(found.values, steps.returns(0.9))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10), st.floats(0, 1))
def test_estimates_scale_with_rewards_and_weighted_ones_are_means(seed, scale, discount):
    rng = np.random.default_rng(seed)
    n, k, m = int(rng.integers(5, 40)), int(rng.integers(2, 5)), int(rng.integers(2, 4))
    x, a, after = rng.integers(k, size=n), rng.integers(m, size=n), rng.integers(k, size=n)
    r, p = rng.normal(size=n), rng.uniform(0.1, 1, n)
    ended = rng.random(n) < 0.4
    ended[-1] = True
    policy = rng.dirichlet(np.ones(m), size=k)

    def estimates(rewards):
        steps = Episodes(x, a, rewards, after, ended, None, p)
        options = {"discount": discount, "n_bootstrap": 3, "random_state": 0}
        return steps, {name: evaluate_offline(policy, steps, method=name, **options) for name in METHODS}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        (steps, one), (_, other) = estimates(r), estimates(scale * r)
    for name in METHODS:
        assert_allclose(other[name].mean, scale * one[name].mean, rtol=1e-7, atol=1e-9)
        assert_allclose(one[name].values.mean(), one[name].mean, rtol=1e-7, atol=1e-9)
    returns = steps.returns(discount)
    assert returns.min() - 1e-9 <= one["weighted"].mean <= returns.max() + 1e-9


def test_same_seed_same_bits_and_words():
    steps = recorded(300, 1)
    one, two = (evaluate_offline(TARGET, steps, discount=0.9, random_state=3) for _ in range(2))
    assert one.mean == two.mean
    assert "from 300 episodes of another policy, worth" in str(one)


def test_a_policy_that_does_what_was_never_done():
    steps = Episodes([0, 0], [0, 0], [1.0, 1.0], [3, 3], [True, True], None, [1.0, 1.0])
    with pytest.warns(ConvergenceWarning, match="what would matter was seldom done"):
        found = evaluate_offline(np.ones(4, dtype=int), steps, method="ordinary", n_actions=2)
    assert found.effective_episodes == 0


def test_bad_input_is_named():
    steps = recorded(5, 0)
    bare = Episodes(steps.observations, steps.actions, steps.rewards, steps.next_observations, steps.terminated)
    with pytest.raises(ParameterError, match="needs the probabilities with which the recorded actions were taken"):
        evaluate_offline(TARGET, bare)
    with pytest.raises(ParameterError, match="method='magic'"):
        evaluate_offline(TARGET, steps, method="magic")
    with pytest.raises(DataError, match="expected Episodes, such as record_episodes returns"):
        evaluate_offline(TARGET, [1, 2])
    with pytest.raises(DataError, match="expected numbers of states from 0 to 1"):
        evaluate_offline(TARGET[:2], steps)
    with pytest.raises(DataError, match="expected probabilities, none below 0"):
        evaluate_offline(2 * TARGET, steps)
    with pytest.raises(DataError, match=r"policy: returned shape"):
        evaluate_offline(lambda s: np.ones(len(s)), steps)
    circle = Episodes([0, 1], [0, 0], [1.0, 1.0], [1, 0], [False, False], None, [1.0, 1.0])
    with pytest.raises(ParameterError, match="discount=1: by what was recorded, episodes of the policy never end"):
        evaluate_offline(np.zeros(2, dtype=int), circle, method="fitted_q", discount=1.0)
    controls = Episodes([0], [[0.5]], [1.0], [1], [True], None, [1.0])
    with pytest.raises(DataError, match="expected numbers of actions"):
        evaluate_offline(TARGET, controls)
