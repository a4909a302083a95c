"""The lasso by least angle regression and the choice of its alpha: scikit-learn, coordinate descent, definitions."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn import linear_model as sk
from sklearn.datasets import load_diabetes
from sklearn.model_selection import KFold, LeaveOneGroupOut

import epicycle as ep
from epicycle import LarsCV, Lasso, LassoLars, LassoLarsCV, LassoLarsIC, lars_path, lars_path_gram
from epicycle.exceptions import ConvergenceWarning, DataError, ParameterError

X, Y = load_diabetes(return_X_y=True)


def drawn(seed, n=60, p=12):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n, p)) + rng.normal(size=(n, 1))
    return A, A[:, :3] @ [2.0, -1.0, 0.5] + rng.normal(size=n) + 4.0, rng


# ---------------------------------------------------------------- LassoLars


@pytest.mark.parametrize("alpha", [0.01, 0.3, 2.0])
@pytest.mark.parametrize("positive", [False, True])
def test_the_solution_is_that_of_coordinate_descent(alpha, positive):
    model = LassoLars(alpha, positive=positive).fit(X, Y)
    reference = Lasso(alpha, positive=positive, tol=1e-13).fit(X, Y)
    assert_allclose(model.coef_, reference.coef_, rtol=0, atol=1e-6 * np.abs(reference.coef_).max())
    assert_allclose(model.intercept_, reference.intercept_)
    assert model.alpha_ == alpha
    assert model.certificate_.holds


def test_the_path_is_that_of_scikit_learn():
    model, reference = LassoLars(0.0).fit(X, Y), sk.LassoLars(0.0).fit(X, Y)
    assert_allclose(model.alphas_, reference.alphas_, atol=1e-12)
    assert_allclose(model.coef_path_, reference.coef_path_, atol=1e-8)
    assert_array_equal(model.active_, reference.active_)


def test_steps_beyond_max_iter_are_missed_with_a_warning():
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        model = LassoLars(0.0, max_iter=3).fit(X, Y)
    assert model.alpha_ > 0
    assert not model.converged_
    assert model.certificate_.holds  # up to there the path is right


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_weights_are_repetitions(seed):
    A, y, rng = drawn(seed, n=30, p=6)
    weight = rng.integers(0, 4, len(y))
    weight[0] = 1
    for model in (LassoLars(0.05), LassoLarsIC("bic", noise_variance=1.0)):
        weighted = model.fit(A, y, weight)
        coef, intercept = weighted.coef_, weighted.intercept_
        repeated = model.fit(np.repeat(A, weight, axis=0), np.repeat(y, weight))
        assert_allclose(coef, repeated.coef_, atol=1e-8)
        assert_allclose(intercept, repeated.intercept_, atol=1e-8)


# ---------------------------------------------------------------- the certificate covers all knots


def test_a_wrong_knot_on_the_way_fails_the_certificate(monkeypatch):
    """The end of the path is right and one breakpoint before it is not."""
    from epicycle.linear.lars import _path_model
    from epicycle.linear.lars._path import follow

    def wrong(*args):
        path, record, reason = follow(*args)
        record._values[4] = record._values[4] * 1.01
        return path, record, reason

    monkeypatch.setattr(_path_model, "follow", wrong)
    for model in (LassoLars(0.0), ep.Lars()):
        with pytest.warns(ConvergenceWarning, match="certificate"):
            model.fit(X, Y)
        assert not model.certificate_.holds


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_array, sp.csc_array])
def test_the_certificate_is_the_worst_gap(form):
    A, y, _ = drawn(3, n=20, p=40)
    model = LassoLars(0.02).fit(form(A), y)
    Ac, yc = A - A.mean(axis=0), y - y.mean()
    worst = 0.0
    for alpha, w in zip(model.alphas_, model.coef_path_.T, strict=True):
        r = yc - Ac @ w
        s = min(1.0, alpha * len(y) / np.abs(Ac.T @ r).max())
        gap = r @ r / 2 + len(y) * alpha * np.abs(w).sum() - (yc @ yc / 2 - (yc - s * r) @ (yc - s * r) / 2)
        worst = max(worst, gap / (yc @ yc / 2))
    assert abs(model.certificate_.value - worst) < 1e-12


# ---------------------------------------------------------------- cross-validation


def test_cross_validation_is_that_of_scikit_learn():
    model, reference = LassoLarsCV().fit(X, Y), sk.LassoLarsCV().fit(X, Y)
    assert_allclose(model.cv_alphas_, reference.cv_alphas_, atol=1e-10)
    assert_allclose(model.mse_path_, reference.mse_path_, rtol=1e-8)
    assert_allclose(model.alpha_, reference.alpha_)
    assert_allclose(model.coef_, reference.coef_, atol=1e-8)


def test_non_negative_paths_have_the_errors_of_coordinate_descent():
    # scikit-learn's non-negative path leaves the optimum for small alphas.
    model = LassoLarsCV(positive=True).fit(X, Y)
    grid = model.cv_alphas_[1::5]
    reference = ep.LassoCV(alphas=grid, positive=True, tol=1e-12).fit(X, Y)
    assert_allclose(model.mse_path_[1::5][::-1], reference.mse_path_, rtol=1e-5)
    assert (model.coef_ >= 0).all()


@pytest.mark.parametrize("lasso", [False, True])
def test_errors_of_folds_are_those_of_models_fitted_to_the_others(lasso):
    A, y, _ = drawn(0)
    model = (LassoLarsCV if lasso else LarsCV)(cv=4).fit(A, y)
    method = "lasso" if lasso else "lar"
    for f, (train, test) in enumerate(KFold(4).split(A)):
        for a in (0, len(model.cv_alphas_) // 2, -1):
            fold = ep.Lars(method).fit(A[train], y[train])
            alpha = min(max(model.cv_alphas_[a], fold.alphas_[-1]), fold.alphas_[0])
            coef, intercept = fold.at(alpha)
            assert_allclose(model.mse_path_[a, f], np.mean((y[test] - intercept - A[test] @ coef) ** 2))
    assert model.alpha_ == model.cv_alphas_[model.mse_path_.mean(axis=1).argmin()]


def test_cross_validation_from_files_is_that_in_memory(tmp_path):
    import pandas as pd

    A, y, _ = drawn(1, n=200)
    path = tmp_path / "rows.parquet"
    pd.DataFrame(A, columns=[f"x{j}" for j in range(A.shape[1])]).assign(y=y).to_parquet(path)
    for model in (LassoLarsCV(), LarsCV(), ep.OrthogonalMatchingPursuitCV()):
        inside = model.fit(A, y)
        coef, errors = inside.coef_, inside.mse_path_
        outside = model.fit(ep.scan(path, target="y"))
        assert_allclose(outside.mse_path_, errors, rtol=1e-8)
        assert_allclose(outside.coef_, coef, atol=1e-8)


def test_groups_go_to_the_splitter():
    import sklearn

    A, y, _ = drawn(2)
    groups = np.arange(len(y)) % 3
    for model in (LassoLarsCV(), ep.LassoCV(n_alphas=5)):
        with pytest.raises(ParameterError, match="enable_metadata_routing"):
            model.fit(A, y, groups=groups)
        splits = list(LeaveOneGroupOut().split(A, groups=groups))
        expected = model.set_params(cv=splits).fit(A, y).mse_path_
        with sklearn.config_context(enable_metadata_routing=True):
            routed = model.set_params(cv=LeaveOneGroupOut()).fit(A, y, groups=groups)
        assert_allclose(routed.mse_path_, expected)


# ---------------------------------------------------------------- information criteria


@pytest.mark.parametrize("criterion", ["aic", "bic"])
@pytest.mark.parametrize("intercept", [False, True])
def test_criteria_are_those_of_scikit_learn(criterion, intercept):
    model = LassoLarsIC(criterion, fit_intercept=intercept).fit(X, Y)
    reference = sk.LassoLarsIC(criterion, fit_intercept=intercept).fit(X, Y)
    assert_allclose(model.noise_variance_, reference.noise_variance_)
    assert_allclose(model.criterion_, reference.criterion_)
    assert_allclose(model.alpha_, reference.alpha_)
    assert_allclose(model.coef_, reference.coef_, atol=1e-8)
    assert_allclose(model.predict(X), reference.predict(X))


def test_the_variance_of_the_noise_needs_more_rows_than_features():
    with pytest.raises(DataError, match="noise_variance"):
        LassoLarsIC().fit(X[:8], Y[:8])
    assert LassoLarsIC(noise_variance=100.0).fit(X[:8], Y[:8]).converged_


# ---------------------------------------------------------------- functions


@pytest.mark.parametrize("method", ["lar", "lasso"])
def test_the_functions_agree_with_scikit_learn_and_each_other(method):
    expected = sk.lars_path(X, Y, method=method)
    found = lars_path(X, Y, method=method)
    from_gram = lars_path_gram(X.T @ Y, X.T @ X, n_samples=len(Y), method=method, return_n_iter=True)
    for path in (found, from_gram[:3]):
        assert_allclose(path[0], expected[0], atol=1e-10)
        assert path[1] == expected[1]
        assert_allclose(path[2], expected[2], atol=1e-7)
    assert from_gram[3] == len(found[0]) - 1
    alpha, _, coef = lars_path(X, Y, method=method, return_path=False)
    assert alpha == found[0][-1]
    assert_array_equal(coef, found[2][:, -1])


def test_what_the_functions_refuse():
    with pytest.raises(ParameterError, match="'lar' coding method"):
        lars_path(X, Y, positive=True)
    with pytest.raises(DataError, match="targets"):
        lars_path(X, np.c_[Y, Y])
    with pytest.raises(DataError, match="Gram"):
        lars_path_gram(X.T @ Y, X, n_samples=3)
