"""Robust standard errors, intervals, leverages and facts about the fit equal statsmodels', wherever the rows are."""

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import scipy.stats
import statsmodels.api as sm
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_diabetes

import epicycle as ep
from epicycle import LinearRegression
from epicycle.exceptions import DataError, DataTypeError, MemoryBudgetError, NotFittedError, ParameterError

KINDS = ["nonrobust", "HC0", "HC1", "HC2", "HC3", "cluster", "HAC"]
every = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    rng = np.random.default_rng(0)
    return X, y, rng.uniform(0.1, 3, size=len(y)), rng.integers(0, 40, size=len(y))


def options(kind, groups):
    return {"cluster": {"groups": groups}, "HAC": {"maxlags": 5}}.get(kind, {})


def ours(kind, groups, **more):
    """(estimator, what fit is given beside the data)."""
    model = LinearRegression(cov_type=kind, **({"maxlags": 5} if kind == "HAC" else {}), **more)
    return model, {"groups": groups} if kind == "cluster" else {}


def theirs(X, y, kind, groups, weight=None, intercept=True, **more):
    design = sm.add_constant(X) if intercept else X
    model = sm.OLS(y, design) if weight is None else sm.WLS(y, design, weights=weight)
    return model.fit(cov_type=kind, cov_kwds=options(kind, groups), **more)


def compare(summary, result, statistic):
    low, high = np.asarray(result.conf_int()).T
    columns = {"coef": result.params, "std err": result.bse, statistic: result.tvalues, "[0.025": low, "0.975]": high}
    for name, values in columns.items():
        assert_allclose(summary[name], np.asarray(values), rtol=1e-8, err_msg=name)
    tail = 1 + np.max(np.asarray(result.tvalues) ** 2)
    assert_allclose(summary[f"P>|{statistic}|"], np.asarray(result.pvalues), rtol=1e-8 * tail, atol=1e-300)
    facts = {
        "rows": result.nobs,
        "residual std": np.sqrt(result.scale),
        "degrees of freedom": result.df_resid,
        "R2": result.rsquared,
        "adjusted R2": result.rsquared_adj,
        "F": result.fvalue,
        "log-likelihood": result.llf,
        "AIC": result.aic,
        "BIC": result.bic,
    }
    for name, value in facts.items():
        assert_allclose(summary.facts[name], value, rtol=1e-8, err_msg=name)
    assert_allclose(summary.facts["P>F"], result.f_pvalue, rtol=1e-6)


@every
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_summary(diabetes, kind, weighted, intercept):
    X, y, w, groups = diabetes
    model, extra = ours(kind, groups, fit_intercept=intercept)
    weight = w if weighted else None
    summary = model.fit(X, y, weight, **extra).summary()
    compare(summary, theirs(X, y, kind, groups, weight, intercept), "t" if kind == "nonrobust" else "z")


@every
def test_students_t_where_it_is_asked_for(diabetes, kind):
    X, y, _, groups = diabetes
    model, extra = ours(kind, groups)
    model.fit(X, y, **extra)
    result = theirs(X, y, kind, groups, use_t=True)
    compare(model.summary(use_t=True), result, "t")
    normal = theirs(X, y, kind, groups, use_t=False)
    assert_allclose(model.summary(use_t=False)["P>|z|"][1:4], normal.pvalues[1:4], rtol=1e-7)


@pytest.mark.parametrize(("kind", "correction"), [("cluster", False), ("HAC", True)])
def test_correction_for_few_rows(diabetes, kind, correction):
    X, y, _, groups = diabetes
    model, extra = ours(kind, groups, use_correction=correction)
    more = {**options(kind, groups), "use_correction": correction}
    result = sm.OLS(y, sm.add_constant(X)).fit(cov_type=kind, cov_kwds=more)
    assert_allclose(model.fit(X, y, **extra).summary()["std err"], result.bse, rtol=1e-8)


def test_default_number_of_lags_is_newey_and_wests_rule(diabetes):
    X, y, _, _ = diabetes
    by_rule = LinearRegression(cov_type="HAC").fit(X, y).summary()["std err"]
    assert_array_equal(by_rule, LinearRegression(cov_type="HAC", maxlags=5).fit(X, y).summary()["std err"])
    none = LinearRegression(cov_type="HAC", maxlags=0).fit(X, y).summary()["std err"]
    assert_allclose(none, LinearRegression(cov_type="HC0").fit(X, y).summary()["std err"], rtol=1e-10)


@every
def test_each_target(diabetes, kind):
    X, y, w, groups = diabetes
    model, extra = ours(kind, groups)
    model.fit(X, np.column_stack([y, np.sqrt(y)]), w, **extra)
    for t, values in enumerate((y, np.sqrt(y))):
        result = theirs(X, values, kind, groups, w)
        compare(model.summary(target=t), result, "t" if kind == "nonrobust" else "z")
        order = [*range(1, 11), 0]
        assert_allclose(model.covariance(target=t), result.cov_params().to_numpy()[np.ix_(order, order)], rtol=1e-7)


@every
def test_from_files_and_sparse_and_single_precision(diabetes, kind, tmp_path):
    X, y, w, groups = diabetes
    model, extra = ours(kind, groups)
    expected = model.fit(X, y, w, **extra).summary()["std err"]
    X.assign(target=y, w=w).to_parquet(tmp_path / "d.parquet")
    scan = ep.scan(tmp_path / "d.parquet", target="target", weight="w", batch_rows=100)
    assert_allclose(ours(kind, groups)[0].fit(scan, **extra).summary()["std err"], expected, rtol=1e-9)
    sparse = ours(kind, groups)[0].fit(sp.csr_array(X.to_numpy()), y, w, **extra)
    assert_allclose(sparse.summary()["std err"], expected, rtol=1e-7)
    single = ours(kind, groups)[0].fit(X.to_numpy(np.float32), y, w, **extra)
    assert_allclose(single.summary()["std err"], expected, rtol=1e-3)


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "HAC"])
def test_from_dask(diabetes, kind):
    X, y, w, groups = diabetes
    expected = ours(kind, groups)[0].fit(X, y, w, **({"groups": groups} if kind == "cluster" else {}))
    lazy = [da.from_array(np.asarray(v), chunks=(97, *v.shape[1:])) for v in (X, y, w, groups)]
    model = LinearRegression(cov_type=kind).fit(*lazy[:3], **({"groups": lazy[3]} if kind == "cluster" else {}))
    assert_allclose(model.summary()["std err"], expected.summary()["std err"], rtol=1e-9)
    assert model.summary().facts.keys() == expected.summary().facts.keys()


def test_blocks_do_not_matter(tmp_path):
    """Lags and groups reach across blocks; the same bits for any number of threads."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(9000, 3)) + 1e4
    e = np.convolve(rng.normal(size=9005), np.ones(6) / 6, mode="valid")
    y = X @ [1.0, 2.0, 3.0] + e
    groups = np.arange(9000) // 7
    for kind in ("HAC", "cluster", "HC3"):
        model, extra = ours(kind, groups)
        expected = theirs(X - 1e4, y, kind, groups).bse
        assert_allclose(model.fit(X, y, **extra).summary()["std err"][1:], expected[1:], rtol=1e-7)
        np.save(tmp_path / "d.npy", np.column_stack([X, y]))
        scan = ep.scan(tmp_path / "d.npy", target=3, batch_rows=1001)
        assert_allclose(ours(kind, groups)[0].fit(scan, **extra).summary()["std err"][1:], expected[1:], rtol=1e-7)
        two = ours(kind, groups, n_jobs=2)[0].fit(X, y, **extra)
        assert_array_equal(two.covariance(), model.covariance())


def test_groups_may_be_labels_and_rows_of_weight_zero_do_not_count(diabetes):
    X, y, _, groups = diabetes
    model = LinearRegression(cov_type="cluster").fit(X, y, groups=groups)
    names = np.array([f"firm {g}" for g in groups])
    named = LinearRegression(cov_type="cluster").fit(X, y, groups=names)
    assert_allclose(named.covariance(), model.covariance(), rtol=1e-9)
    kept = groups != 3
    without = LinearRegression(cov_type="cluster").fit(X[kept], y[kept], groups=groups[kept])
    weighted = LinearRegression(cov_type="cluster").fit(X, y, kept.astype(float), groups=groups)
    assert_allclose(weighted.covariance(), without.covariance(), rtol=1e-8)
    assert weighted.summary().facts["groups"] == without.summary().facts["groups"] == 39


# ------------------------------------------------------------------------------------------------ intervals


@every
@pytest.mark.parametrize("which", ["prediction", "confidence"])
def test_intervals(diabetes, kind, which):
    X, y, w, groups = diabetes
    model, extra = ours(kind, groups)
    model.fit(X[:400], y[:400], w[:400], **({"groups": groups[:400]} if extra else {}))
    result = theirs(X[:400], y[:400], kind, groups[:400], w[:400])
    new = X[400:] * 1.1
    got = model.predict_interval(new, kind=which, level=0.9, sample_weight=w[400:])
    frame = result.get_prediction(sm.add_constant(new), weights=w[400:]).summary_frame(alpha=0.1)
    name = "obs_ci" if which == "prediction" else "mean_ci"
    assert_allclose(got.prediction, frame["mean"], rtol=1e-9)
    assert_allclose(got.prediction, model.predict(new), rtol=1e-12)
    assert_allclose(got.lower, frame[f"{name}_lower"], rtol=1e-8)
    assert_allclose(got.upper, frame[f"{name}_upper"], rtol=1e-8)


def test_intervals_of_several_targets_sparse_and_dask(diabetes):
    X, y, _, _ = diabetes
    Y = np.column_stack([y, np.sqrt(y)])
    model = LinearRegression().fit(X.to_numpy(), Y)
    got = model.predict_interval(X.to_numpy()[:50])
    assert got.lower.shape == got.upper.shape == (50, 2)
    for t in range(2):
        one = LinearRegression().fit(X.to_numpy(), Y[:, t]).predict_interval(X.to_numpy()[:50])
        assert_allclose(got.lower[:, t], one.lower, rtol=1e-9)
    sparse = model.predict_interval(sp.csr_array(X.to_numpy()[:50]))
    assert_allclose(sparse.upper, got.upper, rtol=1e-9)
    lazy = model.predict_interval(da.from_array(X.to_numpy()[:50], chunks=(20, 10)))
    assert isinstance(lazy.lower, da.Array)
    assert_allclose(lazy.lower.compute(), got.lower, rtol=1e-12)


def test_intervals_far_from_the_origin():
    """Data shifted by 1e8 have the intervals of data that are not."""
    rng = np.random.default_rng(1)
    X = np.round(rng.normal(size=(200, 3)) * 2**12) / 2**12
    y = X @ [1.0, -1.0, 2.0] + rng.normal(size=200)
    for kind in ("nonrobust", "HC3"):
        near = LinearRegression(cov_type=kind).fit(X, y).predict_interval(X[:5], kind="confidence")
        far = LinearRegression(cov_type=kind).fit(X + 2.0**27, y).predict_interval(X[:5] + 2.0**27, kind="confidence")
        assert_allclose(far.upper - far.lower, near.upper - near.lower, rtol=1e-6)


# ------------------------------------------------------------------------------------------------ leverages


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("intercept", [True, False])
def test_leverage_hat_matrix_and_influence(diabetes, weighted, intercept):
    X, y, w, _ = diabetes
    weight = w if weighted else None
    model = LinearRegression(fit_intercept=intercept).fit(X, y, weight)
    result = theirs(X, y, "nonrobust", None, weight, intercept)
    root = np.sqrt(w)[:, None] if weighted else np.ones((len(y), 1))  # weighted rows are plain rows times the root
    design = (sm.add_constant(X) if intercept else X).to_numpy() * root
    influence = sm.OLS(y.to_numpy() * root[:, 0], design).fit().get_influence()
    h = model.leverage(X, weight)
    assert_allclose(h, influence.hat_matrix_diag, rtol=1e-8)
    H = model.hat_matrix(X, weight)
    assert_allclose(np.diag(H), h, rtol=1e-10)
    assert_allclose(H @ y, model.predict(X), rtol=1e-9)
    assert_allclose(H @ H, H, atol=1e-9)
    assert_allclose(np.trace(H), 10 + intercept, rtol=1e-10)
    got = model.influence(X, y, weight)
    assert_allclose(got.residual, result.resid, rtol=1e-6, atol=1e-8)
    assert_allclose(got.studentized_residual, influence.resid_studentized_internal, rtol=1e-7)
    assert_allclose(got.deleted_residual, influence.resid_studentized_external, rtol=1e-7)
    assert_allclose(got.cooks_distance, influence.cooks_distance[0], rtol=1e-7)
    assert_allclose(got.dffits, influence.dffits[0], rtol=1e-7)


def test_influence_by_leaving_rows_out(diabetes):
    X, y, w, _ = diabetes
    X, y, w = X.to_numpy()[:60], y.to_numpy()[:60], w[:60]
    model = LinearRegression().fit(X, y, w)
    got = model.influence(X, y, w)
    variance = model.summary().facts["residual std"] ** 2
    for i in (0, 17, 59):
        rest = np.arange(60) != i
        without = LinearRegression().fit(X[rest], y[rest], w[rest])
        moved = model.predict(X) - without.predict(X)
        assert_allclose(got.cooks_distance[i], (w * moved**2).sum() / 11 / variance, rtol=1e-7)
        spread = without.predict_interval(X[i : i + 1], sample_weight=w[i : i + 1], level=0.5)
        off = (y[i] - spread.prediction[0]) / (spread.upper[0] - spread.prediction[0])
        assert_allclose(got.deleted_residual[i], off * scipy.stats.t(48).ppf(0.75), rtol=1e-7)


def test_leverages_from_files_sparse_and_dask(diabetes, tmp_path):
    X, y, w, _ = diabetes
    model = LinearRegression().fit(X, y, w)
    expected = model.leverage(X, w)
    X.assign(target=y, w=w).to_parquet(tmp_path / "d.parquet")
    scan = ep.scan(tmp_path / "d.parquet", target="target", weight="w", batch_rows=100)
    assert_allclose(model.leverage(scan), expected, rtol=1e-12)
    assert_allclose(model.influence(scan).cooks_distance, model.influence(X, y, w).cooks_distance, rtol=1e-7)
    bare = LinearRegression().fit(X.to_numpy(), y, w)
    lazy = bare.leverage(da.from_array(X.to_numpy(), chunks=(97, 10)), da.from_array(w, chunks=97))
    assert_allclose(lazy.compute(), expected, rtol=1e-9)
    assert_allclose(bare.leverage(sp.csr_array(X.to_numpy()), w), expected, rtol=1e-7)
    with pytest.raises(DataError, match="in memory"):
        model.hat_matrix(scan)


def test_a_hat_matrix_that_does_not_fit_is_refused():
    X = np.random.default_rng(0).normal(size=(5000, 2))
    model = LinearRegression().fit(X, X[:, 0])
    with ep.config(memory_limit=10**8), pytest.raises(MemoryBudgetError, match=r"5000 x 5000.*leverage\(X\)"):
        model.hat_matrix(X)


# ------------------------------------------------------------------------------------------------ refusals


def test_bad_arguments(diabetes):
    X, y, _, groups = diabetes
    with pytest.raises(ParameterError, match="cov_type='HC4'"):
        LinearRegression(cov_type="HC4").fit(X, y)
    with pytest.raises(DataError, match="groups: cov_type='cluster' needs them"):
        LinearRegression(cov_type="cluster").fit(X, y)
    with pytest.raises(DataError, match="groups: are for cov_type='cluster'"):
        LinearRegression(cov_type="HC3").fit(X, y, groups=groups)
    with pytest.raises(DataError, match="groups: has 5 labels, X has 442"):
        LinearRegression(cov_type="cluster").fit(X, y, groups=groups[:5])
    with pytest.raises(DataError, match="same group"):
        LinearRegression(cov_type="cluster").fit(X, y, groups=np.zeros(len(y)))
    with pytest.raises(ParameterError, match="maxlags=500"):
        LinearRegression(cov_type="HAC", maxlags=500).fit(X, y)
    with pytest.raises(ParameterError, match=r"cov_type='HC3'.*partial_fit"):
        LinearRegression(cov_type="HC3").partial_fit(X, y)
    lazy = [da.from_array(np.asarray(v), chunks=(97, *v.shape[1:])) for v in (X, y)]
    with pytest.raises(DataError, match="HAC"):
        LinearRegression(cov_type="HAC").fit(*lazy)
    with pytest.raises(DataTypeError, match="Dask array of numbers"):
        LinearRegression(cov_type="cluster").fit(*lazy, groups=groups)
    model = LinearRegression().fit(X, y)
    with pytest.raises(ParameterError, match="kind='tolerance'"):
        model.predict_interval(X, kind="tolerance")
    with pytest.raises(ParameterError, match="level=95"):
        model.predict_interval(X, level=95)
    with pytest.raises(ParameterError, match="target=1"):
        model.leverage(X, target=1)
    with pytest.raises(NotFittedError, match="0 degrees of freedom"):
        LinearRegression().fit(X[:11], y[:11]).predict_interval(X)


def test_survives_a_file(diabetes, tmp_path):
    X, y, w, groups = diabetes
    model = LinearRegression(cov_type="cluster").fit(X, y, w, groups=groups)
    model.save(tmp_path / "m.epi")
    loaded = ep.load(tmp_path / "m.epi")
    assert str(loaded.summary()) == str(model.summary())
    assert_array_equal(loaded.predict_interval(X).upper, model.predict_interval(X).upper)
    assert "cluster" in str(loaded.summary())
    assert isinstance(loaded.summary().to_frame(), pd.DataFrame)
