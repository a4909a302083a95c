"""Maps to unconstrained space: inverses, log-determinants and gradients against numerical Jacobians."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from epicycle import bayes
from epicycle.exceptions import ParameterError

CONSTRAINTS = [
    bayes.Real((2, 3)),
    bayes.Positive(),
    bayes.Positive(3),
    bayes.LowerBounded(-2.0, 2),
    bayes.UpperBounded(1.5, (2, 2)),
    bayes.Interval(-1.0, 3.0, 3),
    bayes.Ordered(4),
    bayes.Simplex(2),
    bayes.Simplex(5),
    bayes.CorrelationCholesky(2),
    bayes.CorrelationCholesky(4),
    bayes.Correlation(2),
    bayes.Correlation(4),
]
every_constraint = pytest.mark.parametrize("constraint", CONSTRAINTS, ids=repr)


def numerical_jacobian(f, u, h=1e-5):
    columns = [(f(u + h * e) - f(u - h * e)) / (2 * h) for e in np.eye(len(u))]
    return np.stack(columns, axis=-1)


def free_entries(constraint, x):
    """Entries of x that are coordinates of the set."""
    if isinstance(constraint, bayes.Simplex):
        return x[:-1]
    if isinstance(constraint, bayes.CorrelationCholesky):
        return x[np.tril_indices(len(x), -1)]
    return x.ravel()


def log_determinant(constraint, u):
    J = numerical_jacobian(lambda v: free_entries(constraint, constraint.constrain(v)), u)
    return np.linalg.slogdet(J)[1]


@every_constraint
@pytest.mark.parametrize("seed", range(3))
def test_log_jacobian_is_that_of_the_numerical_one(constraint, seed):
    u = np.random.default_rng(seed).normal(size=constraint.size)
    assert_allclose(constraint.log_jacobian(u), log_determinant(constraint, u), rtol=0, atol=1e-7)


@every_constraint
@pytest.mark.parametrize("seed", range(3))
def test_gradient_is_the_numerical_one(constraint, seed):
    rng = np.random.default_rng(seed)
    u, A = rng.normal(size=constraint.size), rng.normal(size=constraint.shape)

    def value(v):  # linear and quadratic in x, whose gradient in x is A + x
        x = constraint.constrain(v)
        return np.sum(A * x) + np.sum(x * x) / 2 + constraint.log_jacobian(v)

    gradient = constraint.pull_back(u, A + constraint.constrain(u))
    assert_allclose(gradient, numerical_jacobian(value, u), rtol=1e-6, atol=1e-6)


@every_constraint
def test_inverse_and_batches(constraint):
    u = np.random.default_rng(5).normal(size=(7, 2, constraint.size))
    x = constraint.constrain(u)
    assert x.shape == (7, 2, *constraint.shape)
    assert_allclose(constraint.unconstrain(x), u, rtol=0, atol=1e-8)
    assert_allclose(constraint.constrain(u[3, 1]), x[3, 1], rtol=1e-14)
    assert_allclose(constraint.log_jacobian(u)[3, 1], constraint.log_jacobian(u[3, 1]), rtol=1e-13)
    assert all(constraint.contains(point) for point in x.reshape(-1, *constraint.shape))


@given(st.lists(st.floats(-30, 30), min_size=3, max_size=3))
def test_images_satisfy_their_constraints(u):
    u = np.array(u)
    assert (bayes.Positive(3).constrain(u) > 0).all()
    inside = bayes.Interval(2.0, 5.0, 3).constrain(u)
    assert ((inside >= 2) & (inside <= 5)).all()
    p = bayes.Simplex(4).constrain(u)
    assert (p >= 0).all()
    assert abs(p.sum() - 1) < 1e-12
    R = bayes.Correlation(3).constrain(u)
    assert_allclose(np.diag(R), 1, atol=1e-12)
    assert np.linalg.eigvalsh(R).min() > -1e-12
    assert np.isfinite(bayes.Simplex(4).log_jacobian(u))


def test_points_outside_are_not_contained():
    assert not bayes.Positive().contains(np.array(-1.0))
    assert not bayes.Interval().contains(np.array(1.5))
    assert not bayes.Ordered(3).contains(np.array([1.0, 0.0, 2.0]))
    assert not bayes.Simplex(3).contains(np.array([0.5, 0.5, 0.5]))
    assert not bayes.Correlation(2).contains(np.array([[1.0, 1.5], [1.5, 1.0]]))
    assert not bayes.CorrelationCholesky(2).contains(np.eye(2) * 2)


def test_a_wrong_log_determinant_is_caught():
    """The comparison above is one that a wrong Jacobian fails."""

    class Forgotten(bayes.Positive):
        def log_jacobian(self, u):
            return super().log_jacobian(u) * 0

    u = np.array([0.4, -1.0])
    assert abs(Forgotten(2).log_jacobian(u) - log_determinant(bayes.Positive(2), u)) > 0.1


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: bayes.Simplex(1), "n=1"),
        (lambda: bayes.Interval(2, 1), "upper=1"),
        (lambda: bayes.Positive(-3), "shape=-3"),
        (lambda: bayes.Real("x"), "shape='x'"),
        (lambda: bayes.LowerBounded(np.nan), "lower=nan"),
        (lambda: bayes.UpperBounded(np.inf), "upper=inf"),
        (lambda: bayes.Correlation(2.5), "n=2.5"),
    ],
)
def test_bad_arguments_are_named(build, argument):
    with pytest.raises(ParameterError, match=argument):
        build()
