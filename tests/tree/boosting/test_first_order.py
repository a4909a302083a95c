"""Boosting of first order: trees by least squares on the gradient, leaves with the best constant for the loss."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from sklearn.ensemble import GradientBoostingClassifier as PeerClassifier, GradientBoostingRegressor as PeerRegressor
from sklearn.metrics import log_loss

from epicycle import GradientBoostingClassifier, GradientBoostingRegressor
from epicycle.exceptions import ParameterError

LOSSES = {
    "huber": lambda y, s: np.where(abs(y - s) <= 1.0, (y - s) ** 2 / 2, abs(y - s) - 0.5),
    "poisson": lambda y, s: np.exp(s) - y * s,
    "gamma": lambda y, s: y * np.exp(-s) + s,
    "tweedie": lambda y, s: np.exp(0.5 * s) / 0.5 + y * np.exp(-0.5 * s) / 0.5,
    "absolute_error": lambda y, s: abs(y - s),
    "squared_error": lambda y, s: (y - s) ** 2 / 2,
}


def data(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, rng.gamma(2.0, np.exp(X[:, 0]) / 2, n), rng.integers(1, 4, n).astype(float)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("l2", [0.0, 3.0])
def test_leaves_have_the_best_constant(loss, l2):
    if loss == "absolute_error" and l2:
        return  # its leaves are quantiles, which take no ridge
    X, y, weight = data()
    model = GradientBoostingRegressor(
        loss=loss, order=1, n_estimators=1, learning_rate=1.0, max_leaf_nodes=6, l2_regularization=l2, delta=1.0
    ).fit(X, y, sample_weight=weight)
    first = model._start_[0]
    score = model._scores(X)[:, 0] - first
    for value in np.unique(score):
        rows = score == value

        def total(v, rows=rows):
            return weight[rows] @ LOSSES[loss](y[rows], first + v) + l2 / 2 * v * v

        best = minimize_scalar(total, bracket=(-0.1, 0.1), tol=1e-12)
        assert total(value) <= best.fun + 1e-7 * abs(best.fun)


@pytest.mark.parametrize("loss", [*LOSSES, "quantile"])
def test_the_loss_falls_in_every_round(loss):
    X, y, _ = data(1)
    model = GradientBoostingRegressor(loss=loss, order=1, n_estimators=40).fit(X, y)
    assert (np.diff(model.history_.objective) < 0).all()


def test_the_orders_agree_for_squared_error():
    X, y, _ = data(2)
    first, second = (GradientBoostingRegressor(order=order, n_estimators=20).fit(X, y) for order in (1, 2))
    assert_array_equal(first.predict(X), second.predict(X))


def test_quality_of_classes_is_that_of_scikit_learn():
    rng = np.random.default_rng(9)
    X = rng.uniform(size=(3000, 6))
    score = (
        10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 2 * rng.normal(size=3000)
    )
    train, held = slice(0, 2000), slice(2000, 3000)
    for y in (np.digitize(score, [12.0]), np.digitize(score, [9.0, 14.0])):
        options = {"n_estimators": 40, "max_leaf_nodes": 8, "min_samples_leaf": 20}
        mine = GradientBoostingClassifier(order=1, **options).fit(X[train], y[train])
        theirs = PeerClassifier(max_depth=None, random_state=0, **options).fit(X[train], y[train])
        loss = [log_loss(y[held], model.predict_proba(X[held])) for model in (mine, theirs)]
        assert loss[0] <= 1.02 * loss[1]


def test_quality_of_numbers_is_that_of_scikit_learn():
    X, y, _ = data(4, 3000)
    train, held = slice(0, 2000), slice(2000, 3000)
    options = {"n_estimators": 60, "max_leaf_nodes": 8, "min_samples_leaf": 10}
    mine = GradientBoostingRegressor(loss="absolute_error", order=1, **options).fit(X[train], y[train])
    peer = PeerRegressor(loss="absolute_error", max_depth=None, **options)
    theirs = peer.fit(X[train], y[train])
    error = [abs(model.predict(X[held]) - y[held]).mean() for model in (mine, theirs)]
    assert error[0] <= 1.02 * error[1]


def test_weights_are_repetitions():
    X, y, weight = data(5)
    repeated = np.repeat(np.arange(len(y)), weight.astype(int))
    options = {"order": 1, "loss": "poisson", "n_estimators": 5, "min_samples_leaf": 1, "max_leaf_nodes": 5}
    weighted = GradientBoostingRegressor(**options).fit(X, y, sample_weight=weight)
    plain = GradientBoostingRegressor(**options).fit(X[repeated], y[repeated])
    assert_allclose(weighted.predict(X), plain.predict(X), rtol=1e-5)


def test_a_loss_of_the_user_without_curvature():
    class Absolute:
        def value(self, y, s):
            return abs(y - s)

        def gradient(self, y, s):
            return np.sign(s - y)

        def curvature(self, y, s):
            return np.zeros_like(y)

    X, y, _ = data(6)
    model = GradientBoostingRegressor(loss=Absolute(), order=1, n_estimators=30).fit(X, y)
    assert abs(model.predict(X) - y).mean() < 0.8 * abs(np.median(y) - y).mean()


def test_a_leaf_of_one_class_takes_a_finite_step():
    X = np.arange(200.0)[:, None]
    model = GradientBoostingClassifier(order=1, n_estimators=50).fit(X, X[:, 0] > 99)
    assert np.isfinite(model.decision_function(X)).all()
    assert model.score(X, X[:, 0] > 99) == 1.0


def test_monotone_constraints_are_refused():
    X, y, _ = data()
    with pytest.raises(ParameterError, match="monotonic_cst"):
        GradientBoostingRegressor(order=1, monotonic_cst=[1, 0, 0]).fit(X, y)
