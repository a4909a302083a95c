"""Random sample consensus: the inliers by construction, the same bits for any number of threads, its certificate."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import sklearn.linear_model as peer
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import epicycle as ep
from epicycle import HuberRegressor, LinearRegression, RANSACRegressor, Ridge
from epicycle.exceptions import ConvergenceWarning, DataError, NotFittedError, ParameterError
from epicycle.linear.robust._ransac import trials_needed


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, -2.0, 0.5] + 3 + 0.1 * rng.normal(size=300)
    outlier = np.arange(300) < 90
    X[:40], y[outlier] = 8.0, y[outlier] + rng.choice([-60, 40, 90], size=90)
    return X, y, outlier


@pytest.mark.parametrize(
    "estimator", [None, LinearRegression(), peer.LinearRegression(), Ridge(1e-8), HuberRegressor()]
)
def test_inliers_are_found_by_any_estimator(data, estimator):
    X, y, outlier = data
    model = RANSACRegressor(estimator, min_samples=4, residual_threshold=1.0, random_state=0).fit(X, y)
    assert_array_equal(model.inlier_mask_, ~outlier)
    least_squares = LinearRegression().fit(X[~outlier], y[~outlier])
    assert_allclose(model.estimator_.coef_, least_squares.coef_, atol=0.02)
    assert model.certificate_.holds
    assert model.n_trials_ == model.n_iter_ == model.history_.n_iter
    assert np.all(np.diff(model.history_.objective) <= 0)


def test_many_trials_at_once_are_single_trials(data):
    """Least squares of many subsets by one call, and one estimator for each of the same subsets."""
    X, y, _ = data
    weight = np.random.default_rng(1).uniform(0.5, 2, size=300)
    common = {"random_state": 3, "max_trials": 20}
    for intercept in (True, False):
        estimator = LinearRegression(fit_intercept=intercept)
        with ep.config(on_nonconvergence="ignore"):
            fast = RANSACRegressor(estimator, **common).fit(X, y, weight)
            slow = RANSACRegressor(estimator, is_data_valid=lambda X, y: True, **common).fit(X, y, weight)
        assert_array_equal(fast.inlier_mask_, slow.inlier_mask_)
        assert fast.n_trials_ == slow.n_trials_
        assert_array_equal(fast.history_["inliers"], slow.history_["inliers"])


def test_the_same_bits_for_any_number_of_threads(data):
    X, y, _ = data
    for estimator in (None, peer.LinearRegression()):
        fits = [RANSACRegressor(estimator, min_samples=4, random_state=5, n_jobs=k).fit(X, y) for k in (1, 2, 4)]
        for other in fits[1:]:
            assert_array_equal(other.inlier_mask_, fits[0].inlier_mask_)
            assert_array_equal(other.history_.objective, fits[0].history_.objective)
            assert_array_equal(other.estimator_.coef_, fits[0].estimator_.coef_)


def test_the_certificate_is_the_probability_of_a_miss(data):
    X, y, _ = data
    model = RANSACRegressor(residual_threshold=1.0, stop_probability=0.999, random_state=0).fit(X, y)
    share = model.inlier_mask_.mean()
    assert model.certificate_.value == pytest.approx((1 - share**4) ** model.n_trials_)
    assert model.certificate_.value <= model.certificate_.tolerance == pytest.approx(0.001)
    with pytest.warns(ConvergenceWarning, match="raise max_trials"):
        few = RANSACRegressor(residual_threshold=1.0, max_trials=2, random_state=0).fit(X, y)
    assert not few.certificate_.holds


@pytest.mark.parametrize(
    ("share", "m", "probability", "expected"),
    [
        (1.0, 2, 0.99, 1),
        (0.95, 2, 0.99, 2),
        (0.7, 2, 0.99, 7),
        (0.5, 8, 0.99, 1177),
        (0.5, 2, 1.0, math.inf),
        (0.1, 2, 0, 0),
    ],
)
def test_trials_needed(share, m, probability, expected):
    """The published table of Hartley and Zisserman (2004), page 119."""
    assert trials_needed(share, m, probability) == expected


def test_limits_of_the_trials(data):
    X, y, _ = data
    common = {"residual_threshold": 1.0, "random_state": 0}
    assert RANSACRegressor(stop_n_inliers=2, **common).fit(X, y).n_trials_ == 1
    assert RANSACRegressor(stop_score=-math.inf, **common).fit(X, y).n_trials_ == 1
    model = RANSACRegressor(is_data_valid=lambda X, y: False, max_trials=5, **common)
    with pytest.raises(DataError, match=r"could not find a valid consensus set.*invalid data: 5"):
        model.fit(X, y)
    assert (model.n_skips_no_inliers_, model.n_skips_invalid_data_, model.n_skips_invalid_model_) == (0, 5, 0)
    with pytest.raises(NotFittedError):  # the numbers alone make no model
        model.predict(X)
    assert model.set_params(is_data_valid=None, max_trials=100).fit(X, y).n_skips_invalid_data_ == 0
    with pytest.raises(DataError, match=r"skipped more iterations than `max_skips`.*invalid model: 4"):
        RANSACRegressor(is_model_valid=lambda m, X, y: False, max_skips=3, **common).fit(X, y)
    seen = []
    with pytest.warns(ConvergenceWarning, match="found a valid consensus set but exited early"):
        RANSACRegressor(is_data_valid=lambda X, y: not seen and not seen.append(1), max_skips=3, **common).fit(X, y)
    for wrong in (301, 1e-9 + 1.0):
        with pytest.raises((ParameterError, ValueError), match="min_samples"):
            RANSACRegressor(min_samples=wrong, **common).fit(X, y)
    with pytest.raises(ParameterError, match="stop_probability=1, max_trials=inf"):  # it would never end
        RANSACRegressor(stop_probability=1.0, max_trials=math.inf, **common).fit(X, y)
    with pytest.raises(ParameterError, match="needs to be explicitly set"):
        RANSACRegressor(Ridge(), **common).fit(X, y)
    with pytest.raises(ParameterError, match="does not support sample_weight"):
        RANSACRegressor(peer.OrthogonalMatchingPursuit(), min_samples=10).fit(X, y, np.ones(300))


def test_several_targets_sparse_rows_losses_and_frames(data, tmp_path):
    X, y, outlier = data
    Y = np.column_stack([y, 2 * y])
    model = RANSACRegressor(residual_threshold=3.0, random_state=0).fit(X, Y)
    assert_array_equal(model.inlier_mask_, ~outlier)
    assert model.predict(X).shape == (300, 2)
    own = RANSACRegressor(residual_threshold=3.0, random_state=0, loss=lambda a, b: np.abs(a - b).sum(axis=1)).fit(X, Y)
    assert_array_equal(own.inlier_mask_, model.inlier_mask_)
    squared = RANSACRegressor(residual_threshold=1.0, loss="squared_error", random_state=0).fit(sp.csr_array(X), y)
    assert_array_equal(squared.inlier_mask_, ~outlier)
    frame = pd.DataFrame(X.astype(np.float32), columns=list("abc"))
    named = RANSACRegressor(residual_threshold=1.0, random_state=0).fit(frame, y)
    assert list(named.feature_names_in_) == list("abc")
    named.save(tmp_path / "ransac.epi")
    assert_array_equal(ep.load(tmp_path / "ransac.epi").inlier_mask_, ~outlier)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([2.0**-20, 1.0, 2.0**20]))
def test_units_of_y_carry_over(seed, unit):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 2))
    y = X @ [1.0, -2.0] + 1e-3 * rng.normal(size=40)
    y[:8] = 50.0  # one consensus, whatever is drawn; in noise alone there are many
    with ep.config(on_nonconvergence="ignore"):
        a = RANSACRegressor(random_state=seed).fit(X, y)
        b = RANSACRegressor(random_state=seed).fit(X, y * unit)
    assert_array_equal(a.inlier_mask_, np.arange(40) >= 8)
    assert_array_equal(b.inlier_mask_, a.inlier_mask_)
    assert_allclose(b.predict(X), unit * a.predict(X), rtol=1e-6, atol=1e-9 * unit)
