"""Rows and targets of 1e150: their squares are at the end of floating point, and no warning of NumPy's says so."""

import contextlib
import warnings

import cases
import numpy as np
import pytest
from sklearn.utils import get_tags

import epicycle as ep
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError

#: Estimators that warned once; all others are in the slow run.
ONCE = [
    *("LassoCV", "ElasticNetCV", "MultiTaskLassoCV", "GaussianMixture", "BayesianGaussianMixture", "KernelPCA"),
    *("MiniBatchKMeans", "EpicycleRegression", "LinearRegression", "Ridge", "KernelRidge", "SVR", "HuberRegressor"),
]
OTHERS = [
    pytest.param(c.__name__, marks=pytest.mark.slow)
    for c in cases.estimators()
    if hasattr(ep, c.__name__) and c.__name__ not in ONCE
]


@pytest.mark.parametrize("name", [*ONCE, *OTHERS])
def test_large_values_are_fitted_or_refused_without_warnings(name):
    model, rng = getattr(ep, name)(), np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = X[:, 1] + rng.normal(size=40)
    if get_tags(model).estimator_type == "classifier":
        problems = [(1e150 * X, (y > 0).astype(int))]
    else:
        y = np.column_stack([y, X[:, 0]]) if name.startswith("MultiTask") else y
        problems = [(1e150 * X, y), (X, 1e150 * y)]
    for rows, target in problems:
        with warnings.catch_warnings(), contextlib.suppress(DataError, ConvergenceError):
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(rows, target)
            for method in ("predict", "transform", "score_samples"):
                assert not hasattr(model, method) or cases._finite(getattr(model, method)(rows)), method
