"""Penalties against brute force and the identities of convex analysis."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle.exceptions import ParameterError
from epicycle.optim import L1, L2, ElasticNet, NoPenalty

ALL = [NoPenalty(), L2(0.7), L1(0.4), ElasticNet(0.3, 1.2), L2([0.5, 0.0, 2.0]), ElasticNet([1.0, 0.0, 0.2], 0.5)]
ALL += [ElasticNet(0.3, 1.2, positive=True), ElasticNet([1.0, 0.2, 0.2], 0.0, positive=True)]


@pytest.mark.parametrize("penalty", ALL, ids=repr)
@pytest.mark.parametrize("step", [0.1, 1.0, 3.0])
def test_prox_minimises(penalty, step):
    v = np.array([1.7, -0.2, 0.05])
    x = penalty.prox(v, step)
    cost = penalty.value(x) + np.sum((x - v) ** 2) / (2 * step)
    for j in range(3):  # separable and convex: a minimum in every coordinate is a minimum
        for candidate in [*np.linspace(-3, 3, 601), *(x[j] + np.linspace(-0.01, 0.01, 101))]:
            other = x.copy()
            other[j] = candidate
            assert penalty.value(other) + np.sum((other - v) ** 2) / (2 * step) >= cost - 1e-12


@pytest.mark.parametrize("penalty", ALL, ids=repr)
def test_conjugate_is_the_supremum_on_a_grid(penalty):
    # Separable: the conjugate is the sum over coordinates, each found on a grid.
    u = np.array([0.25, 0.0, -0.15])
    grid = np.linspace(-10, 10, 200_001)
    brute = 0.0
    for j in range(3):
        lone = np.zeros((3,))
        values = np.empty(grid.shape)
        l1 = np.broadcast_to(getattr(penalty, "l1", 0.0), 3)[j]
        l2 = np.broadcast_to(getattr(penalty, "l2", 0.0), 3)[j]
        values = u[j] * grid - l1 * np.abs(grid) - l2 * grid**2 / 2
        if getattr(penalty, "positive", False):
            values[grid < 0] = -np.inf
        lone[j] = grid[-7]
        assert_allclose(penalty.value(lone), l1 * abs(grid[-7]) + l2 * grid[-7] ** 2 / 2)
        brute += np.inf if values.argmax() in (0, grid.size - 1) and values.max() > 1e-9 else values.max()
    assert_allclose(penalty.conjugate(u), brute, atol=1e-8)


@pytest.mark.parametrize("penalty", ALL, ids=repr)
def test_subgradient_is_zero_exactly_at_the_minimum(penalty):
    # x = prox(v) minimises R(x) + |x - v|^2 / 2, whose smooth part has gradient x - v.
    v = np.array([1.7, -0.2, 0.05])
    x = penalty.prox(v)
    assert penalty.distance(x, x - v) < 1e-15
    moved = x + np.array([0.1, 0.0, 0.0])
    assert penalty.distance(moved, moved - v) > 0.09


def test_dual_norm_bounds_the_domain_of_the_conjugate():
    penalty, u = L1([0.5, 1.0, 0.25]), np.array([0.4, -3.0, 0.1])
    assert penalty.dual_norm(u) == 3.0
    assert penalty.conjugate(u / 3.0) == 0.0
    assert np.isinf(penalty.conjugate(u / 2.999))
    assert L1([1.0, 0.0]).dual_norm(np.array([0.5, 0.1])) == np.inf
    assert ElasticNet(1.0, 0.0, positive=True).dual_norm(np.array([0.5, -9.0])) == 0.5


@pytest.mark.parametrize("penalty", [NoPenalty(), L2(0.7), L2([0.5, 0.0, 2.0])], ids=repr)
def test_gradient_of_the_smooth_ones(penalty):
    x, h = np.array([0.3, -2.0, 5.0]), 1e-6
    numeric = [(penalty.value(x + h * e) - penalty.value(x - h * e)) / (2 * h) for e in np.eye(3)]
    assert_allclose(penalty.gradient(x), numeric, atol=1e-8)


def test_a_kink_has_no_gradient():
    with pytest.raises(TypeError, match="proximal"):
        L1(1.0).gradient(np.zeros(2))


@pytest.mark.parametrize("bad", [-1.0, np.nan, np.inf, [[1.0]]])
def test_bad_weights_are_named(bad):
    with pytest.raises(ParameterError, match="alpha"):
        L2(bad)
