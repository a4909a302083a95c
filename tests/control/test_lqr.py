"""Linear quadratic regulators: SciPy's Riccati solvers, minimisation over controls, systems that cannot be held."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.integrate import solve_ivp
from scipy.optimize import minimize

from epicycle.control import LQR, CartPole, controllability, linearize
from epicycle.exceptions import DataError


def system(seed, n=None, m=None, scale=1.2):
    rng = np.random.default_rng(seed)
    n, m = n or rng.integers(1, 7), m or rng.integers(1, 4)
    A = rng.normal(size=(n, n))
    A *= scale / max(np.abs(np.linalg.eigvals(A)).max(), 1e-3)
    B = rng.normal(size=(n, m))
    L = rng.normal(size=(n + m, n + m))
    costs = L @ L.T + 0.1 * np.eye(n + m)
    return A, B, costs[:n, :n], costs[n:, n:], costs[:n, n:]


@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([1.0, 0.9]))
def test_infinite_horizon_is_scipys_solution(seed, cross, discount):
    A, B, Q, R, N = system(seed)
    N = N if cross else np.zeros_like(N)
    solution = LQR(A, B, Q, R, N=N, discount=discount).solve()
    root = np.sqrt(discount)
    P = scipy.linalg.solve_discrete_are(root * A, root * B, Q, R, s=N)
    assert_allclose(solution.cost_matrix, P, rtol=1e-7, atol=1e-9 * np.abs(P).max())
    assert solution.certificate.holds
    assert solution.spectral_radius < 1


@given(st.integers(0, 2**32))
def test_continuous_time_is_scipys_solution(seed):
    A, B, Q, R, N = system(seed)
    solution = LQR(A, B, Q, R, N=N, time="continuous").solve()
    P = scipy.linalg.solve_continuous_are(A, B, Q, R, s=N)
    assert_allclose(solution.cost_matrix, P, rtol=1e-6, atol=1e-8 * np.abs(P).max())
    assert solution.certificate.holds
    assert solution.spectral_radius < 0


def test_finite_horizon_is_the_minimum_over_all_controls():
    rng = np.random.default_rng(1)
    T, n, m, g = 4, 3, 2, 0.9
    steps = [system(s, n, m) for s in range(T)]
    A, B, Q, R, N = (np.stack(x) for x in zip(*steps, strict=True))
    q, r, d, last = rng.normal(size=n), rng.normal(size=m), rng.normal(size=n), np.eye(n)
    plan = LQR(A, B, Q, R, N=N, q=q, r=r, d=d, Q_final=last, discount=g).solve()
    start = rng.normal(size=n)

    def cost(u):
        x, total = start, 0.0
        for t, v in enumerate(u.reshape(T, m)):
            total += g**t * (x @ Q[t] @ x + 2 * x @ N[t] @ v + v @ R[t] @ v + 2 * q @ x + 2 * r @ v)
            x = A[t] @ x + B[t] @ v + d
        return total + g**T * x @ last @ x

    best = minimize(cost, np.zeros(T * m), method="BFGS", options={"gtol": 1e-9})
    assert plan.cost_to_go(start) == pytest.approx(best.fun, rel=1e-8)
    assert_allclose(plan.control(start), best.x[:m], atol=1e-4)


def test_a_long_horizon_becomes_the_infinite_one_and_affine_terms_too():
    A, B, Q, R, N = system(3, 4, 2)
    rng = np.random.default_rng(0)
    terms = {"N": N, "q": rng.normal(size=4), "r": rng.normal(size=2), "d": rng.normal(size=4), "noise": np.eye(4)}
    model = LQR(A, B, Q, R, discount=0.8, **terms)
    long, infinite = model.solve(300), model.solve()
    assert_allclose(long.gain[0], infinite.gain, rtol=1e-10)
    assert_allclose(long.offset[0], infinite.offset, rtol=1e-10)
    x = rng.normal(size=(5, 4))
    assert_allclose(long.cost_to_go(x), infinite.cost_to_go(x), rtol=1e-10)


def test_noise_costs_but_does_not_change_the_control():
    A, B, Q, R, N = system(5, 3, 1, scale=0.9)
    W = np.diag([0.1, 0.2, 0.3])
    quiet, noisy = LQR(A, B, Q, R, N=N).solve(20), LQR(A, B, Q, R, N=N, noise=W).solve(20)
    assert_allclose(noisy.gain, quiet.gain)
    rng = np.random.default_rng(0)
    x, total = np.tile([1.0, -1.0, 0.5], (50_000, 1)), 0.0
    start = x[0]
    for t in range(20):
        u = noisy.control(x, t)
        total = total + ((x @ Q) * x).sum(1) + 2 * ((x @ N) * u).sum(1) + ((u @ R) * u).sum(1)
        x = x @ A.T + u @ B.T + rng.multivariate_normal(np.zeros(3), W, size=len(x))
    total = total + ((x @ Q) * x).sum(1)
    assert abs(total.mean() - noisy.cost_to_go(start)) < 4 * total.std() / np.sqrt(len(x))


def test_hidden_modes_are_named():
    A, B = np.diag([2.0, 0.5]), np.array([[0.0], [1.0]])
    assert controllability(A, B) == [2 + 0j]
    with pytest.raises(DataError, match="uncontrollable: no control reaches its mode with eigenvalue 2"):
        LQR(A, B, np.eye(2), np.eye(1)).solve()
    with pytest.raises(DataError, match="undetectable: no cost sees its mode with eigenvalue 2"):
        LQR(A, np.eye(2), np.diag([0.0, 1.0]), np.eye(2)).solve()
    # Modes that die out by themselves need neither.
    assert LQR(A / 4, B, np.diag([0.0, 1.0]), np.eye(1)).solve().certificate.holds
    LQR(A, B, np.eye(2), np.eye(1)).solve(5)  # and a finite horizon has a finite cost


@given(st.integers(0, 2**32), st.integers(1, 8), st.sampled_from([0.0, 1e-12, 1e-6, 1e-3]))
def test_hidden_modes_are_those_of_singular_values(seed, n, leak):
    """Some modes are cut off from the controls, or nearly, and hidden among the others by a rotation."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, n + 1)
    A, B = rng.normal(size=(n, n)), rng.normal(size=(n, 2))
    A[:k, k:], B[:k] = leak * A[:k, k:], leak * B[:k]
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A, B = turn @ A @ turn.T, turn @ B
    size = max(np.linalg.norm(A, 2), np.linalg.norm(B, 2))
    modes = scipy.linalg.eigvals(A)
    smallest = [np.linalg.svd(np.hstack([s * np.eye(n) - A, B]), compute_uv=False)[-1] / size for s in modes]
    if min(abs(np.log10(max(v, 1e-30)) + 9) for v in smallest) < 0.5:
        return  # at the threshold rounding decides
    assert controllability(A, B) == [complex(s) for s, v in zip(modes, smallest, strict=True) if v <= 1e-9]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"A": np.ones((2, 3))}, r"A: got shape \(2, 3\); expected \(3, 3\)"),
        ({"B": np.ones((3, 1))}, r"B: got shape \(3, 1\); expected \(2, 1\)"),
        ({"Q": [[1, 2], [0, 1]]}, "Q: expected a symmetric matrix"),
        ({"Q": -np.eye(2)}, "Q: .* has the eigenvalue -1"),
        ({"R": [[0.0]]}, "R: its smallest eigenvalue is 0"),
        ({"A": [[np.nan, 0], [0, 1]]}, "A: expected finite numbers"),
        ({"noise": [[1, 0], [1, 1]]}, "noise: expected a symmetric"),
        ({"noise": np.diag([1.0, -1.0])}, "noise: its smallest eigenvalue is -1"),
        ({"Q_final": np.diag([1.0, -1.0])}, "Q_final: its smallest eigenvalue is -1"),
        ({"q": [1, 2, 3]}, r"q: got shape \(3,\)"),
        ({"A": np.ones((3, 2, 2)), "B": np.ones((4, 2, 1))}, r"sequences of \[3, 4\] matrices"),
        ({"q": [1, 2]}, "need discrete time and discount < 1"),
    ],
)
def test_bad_models(change, message):
    given = {"A": np.eye(2), "B": np.ones((2, 1)), "Q": np.eye(2), "R": np.eye(1)} | change
    with pytest.raises(DataError, match=message):
        LQR(**given).solve()


def test_linearisations_agree_and_are_checked():
    cart, x, u = CartPole(integrator="rk4"), np.array([0.1, 0.2, 0.3, -0.4]), np.array([2.0])
    value, A, B = linearize(cart, x, u, method="analytic", check=True)
    assert_allclose(value, cart.step(x, u), rtol=1e-13)
    for ours, exact in zip(linearize(cart, x, u), (value, A, B), strict=True):
        assert_allclose(ours, exact, atol=1e-8)

    class Wrong:
        def step(self, x, u):
            return np.array([x[0] * u[0], x[1]])

        def derivatives(self, x, u):
            return self.step(x, u), np.array([[u[0], 0.0], [0.0, 1.0]]), np.array([[x[0]], [1.0]])  # d f[1] / d u is 0

    linearize(Wrong(), [1.0, 2.0], [3.0], method="analytic")
    with pytest.raises(DataError, match=r"derivative of f\[1\] by u\[0\] is 1, and 0 by differences"):
        linearize(Wrong(), [1.0, 2.0], [3.0], method="analytic", check=True)
    with pytest.raises(DataError, match="no method derivatives"):
        linearize(lambda x: x, [1.0], method="analytic")


def test_a_finite_horizon_in_continuous_time_solves_the_differential_equation():
    rng = np.random.default_rng(0)
    A, B, N = rng.normal(size=(3, 3)), rng.normal(size=(3, 2)), 0.1 * rng.normal(size=(3, 2))
    q, r, d = rng.normal(size=3), rng.normal(size=2), rng.normal(size=3)
    Q, R, F, W = np.eye(3), np.diag([1.0, 2.0]), 2 * np.eye(3), np.diag([0.1, 0.2, 0.3])
    system = LQR(A, B, Q, R, N=N, q=q, r=r, d=d, noise=W, Q_final=F, time="continuous")
    solution = system.solve(1.5, n_steps=50)

    def backward(_, z):
        P, p = z[:9].reshape(3, 3), z[9:12]
        K, k = np.linalg.solve(R, B.T @ P + N.T), np.linalg.solve(R, B.T @ p + r)
        constant = 2 * p @ d - k @ R @ k + np.trace(P @ W)
        return np.concatenate(
            [(A.T @ P + P @ A + Q - K.T @ R @ K).ravel(), A.T @ p + P @ d + q - K.T @ R @ k, [constant]]
        )

    z = solve_ivp(backward, (0, 1.5), np.concatenate([F.ravel(), np.zeros(4)]), rtol=1e-11, atol=1e-12).y[:, -1]
    assert_allclose(solution.cost_matrix[0].ravel(), z[:9], rtol=1e-9)
    assert_allclose(solution.cost_vector[0], z[9:12], rtol=1e-9)
    assert_allclose(solution.cost_constant[0], z[12], rtol=1e-6)
    assert_allclose(solution.gain[0], np.linalg.solve(R, B.T @ z[:9].reshape(3, 3) + N.T), rtol=1e-9)
    assert_allclose(solution.control(np.zeros(3), 1.5), -np.linalg.solve(R, r), rtol=1e-12)
    assert solution.certificate.holds
    # far from its end a long horizon has the feedback of the infinite one
    plain = LQR(A, B, Q, R, N=N, time="continuous")
    assert_allclose(plain.solve(40.0).gain[0], plain.solve().gain, rtol=1e-10)
    with pytest.raises(DataError, match="expected at most"):
        plain.solve(1e9)
    with pytest.raises(DataError, match="from 0 to the horizon"):
        solution.control(np.zeros(3), 2.0)
