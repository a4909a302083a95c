"""What every design keeps: files, forms of a table, weights, order and units; trends given covariates; placebos."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import root
from scipy.special import expit
from studies import sandwich

import epicycle as ep
from epicycle.causal import (
    DifferenceInDifferences,
    InstrumentalVariables,
    RegressionDiscontinuity,
    SyntheticControl,
)
from epicycle.causal.designs._group_time import degrees_of
from epicycle.exceptions import DataError


def instruments(seed=0, n=120):
    rng = np.random.default_rng(seed)
    X, Z, u = rng.normal(size=(n, 2)), rng.normal(size=(n, 2)), rng.normal(size=n)
    d = Z.sum(axis=1) + X[:, 0] + u + rng.normal(size=n)
    y = 1.5 * d + 2 * u + X[:, 1] + rng.normal(size=n)
    return {"X": X, "y": y, "treatment": d, "instruments": Z}


def cutoff(seed=0, n=240):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, size=n)
    return {"running": x, "y": np.sin(x) + 0.5 * (x >= 0) + 0.2 * rng.normal(size=n)}


def trends(seed=0, units=40, T=4, treated=None, slope=1.0):
    """Units whose trend, and chance of treatment at time 2, depend on x."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=units)
    treated = rng.random(units) < expit(x) if treated is None else treated
    Y = rng.normal(size=(units, 1)) + np.arange(T) * (0.5 + slope * x[:, None]) + rng.normal(size=(units, T))
    Y[:, 2:] += treated[:, None] * 1.0
    unit, time = np.repeat(np.arange(units), T), np.tile(np.arange(T), units)
    columns = {"unit": unit, "time": time, "treatment": (treated[unit] & (time >= 2)).astype(float)}
    return {"X": x[unit][:, None], "y": Y.ravel(), **columns}


def panel(seed=0, units=12, T=16, start=10):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(units, 2)) @ rng.normal(size=(2, T)) + rng.normal(size=(units, T))
    unit, time = np.repeat(np.arange(units), T), np.tile(np.arange(T), units)
    return {"y": Y.ravel(), "unit": unit, "time": time, "treatment": ((unit == 0) & (time >= start)).astype(float)}


DESIGNS = {
    "instruments": (InstrumentalVariables(), instruments),
    "cutoff": (RegressionDiscontinuity(), cutoff),
    "trends": (DifferenceInDifferences(), trends),
    "two_way": (DifferenceInDifferences("two_way"), lambda: trends() | {"X": None}),
    "panel": (SyntheticControl(), panel),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_files(name, tmp_path):
    model, make = DESIGNS[name]
    model.fit(**make())
    model.save(tmp_path / "design.epi")
    loaded = ep.load(tmp_path / "design.epi")
    assert (loaded.effect_, str(loaded.summary())) == (model.effect_, str(model.summary()))
    assert_allclose(loaded.interval_, model.interval_, rtol=0)
    assert str(loaded.certificate_) == str(model.certificate_)
    assert model.certificate_.holds
    assert len(loaded.history_) == len(model.history_)
    assert loaded.get_params() == model.get_params()
    drawn = np.ravel(loaded.plot())[0]
    plt.close(drawn.figure)


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize(("frame", "series"), [(pd.DataFrame, pd.Series), (pl.DataFrame, pl.Series)])
def test_other_forms_of_the_same_table(name, frame, series):
    model, make = DESIGNS[name]
    data = make()
    plain = model.fit(**data).effect_

    def other(values, kind):
        if values is None:
            return None
        values = values.astype(kind) if values.dtype.kind == "f" else values
        return series(values) if values.ndim == 1 else frame({f"c{j}": values[:, j] for j in range(values.shape[1])})

    assert model.fit(**{key: other(v, np.float64) for key, v in data.items()}).effect_ == plain
    single = model.fit(**{key: other(v, np.float32) for key, v in data.items()}).effect_
    assert single == pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize("name", DESIGNS)
def test_order_and_units(name):
    model, make = DESIGNS[name]
    data = make()
    plain = model.fit(**data)
    found = plain.effect_, plain.interval_
    order = np.random.default_rng(0).permutation(len(data["y"]))
    shuffled = model.fit(**{key: None if v is None else v[order] for key, v in data.items()})
    assert shuffled.effect_ == pytest.approx(found[0], rel=1e-9)
    for scale in (-7.0, 1e150, 1e-150):
        scaled = model.fit(**data | {"y": data["y"] * scale})
        assert scaled.effect_ / scale == pytest.approx(found[0], rel=1e-9)
        assert_allclose(np.sort(scaled.interval_ / scale), found[1], rtol=1e-7)


@pytest.mark.parametrize("scale", [1e150, 1e-150])
def test_units_of_treatments_and_of_running_variables(scale):
    data = instruments()
    plain = InstrumentalVariables().fit(**data)
    found, ends = plain.effect_, plain.anderson_rubin().intervals
    scaled = InstrumentalVariables().fit(**data | {"treatment": data["treatment"] * scale, "X": data["X"] * scale})
    assert scaled.effect_ * scale == pytest.approx(found, rel=1e-9)
    assert_allclose(scaled.anderson_rubin().intervals * scale, ends, rtol=1e-7)
    data = cutoff()
    plain = RegressionDiscontinuity().fit(**data)
    scaled = RegressionDiscontinuity().fit(data["running"] * scale, data["y"])
    assert scaled.effect_ == pytest.approx(plain.effect_, rel=1e-7)
    assert scaled.bandwidth_ / scale == pytest.approx(plain.bandwidth_, rel=1e-7)


@given(st.integers(0, 2**32), st.sampled_from(["2sls", "liml", "fuller"]), st.sampled_from(["robust", "classical", ""]))
@settings(max_examples=12)
def test_a_row_of_weight_two_is_two_rows_for_instruments(seed, method, covariance):
    data = instruments(seed, n=60)
    rng = np.random.default_rng(seed)
    w = rng.integers(0, 4, 60)
    rows = rng.permutation(np.repeat(np.arange(60), w))
    groups = None if covariance else rng.integers(0, 12, 60)
    model = InstrumentalVariables(method, covariance=covariance or "robust")
    weighted = model.fit(**data, groups=groups, sample_weight=w)
    found = evidence(weighted), weighted.anderson_rubin().intervals
    repeated = model.fit(**{k: v[rows] for k, v in data.items()}, groups=None if groups is None else groups[rows])
    assert_allclose(evidence(repeated), found[0], rtol=1e-7)
    assert_allclose(repeated.anderson_rubin().intervals, found[1], rtol=1e-5)


def evidence(model):
    tests = (model.first_stage_F_, model.endogeneity_, model.overidentification_)
    numbers = [model.effect_, model.standard_error_, *model.interval_, model.effective_F_, model.effective_F_critical_]
    return [*numbers, *model.first_stage_, *(t.statistic for t in tests)]


def test_weights_that_count_rows_at_a_cutoff():
    data = cutoff()
    w = np.random.default_rng(1).integers(0, 3, 240)
    rows = np.repeat(np.arange(240), w)
    weighted = RegressionDiscontinuity().fit(**data, sample_weight=w)
    repeated = RegressionDiscontinuity().fit(data["running"][rows], data["y"][rows])
    assert weighted.effect_ == repeated.effect_
    assert_allclose(weighted.interval_, repeated.interval_)
    with pytest.raises(DataError, match="sample_weight: rows are counted"):
        RegressionDiscontinuity().fit(**data, sample_weight=w + 0.5)
    with pytest.raises(DataError, match="sample_weight: rows are counted"):
        RegressionDiscontinuity().fit(**data, sample_weight=np.full(240, 1e9))
    with pytest.raises(DataError, match="no negative ones"):
        RegressionDiscontinuity().fit(**data, sample_weight=w - 1)


@given(st.integers(0, 2**32), st.sampled_from(["plain", "regression", "doubly_robust", "two_way"]), st.booleans())
@settings(max_examples=12)
def test_a_unit_of_weight_two_is_two_units(seed, kind, clustered):
    data = trends(seed, treated=np.arange(40) % 2 == 0)
    rng = np.random.default_rng(seed)
    w = rng.integers(1, 4, 40)
    w[rng.integers(0, 40, 6)] = 0
    model = DifferenceInDifferences("two_way" if kind == "two_way" else "group_time")
    if kind in ("regression", "doubly_robust"):
        model.set_params(adjustment=kind)
    if kind == "plain":
        data["X"] = None
    elif kind == "two_way":
        data["X"] = rng.normal(size=(160, 1))
    cluster = data["unit"] // 5 if clustered else None
    weighted = model.fit(**data, clusters=cluster, sample_weight=w[data["unit"]])
    found = [weighted.effect_, weighted.standard_error_, *weighted.interval_, weighted.negative_weight_]
    table = str(weighted.event_study_)
    copies = np.repeat(np.arange(40), w)
    rows = (4 * copies[:, None] + np.arange(4)).ravel()
    again = {key: None if v is None else v[rows] for key, v in data.items()}
    again["unit"] = np.repeat(np.arange(len(copies)), 4)
    repeated = model.fit(**again, clusters=None if cluster is None else cluster[rows])
    got = [repeated.effect_, repeated.standard_error_, *repeated.interval_, repeated.negative_weight_]
    assert_allclose(got, found, rtol=1e-6, atol=1e-12)
    assert str(repeated.event_study_) == table


def test_weights_of_a_unit_are_one():
    data = trends()
    with pytest.raises(DataError, match="differs between the times of a unit"):
        DifferenceInDifferences().fit(**data, sample_weight=1.0 + data["time"])
    with pytest.raises(DataError, match="adds up to 0"):
        DifferenceInDifferences().fit(**data, sample_weight=np.zeros(160))


# ---------------------------------------------------------------- trends given covariates


def hat(Z, v):
    """Leverages of rows in weighted least squares."""
    return np.diag(Z @ np.linalg.solve(Z.T @ (Z * v[:, None]), Z.T)) * v


def test_adjusted_trends_solve_their_equations():
    """Effects and standard errors from the stacked equations of regression, propensity and means."""
    data = trends(3, units=80, T=3)
    x, D = data["X"][::3, 0], data["treatment"].reshape(-1, 3)[:, 2]
    change = np.diff(data["y"].reshape(-1, 3), axis=1)[:, 1]
    Z = np.column_stack([np.ones(80), x])

    def equations(theta):
        b, gamma, shift, total = theta[:2], theta[2:4], theta[4], theta[5]
        r, p = change - Z @ b, expit(Z @ gamma)
        odds = (1 - D) * p / (1 - p)
        line, logit = Z * ((1 - D) * r)[:, None], Z * (D - p)[:, None]
        return np.column_stack([line, logit, odds * (r - shift), D * (r - shift - total)])

    solved = root(lambda theta: equations(theta).mean(0), np.zeros(6), tol=1e-13).x
    robust = DifferenceInDifferences().fit(**data)
    at_once = robust.group_time_.rows.index("2 at 2")
    assert robust.group_time_["effect"][at_once] == pytest.approx(solved[5], rel=1e-7)

    # Scores of each equation are divided by sqrt(1 - h) with the leverage h of a unit in it.
    p, treated = expit(Z @ solved[2:4]), D.sum()
    odds = (1 - D) * p / (1 - p)
    of_line = np.sqrt(1 - hat(Z, 1 - D))
    free = (change - Z @ solved[:2]) / of_line
    means = [odds * (free - solved[4]) / np.sqrt(1 - odds / odds.sum())]
    means += [D * (free - solved[4] - solved[5]) / np.sqrt(1 - D / treated)]
    logit = Z * ((D - p) / np.sqrt(1 - hat(Z, p * (1 - p))))[:, None]
    scores = np.column_stack([Z * ((1 - D) * free)[:, None], logit, *means])
    error = sandwich(equations, solved, scores)[5]
    assert robust.group_time_["std err"][at_once] == pytest.approx(error, rel=1e-4)
    assert 1 < error / sandwich(equations, solved)[5] < 1.1

    def without_propensity(theta):
        r = change - Z @ theta[:2]
        return np.column_stack([Z * ((1 - D) * r)[:, None], D * (r - theta[2])])

    solved = root(lambda theta: without_propensity(theta).mean(0), np.zeros(3), tol=1e-13).x
    line = DifferenceInDifferences(adjustment="regression").fit(**data)
    assert line.effect_ == pytest.approx(solved[2], rel=1e-7)
    means = D * (free - solved[2]) / np.sqrt(1 - D / treated)
    error = sandwich(without_propensity, solved, np.column_stack([Z * ((1 - D) * free)[:, None], means]))[2]
    assert line.standard_error_ == pytest.approx(error, rel=1e-4)


def test_degrees_of_freedom_follow_from_the_influences():
    """Satterthwaite: 2 (mean of squares)^2 / variance of the mean of squares; a unit that outweighs all leaves one."""
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(500, 3)) * 1e90
    psi[7, 2] = 1e95
    q = (psi[:, 0] / 1e90) ** 2
    found = degrees_of(psi, None, np.ones(500))
    assert found[0] == pytest.approx(2 * q.sum() ** 2 / ((q - q.mean()) ** 2).sum())
    assert found[0] > 300
    assert found[2] == pytest.approx(2, rel=0.01)
    assert degrees_of(np.ones((9, 1)), None, np.ones(9)) == 8
    assert degrees_of(np.zeros((9, 1)), None, np.ones(9)) == 8
    clusters = np.arange(500) // 5
    sums = (psi[:, 0] / 1e90).reshape(100, 5).sum(axis=1) ** 2
    of_clusters = degrees_of(psi[:, :1], clusters, np.ones(500))
    assert of_clusters == pytest.approx(min(99, 2 * sums.sum() ** 2 / ((sums - sums.mean()) ** 2).sum()))


def test_trends_that_are_parallel_given_covariates():
    data = trends(0, units=2000)
    plain = DifferenceInDifferences().fit(**data | {"X": None})
    adjusted = DifferenceInDifferences().fit(**data)
    assert plain.effect_ - 1 > 5 * plain.standard_error_  # the treated rise by themselves
    assert plain.pretrend_test_.p_value < 1e-6
    assert abs(adjusted.effect_ - 1) < 3 * adjusted.standard_error_ < 0.3
    assert adjusted.pretrend_test_.p_value > 0.01
    treated = data["treatment"].reshape(-1, 4)[:, 3]
    with pytest.raises(DataError, match="tells treated units from those to compare with"):
        DifferenceInDifferences().fit(**data | {"X": 50 * treated[data["unit"]][:, None] + data["X"]})
    with pytest.raises(DataError, match="do not determine 3 coefficients"):
        DifferenceInDifferences().fit(**data | {"X": np.repeat(data["X"], 2, axis=1)})


# ---------------------------------------------------------------- placebo intervals


def test_placebo_intervals_are_the_effects_that_the_placebo_test_keeps():
    data = panel(4, units=30)
    model = SyntheticControl(max_pre_ratio=np.inf, confidence=0.9).fit(**data)
    before = np.sqrt(np.mean(model.placebo_gaps_[:, :10] ** 2, axis=1))
    ratios = np.abs(model.placebo_gaps_[:, 10:].mean(axis=1)) / before

    def p_value(effect):  # of a treated unit whose gaps after the treatment are less by the effect
        own = abs(model.effect_ - effect) / model.pre_rmse_
        return (1 + np.sum(ratios >= own)) / (1 + len(ratios))

    low, high = model.interval_
    width = high - low
    for effect, kept in ((low + 1e-6 * width, 1), (high - 1e-6 * width, 1), (low - 1e-6 * width, 0), (high + width, 0)):
        assert (p_value(effect) > 0.1) == bool(kept)
    assert np.isinf(SyntheticControl(max_pre_ratio=np.inf, confidence=0.99).fit(**data).interval_).all()
    assert "lower" in str(model.summary())
