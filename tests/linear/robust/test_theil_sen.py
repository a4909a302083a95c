"""Theil and Sen's regression: medians of slopes by definition, the spatial median by another solver, its bound."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import sklearn.linear_model as peer
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

from epicycle import LinearRegression, TheilSenRegressor
from epicycle.core._monitor import Monitor
from epicycle.exceptions import ParameterError
from epicycle.linear.robust._theil_sen import spatial_median


def sum_of_distances(points, m):
    return np.linalg.norm(points - m, axis=1).sum()


def test_one_feature_through_the_origin_is_the_median_of_ratios():
    rng = np.random.default_rng(0)
    x, y = rng.uniform(1, 2, size=51), rng.normal(size=51)
    model = TheilSenRegressor(fit_intercept=False).fit(x[:, None], y)
    assert model.coef_[0] == pytest.approx(np.median(y / x), rel=1e-12)
    assert model.intercept_ == 0.0
    assert model.n_subpopulation_ == 51


def test_all_pairs_against_a_general_solver():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(20, 1)), rng.standard_t(1, size=20)
    model = TheilSenRegressor(tol=1e-12).fit(X, y)
    rows = np.array(list(combinations(range(20), 2)))
    slopes = (y[rows[:, 1]] - y[rows[:, 0]]) / (X[rows[:, 1], 0] - X[rows[:, 0], 0])
    points = np.column_stack([slopes, y[rows[:, 0]] - slopes * X[rows[:, 0], 0]])
    found = np.append(model.coef_, model.intercept_)
    best = minimize(lambda m: sum_of_distances(points, m), found + 0.01, method="Nelder-Mead", options={"xatol": 1e-10})
    assert sum_of_distances(points, found) <= best.fun * (1 + 1e-12)
    assert model.history_.objective[-1] == pytest.approx(sum_of_distances(points, found), rel=1e-10)


def test_near_scikit_learn_on_the_same_question():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(200, 3))
    y = X @ [1.0, -2.0, 3.0] + 1 + 0.1 * rng.normal(size=200)
    y[:25] += 60
    ours = TheilSenRegressor(random_state=0).fit(X, y)
    theirs = peer.TheilSenRegressor(random_state=0).fit(X, y)
    assert_allclose(ours.coef_, theirs.coef_, atol=0.05)
    assert ours.breakdown_ == pytest.approx(theirs.breakdown_)
    assert ours.n_subpopulation_ == theirs.n_subpopulation_ == 10_000
    assert np.abs(LinearRegression().fit(X, y).intercept_ - 1) > 5


def test_all_rows_are_least_squares_and_too_few_rows_interpolate():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    whole = TheilSenRegressor(n_subsamples=30).fit(X, y)
    assert_allclose(whole.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-9)
    few = TheilSenRegressor().fit(X[:3], y[:3])
    assert_allclose(few.predict(X[:3]), y[:3], atol=1e-12)


@pytest.mark.parametrize(
    ("size", "message"),
    [(1, r"n_features\+1 > n_subsamples \(5 > 1\)"), (31, r"n_subsamples > n_samples \(31 > 30\)")],
)
def test_sizes_that_make_no_sense(size, message):
    with pytest.raises(ParameterError, match=message):
        TheilSenRegressor(n_subsamples=size).fit(np.eye(30)[:, :4], np.arange(30.0))


def test_threads_seeds_and_float32():
    rng = np.random.default_rng(4)
    X, y = rng.normal(size=(100, 5)), rng.normal(size=100)
    fits = [TheilSenRegressor(random_state=7, n_jobs=k).fit(X, y) for k in (1, 2, 4)]
    for other in fits[1:]:
        assert_array_equal(other.coef_, fits[0].coef_)
    assert not np.array_equal(TheilSenRegressor(random_state=8).fit(X, y).coef_, fits[0].coef_)
    single = TheilSenRegressor(random_state=7).fit(pd.DataFrame(X.astype(np.float32)).rename(columns=str), y)
    assert single.coef_.dtype == np.float32


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(3, 40), st.integers(1, 4), st.booleans())
def test_the_bound_on_the_spatial_median_is_true(seed, n, d, ties):
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4)
    if ties:  # an optimum on a point, and points on a line
        points = np.round(points / np.abs(points).max() * 2)
    solution = spatial_median(points, 1e-10, 300, Monitor())
    assert solution.certificate.holds
    best = min(sum_of_distances(points, solution.x), *(sum_of_distances(points, p) for p in points))
    found = minimize(lambda m: sum_of_distances(points, m), solution.x, method="Nelder-Mead")
    assert solution.value <= min(best, found.fun) * (1 + 1e-9) + 1e-300
    # a shift and a turn of the points carries over
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    turned = spatial_median(points @ Q + 3.0, 1e-10, 300, Monitor())
    assert turned.value == pytest.approx(solution.value, rel=1e-8, abs=1e-12)
