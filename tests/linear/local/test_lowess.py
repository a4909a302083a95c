"""The same numbers as lowess of statsmodels, asked for in the same way."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from statsmodels.nonparametric.smoothers_lowess import lowess

import epicycle as ep
from epicycle.linear.local._locally_weighted_regression import anchors, bisquare_weights, weighted_median


def curve(n, seed=0, tail=2.0):
    rng = np.random.default_rng(seed)
    x = rng.uniform(0, 10, size=n)
    return x, np.sin(x) + 0.2 * rng.standard_t(tail, size=n)


@pytest.mark.parametrize("frac", [0.1, 0.35, 2 / 3, 1.0])
@pytest.mark.parametrize("it", [0, 1, 3])
@pytest.mark.parametrize("n", [50, 501])
def test_same_fit(n, it, frac):
    x, y = curve(n)
    expected = lowess(y, x, frac=frac, it=it, delta=0.0, return_sorted=False)
    model = ep.LocallyWeightedRegression(span=frac, kernel="tricube", robust_iterations=it).fit(x[:, None], y)
    assert_allclose(model.fitted_values_, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("delta", [0.02, 0.3, 5.0, 20.0])
@pytest.mark.parametrize("it", [0, 2])
def test_same_interpolation(delta, it):
    x, y = curve(300)
    expected = lowess(y, x, frac=0.3, it=it, delta=delta, return_sorted=False)
    model = ep.LocallyWeightedRegression(span=0.3, robust_iterations=it, delta=delta).fit(x[:, None], y)
    assert_allclose(model.fitted_values_, expected, rtol=1e-8, atol=1e-9)


def test_same_predictions_elsewhere():
    x, y = curve(200)
    at = np.linspace(-0.5, 10.5, 60)
    expected = lowess(y, x, frac=0.4, it=0, xvals=at)
    assert_allclose(ep.LocallyWeightedRegression(span=0.4).fit(x[:, None], y).predict(at[:, None]), expected, rtol=1e-8)


def test_ties_share_their_fit():
    rng = np.random.default_rng(1)
    x = rng.integers(0, 12, size=200) * 1.0
    y = np.cos(x) + 0.1 * rng.normal(size=200)
    expected = lowess(y, x, frac=0.5, it=2, delta=0.0, return_sorted=False)
    model = ep.LocallyWeightedRegression(span=0.5, robust_iterations=2).fit(x[:, None], y)
    assert_allclose(model.fitted_values_, expected, rtol=1e-8, atol=1e-9)


def test_anchors():
    x = np.array([0.0, 0.0, 1.0, 1.5, 2.0, 4.0, 4.5, 9.0])
    assert anchors(x, 0.0).tolist() == [0, 2, 3, 4, 5, 6, 7]
    assert anchors(np.zeros(4), 1.0).tolist() == [0]
    assert anchors(x, 100.0)[-1] == 7


def test_weighted_median_counts_repetitions():
    rng = np.random.default_rng(0)
    for n in range(1, 40):
        x, w = rng.normal(size=n), rng.integers(0, 4, size=n)
        w[0] += 1
        assert weighted_median(x, w.astype(float)) == pytest.approx(np.median(np.repeat(x, w)))


def test_bisquare():
    weights = bisquare_weights(np.array([0.0, 1.0, -1.0, 6.0, 3.0]), np.ones(5))
    assert_allclose(weights, [1, (1 - 1 / 36) ** 2, (1 - 1 / 36) ** 2, 0, 9 / 16])
    assert bisquare_weights(np.array([0.0, 0.0, 0.0, 2.0]), np.ones(4)).tolist() == [1, 1, 1, 0]
