"""Regression discontinuity: figures of rdrobust 2.1.1, weighted least squares, manipulation, coverage."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from epicycle.causal import RegressionDiscontinuity
from epicycle.causal.designs._regression_discontinuity import density_test
from epicycle.exceptions import DataError


@pytest.fixture(scope="module")
def example():
    """The data of which rdrobust's figures are below."""
    rng = np.random.default_rng(5)
    x = rng.beta(2, 4, 800) * 2 - 1
    y = 0.48 + 1.27 * x + 7.18 * x**2 * (x < 0) - 3 * x**2 * (x >= 0) + 0.5 * (x >= 0) + 0.3 * rng.normal(size=800)
    t = (rng.random(800) < 0.2 + 0.5 * (x >= 0)).astype(float)
    return x, y, t, y + t


def figures(model):
    names = ("bandwidth_", "bias_bandwidth_", "effect_", "effect_bias_corrected_")
    return [getattr(model, n) for n in (*names, "standard_error_", "robust_standard_error_")]


def test_sharp_and_fuzzy_designs_are_those_of_rdrobust(example):
    x, y, t, with_t = example
    # Residuals of neighbours are taken over all rows, not inside each window, which moves the fourth to sixth digit.
    sharp = [0.1908713632, 0.3353834763, 0.4625013052, 0.4254317492, 0.0843475005, 0.0950632747]
    model = RegressionDiscontinuity().fit(x, y)
    assert_allclose(figures(model), sharp, rtol=1e-4)
    assert_allclose(model.interval_, [0.2391111546, 0.6117523438], rtol=1e-4)
    assert model.certificate_.holds
    fuzzy = [0.1937487533, 0.32009227, 1.7114906428, 1.6400794361, 0.2200987127, 0.2486821042]
    assert_allclose(figures(RegressionDiscontinuity().fit(x, with_t, treatment=t)), fuzzy, rtol=3e-4)
    # A cutoff elsewhere and other units change nothing but the units.
    moved = RegressionDiscontinuity(cutoff=2012.0).fit(12 * x + 2012, 5 * y)
    assert_allclose(figures(moved), np.array(figures(model)) * [12, 12, 5, 5, 5, 5], rtol=1e-6)


@given(st.integers(0, 2**32), st.sampled_from(["triangular", "epanechnikov", "uniform"]), st.integers(0, 2))
def test_estimates_are_weighted_least_squares(seed, kernel, order):
    rng = np.random.default_rng(seed)
    x, h, b = rng.uniform(-1, 1, 150), 0.6, 0.8
    y = np.exp(x) + (x >= 0) + rng.normal(size=150)
    model = RegressionDiscontinuity(kernel=kernel, order=order, bandwidth=h, bias_bandwidth=b).fit(x, y)

    def weights(width):
        u = np.abs(x / width)
        return {"triangular": 1 - u, "epanechnikov": 1 - u**2, "uniform": 1.0}[kernel] * (u <= 1)

    ends = []
    for side in (x < 0, x >= 0):
        fit = sm.WLS(y[side], np.vander(x[side], order + 1, increasing=True), weights(h)[side]).fit()
        wide = sm.WLS(y[side], np.vander(x[side], order + 2, increasing=True), weights(b)[side]).fit()
        # What the polynomial makes of the power that it leaves out is its bias.
        power = sm.WLS(x[side] ** (order + 1), np.vander(x[side], order + 1, increasing=True), weights(h)[side]).fit()
        ends.append((fit.params[0], fit.params[0] - power.params[0] * wide.params[-1]))
    assert model.effect_ == pytest.approx(ends[1][0] - ends[0][0], rel=1e-7, abs=1e-9)
    assert model.effect_bias_corrected_ == pytest.approx(ends[1][1] - ends[0][1], rel=1e-7, abs=1e-9)
    assert model.bias_bandwidth_ == b
    same = RegressionDiscontinuity(kernel=kernel, order=order, bandwidth=b).fit(x, y)
    assert same.bias_bandwidth_ == b


def test_noise_of_neighbours_is_the_definition():
    from epicycle.causal.designs._local_polynomial import neighbour_residuals

    rng = np.random.default_rng(0)
    x, y = np.sort(rng.integers(0, 12, 40).astype(float)), rng.normal(size=40) + 1e6
    got = neighbour_residuals(x, y)[0]
    for i in range(40):
        distance = np.abs(x - x[i])
        distance[i] = np.inf
        near = distance <= np.sort(distance)[2]
        J = near.sum()
        assert got[i] == pytest.approx(np.sqrt(J / (J + 1)) * (y[i] - y[near].mean()), abs=1e-7)


def test_manipulation_is_found_and_a_smooth_density_is_not():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    pushed = np.where((x > -0.15) & (x < 0) & (rng.random(2000) < 0.7), -x, x)
    for running, is_found in ((x, False), (pushed, True)):
        model = RegressionDiscontinuity().fit(running, running + rng.normal(size=2000))
        assert (model.density_test_.p_value < 0.01) == is_found
    assert_allclose(density_test(rng.normal(size=200_000))[1], 1 / np.sqrt(2 * np.pi), atol=0.015)


def test_what_cannot_be_estimated_is_named(example):
    x, y, _, _ = example
    with pytest.raises(DataError, match="cutoff: 800 rows lie left of it and 0 right"):
        RegressionDiscontinuity(5.0).fit(x, y)
    with pytest.raises(DataError, match=r"bandwidth: 0\.0001 leaves"):
        RegressionDiscontinuity(bandwidth=1e-4).fit(x, y)
    with pytest.raises(DataError, match="treatment: does not change"):
        RegressionDiscontinuity().fit(x, y, treatment=np.ones(800))


def test_plot_shows_bins_and_both_curves(example):
    ax = RegressionDiscontinuity().fit(*example[:2]).plot()
    assert len(ax.get_legend().get_texts()) == 2
    plt.close(ax.figure)


@pytest.mark.slow
def test_the_density_test_keeps_its_level():
    rng = np.random.default_rng(0)
    rejected = 0
    for _ in range(200):
        x = rng.uniform(-1, 1, 600)
        rejected += RegressionDiscontinuity().fit(x, x + rng.normal(size=600)).density_test_.p_value < 0.05
    assert 0.02 <= rejected / 200 <= 0.09, rejected  # 5% and three standard errors of 200 studies
