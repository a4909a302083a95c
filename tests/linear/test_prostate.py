"""The prostate tables of Hastie, Tibshirani and Friedman, The Elements of Statistical Learning (2009), chapter 3."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from prostate import NAMES, TRAIN, X, Y
from scipy.optimize import brentq

from epicycle import LinearRegression, Ridge, RidgeCV


@pytest.fixture(scope="module")
def training():
    """Standardised with all 97 rows, as the book does; then the 67 of the training set."""
    Z = pd.DataFrame((X - X.mean(axis=0)) / X.std(axis=0, ddof=1), columns=NAMES)
    return Z[TRAIN], Y[TRAIN]


def test_least_squares_of_table_3_2(training):
    assert len(training[1]) == 67
    summary = LinearRegression().fit(*training).summary()
    assert list(summary.rows) == ["intercept", *NAMES]
    assert_allclose(summary["coef"], [2.46, 0.68, 0.26, -0.14, 0.21, 0.31, -0.29, -0.02, 0.27], atol=0.0051)
    assert_allclose(summary["std err"], [0.09, 0.13, 0.10, 0.10, 0.10, 0.12, 0.15, 0.15, 0.15], atol=0.0051)
    assert_allclose(summary["t"], [27.60, 5.37, 2.75, -1.40, 2.06, 2.47, -1.87, -0.15, 1.74], atol=0.0051)


def test_f_statistic_of_section_3_2_1(training):
    """Dropping age, lcp, gleason and pgg45: F = 1.67 with (4, 58) degrees of freedom, p-value 0.17."""
    Z, y = training
    large, small = (LinearRegression().fit(A, y).summary() for A in (Z, Z[["lcavol", "lweight", "lbph", "svi"]]))
    assert large.facts["degrees of freedom"] == 58
    rss = [s.facts["residual std"] ** 2 * s.facts["degrees of freedom"] for s in (small, large)]
    assert_allclose(rss, [32.81, 29.43], atol=0.0051)
    assert_allclose((rss[0] - rss[1]) / 4 / (rss[1] / 58), 1.67, atol=0.0051)


def test_ridge_of_table_3_3(training):
    """Five effective degrees of freedom without the intercept; the book rounds coefficients to three digits."""
    Z, y = training
    alpha = brentq(lambda a: Ridge(a).fit(Z, y).effective_dof_ - 6.0, 1.0, 100.0)
    ridge = Ridge(alpha).fit(Z, y)
    assert_allclose(ridge.coef_, [0.420, 0.238, -0.046, 0.162, 0.227, 0.000, 0.040, 0.133], atol=0.006)
    assert_allclose(ridge.intercept_ + ridge.coef_ @ Z.mean(), 2.452, atol=0.00051)  # printed at the mean of X
    test = (X[~TRAIN] - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    with pytest.warns(UserWarning, match="feature names"):
        error = np.mean((Y[~TRAIN] - ridge.predict(test)) ** 2)
    assert_allclose(error, 0.492, atol=0.005)


def test_leave_one_out_chooses_about_as_much_shrinkage(training):
    model = RidgeCV().fit(*training)
    assert 4 < model.effective_dof_ < 9
