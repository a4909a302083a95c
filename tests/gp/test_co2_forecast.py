"""The forecast of carbon dioxide over Mauna Loa: the same likelihood and forecast as scikit-learn, and years ahead."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process import GaussianProcessRegressor as SklearnRegressor
from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, RationalQuadratic, WhiteKernel

from epicycle import GaussianProcessRegressor
from epicycle.kernel import Gaussian, Periodic, RationalQuadratic as OurRationalQuadratic

TABLE = Path(__file__).resolve().parents[2] / "docs" / "figures" / "mauna_loa_co2.txt"  # a row for every year
SPLIT, END = 2004.0, 2014.0


@pytest.fixture(scope="module")
def months():
    """(year as a decimal column, parts per million), of every third month."""
    table = np.loadtxt(TABLE)
    years = (1958 + np.arange(len(table))[:, None] + (np.arange(12) + 0.5) / 12).ravel()[::3]
    values = table.ravel()[::3]
    known = np.isfinite(values) & (years < END)
    return years[known, None], values[known]


def scikit_learn_kernel():
    trend, season = 50.0**2 * RBF(50.0), 2.0**2 * RBF(100.0) * ExpSineSquared(1.0, 1.0, periodicity_bounds="fixed")
    return trend + season + 0.5**2 * RationalQuadratic(1.0, 1.0) + 0.1**2 * RBF(0.1) + WhiteKernel(0.1**2)


def test_agrees_with_scikit_learn(months):
    t, y = months
    train = t[:, 0] < SPLIT
    mean = y[train].mean()
    models = [
        model(scikit_learn_kernel(), alpha=1e-10, optimizer=None).fit(t[train], y[train] - mean)
        for model in (GaussianProcessRegressor, SklearnRegressor)
    ]
    ours, theirs = models
    assert ours.log_marginal_likelihood() == pytest.approx(theirs.log_marginal_likelihood(), rel=1e-9)
    values = [model.log_marginal_likelihood(theirs.kernel_.theta, eval_gradient=True) for model in models]
    assert_allclose(values[0][1], values[1][1], rtol=1e-6, atol=1e-5)
    for mine, its in zip(*(model.predict(t[~train], return_std=True) for model in models), strict=True):
        assert_allclose(mine, its, rtol=1e-6, atol=1e-6)


def test_forecasts_ten_years(months):
    t, y = months
    train = t[:, 0] < SPLIT
    kernel = 2500.0 * Gaussian(50.0)
    kernel = kernel + 4.0 * Gaussian(100.0) * Periodic(1.0, period=1.0, bounds={"period": "fixed"})
    kernel = kernel + 0.25 * OurRationalQuadratic(1.0, alpha=1.0)
    model = GaussianProcessRegressor(kernel, noise=0.05, mean="linear").fit(t[train], y[train])
    assert model.certificate_.holds
    start = GaussianProcessRegressor(kernel, noise=0.05, mean="linear", optimizer=None).fit(t[train], y[train])
    assert model.log_marginal_likelihood_value_ > start.log_marginal_likelihood_value_ + 3
    forecast, interval = model.predict(t[~train], return_interval=True, include_noise=True)
    error = np.sqrt(np.mean((forecast - y[~train]) ** 2))
    line = np.polyval(np.polyfit(t[train, 0], y[train], 1), t[~train, 0])
    assert error < 1.0  # parts per million, of a rise by 20 and seasons of 6; 0.49 was found
    assert error < 0.2 * np.sqrt(np.mean((line - y[~train]) ** 2))
    inside = (interval[:, 0] <= y[~train]) & (y[~train] <= interval[:, 1])
    assert inside.mean() > 0.8
    phase = t[~train, 0] % 1  # the season goes on: April is higher than October, in spite of the rise
    assert forecast[np.abs(phase - 0.29) < 0.01].mean() - forecast[phase > 0.7].mean() > 2
