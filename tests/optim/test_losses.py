"""Losses against finite differences, brute force, and exact arithmetic at extreme arguments."""

import math

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose

from epicycle.exceptions import ParameterError
from epicycle.optim import Logistic, Multinomial, Squared
from epicycle.optim._losses import LOSSES, MarginLoss, ResidualLoss, loss_by_name

NUMBERS, SIGNS = np.array([-2.5, 0.0, 0.3, 4.0]), np.array([-1.0, 1.0, 1.0, -1.0])
SCALAR = [
    pytest.param(loss_by_name(name, parameter), y, id=name)
    for name, parameter, y in [
        ("squared_error", None, NUMBERS),
        ("absolute_error", None, NUMBERS),
        ("huber", 1.3, NUMBERS),
        ("quantile", 0.3, NUMBERS),
        ("epsilon_insensitive", 0.4, NUMBERS),
        ("squared_epsilon_insensitive", 0.4, NUMBERS),
        ("hinge", None, SIGNS),
        ("perceptron", None, SIGNS),
        ("squared_hinge", None, SIGNS),
        ("modified_huber", None, SIGNS),
        ("log_loss", None, SIGNS > 0),
        ("poisson", None, np.arange(4.0)),
        ("gamma", None, np.array([0.2, 1.0, 3.0, 7.0])),
        ("tweedie", 1.4, np.array([0.0, 1.0, 3.0, 7.0])),
    ]
]


def difference(f, z, h=1e-5):
    return (f(z + h) - f(z - h)) / (2 * h)


@pytest.mark.parametrize(("loss", "y"), SCALAR)
def test_scalar_derivatives_are_those_of_the_value(loss, y):
    z = np.array([-3.1, -0.2, 0.9, 4.7])
    assert_allclose(loss.gradient(z, y), difference(lambda z: loss.value(z, y), z), rtol=1e-7, atol=1e-9)
    assert_allclose(loss.curvature(z, y), difference(lambda z: loss.gradient(z, y), z), rtol=1e-7, atol=1e-9)
    assert np.all(loss.curvature(z, y) <= loss.smoothness)


@pytest.mark.parametrize(("loss", "y"), SCALAR)
def test_fenchel_young_inequality_is_tight_at_the_gradient(loss, y):
    z = np.linspace(-4, 4, 33)[:, None]
    y = y * np.ones_like(z)
    a = loss.gradient(z * np.ones_like(y), y)
    assert_allclose(loss.value(z, y) + loss.conjugate(a, y), a * z, rtol=1e-10, atol=1e-11)
    other = loss.gradient(0.5 - z * np.ones_like(y), y)
    assert np.all(loss.value(z, y) + loss.conjugate(other, y) >= other * z - 1e-10)


def test_conjugates_of_losses_with_bounded_slope_end_there():
    for name, parameter, y, end in [
        ("absolute_error", None, 0.7, 1.0),
        ("huber", 1.3, 0.7, 1.3),
        ("quantile", 0.3, 0.7, 0.7),
        ("epsilon_insensitive", 0.4, 0.7, 1.0),
        ("hinge", None, -1.0, 1.0),
        ("modified_huber", None, -1.0, 4.0),
        ("perceptron", None, -1.0, 1.0),
        ("gamma", None, 0.7, 1.0),
    ]:
        loss = loss_by_name(name, parameter)
        ends = loss.conjugate(np.array([end - 1e-12, end + 1e-12]), np.array([y, y]))
        assert np.isinf(ends).tolist() == [False, True], name


def test_losses_by_name():
    assert repr(loss_by_name("huber", 2.0)) == "Huber(delta=2.0)"
    assert loss_by_name("hinge", 0.1) == LOSSES["hinge"]()
    with pytest.raises(ParameterError, match="squared_error"):
        loss_by_name("square")
    numbers = [kind.native for kind in LOSSES.values() if kind.native is not None]
    assert len(numbers) == len(set(numbers))
    assert all(issubclass(LOSSES[n], MarginLoss) for n in ("hinge", "squared_hinge"))
    assert all(issubclass(LOSSES[n], ResidualLoss) for n in ("squared_error", "quantile"))


def test_multinomial_derivatives_are_those_of_the_value():
    rng = np.random.default_rng(0)
    z, y, loss = rng.normal(size=(6, 4)) * 2, np.array([0, 1, 2, 3, 1, 0]), Multinomial()
    g, H = loss.gradient(z, y), loss.curvature(z, y)
    for k in range(4):
        e = np.eye(4)[k]
        numeric = (loss.value(z + 1e-5 * e, y) - loss.value(z - 1e-5 * e, y)) / 2e-5
        assert_allclose(g[:, k], numeric, rtol=1e-7, atol=1e-10)
        numeric = (loss.gradient(z + 1e-5 * e, y) - loss.gradient(z - 1e-5 * e, y)) / 2e-5
        assert_allclose(H[:, k], numeric, rtol=1e-7, atol=1e-10)
    assert np.linalg.eigvalsh(H).max() <= loss.smoothness


def test_two_classes_are_the_logistic_loss():
    z, y = np.linspace(-800, 800, 41), np.tile([0, 1], 21)[:41]
    pairs = np.stack([np.zeros(41), z], axis=1)
    assert_allclose(Multinomial().value(pairs, y), Logistic().value(z, y), rtol=1e-14, atol=1e-300)
    assert_allclose(Multinomial().gradient(pairs, y)[:, 1], Logistic().gradient(z, y), rtol=1e-14, atol=1e-300)
    assert_allclose(Multinomial().curvature(pairs, y)[:, 1, 1], Logistic().curvature(z, y), rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("size", [40.0, 700.0, 1e4, 1e8, 1e300])
def test_nothing_is_lost_or_overflows_far_out(size):
    z, y = np.array([size, size, -size, -size]), np.array([1.0, 0.0, 1.0, 0.0])
    small = math.exp(-size)  # 0 where it underflows, as it should
    assert_allclose(Logistic().value(z, y), [small, size, size, small], rtol=1e-15)
    assert_allclose(Logistic().gradient(z, y), [-small, 1, -1, small], rtol=1e-15)
    assert_allclose(Logistic().curvature(z, y), [small] * 4, rtol=1e-15)
    wide, codes = np.array([[0.0, size, 0.0]]), np.array([1])
    assert_allclose(Multinomial().value(wide, codes), [2 * small], rtol=1e-15)
    assert_allclose(Multinomial().gradient(wide, codes), [[small, -2 * small, small]], rtol=1e-15)
    assert_allclose(Multinomial().curvature(wide, codes)[0, 1, 1], 2 * small, rtol=1e-15)


@pytest.mark.parametrize(("loss", "y", "a"), [(Squared(), 1.5, 2.0), (Squared(), -1.0, -0.3), (Logistic(), 1.0, -0.2)])
def test_conjugate_is_the_supremum_on_a_grid(loss, y, a):
    z = np.linspace(-60, 60, 1_200_001)
    brute = (a * z - loss.value(z, np.full(z.shape, y))).max()
    assert_allclose(loss.conjugate(np.array([a]), np.array([y])), [brute], rtol=1e-8)


@settings(max_examples=60)
@given(st.floats(-50, 50), st.floats(-50, 50), st.sampled_from([0.0, 1.0]))
def test_fenchel_young(z, other, y):
    for loss, target in ((Squared(), y * 3 - 1), (Logistic(), y)):
        z1, t = np.array([z]), np.array([target])
        a, elsewhere = loss.gradient(z1, t), loss.gradient(np.array([other]), t)
        size = 1 + abs(z) * (1 + abs(z))
        assert_allclose(loss.value(z1, t) + loss.conjugate(a, t), a * z, rtol=1e-12, atol=1e-13 * size)
        assert loss.value(z1, t) + loss.conjugate(elsewhere, t) >= elsewhere * z - 1e-13 * size * (1 + abs(other))


def test_fenchel_young_for_several_classes():
    rng = np.random.default_rng(1)
    z, y, loss = rng.normal(size=(20, 5)) * 3, rng.integers(0, 5, 20), Multinomial()
    a = loss.gradient(z, y)
    assert_allclose(loss.value(z, y) + loss.conjugate(a, y), (a * z).sum(axis=1), rtol=1e-12, atol=1e-13)
    others = loss.gradient(rng.normal(size=(20, 5)), y)
    assert np.all(loss.value(z, y) + loss.conjugate(others, y) > (others * z).sum(axis=1))


def test_conjugates_are_infinite_outside_their_domain():
    assert np.isinf(Logistic().conjugate(np.array([0.1, -1.1]), np.array([1.0, 1.0]))).all()
    assert_allclose(Logistic().conjugate(np.array([0.0, -1.0]), np.array([1.0, 1.0])), 0.0)
    bad = np.array([[0.5, 0.0, 0.0], [0.7, -0.2, -0.5]])
    assert np.isinf(Multinomial().conjugate(bad, np.array([0, 0]))).all()
