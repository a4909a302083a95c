"""Difference in differences: the minimum wage of Card and Krueger, regressions of statsmodels, staggered adoption."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import given, strategies as st
from numpy.testing import assert_allclose

from epicycle.causal import DifferenceInDifferences
from epicycle.exceptions import DataError


def staggered(seed=0, units=60, T=6, growth=1.0, noise=1.0, starts=(2, 4, 99)):
    rng = np.random.default_rng(seed)
    start = np.resize(starts, units)
    unit, time = np.repeat(np.arange(units), T), np.tile(np.arange(T), units)
    begins = start[unit]
    treated = (time >= begins).astype(float)
    y = rng.normal(size=units)[unit] + 0.5 * time + noise * rng.normal(size=len(unit))
    y += treated * (1 + growth * (time - begins))
    return y, {"unit": unit, "time": time, "treatment": treated}


def exactly(rng, n, mean, standard_error):
    z = rng.normal(size=n)
    z = (z - z.mean()) / z.std(ddof=1)
    return mean + standard_error * np.sqrt(n) * z


@pytest.mark.parametrize("method", ["group_time", "two_way"])
def test_minimum_wage_of_card_and_krueger(method):
    """Changes of employment made from row 4 of table 3 (American Economic Review 84, 1994): 2.75 with error 1.34."""
    rng = np.random.default_rng(0)
    change = np.concatenate([exactly(rng, 309, 0.47, 0.48), exactly(rng, 75, -2.28, 1.25)])
    before = np.concatenate([exactly(rng, 309, 20.44, 0.51), exactly(rng, 75, 23.33, 1.35)])
    y = np.stack([before, before + change], axis=1).ravel()
    unit, time = np.repeat(np.arange(384), 2), np.tile(["1992-02", "1992-11"], 384)
    treated = ((unit < 309) & (time == "1992-11")).astype(float)
    model = DifferenceInDifferences(method).fit(None, y, unit=unit, time=time, treatment=treated)
    assert model.effect_ == pytest.approx(2.75, abs=1e-9)
    assert model.standard_error_ == pytest.approx(np.hypot(1.25, 0.48), rel=1e-9 if method == "group_time" else 0.01)
    assert model.interval_[0] > 0
    assert model.pretrend_test_ is None
    assert model.negative_weight_ == pytest.approx(0, abs=1e-12)
    assert model.certificate_.holds


@given(st.integers(0, 2**32))
def test_group_time_effects_are_the_saturated_regression(seed):
    """Sun and Abraham: least squares on an indicator of every group and time but the reference gives the same."""
    y, panel = staggered(seed, units=30)
    model = DifferenceInDifferences().fit(None, y, **panel)
    unit, time = panel["unit"], panel["time"]
    begins = np.resize((2, 4, 99), 30)[unit]
    cells = [(g, t) for g in (2, 4) for t in range(6) if t != g - 1]
    D = np.column_stack([(begins == g) & (time == t) for g, t in cells]).astype(float)
    effects = np.column_stack([unit[:, None] == np.arange(30), time[:, None] == np.arange(1, 6)]).astype(float)
    coef = sm.OLS(y, np.column_stack([D, effects])).fit().params[: len(cells)]
    assert_allclose(model.group_time_["effect"], coef, rtol=1e-7, atol=1e-9)
    assert model.effect_ == pytest.approx(np.mean([c for c, (g, t) in zip(coef, cells, strict=True) if t >= g]))
    event = {int(r): v for r, v in zip(model.event_study_.rows, model.event_study_["effect"], strict=True)}
    assert event[1] == pytest.approx(np.mean([coef[cells.index((g, g + 1))] for g in (2, 4)]))


def test_two_way_is_least_squares_with_dummies_also_with_gaps():
    y, panel = staggered(1)
    rng = np.random.default_rng(2)
    X = rng.normal(size=(len(y), 1))
    kept = rng.random(len(y)) < 0.8
    unit, time, d = (panel[k][kept] for k in ("unit", "time", "treatment"))
    model = DifferenceInDifferences("two_way").fit(X[kept], y[kept], unit=unit, time=time, treatment=d)
    dummies = np.column_stack([unit[:, None] == np.unique(unit), time[:, None] == np.arange(1, 6)]).astype(float)
    fit = sm.OLS(y[kept], np.column_stack([d, X[kept], dummies])).fit()
    assert_allclose(model.coef_, fit.params[:2], rtol=1e-9)
    G, N = len(np.unique(unit)), kept.sum()
    bread = fit.normalized_cov_params
    A = np.column_stack([d, X[kept], dummies]) * fit.resid[:, None]
    sums = np.array([A[unit == u].sum(axis=0) for u in np.unique(unit)])
    V = (bread @ sums.T @ sums @ bread)[0, 0] * G / (G - 1) * (N - 1) / (N - 8)
    assert model.standard_error_ == pytest.approx(np.sqrt(V), rel=1e-8)
    with pytest.raises(DataError, match="needs every unit at every time"):
        DifferenceInDifferences().fit(None, y[kept], unit=unit, time=time, treatment=d)


def test_effects_that_grow_mislead_two_way_and_not_group_time():
    y, panel = staggered(units=60, growth=2.0, noise=0.0, starts=(1, 4, 4, 99))
    truth = np.mean([1 + 2 * (t - g) for g, n in ((1, 15), (4, 30)) for t in range(g, 6) for _ in range(n)])
    for comparison in ("never", "not_yet"):
        model = DifferenceInDifferences(comparison=comparison).fit(None, y, **panel)
        assert model.effect_ == pytest.approx(truth, abs=1e-9)
        assert_allclose(model.event_study_["effect"], [0, 0, 0, 1, 3, 5, 7, 9], atol=1e-9)
    naive = DifferenceInDifferences("two_way").fit(None, y, **panel)
    assert naive.effect_ < truth - 0.8
    assert naive.negative_weight_ > 0.02
    assert naive.negative_weight_ == model.negative_weight_


def test_different_trends_before_the_treatment_are_found():
    y, panel = staggered(3, units=120)
    model = DifferenceInDifferences().fit(None, y, **panel)
    assert model.pretrend_test_.p_value > 0.05
    drift = 0.5 * panel["time"] * (np.resize((2, 4, 99), 120)[panel["unit"]] < 99)
    assert DifferenceInDifferences().fit(None, y + drift, **panel).pretrend_test_.p_value < 1e-4
    early = DifferenceInDifferences(anticipation=1).fit(None, y, **panel)
    assert early.event_study_.rows == ("-4", "-3", "-1", "+0", "+1", "+2", "+3")
    twice = DifferenceInDifferences().fit(None, np.tile(y, 2), clusters=np.tile(panel["unit"], 2), **doubled(panel))
    assert twice.effect_ == pytest.approx(model.effect_)  # every unit twice in one cluster: nothing is learnt
    assert twice.standard_error_ == pytest.approx(model.standard_error_, rel=1e-9)


def doubled(panel):
    units = panel["unit"]
    both = {k: np.tile(v, 2) for k, v in panel.items()}
    both["unit"] = np.concatenate([units, units + units.max() + 1])
    return both


def test_what_cannot_be_estimated_is_named():
    y, panel = staggered()
    off = panel["treatment"] * (panel["time"] != 5)
    fit = DifferenceInDifferences().fit
    with pytest.raises(DataError, match="ends again for unit 0"):
        fit(None, y, **panel | {"treatment": off})
    with pytest.raises(DataError, match="2 rows for unit 0 at 0"):
        fit(None, y, **panel | {"time": np.where(panel["time"] == 1, 0, panel["time"])})
    everyone = staggered(starts=(2, 4))
    with pytest.raises(DataError, match="comparison='not_yet'"):
        fit(None, everyone[0], **everyone[1])
    assert np.isfinite(DifferenceInDifferences(comparison="not_yet").fit(None, everyone[0], **everyone[1]).effect_)


def test_plot_shows_before_and_after():
    y, panel = staggered()
    ax = DifferenceInDifferences().fit(None, y, **panel).plot()
    assert [t.get_text() for t in ax.get_legend().get_texts()][:2] == ["reference", "before"]
    plt.close(ax.figure)
