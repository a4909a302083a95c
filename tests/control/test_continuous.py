"""Continuous states: grids that interpolate exactly, fitted values that equal tables, systems that are solved."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle.control import (
    MDP,
    CartPole,
    FittedQIteration,
    FittedValueIteration,
    InvertedPendulum,
    MountainCar,
    discretize,
    modified_policy_iteration,
    policy_iteration,
)
from epicycle.control.continuous._grid import Grid
from epicycle.exceptions import DataError, ModelFormatError, NotFittedError, ParameterError, ParameterTypeError

CAR = MountainCar()
HILL = ([-1.2, -0.07], [0.5, 0.07])


def test_interpolation_is_exact_for_multilinear_functions():
    grid = Grid(np.array([-1.0, 0.0, 2.0]), np.array([1.0, 3.0, 5.0]), (4, 3, 2), (False, False, False))
    f = lambda X: 1 + 2 * X[:, 0] - X[:, 1] + X[:, 0] * X[:, 1] * X[:, 2] + 3 * X[:, 2]  # noqa: E731
    X = np.random.default_rng(0).uniform(grid.low, grid.high, size=(50, 3))
    W = grid.weights(X)
    assert_allclose(W @ f(grid.points()), f(X), rtol=1e-12)
    assert_allclose(W.sum(axis=1), 1)
    outside = np.array([[9.0, -9.0, 3.0]])
    assert_allclose(grid.weights(outside) @ f(grid.points()), f(np.clip(outside, grid.low, grid.high)))
    circle = Grid(np.array([-np.pi]), np.array([np.pi]), (8,), (True,))
    first, second = circle.weights(np.array([[np.pi - 0.1], [-np.pi - 0.1]])).toarray()
    assert_allclose(first, second, atol=1e-12)
    assert first[[0, 7]].sum() == pytest.approx(1)  # the last point is next to the first
    assert_array_equal(grid.finer().points()[grid.coarse_places()], grid.points())


def test_a_system_whose_steps_end_on_grid_points_is_solved_exactly():
    # Walk on 0, 1, ..., 6 with steps of -1, 0 and 1, cost (x - 4)^2: the closed form is a walk to 4.
    walk = discretize(
        lambda X, U: np.clip(X + U, 0, 6),
        [0.0],
        [6.0],
        [7],
        actions=[-1, 0, 1],
        reward=lambda X, U, Z: -((X[:, 0] - 4) ** 2),
        discount=0.9,
    ).solve(check=True)
    squares = np.array([sum(0.9**t * (4 - min(x + t, 4)) ** 2 for t in range(20)) for x in range(5)])
    assert_allclose(walk.value(np.arange(5.0)[:, None]), -squares, atol=1e-6)
    assert_array_equal(walk.control(np.array([[0.0], [4.0], [6.0]])).ravel(), [1, 0, -1])
    assert walk.error < 0.05  # half steps are possible on the finer grid, but nothing gains by them
    assert walk.certificate.holds


def test_the_error_of_a_grid_is_its_distance_to_the_finer_one():
    coarse, fine = (discretize(CAR, *HILL, (k, k), discount=1.0) for k in (12, 23))
    plan = coarse.solve(check=True, tol=1e-9)
    other = modified_policy_iteration(fine.mdp, tol=1e-9).values
    apart = np.abs(other.reshape(23, 23)[::2, ::2].ravel() - plan.solution.values) / np.abs(other).max()
    assert plan.error == pytest.approx(apart.max(), rel=1e-6)
    assert plan.mean_error == pytest.approx(apart.mean(), rel=1e-6)
    assert fine.solve(check=True).mean_error < plan.mean_error
    assert coarse.solve().error is None


def test_a_car_leaves_the_valley_by_a_grid_with_total_rewards():
    plan = discretize(CAR, *HILL, (39, 39), discount=1.0).solve()  # more states than a dense factorisation takes
    assert plan.certificate.holds
    lengths = CAR.rollout([[-0.5, 0.0], [-0.6, 0.0], [-0.4, 0.0]], policy=plan, n_steps=200).lengths
    assert (lengths < 180).all()


def test_a_pendulum_is_swung_up_and_held_by_a_grid():
    rod = InvertedPendulum()
    grid = discretize(rod, [-np.pi, -8], [np.pi, 8], (60, 61), actions=[[-2], [0], [2]], discount=0.97, periodic=[0])
    plan = grid.solve()
    angle, _ = rod.rollout([np.pi, 0.0], policy=plan, n_steps=200).states[-40:].T
    assert (np.abs((angle + np.pi) % (2 * np.pi) - np.pi) < 0.1).all()
    import matplotlib.pyplot as plt

    ax = plan.plot()
    assert_allclose(ax.collections[0].get_array().reshape(61, 60).T.ravel(), plan.solution.values)
    plt.close(ax.figure)


def chain():
    """Ten places in a row, costs of a step differ; the last one ends. The table of all steps, and its exact values."""
    cost = np.array([1.0, 2, 1, 5, 1, 1, 3, 1, 2])
    move = lambda s, a: min(max(s + a, 0), 9)  # noqa: E731
    mdp = MDP.from_function(
        lambda s, a: [(1.0, move(s, a), -cost[s] * (2.5 if a == 2 else 1.0))],
        range(10),
        lambda s: [] if s == 9 else [-1, 1, 2],
        0.9,
    )
    return mdp, cost, move


def test_fitted_iterations_with_a_table_are_value_iteration():
    mdp, cost, move = chain()
    exact = policy_iteration(mdp)
    tree = ep.DecisionTreeRegressor(min_samples_leaf=1)
    S, A = (part.ravel() for part in np.meshgrid(np.arange(9), [-1, 1, 2], indexing="ij"))
    after = np.array([move(s, a) for s, a in zip(S, A, strict=True)])
    rewards = -cost[S] * np.where(A == 2, 2.5, 1.0)
    q = FittedQIteration(tree, discount=0.9, max_iter=300, tol=1e-12)
    q.fit(S[:, None], A, rewards, after[:, None], after == 9)
    assert_allclose(q.q_values(np.arange(9.0)[:, None]), exact.q_values()[:9], rtol=1e-9)
    assert_array_equal(q.control(np.arange(9.0)[:, None]), exact.policy[:9])
    assert q.certificate_.value < 1e-9
    v = FittedValueIteration(
        lambda X, U: np.clip(X + U, 0, 9),
        actions=[-1, 1, 2],
        reward=lambda X, U, Z: -cost[X[:, 0].astype(int)] * np.where(U[:, 0] == 2, 2.5, 1.0),
        ended=lambda X: X[:, 0] == 9,
        regressor=tree,
        discount=0.9,
        max_iter=300,
        tol=1e-12,
    ).fit(np.arange(10.0)[:, None])
    assert_allclose(v.value(np.arange(10.0)[:, None]), exact.values, rtol=1e-9)
    assert_array_equal(v.control(np.arange(9.0)[:, None]).ravel(), exact.policy[:9])
    assert v.n_iter_ == len(v.history_["change"]) < 300


def test_draws_of_a_noisy_system_are_averaged():
    rng = np.random.default_rng(0)
    model = FittedValueIteration(
        lambda X, U: X + rng.choice([-1.0, 1.0], size=X.shape),
        actions=[0],
        reward=lambda X, U, Z: Z[:, 0] ** 2,
        regressor=ep.DecisionTreeRegressor(),
        max_iter=1,
        n_draws=400,
    ).fit(np.arange(5.0)[:, None])
    assert_allclose(model.value(np.arange(5.0)[:, None]), np.arange(5.0) ** 2 + 1, atol=0.8)


def test_a_car_leaves_the_valley_by_fitted_values_and_the_file_repeats_them(tmp_path):
    trees = ep.ExtraTreesRegressor(n_estimators=10, min_samples_leaf=2, random_state=0)
    car = MountainCar(goal=0.49)
    model = FittedValueIteration(car, regressor=trees, max_iter=100, random_state=0).fit(
        low=HILL[0], high=HILL[1], n_samples=1200
    )
    starts = np.array([[-0.5, 0.0], [-0.45, 0.0]])
    assert (car.rollout(starts, policy=model, n_steps=200).lengths < 200).all()
    assert "nothing is proven" in model.certificate_.meaning
    model.save(tmp_path / "v.epi")
    read = ep.load(tmp_path / "v.epi")
    assert_array_equal(read.q_values(starts), model.q_values(starts))  # also of the same system
    assert_array_equal(read.value(starts), model.value(starts))
    assert (read.certificate_, read.n_iter_) == (model.certificate_, model.n_iter_)
    function = FittedValueIteration(lambda X, U: X, actions=[0], reward=lambda X, U, Z: X[:, 0], max_iter=1)
    with pytest.raises(ModelFormatError, match="system is a function"):
        function.fit(np.arange(5.0)[:, None]).save(tmp_path / "f.epi")


@pytest.mark.slow
def test_a_car_leaves_the_valley_from_random_steps():
    # As Ernst et al. (2005): steps from all over the box, ensembles of trees, no model.
    rng = np.random.default_rng(0)
    X = rng.uniform(*HILL, size=(6000, 2))
    U = rng.choice(CAR.actions[:, 0], size=(6000, 1))
    Z = CAR.step(X, U)
    trees = ep.ExtraTreesRegressor(n_estimators=25, min_samples_leaf=5, random_state=0)
    model = FittedQIteration(trees, max_iter=80, random_state=0).fit(X, U, CAR.reward(X, U, Z), Z, CAR.ended(Z))
    starts = np.column_stack([np.linspace(-0.6, -0.4, 7), np.zeros(7)])
    assert (CAR.rollout(starts, policy=model, n_steps=400).lengths < 300).all()
    at_random = CAR.rollout(starts, policy=lambda X: rng.choice(CAR.actions[:, 0], size=(len(X), 1)), n_steps=400)
    assert (at_random.lengths == 400).all()


def pole_batch(pole, rng):
    X, U, Z = [], [], []
    x = pole.reset(100, random_state=1)
    for _ in range(60):
        u = rng.choice(pole.actions[:, 0], size=(len(x), 1))
        z = pole.step(x, u)
        X, U, Z = [*X, x], [*U, u], [*Z, z]
        x = z[~pole.ended(z)]
    X, U, Z = (np.concatenate(part) for part in (X, U, Z))
    return X, U, 1.0 - pole.ended(Z), Z, pole.ended(Z)


def test_a_pole_is_balanced_from_random_steps_and_the_file_repeats_it(tmp_path):
    pole = CartPole()
    batch = pole_batch(pole, np.random.default_rng(0))
    trees = ep.ExtraTreesRegressor(n_estimators=10, min_samples_leaf=3, random_state=0)
    model = FittedQIteration(trees, discount=0.98, max_iter=25, random_state=0).fit(*batch)
    starts = pole.reset(5, random_state=2)
    lengths = pole.rollout(starts, policy=model, n_steps=300).lengths
    at_random = len(batch[0]) / 100
    assert np.mean(lengths) > 4 * at_random
    model.save(tmp_path / "q.epi")
    read = ep.load(tmp_path / "q.epi")
    assert_array_equal(read.q_values(starts), model.q_values(starts))
    assert (read.certificate_, read.n_iter_) == (model.certificate_, model.n_iter_)
    first, again = (FittedQIteration(max_iter=2, random_state=0).fit(*batch).q_values(starts) for _ in range(2))
    assert_array_equal(first, again)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: discretize(CAR, [0, 0], [1], (3, 3)), DataError, "low="),
        (lambda: discretize(CAR, *HILL, (1, 5)), DataError, "shape="),
        (lambda: discretize(CAR, *HILL, (5, 5), periodic=[2]), DataError, "periodic="),
        (lambda: discretize(CAR, *HILL, (5000, 5000)), DataError, "25,000,000 points"),
        (lambda: discretize(InvertedPendulum(), [-1, -1], [1, 1], (3, 3)), DataError, "actions=None"),
        (lambda: discretize(lambda X, U: X, [0], [1], [3], actions=[0]), ParameterTypeError, "reward=None"),
        (lambda: discretize("car", *HILL, (3, 3)), ParameterTypeError, "system='car'"),
        (lambda: discretize(CAR, *HILL, (5, 5), discount=2), ParameterError, "discount"),
        (
            lambda: discretize(lambda X, U: X * np.nan, [0], [1], [3], actions=[0], reward=lambda X, U, Z: X[:, 0]),
            DataError,
            "system: step gave",
        ),
        (lambda: FittedValueIteration(CAR).fit(), DataError, "low and high"),
        (lambda: FittedValueIteration(CAR).fit([[0.9, 0.0]]), DataError, "every state is an end"),
        (lambda: FittedValueIteration(CAR, regressor="tree").fit([[0.0, 0.0]]), ParameterTypeError, "regressor='tree'"),
        (lambda: FittedValueIteration(CAR).value([0, 0]), NotFittedError, "call fit"),
        (lambda: FittedQIteration().q_values([0, 0]), NotFittedError, "call fit"),
        (lambda: FittedQIteration(max_iter=0), ParameterError, "max_iter"),
        (lambda: FittedQIteration().fit([[0.0]], [0], [np.nan], [[0.0]]), DataError, "rewards"),
        (lambda: FittedQIteration().fit([[0.0]], [0], [0], [[0.0, 1]]), DataError, "X_next"),
        (
            lambda: FittedQIteration().fit(np.zeros((9, 1)), np.arange(9.0), np.zeros(9), np.zeros((9, 1))),
            DataError,
            "9 different ones in 9 rows",
        ),
    ],
)
def test_what_is_wrong_is_named(make, error, message):
    with pytest.raises(error, match=message):
        make()
