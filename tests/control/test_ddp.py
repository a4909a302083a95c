"""Trajectory optimisation: linear-quadratic problems, SciPy's minimiser, brute force over bounds, swing-ups."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from epicycle.control import (
    DDP,
    LQR,
    MPC,
    CartPole,
    InvertedPendulum,
    LinearDynamics,
    QuadraticCost,
    SmoothCost,
    iLQR,
)
from epicycle.control.systems._box_qp import box_qp
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

ROD = InvertedPendulum(max_speed=np.inf)
SWING = QuadraticCost(np.diag([0.1, 0.01]), [[0.01]], Q_final=np.diag([100.0, 10.0]))


@given(st.integers(0, 2**32), st.integers(1, 4))
def test_box_quadratic_programs_against_all_sets_of_bounds(seed, m):
    rng = np.random.default_rng(seed)
    L = rng.normal(size=(m, m))
    H, g = L @ L.T + 0.01 * np.eye(m), 3 * rng.normal(size=m)
    low, high = -rng.uniform(0, 1, m), rng.uniform(0, 1, m)
    best = np.inf
    for sides in product((-1, 0, 1), repeat=m):  # each entry at a bound or free
        side = np.array(sides)
        k, free = np.where(side < 0, low, high), side == 0
        if free.any():
            k[free] = np.linalg.solve(H[np.ix_(free, free)], -g[free] - H[np.ix_(free, ~free)] @ k[~free])
        if ((k >= low - 1e-12) & (k <= high + 1e-12)).all():
            best = min(best, 0.5 * k @ H @ k + g @ k)
    k, free = box_qp(H, g, low, high)
    assert ((low <= k) & (k <= high)).all()
    assert 0.5 * k @ H @ k + g @ k == pytest.approx(best, rel=1e-9, abs=1e-11)
    assert np.abs((H @ k + g)[free]).max(initial=0) <= 1e-9 * (np.abs(H).max() + np.abs(g).max())


@pytest.mark.parametrize("solver", [DDP, iLQR])
def test_linear_quadratic_problems_are_solved_in_one_round(solver):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(4, 4)) / 2, rng.normal(size=(4, 2))
    Q, R, last = np.diag([1.0, 2.0, 0.5, 0.0]), np.array([[1.0, 0.2], [0.2, 2.0]]), 5 * np.eye(4)
    exact = LQR(A, B, Q, R, Q_final=last).solve(12)
    model = LinearDynamics()
    model.A_, model.B_, model.c_, model.n_states_, model.n_controls_ = A, B, np.zeros(4), 4, 2
    cost, x = QuadraticCost(Q, R, Q_final=last), rng.normal(size=4)
    # Differences of differences are not quite zero: DDP may need a second round for a function.
    for dynamics, accuracy, rounds in ((model, 1e-12, 1), (lambda x, u: A @ x + B @ u, 1e-6, 2)):
        solution = solver(dynamics, cost).solve(x, rng.normal(size=(12, 2)))
        assert 1 <= solution.n_iter <= rounds
        assert solution.certificate.holds
        assert solution.cost == pytest.approx(float(exact.cost_to_go(x)), rel=1e-12)
        assert_allclose(solution.gain, -exact.gain, rtol=0, atol=accuracy)
        u, now = [], x
        for t in range(12):
            u.append(exact.control(now, t))
            now = A @ now + B @ u[-1]
        assert_allclose(solution.controls, u, rtol=0, atol=accuracy)


def total(x, U):
    return float(SWING.total(ROD.rollout(x, U).states, U))


@pytest.mark.parametrize("solver", [DDP, iLQR])
def test_scipys_minimiser_finds_the_same_trajectory_between_limits(solver):
    x = np.array([0.6, 0.0])
    exact = minimize(
        lambda u: total(x, u[:, None]), np.zeros(15), bounds=[(-2, 2)] * 15, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    solution = solver(ROD, SWING, tol=1e-9).solve(x, horizon=15)
    assert solution.cost <= exact.fun * (1 + 1e-9)
    assert solution.cost == pytest.approx(exact.fun, rel=1e-6)
    assert_allclose(solution.controls[:, 0], exact.x, atol=2e-3)
    assert (np.abs(solution.controls) == 2).any()  # the limits matter here
    assert (solution.gain[np.abs(solution.controls[:, 0]) == 2] == 0).all()
    function = solver(lambda x, u: ROD.step(x, u), SWING, control_low=-2.0, control_high=[2.0]).solve(x, horizon=15)
    assert_allclose(function.controls, solution.controls, atol=1e-4)


@pytest.fixture(scope="module")
def swing():
    return DDP(ROD, SWING).solve([np.pi, 0.0], horizon=60)


def test_the_pendulum_swings_up_from_rest(swing):
    run = ROD.rollout([np.pi, 0.0], swing.controls)
    assert_allclose(run.states, swing.states, atol=1e-9)
    assert np.abs(run.states[-1]).max() < 0.02
    assert np.abs(swing.controls).max() <= 2
    assert swing.certificate.holds
    assert (np.diff(swing.history.cost) <= 0).all()
    assert swing.cost == pytest.approx(total([np.pi, 0.0], swing.controls), rel=1e-12)
    # The torque is too weak to lift it at once: it has to swing to the other side first.
    assert swing.states[:, 0].max() > np.pi + 0.5 or swing.states[:, 0].min() < -np.pi - 0.5


def test_the_certificate_is_the_gradient(swing):
    """Differences of the cost by the controls that are free vanish; at limits they point outwards."""
    U, h = swing.controls, 1e-6
    for t, u in enumerate(U[:, 0]):
        up, down = U.copy(), U.copy()
        up[t], down[t] = min(u + h, 2.0), max(u - h, -2.0)
        slope = (total([np.pi, 0.0], up) - total([np.pi, 0.0], down)) / (up - down)[t, 0]
        assert slope > -1e-4 if u == -2 else slope < 1e-4 if u == 2 else abs(slope) < 1e-4, (t, u, slope)
    rough = SWING.total(ROD.rollout([np.pi, 0.0], 0.9 * U).states, 0.9 * U)
    assert rough > swing.cost


def test_second_derivatives_save_rounds(swing):
    first = iLQR(ROD, SWING, tol=1e-7).solve([np.pi, 0.0], horizon=60)
    second = DDP(ROD, SWING, tol=1e-7).solve([np.pi, 0.0], horizon=60)
    assert second.cost == pytest.approx(first.cost, rel=1e-8)
    assert second.n_iter < first.n_iter
    gradient = second.history.gradient
    assert gradient[-1] < 0.01 * gradient[-2] < 0.01 * 0.1 * gradient[-3]  # digits double


def test_the_cart_swings_its_pole_up_from_rest():
    cart = CartPole(integrator="rk4")
    cost = QuadraticCost(np.diag([0.1, 0.01, 0.1, 0.01]), [[0.001]], Q_final=np.diag([100.0, 10.0, 100.0, 10.0]))
    solution = DDP(cart, cost).solve([0.0, 0.0, np.pi, 0.0], horizon=100)
    run = cart.rollout([0.0, 0.0, np.pi, 0.0], solution.controls, stop=False)
    assert_allclose(run.states, solution.states, atol=1e-8)
    assert abs(run.states[-1, 2]) < np.radians(5)
    assert np.abs(run.states[:, 0]).max() < cart.max_position
    assert solution.certificate.holds
    assert (np.diff(solution.history.cost) <= 0).all()
    # A regulator catches it there.
    _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    assert cart.rollout(run.states[-1], policy=LQR(A, B, np.eye(4), [[0.1]]).solve(), n_steps=1000).lengths == 1000


def test_feedback_holds_a_disturbed_trajectory(swing):
    start = np.array([np.pi + 0.05, 0.02])
    closed = ROD.rollout(start, policy=swing, n_steps=60)
    opened = ROD.rollout(start, swing.controls)
    assert np.abs(closed.states[-1]).max() < 0.5 * np.abs(opened.states[-1]).max()
    with pytest.raises(DataError, match="time=60"):
        swing.control(start, 60)


def test_predictive_control_swings_a_pendulum_up():
    cost = QuadraticCost(np.diag([1.0, 0.1]), [[0.01]], Q_final=np.diag([100.0, 10.0]))
    run = MPC(ROD, cost, horizon=30, max_iter=3).run(ROD, [np.pi, 0.0], n_steps=110)
    assert np.abs(run.states[-10:]).max() < 0.05
    assert np.abs(run.controls).max() <= 2
    assert run.history.rounds[1:].max() <= 3


def test_predictive_control_holds_a_cart_that_is_not_its_model():
    model, real = CartPole(), CartPole(pole_mass=0.2, half_length=0.7, cart_friction=0.1)
    _, A, B = model.derivatives(np.zeros(4), np.zeros(1))
    after = LQR(A, B, np.eye(4), [[0.1]]).solve().cost_matrix
    controller = MPC(model, QuadraticCost(np.eye(4), [[0.1]], Q_final=after), horizon=10)
    run = real.rollout([0.0, 0.0, 0.2, 0.0], policy=controller, n_steps=150)
    assert run.lengths == 150
    assert abs(run.states[-1, 2]) < 0.03


def test_predictive_control_of_a_linear_system_is_its_regulator():
    cart = CartPole()
    _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    exact = LQR(A, B, np.eye(4), [[0.1]]).solve()
    cost = QuadraticCost(np.eye(4), [[0.1]], Q_final=exact.cost_matrix)
    model = LinearDynamics().fit(*_linear_data(A, B))
    controller, x = MPC(model, cost, horizon=8), np.array([0.3, 0.0, 0.1, 0.0])
    run = controller.run(lambda x, u: A @ x + B @ u, x, n_steps=20)
    assert_allclose(run.controls, [exact.control(x) for x in run.states[:-1]], atol=1e-8)
    assert (controller.history_.rounds <= 1).all()
    again = controller.reset().control(x[None])
    assert_allclose(again, run.controls[:1], atol=1e-10)
    with pytest.raises(DataError, match="got 2 states"):
        controller.control(np.zeros((2, 4)))
    moving = np.column_stack([0.05 * np.arange(40), np.full(40, 2.5), np.zeros((40, 2))])
    follow = MPC(model, QuadraticCost(np.diag([10.0, 0, 1, 1]), [[0.001]], target=moving), horizon=15)
    run = follow.run(lambda x, u: A @ x + B @ u, moving[0], n_steps=30)
    assert np.abs(run.states[:30, 0] - moving[:30, 0]).max() < 0.2


def _linear_data(A, B):
    rng = np.random.default_rng(0)
    U, X = rng.normal(size=(20, 5, 1)), rng.normal(size=(20, 6, len(A)))
    for t in range(5):
        X[:, t + 1] = X[:, t] @ A.T + U[:, t] @ B.T
    return X, U


def test_costs_of_ones_own():
    quadratic = QuadraticCost(np.diag([1.0, 0.5]), [[0.3]], Q_final=np.eye(2), target=[0.2, 0.0], control_target=[0.1])
    off = np.array([0.2, 0.0])
    smooth = SmoothCost(
        lambda x, u: (x[0] - 0.2) ** 2 + 0.5 * x[1] ** 2 + 0.3 * (u[0] - 0.1) ** 2, lambda x: ((x - off) ** 2).sum()
    )
    rng = np.random.default_rng(0)
    X, U = rng.normal(size=(6, 2)), rng.normal(size=(5, 1))
    assert smooth.total(X, U) == pytest.approx(float(quadratic.total(X, U)), rel=1e-12)
    ours, theirs = smooth.expand(X, U), quadratic.expand(X, U)
    for name in ("lx", "lu", "lxx", "luu", "lux", "final_x", "final_xx"):
        assert_allclose(getattr(ours, name), getattr(theirs, name), atol=1e-6)
    a, b = (DDP(ROD, c, max_iter=50).solve([0.5, 0.0], horizon=10) for c in (smooth, quadratic))
    assert a.cost == pytest.approx(b.cost, rel=1e-8)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: DDP(3, SWING).solve([0.0, 0.0], horizon=5), DataError, "dynamics: got int"),
        (lambda: DDP(ROD, 3), DataError, "cost: got int"),
        (lambda: DDP(ROD, SWING, tol=0), ParameterError, "tol"),
        (lambda: DDP(ROD, SWING, control_low=1.0, control_high=-1.0).solve([0.0, 0.0], horizon=5), DataError, "above"),
        (lambda: DDP(ROD, SWING).solve([np.nan, 0.0], horizon=5), DataError, "finite"),
        (lambda: DDP(ROD, SWING).solve([0.0, 0.0], np.zeros((5, 1)), horizon=4), DataError, "horizon"),
        (lambda: QuadraticCost(-np.eye(2), [[1.0]]), DataError, "eigenvalue -1"),
        (lambda: QuadraticCost(np.eye(2), [[1.0]], Q_final=-np.eye(2)), DataError, "Q_final"),
        (lambda: QuadraticCost([[1.0, 1.0], [0.0, 1.0]], [[1.0]]), DataError, "symmetric"),
        (lambda: MPC(ROD, SWING, horizon=5).reset(np.zeros((4, 1))), DataError, r"\(5, m\)"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_too_few_rounds_are_said_to_be():
    with pytest.warns(ConvergenceWarning, match="after 2 steps"):
        solution = DDP(ROD, SWING, max_iter=2).solve([np.pi, 0.0], horizon=60)
    assert not solution.certificate.holds
