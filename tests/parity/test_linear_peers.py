"""The same optimum as scikit-learn's estimators on real data, and never a higher objective."""

import numpy as np
import pytest
import sklearn.linear_model as peer
from numpy.testing import assert_allclose
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from epicycle import LinearRegression, LogisticRegression, Ridge


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_least_squares_and_ridge(intercept, weighted):
    X, y = load_diabetes(return_X_y=True, scaled=False)
    Y = np.column_stack([y, np.log(y)])
    w = np.random.default_rng(0).uniform(size=len(y)) if weighted else None
    ours = LinearRegression(fit_intercept=intercept).fit(X, Y, w)
    theirs = peer.LinearRegression(fit_intercept=intercept).fit(X, Y, w)
    assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
    assert_allclose(ours.intercept_, theirs.intercept_, rtol=1e-7)
    for alpha in (1e-3, 10.0, [1.0, 1e4]):
        ours = Ridge(alpha, fit_intercept=intercept).fit(X, Y, w)
        theirs = peer.Ridge(alpha, fit_intercept=intercept, solver="cholesky").fit(X, Y, w)
        assert_allclose(ours.coef_, theirs.coef_, rtol=1e-7)
        assert_allclose(ours.predict(X), theirs.predict(X), rtol=1e-7)


DATA = {"tumours": load_breast_cancer, "wine": load_wine, "iris": load_iris, "digits": load_digits}


def objective(X, y, C, W, b):
    """Regularised negative log-likelihood."""
    Z = X @ W.T + b
    Z = np.column_stack([np.zeros(len(Z)), Z]) if len(W) == 1 else Z
    codes = np.unique(y, return_inverse=True)[1]
    top = Z.max(axis=1)
    return (np.log(np.exp(Z - top[:, None]).sum(1)) + top - Z[np.arange(len(Z)), codes]).sum() + (W**2).sum() / (2 * C)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_logistic_regression(name, C):
    X, y = DATA[name](return_X_y=True)
    X = scale(X)
    model = LogisticRegression(C=C).fit(X, y)
    assert model.certificate_.holds
    solver = "lbfgs" if name == "digits" else "newton-cholesky"
    theirs = peer.LogisticRegression(C=C, solver=solver, tol=1e-8, max_iter=2000).fit(X, y)
    ours = objective(X, y, C, model.coef_, model.intercept_)
    best = objective(X, y, C, theirs.coef_, theirs.intercept_)
    assert ours <= best * (1 + 1e-8)
    assert best <= ours * (1 + 1e-5)  # the peer has no certificate: it stops where it stops
    assert_allclose(model.predict_proba(X), theirs.predict_proba(X), atol=2e-3)


@pytest.mark.parametrize("name", ["tumours", "wine", "digits"])
def test_logistic_regression_on_columns_as_they_come(name):
    """Not standardised, with columns of very different units, or constant."""
    X, y = DATA[name](return_X_y=True)
    for C in (1e-3, 1.0, 1e2):
        assert LogisticRegression(C=C).fit(X, y).certificate_.holds
