"""Losses: derivatives against differences, starts and leaves against a search, a user's against the built-in."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar

from epicycle import GradientBoostingClassifier, GradientBoostingRegressor
from epicycle.data._quantiles import digit_counts, quantiles
from epicycle.exceptions import DataError, ParameterError
from epicycle.optim import _losses as losses
from epicycle.tree.boosting._losses import (
    NativeLoss,
    classification_loss,
    exact_sum,
    exact_total,
    power_above,
    weighted_quantile,
)

LOSSES = {
    "squared": NativeLoss(losses.Squared()),
    "absolute": NativeLoss(losses.Absolute()),
    "huber": NativeLoss(losses.Huber(0.7)),
    "quantile": NativeLoss(losses.Quantile(0.3)),
    "poisson": NativeLoss(losses.Poisson()),
    "gamma": NativeLoss(losses.Gamma()),
    "tweedie": NativeLoss(losses.Tweedie(1.4)),
    "logistic": NativeLoss(losses.Logistic()),
}


def targets(name, rng, n):
    if name == "logistic":
        return rng.integers(0, 2, n).astype(float)
    return rng.gamma(1.5, size=n) + 0.01 if name in ("poisson", "gamma", "tweedie") else rng.normal(size=n)


def evaluate(loss, y, weight, score):
    gh = np.empty((*score.shape, 2), np.float32)
    return loss.evaluate(y, weight, score, gh, 1), gh


def value(loss, y, score):
    """The loss of each row alone."""
    columns = score.T
    return np.array([evaluate(loss, y[i : i + 1], None, columns[i][:, None].copy())[0].loss for i in range(len(y))])


@pytest.mark.parametrize("name", LOSSES)
def test_derivatives_are_those_of_the_value(name):
    rng = np.random.default_rng(0)
    loss, y, s, e = LOSSES[name], targets(name, rng, 200), 2 * rng.normal(size=(1, 200)), 1e-4
    up, at, down = value(loss, y, s + e), value(loss, y, s), value(loss, y, s - e)
    _, gh = evaluate(loss, y, None, s)
    kink = np.abs(y - s[0]) < 2 * e
    assert_allclose(gh[0, ~kink, 0], ((up - down) / (2 * e))[~kink], rtol=2e-4, atol=2e-6)
    if name in ("absolute", "quantile", "huber"):
        assert (gh[0, :, 1] == 1).all()  # no curvature, or a bound on it
    else:
        assert_allclose(gh[0, :, 1], (up - 2 * at + down) / e**2, rtol=2e-3, atol=2e-5)


def test_softmax_derivatives_are_those_of_the_value():
    rng = np.random.default_rng(1)
    loss, y, s, e = classification_loss(4), rng.integers(0, 4, 50).astype(float), rng.normal(size=(4, 50)), 1e-4
    _, gh = evaluate(loss, y, None, s)
    logsum = np.log(np.exp(s).sum(axis=0))
    assert_allclose(value(loss, y, s), logsum - s[y.astype(int), np.arange(50)], rtol=1e-12)
    for k in range(4):
        shift = e * (np.arange(4) == k)[:, None]
        up, at, down = (value(loss, y, s + sign * shift) for sign in (1, 0, -1))
        assert_allclose(gh[k, :, 0], (up - down) / (2 * e), rtol=1e-3, atol=1e-6)
        assert_allclose(gh[k, :, 1], 4 / 3 * (up - 2 * at + down) / e**2, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_weights_repeat_rows(name):
    rng = np.random.default_rng(2)
    loss, n = LOSSES[name], 5000
    y, s, w = targets(name, rng, n), rng.normal(size=(1, n)), rng.integers(0, 4, n)
    weighted, _ = evaluate(loss, y, w.astype(float), s)
    repeated, _ = evaluate(loss, np.repeat(y, w), None, np.repeat(s, w, axis=1))
    assert weighted.loss == pytest.approx(repeated.loss, rel=1e-12)
    assert_allclose(weighted.curvature, repeated.curvature, rtol=1e-6)
    assert loss.start(y, w.astype(float)) == pytest.approx(loss.start(np.repeat(y, w), None), rel=1e-10)


@pytest.mark.parametrize("name", LOSSES)
def test_the_start_is_the_best_constant(name):
    rng = np.random.default_rng(3)
    loss, y, w = LOSSES[name], targets(name, rng, 301), rng.uniform(0.5, 2, 301)

    def total(s):
        return evaluate(loss, y, w, np.full((1, len(y)), s))[0].loss

    best = minimize_scalar(total, bounds=(-3, 3), method="bounded", options={"xatol": 1e-10}).fun
    start = float(loss.start(y, w)[0])
    slack = 0.01 if name == "huber" else 1e-9  # the median, which is near enough to start from
    assert total(start) <= best + slack * abs(best)


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("n", [1, 2, 10, 11, 200])
def test_weighted_quantiles_minimise_the_quantile_loss(tau, n):
    rng = np.random.default_rng(n)
    x, w = rng.normal(size=n), rng.integers(1, 5, n).astype(float)

    def total(v, weight):
        r = x - v
        return np.sum(weight * np.maximum(tau * r, (tau - 1) * r))

    for weight in (None, w):
        ones = np.ones(n) if weight is None else weight
        best = min(total(v, ones) for v in x)
        assert total(weighted_quantile(x, weight, tau), ones) <= best + 1e-12
    assert weighted_quantile(x, w, tau) == pytest.approx(weighted_quantile(np.repeat(x, w.astype(int)), None, tau))


@pytest.mark.parametrize("loss", ["absolute_error", "quantile"])
def test_leaves_take_the_best_constant_of_their_residuals(loss):
    rng = np.random.default_rng(4)
    X, y = rng.integers(0, 4, size=(400, 1)).astype(float), rng.standard_t(2, size=400)
    model = GradientBoostingRegressor(loss=loss, quantile=0.8, n_estimators=1, learning_rate=1.0, max_leaf_nodes=4)
    predicted = model.fit(X, y + 3 * X[:, 0]).predict(np.arange(4.0)[:, None])
    tau = 0.5 if loss == "absolute_error" else 0.8
    for k in range(4):
        r = (y + 3 * X[:, 0])[X[:, 0] == k]
        assert np.count_nonzero(r < predicted[k] - 1e-9) <= tau * len(r) + 1e-9
        assert np.count_nonzero(r > predicted[k] + 1e-9) <= (1 - tau) * len(r) + 1e-9


class Squares:
    """The squared loss as a user writes it."""

    def value(self, y, s):
        return (y - s) ** 2 / 2

    def gradient(self, y, s):
        return s - y

    def curvature(self, y, s):
        return np.ones_like(y)


def test_a_users_loss_is_taken_at_its_word():
    rng = np.random.default_rng(5)
    X, w = rng.normal(size=(500, 3)), rng.uniform(0.5, 2, 500)
    y = X[:, 0] ** 2 + X[:, 1]
    own = GradientBoostingRegressor(loss=Squares(), n_estimators=20).fit(X, y, sample_weight=w)
    built_in = GradientBoostingRegressor(n_estimators=20).fit(X, y, sample_weight=w)
    assert_allclose(own.predict(X), built_in.predict(X), rtol=1e-6, atol=1e-6)
    assert_allclose(own.history_.objective, built_in.history_.objective, rtol=1e-6)


@pytest.mark.parametrize("wrong", [lambda y, s: y - s, lambda y, s: 2 * (s - y), lambda y, s: np.zeros_like(y)])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_a_users_gradient_is_compared_with_differences_of_the_value(wrong, scale):
    class Other(Squares):
        def gradient(self, y, s):
            return wrong(y, s)

    rng = np.random.default_rng(6)
    X, y = rng.normal(size=(100, 2)), scale * (3 + rng.normal(size=100))
    GradientBoostingRegressor(loss=Squares(), n_estimators=2).fit(X, y)
    with pytest.raises(ParameterError, match=r"loss: gradient.*has to be the derivative of value"):
        GradientBoostingRegressor(loss=Other(), n_estimators=2).fit(X, y)


def test_users_losses_with_kinks_and_in_single_precision_are_accepted():
    class Pinball:
        def value(self, y, s):
            return np.where(y > s, 0.9 * (y - s), 0.1 * (s - y)).astype(np.float32)

        def gradient(self, y, s):
            return np.where(y > s, -0.9, 0.1).astype(np.float32)

        def curvature(self, y, s):
            return np.ones_like(y)

    rng = np.random.default_rng(7)
    for y in (rng.normal(size=80), rng.integers(0, 3, 80).astype(float), np.full(80, 5.0)):
        GradientBoostingRegressor(loss=Pinball(), n_estimators=2).fit(rng.normal(size=(80, 2)), y)


def test_a_users_loss_that_is_none():
    class Bent(Squares):
        def curvature(self, y, s):
            return -np.ones_like(y)

    class Short(Squares):
        def gradient(self, y, s):
            return (s - y)[:-1]

    X, y = np.arange(50.0)[:, None], np.arange(50.0)
    with pytest.raises(ParameterError, match="curvature"):
        GradientBoostingRegressor(loss=Bent()).fit(X, y)
    with pytest.raises(ParameterError, match=r"gradient\(y, s\) has shape \(49,\)"):
        GradientBoostingRegressor(loss=Short()).fit(X, y)
    with pytest.raises(ParameterError, match="value, gradient, curvature"):
        GradientBoostingRegressor(loss=object()).fit(X, y)
    with pytest.raises(ParameterError, match="did you mean 'poisson'"):
        GradientBoostingRegressor(loss="poison").fit(X, y)


@pytest.mark.parametrize(
    ("loss", "y", "message"),
    [
        ("poisson", [-1.0, 2.0], "targets >= 0, got -1"),
        ("poisson", [0.0, 0.0], "positive target"),
        ("gamma", [0.0, 2.0], "targets > 0, got 0"),
        ("tweedie", [-2.0, 2.0], "targets >= 0, got -2"),
    ],
)
def test_targets_outside_the_domain_of_the_loss(loss, y, message):
    with pytest.raises(DataError, match=message):
        GradientBoostingRegressor(loss=loss).fit(np.ones((2, 1)), y)


@pytest.mark.parametrize("learning_rate", [0.1, 1.0, 1.9])
@pytest.mark.parametrize(
    "loss", ["squared_error", "absolute_error", "huber", "quantile", "poisson", "gamma", "tweedie"]
)
def test_the_training_loss_falls_in_every_round(loss, learning_rate):
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 4))
    y = np.exp(2 * X[:, 0] + X[:, 1] * X[:, 2]) * rng.gamma(0.5, size=400) + 1e-3
    model = GradientBoostingRegressor(
        loss=loss, learning_rate=learning_rate, n_estimators=40, quantile=0.9, min_samples_leaf=5
    ).fit(X, y)
    assert (np.diff(model.history_.objective) < 0).all()
    assert model.certificate_.kind == "none"
    assert model.certificate_.value < 0


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_the_training_loss_of_classes_falls_in_every_round(n_classes):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(400, 4))
    y = np.digitize(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=400), np.linspace(-0.5, 0.5, n_classes - 1))
    model = GradientBoostingClassifier(learning_rate=1.5, n_estimators=60, min_samples_leaf=2).fit(X, y)
    assert (np.diff(model.history_.objective) < 0).all()
    p = model.predict_proba(X)[np.arange(400), y]
    assert model.history_.objective[-1] == pytest.approx(-np.log(p).mean(), rel=1e-9, abs=1e-15)


# ------------------------------------------------------------------------------------------------ in partitions


@settings(max_examples=60)
@given(
    st.lists(st.floats(-1e300, 1e300) | st.sampled_from([0.0, -0.0, 1.0, -1.0]), min_size=1, max_size=40),
    st.floats(0.01, 0.99),
    st.booleans(),
    st.integers(1, 3),
)
def test_quantiles_are_those_of_all_numbers(numbers, tau, weighted, n_groups):
    x = np.array(numbers)
    group = np.arange(len(x)) % min(n_groups, len(x))
    weight = np.random.default_rng(len(x)).integers(1, 5, len(x)).astype(float) if weighted else None
    n = np.bincount(group)
    total = np.bincount(group, weight) if weighted else None
    halves = [slice(0, len(x) // 3), slice(len(x) // 3, None)]

    def count(begin, shift, bits):
        return sum(
            digit_counts(x[h], group[h], None if weight is None else weight[h], begin, shift, bits) for h in halves
        )

    with np.errstate(over="ignore"):
        found = quantiles(count, tau, n, total)
        expected = [
            weighted_quantile(x[group == g], None if weight is None else weight[group == g], tau) for g in range(len(n))
        ]
    assert_array_equal(found, expected)


@given(st.lists(st.floats(-1e15, 1e15), min_size=1, max_size=50), st.randoms(use_true_random=False))
def test_sums_do_not_depend_on_the_order(numbers, random):
    x = np.array(numbers)
    scale = power_above(np.abs(x).max())
    parts = np.array(random.sample(numbers, len(numbers)))
    cut = len(x) // 2
    total = exact_sum(x, scale)
    assert total == exact_sum(parts[:cut], scale) + exact_sum(parts[cut:], scale)
    assert abs(exact_total(total, scale) - float(x.astype(np.longdouble).sum())) <= 1e-15 * np.abs(x).sum() + 1e-280


@pytest.mark.parametrize("largest", [0.0, 5e-324, 1e-300, 1.0, 1e308, np.finfo(float).max])
def test_scales_stay_within_range(largest):
    scale = power_above(largest)
    assert exact_total(exact_sum(np.array([largest]), scale), scale) == pytest.approx(largest, rel=1e-15, abs=1e-300)
