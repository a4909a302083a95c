"""Orthogonal matching pursuit under scikit-learn's names: scikit-learn, refits, limits."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model as sk
from sklearn.model_selection import KFold

from epicycle import OrthogonalMatchingPursuit, OrthogonalMatchingPursuitCV, orthogonal_mp, orthogonal_mp_gram
from epicycle.exceptions import DataError, ParameterError


def drawn(seed=0, n=60, p=30, k=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * rng.uniform(0.5, 2.0, p) + 1.0
    return X, X[:, :5] @ rng.normal(size=(5, k)) + 0.3 * rng.normal(size=(n, k)), rng


@pytest.mark.parametrize("limit", [{"n_nonzero_coefs": 6}, {"tol": 8.0}, {}])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_features_and_coefficients_are_those_of_scikit_learn(limit, intercept, form):
    X, Y, _ = drawn()
    model = OrthogonalMatchingPursuit(fit_intercept=intercept, **limit).fit(form(X), Y)
    reference = sk.OrthogonalMatchingPursuit(fit_intercept=intercept, **limit).fit(X, Y)
    assert_allclose(model.coef_, reference.coef_, atol=1e-11)
    assert_allclose(model.intercept_, reference.intercept_, atol=1e-11)
    assert_array_equal(model.n_iter_, reference.n_iter_)
    assert model.n_nonzero_coefs_ == reference.n_nonzero_coefs_
    assert model.certificate_.holds


def test_the_number_of_features_is_that_of_least_error_on_folds():
    X, Y, _ = drawn(1)
    model = OrthogonalMatchingPursuitCV(cv=4, max_iter=8).fit(X, Y[:, 0])
    reference = sk.OrthogonalMatchingPursuitCV(cv=4, max_iter=8).fit(X, Y[:, 0])
    assert model.n_nonzero_coefs_ == reference.n_nonzero_coefs_
    assert_allclose(model.coef_, reference.coef_, atol=1e-11)
    for f, (train, test) in enumerate(KFold(4).split(X)):
        fold = sk.OrthogonalMatchingPursuit(n_nonzero_coefs=3).fit(X[train], Y[train, 0])
        assert_allclose(model.mse_path_[2, f], np.mean((Y[test, 0] - fold.predict(X[test])) ** 2))


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_weights_are_repetitions(seed):
    X, Y, rng = drawn(seed, n=40, p=8, k=1)
    weight = rng.integers(0, 4, len(Y))
    weight[:12] = 1
    model = OrthogonalMatchingPursuit(n_nonzero_coefs=3)
    coef = model.fit(X, Y[:, 0], weight).coef_
    assert_allclose(coef, model.fit(np.repeat(X, weight, axis=0), np.repeat(Y[:, 0], weight)).coef_, atol=1e-9)


@pytest.mark.parametrize("options", [{"n_nonzero_coefs": 4}, {"n_nonzero_coefs": 4, "return_path": True}, {"tol": 9.0}])
def test_the_functions_are_those_of_scikit_learn(options):
    X, Y, _ = drawn(2)
    for y in (Y, Y[:, 0]):
        expected, n_iters = sk.orthogonal_mp(X, y, return_n_iter=True, **options)
        found, counted = orthogonal_mp(X, y, return_n_iter=True, **options)
        from_gram = orthogonal_mp_gram(X.T @ X, X.T @ y, norms_squared=(y**2).sum(axis=0), **options)
        assert found.shape == expected.shape
        assert_allclose(found, expected, atol=1e-11)
        assert_allclose(from_gram, expected, atol=1e-10)
        assert_array_equal(counted, n_iters)


def test_what_ends_early_says_so():
    X, Y, _ = drawn(3)
    X[:, 1] = X[:, 0]
    with pytest.warns(RuntimeWarning, match="linear dependence"):
        orthogonal_mp(X[:, :2], Y[:, 0], n_nonzero_coefs=2)
    with pytest.warns(RuntimeWarning, match="linear dependence"):
        model = OrthogonalMatchingPursuit(n_nonzero_coefs=2, fit_intercept=False).fit(X[:, :2], Y[:, 0])
    assert model.n_iter_ == 1
    with pytest.raises(DataError, match="n_nonzero_coefs=31"):
        orthogonal_mp(X, Y, n_nonzero_coefs=31)
    with pytest.raises(ParameterError, match="norms_squared"):
        orthogonal_mp_gram(X.T @ X, X.T @ Y, tol=1.0)
