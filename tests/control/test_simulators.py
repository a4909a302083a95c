"""Simulators: independent equations, energy, SciPy's integrator, derivatives, Gymnasium's constants, threads."""

import sys

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import solve_ivp

from epicycle.control import LQR, Bicycle, CartPole, InvertedPendulum, MountainCar, Quadrotor2D
from epicycle.exceptions import DataError, MissingDependencyError, ParameterError


def cart_pole(x, u, g=9.8, M=1.0, m=0.1, l=0.5, cart=0.02, hinge=0.003):  # noqa: E741
    """Lagrange's equations: mass matrix times accelerations = forces."""
    _, v, angle, w = x
    mass = np.array([[M + m, m * l * np.cos(angle)], [m * l * np.cos(angle), 4 / 3 * m * l**2]])
    force = [u[0] + m * l * w**2 * np.sin(angle) - cart * np.sign(v), m * g * l * np.sin(angle) - hinge * w]
    a, b = np.linalg.solve(mass, force)
    return np.array([v, a, w, b])


def pendulum(x, u):
    moment = 1.3 * 0.7**2 / 3
    return np.array([x[1], (1.3 * 10 * 0.35 * np.sin(x[0]) + u[0] - 0.2 * x[1]) / moment])


def mountain_car(x, u):
    return np.array([x[1], 0.001 * u[0] - 0.0025 * np.cos(3 * x[0])])


def quadrotor(x, u):
    turn = np.array([[np.cos(x[2]), -np.sin(x[2])], [np.sin(x[2]), np.cos(x[2])]])
    push = turn @ [0.0, u.sum() / 0.486] - [0.0, 9.81]
    return np.concatenate([x[3:], push, [0.25 * (u[0] - u[1]) / 0.00383]])


def bicycle(x, u):
    slip = np.arctan(1.6 / 2.8 * np.tan(u[1]))
    return np.array([x[3] * np.cos(x[2] + slip), x[3] * np.sin(x[2] + slip), x[3] / 1.6 * np.sin(slip), u[0]])


#: A simulator, its equations once more, and sizes of states and controls to try.
SYSTEMS = [
    pytest.param(CartPole(cart_friction=0.02, pole_friction=0.003), cart_pole, 1.0, id="CartPole"),
    pytest.param(
        InvertedPendulum(mass=1.3, length=0.7, damping=0.2, max_speed=np.inf), pendulum, 1.0, id="InvertedPendulum"
    ),
    pytest.param(MountainCar(), mountain_car, 0.02, id="MountainCar"),
    pytest.param(Quadrotor2D(), quadrotor, 1.0, id="Quadrotor2D"),
    pytest.param(Bicycle(), bicycle, 1.0, id="Bicycle"),
]


def points(simulator, scale, rows=20):
    rng = np.random.default_rng(3)
    X = scale * rng.normal(size=(rows, simulator.n_states))
    return X, rng.uniform(simulator.control_low, simulator.control_high, size=(rows, simulator.n_controls))


@pytest.mark.parametrize(("simulator", "formula", "scale"), SYSTEMS)
def test_equations_of_motion(simulator, formula, scale):
    X, U = points(simulator, scale)
    expected = np.array([formula(x, u) for x, u in zip(X, U, strict=True)])
    assert_allclose(simulator.dynamics(X, U), expected, rtol=1e-12, atol=1e-13)
    assert_array_equal(simulator.dynamics(X[0], U[0]), simulator.dynamics(X, U)[0])


@pytest.mark.parametrize(("simulator", "formula", "scale"), SYSTEMS)
def test_runge_kutta_follows_the_differential_equation(simulator, formula, scale):
    fine = type(simulator)(**{**parameters(simulator), "time_step": 1e-3, "integrator": "rk4"})
    X, U = points(simulator, scale, rows=1)
    exact = solve_ivp(lambda _, x: formula(x, U[0]), (0, 0.2), X[0], rtol=1e-11, atol=1e-13).y[:, -1]
    ours = fine.rollout(X[0], np.tile(U[0], (200, 1)), stop=False).states[-1]
    assert_allclose(ours, exact, rtol=0, atol=1e-8)


def parameters(simulator):
    return {name: getattr(simulator, name) for name in simulator._domains}


def test_energy_is_kept():
    pole = InvertedPendulum(time_step=0.01, integrator="rk4", max_speed=np.inf)
    angle, speed = pole.rollout([2.0, 0.5], np.zeros((2000, 1))).states.T
    assert np.ptp(speed**2 / 6 + 5 * np.cos(angle)) < 1e-6
    cart = CartPole(time_step=0.01, integrator="rk4")
    _, v, angle, w = cart.rollout([0, 0.3, 2.0, 0.5], np.zeros((2000, 1)), stop=False).states.T
    kinetic = 0.55 * v**2 + 0.05 * v * w * np.cos(angle) + 0.1 * 0.25 * w**2 * 2 / 3
    assert np.ptp(kinetic + 0.1 * 9.8 * 0.5 * np.cos(angle)) < 1e-6
    # Euler's step gains energy on every round, the semi-implicit one does not.
    gains = {}
    for integrator in ("euler", "semi-implicit"):
        angle, speed = (
            InvertedPendulum(time_step=0.01, integrator=integrator, max_speed=np.inf)
            .rollout([2.0, 0.0], np.zeros((2000, 1)))
            .states.T
        )
        energy = speed**2 / 6 + 5 * np.cos(angle)
        gains[integrator] = abs(energy[-200:].mean() - energy[:200].mean())
    assert gains["semi-implicit"] < 0.05 < 1 < gains["euler"]


@pytest.mark.parametrize("integrator", ["euler", "semi-implicit", "rk4"])
@pytest.mark.parametrize(("simulator", "formula", "scale"), SYSTEMS)
def test_derivatives_are_those_of_differences(simulator, formula, scale, integrator):
    wide = {"control_low": simulator.control_low - 1, "control_high": simulator.control_high + 1}
    copy = type(simulator)(**{**parameters(simulator), "integrator": integrator})
    for name, limit in wide.items():  # differences at a limit would be cut
        setattr(copy, name, limit)
    X, U = points(copy, 0.5 * scale, rows=3)
    value, A, B, H = copy.derivatives(X, U, second=True)
    assert_allclose(value, copy.step(X, U), rtol=1e-13, atol=1e-14)
    n, h = copy.n_states, 1e-5
    for j in range(n + copy.n_controls):
        move = np.zeros(n + copy.n_controls)
        move[j] = h
        up, down = ((X + s * move[:n], U + s * move[n:]) for s in (1, -1))
        first = (copy.step(*up) - copy.step(*down)) / (2 * h)
        assert_allclose(A[:, :, j] if j < n else B[:, :, j - n], first, rtol=1e-6, atol=1e-7)
        above, below = (np.concatenate(copy.derivatives(*z)[1:], axis=2) for z in (up, down))
        assert_allclose(H[:, :, :, j], (above - below) / (2 * h), rtol=1e-5, atol=1e-6)


def test_steps_are_gymnasiums():
    """Gymnasium's updates, written out, with its constants."""
    rng = np.random.default_rng(0)
    cart, x = CartPole(), np.array([0.01, 0.02, 0.03, -0.04])
    rod, z = InvertedPendulum(), np.array([2.0, 0.5])
    car, y = MountainCar(), np.array([-0.5, 0.0])
    for _ in range(50):
        side, torque, push = rng.integers(2), rng.uniform(-2, 2), rng.integers(3)
        force = 10.0 if side else -10.0
        part = (force + 0.05 * x[3] ** 2 * np.sin(x[2])) / 1.1
        turn = (9.8 * np.sin(x[2]) - np.cos(x[2]) * part) / (0.5 * (4 / 3 - 0.1 * np.cos(x[2]) ** 2 / 1.1))
        after = x + 0.02 * np.array([x[1], part - 0.05 * turn * np.cos(x[2]) / 1.1, x[3], turn])
        assert_allclose(cart.step(x, cart.actions[side]), after, rtol=1e-13, atol=1e-15)
        x = after
        speed = np.clip(z[1] + (15 * np.sin(z[0]) + 3 * torque) * 0.05, -8, 8)
        after = np.array([z[0] + speed * 0.05, speed])
        assert_allclose(rod.step(z, [torque]), after, rtol=1e-13)
        z = after
        speed = np.clip(y[1] + (push - 1) * 0.001 - np.cos(3 * y[0]) * 0.0025, -0.07, 0.07)
        place = np.clip(y[0] + speed, -1.2, 0.6)
        after = np.array([place, 0.0 if place == -1.2 and speed < 0 else speed])
        assert_allclose(car.step(y, car.actions[push]), after, rtol=1e-12, atol=1e-15)
        y = after
    assert_array_equal(car.step([-1.19, -0.07], [-1.0]), [-1.2, 0.0])  # the wall
    assert cart.max_angle == pytest.approx(np.radians(12))


@pytest.mark.filterwarnings("ignore:.*WARN")  # states without bounds, thrusts that are not symmetric
@pytest.mark.parametrize("simulator", [p.values[0] for p in SYSTEMS], ids=lambda s: type(s).__name__)
def test_environments_pass_gymnasiums_checks(simulator):
    pytest.importorskip("gymnasium")
    from gymnasium.utils.env_checker import check_env

    check_env(simulator.to_gymnasium(max_steps=20), skip_render_check=True)


@pytest.mark.parametrize(("simulator", "name"), [(CartPole(), "CartPole-v1"), (MountainCar(), "MountainCar-v0")])
def test_environments_are_gymnasiums(simulator, name):
    gymnasium = pytest.importorskip("gymnasium")
    other, environment = gymnasium.make(name).unwrapped, simulator.to_gymnasium()
    other.reset(seed=1)
    environment.reset(options={"state": np.asarray(other.state)})
    for t in range(60):
        ours, theirs = environment.step(t % 2), other.step(t % 2)
        assert_allclose(ours[0], theirs[0], rtol=1e-5)  # it returns 32 bits
        assert ours[1:3] == theirs[1:3]
        if ours[2]:
            break


@pytest.mark.parametrize(("simulator", "formula", "scale"), SYSTEMS)
def test_same_bits_for_any_number_of_threads_and_rows(simulator, formula, scale):
    X, _ = points(simulator, 0.2 * scale, rows=70)
    rng = np.random.default_rng(1)
    U = rng.uniform(simulator.control_low, simulator.control_high, size=(70, 30, simulator.n_controls))
    one, three = (simulator.rollout(X, U, n_jobs=j) for j in (1, 3))
    assert_array_equal(one.states, three.states)
    alone = simulator.rollout(X[69], U[69])
    assert_array_equal(alone.states, one.states[69])
    assert_array_equal(alone.rewards, one.rewards[69])
    moving = np.arange(30) < one.lengths[:, None]
    rewards = np.where(moving, simulator._rewards(one.states[:, :-1], one.controls, one.states[:, 1:]), 0.0)
    assert_allclose(one.rewards, rewards, rtol=1e-12)
    x = X[5]
    for t in range(int(one.lengths[5])):
        x = simulator.step(x, U[5, t])
        assert_array_equal(x, one.states[5, t + 1])


def test_policies_in_native_code_and_as_functions_agree():
    cart = CartPole()
    _, A, B = cart.derivatives(np.zeros(4), np.zeros(1))
    policy = LQR(A, B, np.eye(4), [[1.0]], q=[0.1, 0, 0, 0], discount=0.99).solve()
    X = np.vstack([cart.reset(40, random_state=0), [[2.39, 3.0, 0.0, 0.0], [0.0, 0.0, 0.3, 0.0]]])
    linear = cart.rollout(X, policy=policy, n_steps=60)
    function = cart.rollout(X, policy=policy.control, n_steps=60)
    assert_allclose(linear.states, function.states, rtol=0, atol=1e-12)
    assert_array_equal(linear.lengths, function.lengths)
    assert_array_equal(linear.lengths[:40], 60)
    assert linear.lengths[40] == 1  # the cart leaves its track after one step
    assert linear.lengths[41] == 0  # the pole has fallen already
    assert_array_equal(linear.total_reward, linear.lengths)
    assert_array_equal(linear.states[40, 1:], np.tile(linear.states[40, 1], (60, 1)))
    again = cart.rollout(X, linear.controls)
    assert_array_equal(again.states, linear.states)
    before, u, after = linear.transitions()
    assert len(before) == linear.lengths.sum()
    assert_allclose(cart.step(before, u), after, rtol=1e-15)
    finite = LQR(A, B, np.eye(4), [[1.0]]).solve(30)
    path = cart.rollout(X[0], policy=finite, n_steps=30)
    assert_allclose(path.controls[29], finite.control(path.states[29], time=29), atol=1e-12)


def test_sines_of_far_angles():
    rod = InvertedPendulum(max_speed=np.inf)
    angle = np.concatenate([np.linspace(-20, 20, 4001), np.random.default_rng(0).uniform(-1.5e6, 1.5e6, 4000)])
    torque = rod.dynamics(np.column_stack([angle, np.zeros_like(angle)]), [0.0])[:, 1]
    assert_allclose(torque / 15, np.sin(angle), rtol=0, atol=3e-16)
    with pytest.raises(DataError, match="ran away"):
        rod.step([2e6, 0.0], [0.0])


def test_starts_and_episodes():
    cart = CartPole()
    assert_array_equal(cart.reset(5, random_state=3), cart.reset(5, random_state=3))
    assert np.abs(cart.reset(500, random_state=0)).max() <= 0.05
    environment = cart.environment(max_steps=30)
    first, _ = environment.reset(seed=4)
    assert_array_equal(environment.reset(seed=4)[0], first)
    for t in range(30):
        _, reward, terminated, truncated, info = environment.step(t % 2)
        assert (reward, terminated, truncated) == (1.0, False, t == 29)
    assert info["control"] == [10.0]
    environment.reset(options={"state": [2.39, 3.0, 0.0, 0.0]})
    assert environment.step(1)[2]  # terminated
    with pytest.raises(DataError, match="integer from 0 to 1"):
        environment.step(2)
    with pytest.raises(DataError, match="call reset first"):
        CartPole().environment().step(0)
    rod = InvertedPendulum()
    assert rod.reward([2 * np.pi + 0.1, 1.0], [2.0], [0.0, 0.0]) == pytest.approx(-(0.01 + 0.1 + 0.004))


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    with pytest.raises(MissingDependencyError, match="pip install gymnasium"):
        CartPole().to_gymnasium()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: CartPole(pole_mass=0), ParameterError, "pole_mass"),
        (lambda: CartPole(integrator="heun"), ParameterError, "semi-implicit"),
        (lambda: CartPole().step([0.0, 0.0], [0.0]), DataError, r"x: got shape \(2,\)"),
        (lambda: CartPole().step([0.0, 0.0, np.nan, 0.0], [0.0]), DataError, "finite"),
        (lambda: CartPole().rollout(np.zeros(4)), DataError, "controls or a policy"),
        (lambda: CartPole().rollout(np.zeros(4), np.zeros((5, 2))), DataError, r"controls: got shape \(5, 2\)"),
        (lambda: CartPole().rollout(np.zeros(4), policy=3), DataError, "policy: got int"),
        (lambda: CartPole().step(np.zeros((3, 4)), np.zeros((2, 1))), DataError, "3 rows and u has 2"),
        (lambda: Bicycle(max_steering=1.6), ParameterError, "max_steering"),
    ],
)
def test_errors(call, error, words):
    with pytest.raises(error, match=words):
        call()
