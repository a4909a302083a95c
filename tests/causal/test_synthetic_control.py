"""Synthetic control: weights by SciPy's solver, the bound on the gap, placebo tests under no effect."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy.optimize import minimize

from epicycle.causal import SyntheticControl
from epicycle.causal.designs._synthetic_control import nearest_in_hull
from epicycle.exceptions import DataError


@given(st.integers(0, 2**32), st.integers(2, 25), st.integers(2, 12), st.sampled_from([0.0, 0.3]))
def test_weights_are_the_minimum_over_the_simplex(seed, n, T, ridge):
    rng = np.random.default_rng(seed)
    A, b = rng.normal(size=(T, n)), rng.normal(size=T)
    found = nearest_in_hull(A, b, ridge)

    def value(w):
        return np.sum((A @ w - b) ** 2) / 2 + ridge * w @ w / 2

    assert found.weights.min() >= 0
    assert found.weights.sum() == pytest.approx(1, abs=1e-12)
    assert found.gap <= 1e-9 * found.scale
    limits = {"bounds": [(0, 1)] * n, "constraints": {"type": "eq", "fun": lambda w: w.sum() - 1}}
    reference = minimize(value, np.full(n, 1 / n), method="SLSQP", options={"maxiter": 500, "ftol": 1e-14}, **limits)
    assert value(found.weights) <= reference.fun + 1e-8
    # The bound is one: at any weights, at least what could be gained.
    w = rng.dirichlet(np.ones(n))
    g = A.T @ (A @ w - b) + ridge * w
    assert g @ w - g.min() >= value(w) - value(found.weights) - 1e-9


def panel(Y, start, treated=(0,)):
    n, T = Y.shape
    unit, time = np.repeat(np.arange(n), T), np.tile(np.arange(1990, 1990 + T), n)
    d = (np.isin(unit, treated) & (time >= 1990 + start)).astype(float)
    return Y.ravel(), {"unit": unit, "time": time, "treatment": d}


def test_a_mixture_is_recovered_and_its_effect_is_exact():
    rng = np.random.default_rng(0)
    donors = rng.normal(size=(8, 30)).cumsum(axis=1)
    truth = np.array([0.5, 0.3, 0.2, 0, 0, 0, 0, 0])
    own = truth @ donors
    own[20:] += np.arange(1, 11)
    y, columns = panel(np.vstack([own, donors]), 20)
    model = SyntheticControl().fit(y, **columns)
    np.testing.assert_allclose(model.weights_, truth, atol=1e-7)
    np.testing.assert_allclose(model.gaps_[20:], np.arange(1, 11), atol=1e-6)
    assert model.effect_ == pytest.approx(5.5, abs=1e-6)
    assert model.certificate_.holds
    assert model.history_.objective[-1] <= model.history_.objective[0]
    order = np.random.default_rng(1).permutation(len(y))
    shuffled = SyntheticControl().fit(y[order], **{k: v[order] for k, v in columns.items()})
    np.testing.assert_allclose(shuffled.weights_, model.weights_, atol=1e-12)
    lifted = SyntheticControl(demean=True).fit(y + 100 * (columns["unit"] == 0), **columns)
    assert lifted.effect_ == pytest.approx(5.5, abs=1e-6)
    assert SyntheticControl(ridge=1.0).fit(y, **columns).weights_.max() < 0.5


def test_placebo_ranks_are_the_definition():
    rng = np.random.default_rng(2)
    Y = rng.normal(size=(12, 24)).cumsum(axis=1)
    y, columns = panel(Y, 12)
    model = SyntheticControl(max_pre_ratio=np.inf).fit(y, **columns)
    ratios = []
    for j in range(12):
        others = [i for i in range(12) if i not in (j, 0)]
        w = nearest_in_hull(Y[others, :12].T, Y[j, :12]).weights
        gap = Y[j] - w @ Y[others]
        ratios.append(np.mean(gap[12:] ** 2) / np.mean(gap[:12] ** 2))
    assert model.ratio_ == pytest.approx(ratios[0])
    assert model.p_value_ == pytest.approx(np.mean(np.array(ratios) >= ratios[0] * (1 - 1e-12)))
    assert len(model.placebo_gaps_) == 11
    strict = SyntheticControl(max_pre_ratio=1.0).fit(y, **columns)
    before = np.mean(model.placebo_gaps_[:, :12] ** 2, axis=1)
    assert len(strict.placebo_gaps_) == np.sum(before <= model.pre_rmse_**2)


def test_what_cannot_be_estimated_is_named():
    Y = np.random.default_rng(0).normal(size=(5, 6))
    y, columns = panel(Y, 3)
    late = columns["treatment"] + (columns["unit"] == 1) * (columns["time"] == 1995)
    with pytest.raises(DataError, match="expected one date"):
        SyntheticControl().fit(y, **columns | {"treatment": late})
    with pytest.raises(DataError, match="1 times before"):
        SyntheticControl().fit(y, **panel(Y, 1)[1])
    axes = SyntheticControl().fit(y, **columns).plot()
    assert axes.shape == (2,)
    plt.close(axes[0].figure)


@pytest.mark.slow
def test_without_an_effect_the_placebo_test_keeps_its_level():
    rejected = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        Y = rng.normal(size=(10, 2)) @ rng.normal(size=(2, 16)) + rng.normal(size=(10, 16))
        y, columns = panel(Y, 10)
        rejected += SyntheticControl(max_pre_ratio=np.inf).fit(y, **columns).p_value_ <= 0.1
    # The treated unit is one of 10 that could have been drawn: 1 of 10 ranks is at most 0.1.
    assert 0.06 <= rejected / 200 <= 0.14
