"""Without a penalty and with columns that others give, the coefficients are those of least norm among all minima."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

from epicycle import GammaRegressor, GeneralizedLinearModel, PoissonRegressor, TweedieRegressor

SOLVERS = ["lbfgs", "newton-cholesky"]


@pytest.fixture
def wide():
    rng = np.random.default_rng(5)
    return rng.normal(size=(6, 15)) + 0.5, rng.uniform(-2, 2, size=6)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("model", [PoissonRegressor(), GammaRegressor(), TweedieRegressor(power=1.5)])
def test_fewer_rows_than_columns(wide, model, intercept, solver):
    X, eta = wide
    model.set_params(alpha=0, fit_intercept=intercept, solver=solver, tol=1e-10).fit(X, np.exp(eta))
    centre = X.mean(axis=0) * intercept
    w = np.linalg.pinv(X - centre) @ (eta - eta.mean() * intercept)
    assert_allclose(model.coef_, w, rtol=1e-6, atol=1e-8)
    assert_allclose(model.intercept_, (eta.mean() - centre @ w) * intercept, rtol=1e-6, atol=1e-8)
    assert_allclose(model.predict(X), np.exp(eta), rtol=1e-6)
    assert model.certificate_.holds


@pytest.mark.parametrize("family", ["poisson", "binomial", "gaussian", "gamma"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_dependent_columns(family, intercept, container):
    rng = np.random.default_rng(11)
    X = rng.normal(size=(300, 3)) + 1
    eta = X @ [0.3, -0.4, 0.2]
    y = {
        "poisson": rng.poisson(np.exp(eta)),
        "binomial": (rng.random(300) < 1 / (1 + np.exp(-eta))),
        "gaussian": eta + rng.normal(size=300),
        "gamma": np.exp(eta) * rng.gamma(2.0, size=300) / 2,
    }[family].astype(float)
    weight = rng.uniform(0.1, 2, size=300)
    settings = {"family": family, "link": "log" if family == "gamma" else "auto", "fit_intercept": intercept}
    small = GeneralizedLinearModel(**settings).fit(X, y, weight)
    A = rng.normal(size=(3, 6))  # the columns of X A span the same space
    large = GeneralizedLinearModel(**settings).fit(container(X @ A), y, weight)
    # Of all w with A w = w_small, which are the minima, the one of least norm.
    assert_allclose(large.coef_, np.linalg.pinv(A) @ small.coef_, rtol=1e-6, atol=1e-8)
    assert_allclose(large.intercept_, small.intercept_, rtol=1e-6, atol=1e-9)
    assert_allclose(large.deviance_, small.deviance_, rtol=1e-9)
    assert large.certificate_.holds


def test_a_constant_column_beside_an_intercept_has_no_coefficient():
    rng = np.random.default_rng(2)
    X = np.column_stack([rng.normal(size=200), np.full(200, 3.0)])
    y = rng.poisson(np.exp(0.5 * X[:, 0] + 0.2)).astype(float)
    model = GeneralizedLinearModel(family="poisson").fit(X, y)
    alone = GeneralizedLinearModel(family="poisson").fit(X[:, :1], y)
    assert_allclose(model.coef_, [alone.coef_[0], 0.0], atol=1e-10)
    assert_allclose(model.intercept_, alone.intercept_, rtol=1e-10)


def test_many_directions_without_effect():
    """More of them than one pass looks at."""
    rng = np.random.default_rng(8)
    X, eta = rng.normal(size=(20, 200)), rng.uniform(-1, 1, size=20)
    model = PoissonRegressor(alpha=0, tol=1e-9).fit(X, np.exp(eta))
    Xc = X - X.mean(axis=0)
    assert_allclose(model.coef_, np.linalg.pinv(Xc) @ (eta - eta.mean()), atol=1e-7)
    assert model.certificate_.holds
