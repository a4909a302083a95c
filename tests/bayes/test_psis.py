"""Pareto smoothed importance sampling against values of ArviZ, and against the tail of known distributions."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from epicycle.bayes import psis
from epicycle.bayes._psis import pareto_fit
from epicycle.exceptions import DataError, ParameterError

#: From ``arviz.stats.stats.psislw`` of ArviZ 0.23: inputs, k-hat and every tenth weight.
CASES = json.loads((Path(__file__).parent / "arviz_psis.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['name']}-{case['r_eff']}")
def test_equals_arviz(case):
    smoothed = psis(case["log_ratios"], r_eff=case["r_eff"])
    assert smoothed.k_hat == pytest.approx(case["k_hat"], rel=1e-9)
    np.testing.assert_allclose(smoothed.log_weights[::10], case["log_weights"], rtol=1e-10, atol=1e-10)


def test_weights_are_weights():
    x = np.random.default_rng(0).normal(size=500)
    smoothed = psis(x)
    assert np.exp(smoothed.log_weights).sum() == pytest.approx(1)
    # Constants do not matter, nor does the order.
    np.testing.assert_allclose(psis(x + 1000).log_weights, smoothed.log_weights, atol=1e-9)
    np.testing.assert_allclose(psis(x[::-1]).log_weights[::-1], smoothed.log_weights, atol=1e-12)
    # Below the tail only the constant changes; the tail keeps its order.
    body = np.argsort(x)[:390]
    assert np.ptp(smoothed.log_weights[body] - x[body]) < 1e-12
    assert np.all(np.diff(smoothed.log_weights[np.argsort(x)]) >= 0)
    assert psis(np.zeros(10)).k_hat == np.inf  # nothing stands out: no tail to fit


@pytest.mark.parametrize("k", [-0.3, 0.2, 0.7, 1.2])
def test_shape_of_a_known_tail(k):
    shapes = []
    for seed in range(20):
        x = np.sort(stats.genpareto(k, scale=2.0).rvs(4000, random_state=seed))
        shapes.append(pareto_fit(x)[0])
    # The prior draws towards 1/2 by 10 in 4010; the error of one estimate is (1 + k) / sqrt(n).
    expected = (4000 * k + 5) / 4010
    assert abs(np.mean(shapes) - expected) < 4 * (1 + k) / np.sqrt(20 * 4000) + 0.003


def test_bad_input():
    with pytest.raises(DataError, match="log_ratios: shape"):
        psis([[1.0]])
    with pytest.raises(DataError, match="log_ratios: holds NaN"):
        psis([1.0, np.nan])
    with pytest.raises(ParameterError, match="r_eff"):
        psis([1.0, 2.0], r_eff=0.0)
