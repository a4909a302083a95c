"""The function of arrays against the normal equations and against scikit-learn's function of the same name."""

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.linear_model as reference
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from epicycle import LinearRegression, Ridge, ridge_regression
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6)) + 1.5
    return X, rng.normal(size=(40, 2)) + X[:, :2], rng.uniform(0.2, 3, size=40)


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("alpha", [0.7, np.array([0.1, 5.0])])
def test_the_normal_equations(rows, alpha, container):
    X, Y, weight = rows
    coef = ridge_regression(container(X), Y, alpha, sample_weight=weight)
    for t, a in enumerate(np.broadcast_to(alpha, 2)):
        XV = X.T * weight
        assert_allclose(coef[t], np.linalg.solve(XV @ X + a * np.eye(6), XV @ Y[:, t]), rtol=1e-10)
    assert_allclose(coef, reference.ridge_regression(X, Y, alpha, sample_weight=weight), rtol=1e-10)


def test_what_is_returned(rows):
    X, Y, _ = rows
    y = Y[:, 0]
    assert ridge_regression(X, y, 1.0).shape == (6,)
    coef, n_iter, intercept = ridge_regression(X, y, 1.0, return_n_iter=True, return_intercept=True)
    model = Ridge(1.0).fit(X, y)
    assert_array_equal(coef, model.coef_)
    assert (n_iter, intercept) == (model.n_iter_, model.intercept_)
    found = ridge_regression(X, -y, 1.0, positive=True)
    assert_allclose(found, reference.ridge_regression(X, -y, 1.0, positive=True, tol=1e-12), atol=1e-6)
    assert (found == 0).any()
    assert ridge_regression(X.astype(np.float32), y.astype(np.float32), 1.0).dtype == np.float32


def test_refusals_and_warnings(rows):
    X, Y, _ = rows
    with pytest.raises(ParameterError, match="only 'sag' solver"):
        ridge_regression(X, Y, 1.0, solver="cholesky", return_intercept=True)
    with pytest.raises(ParameterError, match="only 'lbfgs' solver can be used"):
        ridge_regression(X, Y, 1.0, solver="svd", positive=True)
    with pytest.raises(ParameterError, match="alpha"):
        ridge_regression(X, Y, [1.0, 2.0, 3.0])
    with pytest.raises(DataError, match="y"):
        ridge_regression(X, Y[:-1], 1.0)
    with pytest.warns(ConvergenceWarning, match=r"sparse_cg did not converge after \d+ iterations"):
        ridge_regression(X, Y, 1.0, solver="sparse_cg", tol=0.0)


@pytest.mark.parametrize("model", [Ridge(), LinearRegression(), Ridge(solver="cg"), LinearRegression(solver="newton")])
def test_a_tolerance_of_zero_ends_with_the_solution_and_a_warning(rows, model):
    X, Y, _ = rows
    expected = clone(model).fit(X, Y).coef_
    with pytest.warns(ConvergenceWarning, match="tolerance 0.00e"):
        model.set_params(tol=0.0).fit(X, Y)
    assert_allclose(model.coef_, expected, rtol=1e-6)
    assert not model.certificate_.holds
