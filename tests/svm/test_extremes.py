"""Support vector machines at the ends of floating point, and what their certificates say there."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize_scalar

import epicycle as ep
from epicycle.exceptions import ConvergenceWarning, DataError
from epicycle.kernel import FunctionKernel
from epicycle.svm._dual_problem import DualProblem


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def test_the_stretched_primal_is_the_least_over_factors(rng):
    n = 12
    A, sign = rng.normal(size=(n, 3)), np.where(np.arange(n) % 2, 1.0, -1.0)
    C = rng.choice([0.5, 2.0, 1e9], size=n)
    problem = DualProblem(sign, np.where(sign > 0, 0.0, -C), np.where(sign > 0, C, 0.0), stretches=True)
    K = A @ A.T
    b = sign * rng.uniform(size=n) * 0.3
    margin = sign * (K @ b)
    square = b @ K @ b

    def primal(t):
        return 0.5 * t * t * square + (C * np.maximum(1 - t * margin, 0)).sum()

    breaks = [1 / m for m in margin if m > 0]
    assert_allclose(problem._stretched(square, margin), min(primal(t) for t in breaks), rtol=1e-12)
    # It bounds the optimum from above, and the best factor of all from above.
    assert problem._stretched(square, margin) >= minimize_scalar(primal, bounds=(0, 100), method="bounded").fun - 1e-6


def test_rows_of_huge_weight_beside_ordinary_ones_are_certified(rng):
    A = rng.normal(size=(40, 30))
    y = rng.integers(2, size=40)
    weight = np.where(np.arange(40) % 3 == 0, 1e100, 1.0)
    model = ep.SVC().fit(A, y, sample_weight=weight)
    assert model.certificate_.holds
    assert model.certificate_.value < 1e-3


@pytest.mark.parametrize("solver", ["smo", pytest.param("dual-cd", marks=pytest.mark.slow)])
def test_contradicting_rows_of_huge_weight_end(rng, solver):
    A = np.repeat(np.round(rng.normal(size=(20, 2))), 2, axis=0)
    y = np.tile([0, 1], 20)
    with pytest.warns(ConvergenceWarning):
        model = ep.SVC(solver=solver).fit(A, y, sample_weight=np.full(40, 1e100))
    assert not model.certificate_.holds
    assert np.isfinite(model.decision_function(A)).all()


def test_squares_that_overflow_are_refused_by_name(rng):
    A, y = rng.normal(size=(20, 2)), rng.normal(size=20)
    with pytest.raises(DataError, match=r"C, sample_weight: .*overflow"):
        ep.NuSVR(C=1e300).fit(A, y)


def test_a_python_function_sees_all_rows_and_a_kernel_object_those_it_needs(rng):
    A, y = rng.normal(size=(30, 2)), rng.integers(3, size=30)
    sizes = []

    def linear(P, Q):
        sizes.append((len(P), len(Q)))
        return P @ Q.T

    plain = ep.SVC(kernel=linear).fit(A, y)
    sizes.clear()
    scores = plain.decision_function(A[:5])
    assert sizes == [(5, 30)]
    wrapped = ep.SVC(kernel=FunctionKernel(linear)).fit(A, y)
    sizes.clear()
    assert_allclose(wrapped.decision_function(A[:5]), scores, atol=1e-8)
    assert sizes == [(5, len(wrapped.support_))]


def test_a_function_of_the_rows_as_a_whole_is_a_kernel(rng):
    A, y = rng.normal(size=(25, 3)), rng.normal(size=25)
    K = A @ A.T
    for cls in (ep.SVR, ep.NuSVR):
        # right where the second argument has all rows of the fit
        by_place = cls(kernel=lambda P, Q: K[: len(P)]).fit(A, y)
        assert_allclose(by_place.predict(A), cls(kernel="precomputed").fit(K, y).predict(K), atol=1e-10)


def test_centring_by_few_digits_leaves_integers_exact():
    A = np.array([[2.0, 0], [1, 0], [0, 1], [0, 2], [1, 1]])
    y = np.array([1.0, 1, 2, 2, 1])
    K = A @ A.T
    assert ep.SVR(kernel="linear").fit(A, y).score(A, y) == ep.SVR(kernel="precomputed").fit(K, y).score(K, y)
    far = A + 1e7
    assert_allclose(ep.SVR(kernel="linear").fit(far, y).coef_, ep.SVR(kernel="linear").fit(A, y).coef_, atol=1e-9)
