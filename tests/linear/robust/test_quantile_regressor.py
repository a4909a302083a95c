"""Quantile regression beside its optimum: statistics, several quantiles, engines, input."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import statsmodels.api as sm
from numpy.testing import assert_allclose

import epicycle as ep
from epicycle import QuantileRegressor
from epicycle.exceptions import ConvergenceError, ConvergenceWarning, DataError, ParameterError


def heteroscedastic(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 2, size=(n, 2))
    return X, 1 + X @ [2.0, -1.0] + (0.3 + X[:, 0]) * rng.normal(size=n)


@pytest.mark.parametrize("tau", [0.5, 0.2])
@pytest.mark.parametrize("kind", ["iid", "robust"])
def test_standard_errors_equal_statsmodels(tau, kind):
    X, y = heteroscedastic(600, 0)
    ours = QuantileRegressor(quantile=tau, alpha=0).fit(X, y).summary(covariance=kind)
    theirs = sm.QuantReg(y, sm.add_constant(X)).fit(q=tau, vcov=kind, p_tol=1e-12, max_iter=20_000)
    assert_allclose(ours["coef"], theirs.params, atol=1e-5)  # its iterations end before the optimum
    # "robust" asks for the signs of the residuals, which on the three rows of the hyperplane are rounding there.
    assert_allclose(ours["std err"], theirs.bse, rtol=1e-4 if kind == "iid" else 1e-2)


def test_kernel_standard_errors_by_hand():
    X, y = heteroscedastic(400, 1)
    tau, n = 0.7, 400
    model = QuantileRegressor(quantile=tau, alpha=0).fit(X, y)
    summary = model.summary(covariance="kernel")
    A = np.column_stack([np.ones(n), X])
    r = y - model.predict(X)
    h = summary.facts["bandwidth"]
    K = np.maximum(0.75 * (1 - (r / h) ** 2), 0) / h
    H = np.linalg.inv(A.T @ (A * K[:, None]))
    assert_allclose(summary["std err"], np.sqrt(np.diag(tau * (1 - tau) * H @ A.T @ A @ H)), rtol=1e-8)


def coverage(make, n, repetitions):
    """How often 95 % intervals hold the truth, by kind of standard error."""
    truth = np.array([1.0, 2.0, -1.0])
    inside = {"kernel": [], "iid": [], "robust": []}
    for k in range(repetitions):
        model = QuantileRegressor(quantile=0.5, alpha=0).fit(*make(n, k))
        for kind, found in inside.items():
            summary = model.summary(covariance=kind)
            found.append((summary["[0.025"] <= truth) & (truth <= summary["0.975]"]))
    return {kind: np.mean(found, axis=0) for kind, found in inside.items()}


def independent(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, 1 + X @ [2.0, -1.0] + rng.standard_t(4, size=n)


def weighted(n, seed):
    X, y = heteroscedastic(n, seed)
    return X, y, np.random.default_rng(seed + 10_000).uniform(0.2, 2, size=n)


def covers(share):
    """Binomial noise of 250 samples at 95 % is 1.4 %."""
    return (share > 0.91).all() and (share < 0.99).all()


@pytest.mark.slow
def test_intervals_cover_under_independent_noise():
    share = coverage(independent, 300, 250)
    assert all(covers(share[kind]) for kind in share), share


@pytest.mark.slow
def test_kernel_intervals_cover_where_the_density_depends_on_x():
    """And those of one density do not, which is why the kernel is the default."""
    share = coverage(heteroscedastic, 400, 250)
    assert covers(share["kernel"]), share
    assert share["iid"][1] < 0.93


@pytest.mark.slow
def test_kernel_intervals_cover_with_weights():
    share = coverage(weighted, 400, 250)
    assert covers(share["kernel"]), share


def test_what_has_no_standard_errors_says_why():
    X, y = heteroscedastic(200, 0)
    assert "penalised" in QuantileRegressor(alpha=0.1).fit(X, y).summary().note
    dependent = np.column_stack([X, X.sum(axis=1)])
    assert "depend" in QuantileRegressor(alpha=0).fit(dependent, y).summary().note
    assert "too few" in QuantileRegressor(quantile=0.01, alpha=0).fit(X[:30], y[:30]).summary().note
    with pytest.raises(ParameterError, match="covariance='hc0'"):
        QuantileRegressor(alpha=0).fit(X, y).summary(covariance="hc0")


def test_several_quantiles_are_each_its_own():
    X, y = heteroscedastic(500, 2)
    taus = [0.1, 0.5, 0.9]
    model = QuantileRegressor(quantile=taus, alpha=0).fit(X, y)
    assert model.coef_.shape == (3, 2)
    assert model.predict(X).shape == (500, 3)
    for t, tau in enumerate(taus):
        single = QuantileRegressor(quantile=tau, alpha=0).fit(X, y)
        assert_allclose(model.coef_[t], single.coef_, rtol=1e-12)
        assert_allclose(model.summary(target=t)["std err"], single.summary()["std err"])
    assert 0 < model.score(X, y) < 1


def test_non_crossing_predictions_are_in_order():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), rng.normal(size=25)
    taus = [0.5, 0.3, 0.7, 0.4]
    far = 5 * rng.normal(size=(50, 3))
    crossing = QuantileRegressor(quantile=taus, alpha=0).fit(X, y).predict(far)
    ordered = QuantileRegressor(quantile=taus, alpha=0, non_crossing=True).fit(X, y).predict(far)
    order = np.argsort(taus)
    assert (np.diff(crossing[:, order], axis=1) < 0).any()
    assert (np.diff(ordered[:, order], axis=1) >= 0).all()
    assert_allclose(np.sort(crossing, axis=1), np.sort(ordered, axis=1))


@pytest.mark.parametrize("quantile", [0, 1, -0.1, 1.5, [], [0.5, 1.0], [[0.5]], "median", None])
def test_bad_quantiles(quantile):
    with pytest.raises(ParameterError, match="quantile="):
        QuantileRegressor(quantile=quantile).fit([[1.0], [2.0]], [1.0, 2.0])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(6000, 3))
    X[:, 1] += 100
    frame = pd.DataFrame(X, columns=list("abc"))
    return frame.assign(y=X @ [1.0, 0.1, -1.0] + rng.standard_t(3, size=6000), w=rng.uniform(0.1, 2, size=6000))


def test_from_files_and_dask(table, tmp_path):
    for i in range(4):
        table.iloc[i * 1500 : (i + 1) * 1500].to_parquet(tmp_path / f"{i}.parquet", index=False)
    columns = list("abc")
    memory = QuantileRegressor(quantile=[0.2, 0.5], alpha=0).fit(table[columns], table["y"], table["w"])
    source = ep.scan(str(tmp_path / "*.parquet"), target="y", weight="w", columns=columns)
    files = QuantileRegressor(quantile=[0.2, 0.5], alpha=0).fit(source)
    X, y, w = (da.from_array(v, chunks=1700) for v in (table[columns].to_numpy(), table["y"], table["w"]))
    dask = QuantileRegressor(quantile=[0.2, 0.5], alpha=0).fit(X.rechunk((1700, 3)), y, w)
    assert memory.history_.rows[-1] < 3000
    for other in (files, dask):
        assert other.certificate_.holds
        assert_allclose(other.coef_, memory.coef_, rtol=1e-10)
        assert_allclose(other.summary()["std err"], memory.summary()["std err"], rtol=1e-8)
    assert_allclose(files.predict(source), memory.predict(table[columns]))


def test_float32_stays(table):
    X = table[list("abc")].to_numpy(dtype=np.float32)
    model = QuantileRegressor(alpha=0).fit(X, table["y"])
    assert model.coef_.dtype == model.predict(X).dtype == np.float32
    assert_allclose(model.coef_, QuantileRegressor(alpha=0).fit(X.astype(float), table["y"]).coef_, rtol=1e-5)


def test_sparse_equals_dense():
    rng = np.random.default_rng(0)
    X = sp.random_array((800, 30), density=0.1, rng=rng, format="csr")
    y = X @ rng.normal(size=30) + rng.normal(size=800)
    for alpha in (0.0, 0.005):
        sparse = QuantileRegressor(alpha=alpha, quantile=0.6).fit(X, y)
        dense = QuantileRegressor(alpha=alpha, quantile=0.6).fit(X.toarray(), y)
        assert_allclose(sparse.coef_, dense.coef_, atol=1e-9)
        assert sparse.certificate_.holds


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20, 50)), rng.normal(size=20)
    model = QuantileRegressor(alpha=0).fit(X, y)
    assert_allclose(model.predict(X), y, atol=1e-10)
    assert model.objective_ == pytest.approx(0, abs=1e-12)
    assert model.certificate_.holds
    assert np.count_nonzero(model.coef_) <= 19


def test_a_quantile_beyond_floating_point_is_refused_or_finite():
    rng = np.random.default_rng(0)
    for seed in range(10):
        X, y = rng.integers(-5, 5, size=(2 + seed % 3, 8)), rng.normal(size=2 + seed % 3) * 1e100
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model = QuantileRegressor(quantile=1e-300).fit(X, y)
        except (ConvergenceError, DataError):
            continue
        assert np.isfinite(model.predict(X)).all()
