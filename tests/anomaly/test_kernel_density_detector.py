"""Kernel densities as detectors: leave-one-out sums by brute force, bandwidths, weights, engines, explanations."""

import warnings

import dask.array as da
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings, strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
from sklearn.metrics import roc_auc_score

import epicycle as ep
from epicycle import KernelDensity, KernelDensityAnomalyDetector
from epicycle.exceptions import DataError, ParameterError
from epicycle.neighbors._kernel_density import log_normaliser

RNG = np.random.default_rng(0)
X = np.concatenate([RNG.normal(size=(200, 3)), RNG.normal(size=(100, 3)) * [1, 5, 0.1] + [6, 0, 2]])
X = np.concatenate([X, X[:5], [[40.0, 0.0, 0.0]]]) * [1.0, 1e3, 1e-2] + [0.0, -5.0, 1e2]
WEIGHT = np.random.default_rng(1).integers(0, 4, len(X)).astype(float)
LOG_KERNEL = {"gaussian": lambda r: -(r**2) / 2, "exponential": lambda r: -r}


def by_brute_force(table, queries, kernel, h, *, weight=None, out=None):
    """Leave-one-out log-densities from all distances; row `out[i]` of the table is query i."""
    w = np.repeat((np.ones(len(table)) if weight is None else weight)[None], len(queries), axis=0)
    if out is not None:
        w[np.arange(len(queries)), out] -= 1
    with np.errstate(divide="ignore"):
        logs = logsumexp(LOG_KERNEL[kernel](cdist(queries, table) / h) + np.log(w), axis=1)
    return logs - np.log(w.sum(axis=1)) - log_normaliser(kernel, table.shape[1], h)


def standard(table, weight=None):
    mean = np.average(table, axis=0, weights=weight)
    return (table - mean) / np.sqrt(np.average((table - mean) ** 2, axis=0, weights=weight))


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
@pytest.mark.parametrize("bandwidth", ["scott", "silverman", 0.05])
def test_scores_leave_the_row_itself_out(kernel, bandwidth):
    Z, n = standard(X), len(X)
    model = KernelDensityAnomalyDetector(bandwidth=bandwidth, kernel=kernel, contamination=0.05).fit(X)
    h = {"scott": n ** (-1 / 7), "silverman": (n * 5 / 4) ** (-1 / 7)}.get(bandwidth, bandwidth)
    assert model.bandwidth_ == pytest.approx(h)
    expected = by_brute_force(Z, Z, kernel, h, out=np.arange(n))
    assert_allclose(model.score_samples(X), expected, rtol=1e-9, atol=1e-9)
    new = X[:50] + 0.1 * X.std(axis=0)  # equal to no row: nothing is left out
    at = (new - X.mean(axis=0)) / X.std(axis=0)
    assert_allclose(model.score_samples(new), by_brute_force(Z, at, kernel, h), rtol=1e-9, atol=1e-9)
    # its own kernel would be all of the density at the far row, whose score is the log of a number below 1e-300
    assert model.score_samples(X).argmin() == n - 1
    if kernel == "gaussian" and bandwidth == 0.05:
        assert model.score_samples(X[-1:]) < -1000
    flagged = model.fit_predict(X) == -1
    assert flagged.sum() == np.ceil(0.05 * n)
    assert_array_equal(flagged, model.decision_function(X) < 0)
    assert model.certificate_.holds
    assert model.certificate_.value == 0


def test_one_unit_of_weight_is_left_out_as_of_repeated_rows(tmp_path):
    weighted = KernelDensityAnomalyDetector(bandwidth="likelihood").fit(X, sample_weight=WEIGHT)
    rows = np.random.default_rng(2).permutation(np.repeat(X, WEIGHT.astype(int), axis=0))
    repeated = KernelDensityAnomalyDetector(bandwidth="likelihood").fit(rows)
    assert_allclose(weighted.bandwidth_, repeated.bandwidth_, rtol=1e-6)
    assert_allclose(weighted.score_samples(X), repeated.score_samples(X), rtol=1e-5, atol=1e-5)
    assert_allclose(weighted.offset_, repeated.offset_, rtol=1e-5)
    kept = np.flatnonzero(WEIGHT)
    Z, h = standard(X[kept], WEIGHT[kept]), weighted.bandwidth_
    alone = np.isin(kept, [*range(5), *range(300, 305)], invert=True)  # rows without a twin
    expected = by_brute_force(Z, Z, "gaussian", h, weight=WEIGHT[kept], out=np.arange(len(kept)))
    assert_allclose(weighted.score_samples(X[kept])[alone], expected[alone], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_the_likeliest_bandwidth_by_another_search(kernel):
    Z = standard(X)
    model = KernelDensityAnomalyDetector(bandwidth="likelihood", kernel=kernel).fit(X)

    def loss(log_h):
        return -by_brute_force(Z, Z, kernel, np.exp(log_h), out=np.arange(len(Z))).mean()

    best = minimize_scalar(loss, bracket=(np.log(0.05), np.log(0.3), np.log(3.0)))
    assert model.bandwidth_ == pytest.approx(np.exp(best.x), rel=1e-3)
    scaled = KernelDensity(bandwidth="likelihood", kernel=kernel).fit(1e5 * Z)  # found at any scale
    assert scaled.bandwidth_ == pytest.approx(1e5 * model.bandwidth_, rel=1e-3)
    for name, rows in {"equal another": np.repeat(X[:20], 5, axis=0), "all rows are equal": np.ones((9, 2))}.items():
        with pytest.raises(DataError, match=name):
            KernelDensityAnomalyDetector(bandwidth="likelihood").fit(rows)
    with pytest.raises(ParameterError, match="bandwidth='likelihood'"):
        KernelDensity(bandwidth="likelihood", kernel="tophat").fit(X)


def test_many_rows_take_a_sample_of_queries():
    rows = np.random.default_rng(3).normal(size=(2500, 1))
    found = KernelDensity(bandwidth="likelihood").fit(rows).bandwidth_
    assert KernelDensity(bandwidth="likelihood").fit(rows[::-1]).bandwidth_ == pytest.approx(found, rel=1e-6)
    assert found == pytest.approx(1.06 * 2500 ** (-1 / 5), rel=0.3)  # the normal rule


def test_the_error_is_within_rtol_and_threads_give_the_same_bits():
    exact = KernelDensityAnomalyDetector(bandwidth=2.0).fit(X).score_samples(X)
    models = [KernelDensityAnomalyDetector(bandwidth=2.0, rtol=0.1, n_jobs=k).fit(X) for k in (1, 2, 4)]
    rough = models[0].score_samples(X)
    assert np.abs(np.expm1(rough - exact)).max() <= 0.1 + 1e-9
    assert np.abs(rough - exact).max() > 1e-9  # it is used
    assert models[0].certificate_.value == 0.1
    for model in models[1:]:
        assert_array_equal(model.score_samples(X), rough)


@pytest.mark.parametrize("kernel", ["gaussian", "exponential"])
def test_explanations_add_up_and_name_the_column(kernel):
    model = KernelDensityAnomalyDetector(bandwidth=0.5, kernel=kernel).fit(X)
    Z, h = standard(X), 0.5
    D = cdist(Z, Z)
    logs = LOG_KERNEL[kernel](D / h)
    np.fill_diagonal(logs, -np.inf)
    share = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.fill_diagonal(logs, 0.0)
    parts = model.explain(X)
    assert_allclose(parts.sum(axis=1), -(share * logs).sum(axis=1), rtol=1e-8, atol=1e-8)
    assert parts.min() >= 0
    odd = np.tile(X[:100].mean(axis=0), (3, 1)) + 30 * np.diag(X.std(axis=0))
    assert_array_equal(model.explain(odd).argmax(axis=1), [0, 1, 2])
    far = model.explain(np.full((1, 3), 1e300))
    assert np.isfinite(far).all()
    assert KernelDensityAnomalyDetector(bandwidth=1e-300).fit(X).explain(X).max() < np.inf


def test_queries_from_files_and_dask_labels_and_p_values(tmp_path):
    label = np.arange(len(X)) == len(X) - 1
    table = pd.DataFrame(X, columns=["a", "b", "c"])
    model = KernelDensityAnomalyDetector().fit(table, label)
    assert model.f1_ == 1.0
    assert len(model.density_.X_fit_) == len(X) - 1  # fitted to the normal rows
    scores = model.score_samples(table)
    table.to_csv(tmp_path / "rows.csv", index=False)
    assert_allclose(model.score_samples(ep.scan(tmp_path / "rows.csv")), scores, rtol=1e-9)
    lazy = KernelDensityAnomalyDetector().fit(X).predict(da.from_array(X, chunks=(100, 3)))
    assert_array_equal(lazy.compute(), KernelDensityAnomalyDetector().fit(X).predict(X))
    sparse, dense = (KernelDensityAnomalyDetector().fit(A).score_samples(A) for A in (sp.csr_array(X), X))
    assert_allclose(sparse, dense, rtol=1e-9)
    with pytest.raises(DataError, match="in memory"):
        KernelDensityAnomalyDetector().fit(da.from_array(X, chunks=(100, 3)))
    with pytest.raises(DataError, match="1 sample"):
        KernelDensityAnomalyDetector().fit(X, sample_weight=label.astype(float))
    rng = np.random.default_rng(5)
    model = KernelDensityAnomalyDetector().fit(rng.normal(size=(400, 2))).calibrate(rng.normal(size=(399, 2)))
    p = model.p_values(rng.normal(size=(2000, 2)))
    for level in (0.05, 0.2, 0.5):
        assert abs(np.mean(p <= level) - level) < 0.06
    assert_array_equal(model.detect([[0.0, 0.0], [9.0, 9.0]], fdr=0.1), [1, -1])
    model.save(tmp_path / "model.epi")
    again = ep.load(tmp_path / "model.epi")
    assert_array_equal(again.decision_function(X[:, :2]), model.decision_function(X[:, :2]))
    assert_array_equal(again.p_values(X[:, :2]), model.p_values(X[:, :2]))


def test_shapes_that_no_normal_density_has():
    rng = np.random.default_rng(7)
    angle = rng.uniform(0, 2 * np.pi, 600)
    ring = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(1, 0.03, (600, 1))
    odd = rng.uniform(-0.5, 0.5, size=(30, 2))  # within the ring
    both, label = np.concatenate([ring, odd]), np.arange(630) >= 600
    area = roc_auc_score(label, -KernelDensityAnomalyDetector(bandwidth="likelihood").fit(both).score_samples(both))
    assert area > 0.97
    assert area > roc_auc_score(label, -ep.GaussianAnomalyDetector().fit(both).score_samples(both)) + 0.5


@given(
    scale=st.sampled_from([1e-150, 1e-3, 1.0, 1e6, 1e150]),
    n=st.integers(2, 12),
    constant=st.booleans(),
    kernel=st.sampled_from(["gaussian", "exponential"]),
    common=st.booleans(),
    seed=st.integers(0, 5),
)
@settings(deadline=None)
def test_scale_order_and_no_nan(scale, n, constant, kernel, common, seed):
    rng = np.random.default_rng(seed)
    table = rng.normal(size=(n, 3))
    if constant:
        table[:, 1] = 7.0
    model = KernelDensityAnomalyDetector(kernel=kernel, scale=not common)
    with warnings.catch_warnings(), np.errstate(all="raise", under="ignore"):
        warnings.simplefilter("error")
        base, scaled = model.fit(table).score_samples(table), model.fit(scale * table).score_samples(scale * table)
        assert np.isfinite(model.score_samples(np.full((1, 3), 1e300))).all()
        assert np.isfinite(model.explain(scale * table)).all()
    assert np.isfinite(model.offset_)
    assert np.isfinite(base).all()
    assert_allclose(scaled, base, rtol=1e-5, atol=1e-5)
    order = rng.permutation(n)
    again = KernelDensityAnomalyDetector(kernel=kernel, scale=not common).fit(table[order]).score_samples(table[order])
    assert_allclose(again, base[order], rtol=1e-7, atol=1e-7)
    if not constant:
        assert_allclose(
            KernelDensityAnomalyDetector(kernel=kernel)
            .fit(table.astype(np.float32))
            .score_samples(table.astype(np.float32)),
            KernelDensityAnomalyDetector(kernel=kernel).fit(table).score_samples(table),
            rtol=1e-3,
            atol=1e-3,
        )
