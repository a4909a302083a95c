"""Figures of draws: what is drawn, for which quantities, and errors by name."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from numpy.testing import assert_allclose

from epicycle import bayes
from epicycle.bayes import Draws
from epicycle.exceptions import ParameterError


@pytest.fixture(autouse=True)
def figures_without_a_screen():
    before = plt.get_backend()
    plt.switch_backend("Agg")
    yield
    plt.close("all")
    plt.switch_backend(before)


@pytest.fixture(scope="module")
def draws():
    rng = np.random.default_rng(0)
    values = {"mu": rng.normal(size=(3, 200)), "theta": rng.normal(size=(3, 200, 2)) * [1.0, 100.0]}
    statistics = {"divergent": np.zeros((3, 200)), "energy": rng.normal(size=(3, 200))}
    statistics["divergent"][1, 17] = 1
    return Draws(values, statistics, method="nuts")


def test_trace_draws_every_chain_and_marks_divergences(draws):
    axes = draws.plot.trace()
    assert axes.shape == (3, 2)
    lines = axes[0, 0].get_lines()
    assert_allclose(lines[0].get_ydata(), draws["mu"][0])
    crosses = [line for line in lines if line.get_marker() == "x" and len(line.get_xdata())]
    assert [line.get_xdata().tolist() for line in crosses] == [[17]]
    density = axes[0, 1].get_lines()[0]
    assert_allclose(np.trapezoid(density.get_xdata(), density.get_ydata()), 1, rtol=0.02)
    assert [ax.get_ylabel() for ax in axes[:, 0]] == ["mu", "theta[0]", "theta[1]"]


def test_rank_bars_add_up_to_the_draws(draws):
    axes = draws.plot.rank("mu", bins=10)
    bars = [patch for patch in axes[0, 0].patches if patch.get_height() > 0 and patch.get_width() == 60.0]
    assert sum(patch.get_height() for patch in bars) == 600


def test_autocorrelation_is_that_of_the_draws(draws):
    x = draws["mu"][2] - draws["mu"][2].mean()
    line = draws.plot.autocorrelation(["mu"], max_lag=5)[0, 0].get_lines()[2].get_ydata()
    assert_allclose(line, [np.dot(x[: 200 - t], x[t:]) / np.dot(x, x) for t in range(6)], atol=1e-12)


def test_pair_marks_divergences(draws):
    axes = draws.plot.pair(["mu", "theta[1]"])
    points, crosses = axes[1, 0].get_lines()
    assert_allclose(points.get_ydata(), draws["theta"][..., 1].ravel())
    assert_allclose(crosses.get_xdata(), draws["mu"][1, 17])


def test_names_are_checked(draws):
    with pytest.raises(ParameterError, match="names: 'nu' is no quantity"):
        draws.plot.trace("nu")
    with pytest.raises(ParameterError, match="at least two"):
        draws.plot.pair("mu")
    with pytest.raises(ParameterError, match="bins=1"):
        draws.plot.rank(bins=1)


def test_figures_of_a_sampled_model():
    found = bayes.sample(bayes.NormalModel([0.0, 1.0], np.eye(2)), random_state=0, draws=400)
    for draw in (found.plot.trace, found.plot.rank, found.plot.pair, found.plot.autocorrelation):
        assert draw().size > 0
