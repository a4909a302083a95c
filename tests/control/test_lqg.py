"""LQG: the cost of the loop in closed form, by the covariance of state and estimate, and by simulation; separation."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from epicycle.control import LQG, LQR
from epicycle.exceptions import DataError


def draw(seed, **more):
    rng = np.random.default_rng(seed)
    n, m, p = rng.integers(1, 4), rng.integers(1, 3), rng.integers(1, 3)

    def positive(size):
        L = rng.normal(size=(size, size))
        return L @ L.T + 0.3 * np.eye(size)

    model = {
        "A": rng.normal(size=(n, n)) * 0.8,
        "B": rng.normal(size=(n, m)),
        "C": rng.normal(size=(p, n)),
        "Q": positive(n),
        "R": positive(m),
        "W": positive(n),
        "V": positive(p),
        "N": 0.1 * rng.normal(size=(n, m)),
    }
    return {**model, **more}


def loop(model, K, L):
    """Dynamics of (x, prediction of x) under u = -K estimate, the covariance of its noise, and the map to u."""
    A, B, C = model["A"], model["B"], model["C"]
    n = len(A)
    # estimate = (I - LC) prediction + L C x + L v
    seen, before = L @ C, np.eye(n) - L @ C
    F = np.block([[A - B @ K @ seen, -B @ K @ before], [(A - B @ K) @ seen, (A - B @ K) @ before]])
    G = np.block([[np.eye(n), -B @ K @ L], [np.zeros((n, n)), (A - B @ K) @ L]])
    noise = G @ scipy.linalg.block_diag(model["W"], model["V"]) @ G.T
    return F, noise, -K @ np.hstack([seen, before])


def mean_cost(model, X, U, K, L):
    """Expected cost of a step when (x, prediction) has second moments X."""
    n = len(model["A"])
    xx, xu = X[:n, :n], X[:n] @ U.T
    uu = U @ X @ U.T + K @ L @ model["V"] @ L.T @ K.T
    return np.sum(model["Q"] * xx) + 2 * np.sum(model["N"] * xu) + np.sum(model["R"] * uu)


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_cost_is_that_of_the_stationary_loop_and_no_other_gains_cost_less(seed):
    model = draw(seed)
    solution = LQG(**model).solve()
    assert solution.certificate.holds

    def by_lyapunov(K, L):
        F, noise, U = loop(model, K, L)
        return mean_cost(model, scipy.linalg.solve_discrete_lyapunov(F, noise), U, K, L)

    assert solution.cost == pytest.approx(by_lyapunov(solution.gain, solution.filter_gain), rel=1e-6)
    assert solution.full_information_cost < solution.cost
    F = loop(model, solution.gain, solution.filter_gain)[0]
    assert_allclose(np.sort_complex(np.linalg.eigvals(F)), np.sort_complex(solution.eigenvalues), atol=1e-5)
    rng = np.random.default_rng(seed)
    for _ in range(3):
        K = solution.gain + 1e-3 * rng.normal(size=solution.gain.shape)
        L = solution.filter_gain + 1e-3 * rng.normal(size=solution.filter_gain.shape)
        for changed in ((K, solution.filter_gain), (solution.gain, L)):
            if np.abs(np.linalg.eigvals(loop(model, *changed)[0])).max() < 1:
                assert by_lyapunov(*changed) >= solution.cost * (1 - 1e-9)


@given(st.integers(0, 2**32), st.sampled_from([1.0, 0.9]))
@settings(max_examples=20)
def test_a_finite_horizon_costs_what_the_moments_of_the_loop_say(seed, discount):
    rng = np.random.default_rng(seed)
    model = draw(seed)
    n = len(model["A"])
    mean, covariance = rng.normal(size=n), np.diag(rng.uniform(0.5, 2.0, size=n))
    solution = LQG(**model, discount=discount, mean=mean, covariance=covariance, Q_final=2 * model["Q"]).solve(5)
    both = np.concatenate([mean, mean])
    X = np.outer(both, both)
    X[:n, :n] += covariance
    total = 0.0
    for t in range(5):
        K, L = solution.gain[t], solution.filter_gain[t]
        F, noise, U = loop(model, K, L)
        total += discount**t * mean_cost(model, X, U, K, L)
        X = F @ X @ F.T + noise
    total += discount**5 * np.sum(2 * model["Q"] * X[:n, :n])
    assert solution.cost == pytest.approx(total, rel=1e-9)


def test_simulation_agrees_with_the_closed_form():
    for discount, steps, more in (
        (1.0, 400, {}),
        (0.9, 200, {"covariance": [[2.0, 0.0], [0.0, 1.0]], "mean": [1, -1]}),
    ):
        model = LQG(
            [[1.1, 0.2], [0.0, 0.9]],
            [[0.0], [1.0]],
            [[1.0, 0.0]],
            np.eye(2),
            [[0.5]],
            0.1 * np.eye(2),
            [[0.3]],
            discount=discount,
            **more,
        )
        solution = model.solve()
        costs = model.simulate(solution, n_steps=steps, n_episodes=400, random_state=0)
        error = costs.std() / np.sqrt(len(costs))
        # The mean over a run that starts at rest misses the first steps, by less than one in a hundred.
        assert abs(costs.mean() - solution.cost) < 4 * error + (0.01 * solution.cost if discount == 1 else 0)
        assert abs(costs.mean() - solution.full_information_cost) > 4 * error


def test_separation():
    model = draw(7)
    solution = LQG(**model).solve()
    noisier = LQG(**{**model, "W": 9 * model["W"], "V": 2 * model["V"]}).solve()
    assert np.array_equal(solution.gain, noisier.gain)  # the regulator does not know of the noise
    seen = LQR(model["A"], model["B"], model["Q"], model["R"], N=model["N"]).solve()
    assert np.array_equal(solution.gain, seen.gain)
    dearer = LQG(**{**model, "Q": 5 * model["Q"], "R": 3 * model["R"]}).solve()
    assert np.array_equal(solution.filter_gain, dearer.filter_gain)  # nor the filter of the costs
    long = LQG(**model).solve(300)
    assert_allclose(long.gain[0], solution.gain, rtol=1e-9)
    assert_allclose(long.filter_gain[-1], solution.filter_gain, rtol=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": [[0.0, 1.0]]}, "C: no observation sees the mode of A with eigenvalue 1.5"),
        ({"W": np.diag([0.0, 1.0])}, "W: no noise reaches the mode of A with eigenvalue 1.5"),
        ({"B": [[0.0], [1.0]]}, "B: the system is uncontrollable"),
        ({"V": [[0.0]]}, "V: its smallest eigenvalue is 0"),
        ({"A": [np.eye(2)] * 3}, "got matrices that change with time"),
    ],
)
def test_bad_models_are_named(change, message):
    good = {
        "A": np.diag([1.5, 0.5]),
        "B": [[1.0], [1.0]],
        "C": [[1.0, 1.0]],
        "Q": np.eye(2),
        "R": [[1.0]],
        "W": np.eye(2),
        "V": [[1.0]],
    }
    with pytest.raises(DataError, match=message):
        LQG(**{**good, **change}).solve()


def test_a_finite_horizon_needs_no_filter_that_settles():
    model = LQG(
        np.diag([1.5, 0.5]), [[1.0], [1.0]], [[0.0, 1.0]], np.eye(2), [[1.0]], np.eye(2), [[1.0]], covariance=np.eye(2)
    )
    assert np.isfinite(model.solve(10).cost)
    with pytest.raises(DataError, match="no observation sees"):
        model.solve()
